package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// bindDisks registers the calls about local disks and promotion as a master answers
// them on which these are off.
func bindDisks(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.MountLocalDiskSegment, func(_ *rpc.Call, _ *wire.MountLocalDiskSegmentRequest, a *void) error {
		a.Code = errcode.UnableOffload
		return nil
	})
	rpc.Handle(s, wire.UnmountLocalDiskSegment, func(_ *rpc.Call, _ *wire.UnmountLocalDiskSegmentRequest, a *void) error {
		a.Code = errcode.UnableOffload
		return nil
	})
	rpc.Handle(s, wire.OffloadObjectHeartbeat, func(_ *rpc.Call, _ *wire.OffloadObjectHeartbeatRequest, a *errcode.Result[[]wire.OffloadTaskItem]) error {
		a.Code = errcode.SegmentNotFound
		return nil
	})
	rpc.Handle(s, wire.ReportSsdCapacity, func(_ *rpc.Call, q *wire.ReportSsdCapacityRequest, a *void) error {
		if a.Code = errcode.SegmentNotFound; q.SSDTotalCapacityBytes < 0 {
			a.Code = errcode.InvalidParams
		}
		return nil
	})
	rpc.Handle(s, wire.NotifyOffloadSuccess, func(_ *rpc.Call, q *wire.NotifyOffloadSuccessRequest, a *void) error {
		switch {
		case len(q.Tasks) != len(q.Metadatas):
			a.Code = errcode.InvalidParams
		case len(q.Tasks) > 0:
			a.Code = errcode.UnavailableInMode
		}
		return nil
	})
	rpc.Handle(s, wire.PollRemoveAll, func(_ *rpc.Call, _ *wire.PollRemoveAllRequest, a *yes) error {
		a.Code = errcode.SegmentNotFound
		return nil
	})
	rpc.Handle(s, wire.EvictDiskReplica, func(_ *rpc.Call, q *wire.EvictDiskReplicaRequest, a *void) error {
		a.Code = m.EvictDisk(q.TenantID, q.Key, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.BatchEvictDiskReplica, func(_ *rpc.Call, q *wire.BatchEvictDiskReplicaRequest, a *[]void) error {
		for _, key := range q.Keys {
			*a = append(*a, void{Code: m.EvictDisk(q.TenantID, key, q.ReplicaType)})
		}
		return nil
	})
	rpc.Handle(s, wire.PromotionObjectHeartbeat, func(_ *rpc.Call, _ *wire.PromotionObjectHeartbeatRequest, a *errcode.Result[[]wire.PromotionTaskItem]) error {
		a.Code = errcode.SegmentNotFound
		return nil
	})
	rpc.Handle(s, wire.PromotionAllocStart, func(_ *rpc.Call, q *wire.PromotionAllocStartRequest, a *errcode.Result[wire.PromotionAlloc]) error {
		a.Code = m.PromotionRefused(q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.NotifyPromotionSuccess, func(_ *rpc.Call, q *wire.NotifyPromotionSuccessRequest, a *void) error {
		a.Code = m.Idle(q.TenantID, q.Key, errcode.ReplicaIsNotReady)
		return nil
	})
	rpc.Handle(s, wire.NotifyPromotionFailure, func(_ *rpc.Call, q *wire.NotifyPromotionFailureRequest, a *void) error {
		a.Code = m.Idle(q.TenantID, q.Key, errcode.OK)
		return nil
	})
}
