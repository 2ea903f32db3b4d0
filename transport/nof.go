package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// bindNoF registers the calls about NVMe-oF segments.
func bindNoF(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.MountNoFSegment, func(_ *rpc.Call, q *wire.MountNoFSegmentRequest, a *void) error {
		a.Code = m.MountNoFSegment(core.NoFSegment(q.Segment), q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.ReMountNoFSegment, func(_ *rpc.Call, q *wire.ReMountNoFSegmentRequest, a *void) error {
		all := make([]core.NoFSegment, len(q.Segments))
		for i := range q.Segments {
			all[i] = core.NoFSegment(q.Segments[i])
		}
		a.Code = m.ReMountNoFSegment(all, q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.UnmountNoFSegment, func(_ *rpc.Call, q *wire.UnmountNoFSegmentRequest, a *void) error {
		a.Code = m.UnmountNoFSegment(q.SegmentID, q.ClientID)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.GetAllNoFSegments, func(_ *rpc.Call, _ *wire.GetAllNoFSegmentsRequest, a *errcode.Result[[]wire.NoFSegment]) error {
		for _, one := range m.NoFSegments() {
			a.Value = append(a.Value, wire.NoFSegment(one))
		}
		return nil
	})
	rpc.Handle(s, wire.GetNoFSegmentsByName, func(_ *rpc.Call, q *wire.GetNoFSegmentsByNameRequest, a *errcode.Result[[]wire.NoFSegmentOwner]) error {
		all, code := m.NoFSegmentsByName(q.SegmentName)
		a.Code = code
		for _, one := range all {
			a.Value = append(a.Value, wire.NoFSegmentOwner{SegmentID: one.Segment, ClientID: one.Client})
		}
		return nil
	})
}
