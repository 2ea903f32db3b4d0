package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// StoreVersion is the version of the store protocol. Clients refuse a master that answers
// ServiceReady with any other.
const StoreVersion = "2.0.0"

func bindService(s *rpc.Server, m *core.Master) {
	cfg := m.Config()
	rpc.Handle(s, wire.ServiceReady, func(_ *rpc.Call, _ *wire.ServiceReadyRequest, a *errcode.Result[string]) error {
		a.Value = StoreVersion
		return nil
	})
	rpc.Handle(s, wire.GetStorageConfig, func(_ *rpc.Call, _ *wire.GetStorageConfigRequest, a *errcode.Result[wire.StorageConfig]) error {
		a.Value = wire.StorageConfig{FSDir: m.SharedFolder(), EnableDiskEviction: cfg.EnableDiskEviction, QuotaBytes: cfg.DiskQuotaBytes}
		return nil
	})
	rpc.Handle(s, wire.GetFsdir, func(_ *rpc.Call, _ *wire.GetFsdirRequest, a *errcode.Result[string]) error {
		a.Value = m.SharedFolder()
		return nil
	})
	rpc.Handle(s, wire.Ping, func(_ *rpc.Call, q *wire.PingRequest, a *errcode.Result[wire.PingReply]) error {
		a.Value.ClientStatus = wire.ClientStatus(m.Ping(q.ClientID))
		return nil
	})
	rpc.Handle(s, wire.BatchQueryIp, func(_ *rpc.Call, q *wire.BatchQueryIpRequest, a *errcode.Result[wire.Map[segment.UUID, []string]]) error {
		for _, e := range m.BatchQueryIP(q.ClientIDs) {
			a.Value.Entries = append(a.Value.Entries, wire.Entry[segment.UUID, []string](e))
		}
		return nil
	})
}

func bindSegments(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.MountSegment, func(_ *rpc.Call, q *wire.MountSegmentRequest, a *void) error {
		a.Code = m.MountSegment(q.Segment, q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.ReMountSegment, func(_ *rpc.Call, q *wire.ReMountSegmentRequest, a *void) error {
		a.Code = m.ReMountSegment(q.Segments, q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.UnmountSegment, func(_ *rpc.Call, q *wire.UnmountSegmentRequest, a *void) error {
		a.Code = m.UnmountSegment(q.SegmentID, q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.GracefulUnmountSegment, func(_ *rpc.Call, q *wire.GracefulUnmountSegmentRequest, a *void) error {
		a.Code = m.GracefulUnmountSegment(q.SegmentID, q.ClientID, q.GracePeriodMs)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.QuerySegmentStatus, func(_ *rpc.Call, q *wire.QuerySegmentStatusRequest, a *errcode.Result[segment.Status]) error {
		a.Value, a.Code = m.QuerySegmentStatus(q.SegmentName)
		return nil
	})
	rpc.Handle(s, wire.QuerySegmentStatusById, func(_ *rpc.Call, q *wire.QuerySegmentStatusByIdRequest, a *errcode.Result[segment.Status]) error {
		a.Value, a.Code = m.QuerySegmentStatusByID(q.SegmentID)
		return nil
	})
}
