package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// bindDisks registers the calls about clients' own disks.
func bindDisks(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.MountLocalDiskSegment, func(_ *rpc.Call, q *wire.MountLocalDiskSegmentRequest, a *void) error {
		a.Code = m.MountLocalDisk(q.ClientID, q.EnableOffloading)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.UnmountLocalDiskSegment, func(_ *rpc.Call, q *wire.UnmountLocalDiskSegmentRequest, a *void) error {
		a.Code = m.UnmountLocalDisk(q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.ReportSsdCapacity, func(_ *rpc.Call, q *wire.ReportSsdCapacityRequest, a *void) error {
		a.Code = m.ReportDiskCapacity(q.ClientID, q.SSDTotalCapacityBytes)
		return nil
	})
	rpc.Handle(s, wire.PollRemoveAll, func(_ *rpc.Call, q *wire.PollRemoveAllRequest, a *yes) error {
		a.Value, a.Code = m.PollRemoveAll(q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.OffloadObjectHeartbeat, func(_ *rpc.Call, q *wire.OffloadObjectHeartbeatRequest, a *errcode.Result[[]wire.OffloadTaskItem]) error {
		items, code := m.OffloadHeartbeat(q.ClientID, q.EnableOffloading)
		a.Code = code
		for _, i := range items {
			a.Value = append(a.Value, wire.OffloadTaskItem{TenantID: i.Tenant, Key: i.Key, Size: i.Size})
		}
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.NotifyOffloadSuccess, func(_ *rpc.Call, q *wire.NotifyOffloadSuccessRequest, a *void) error {
		a.Code = notifyOffload(m, q)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.EvictDiskReplica, func(_ *rpc.Call, q *wire.EvictDiskReplicaRequest, a *void) error {
		a.Code = m.EvictDiskReplica(q.ClientID, q.TenantID, q.Key, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.BatchEvictDiskReplica, func(c *rpc.Call, q *wire.BatchEvictDiskReplicaRequest, a *[]void) error {
		inPieces(c, len(q.Keys), func(from, to int) {
			for _, key := range q.Keys[from:to] {
				*a = append(*a, void{Code: m.EvictDiskReplica(q.ClientID, q.TenantID, key, q.ReplicaType)})
			}
		})
		return nil
	})
	rpc.Handle(s, wire.EvictDiskReplicaIfCurrent, func(_ *rpc.Call, q *wire.EvictDiskReplicaIfCurrentRequest, a *yes) error {
		a.Value, a.Code = m.EvictDiskReplicaIfCurrent(q.ClientID, q.TenantID, q.Key, q.ReplicaType, q.ExpectedReplicaIDOrVersion)
		return nil
	})
	bindPromotions(s, m)
}

func notifyOffload(m *core.Master, q *wire.NotifyOffloadSuccessRequest) errcode.Code {
	if len(q.Tasks) != len(q.Metadatas) {
		return errcode.InvalidParams
	}
	reports := make([]core.DiskReport, len(q.Tasks))
	for i := range reports {
		reports[i] = core.DiskReport{
			Tenant: q.Tasks[i].TenantID, Key: q.Tasks[i].Key,
			Size: q.Metadatas[i].DataSize, Endpoint: q.Metadatas[i].TransportEndpoint,
		}
	}
	return m.NotifyOffload(q.ClientID, reports)
}

// bindPromotions registers the calls about objects that come back from disks.
func bindPromotions(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.PromotionObjectHeartbeat, func(_ *rpc.Call, q *wire.PromotionObjectHeartbeatRequest, a *errcode.Result[[]wire.PromotionTaskItem]) error {
		items, code := m.PromotionHeartbeat(q.ClientID)
		a.Code = code
		for _, i := range items {
			a.Value = append(a.Value, wire.PromotionTaskItem{TenantID: i.Tenant, Key: i.Key, Size: i.Size})
		}
		return nil
	})
	rpc.Handle(s, wire.PromotionAllocStart, func(_ *rpc.Call, q *wire.PromotionAllocStartRequest, a *errcode.Result[wire.PromotionAlloc]) error {
		a.Value.MemoryDescriptor, a.Code = m.StartPromotion(q.ClientID, q.TenantID, q.Key, q.Size, q.PreferredSegments)
		return nil
	})
	rpc.Handle(s, wire.NotifyPromotionSuccess, func(_ *rpc.Call, q *wire.NotifyPromotionSuccessRequest, a *void) error {
		a.Code = m.EndPromotion(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.NotifyPromotionFailure, func(_ *rpc.Call, q *wire.NotifyPromotionFailureRequest, a *void) error {
		a.Code = m.FailPromotion(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.RegisterPrefetchTask, func(_ *rpc.Call, q *wire.RegisterPrefetchTaskRequest, a *void) error {
		a.Code = m.RegisterPrefetch(q.ClientID, q.TenantID, q.Key)
		return nil
	})
}
