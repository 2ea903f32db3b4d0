package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// bindTasks registers the calls about copies, moves and tasks.
func bindTasks(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.CopyStart, func(_ *rpc.Call, q *wire.CopyStartRequest, a *errcode.Result[wire.CopyPlan]) error {
		a.Value, a.Code = m.CopyStart(q.ClientID, q.TenantID, q.Key, q.SrcSegment, q.TgtSegments)
		return nil
	})
	rpc.Handle(s, wire.CopyEnd, func(_ *rpc.Call, q *wire.CopyEndRequest, a *void) error {
		a.Code = m.CopyEnd(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.CopyRevoke, func(_ *rpc.Call, q *wire.CopyRevokeRequest, a *void) error {
		a.Code = m.CopyRevoke(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.DynamicReplicaCopyStart, func(_ *rpc.Call, q *wire.DynamicReplicaCopyStartRequest, a *errcode.Result[wire.CopyPlan]) error {
		a.Value, a.Code = m.DynamicCopyStart(q.ClientID, q.TenantID, q.Key, q.SrcSegment, q.TgtSegments, core.Proposal{Lease: q.DynamicReplicationLeaseID, Epoch: q.DynamicReplicationVersionEpoch})
		return nil
	})
	rpc.Handle(s, wire.DynamicReplicaCopyEnd, func(_ *rpc.Call, q *wire.DynamicReplicaCopyEndRequest, a *void) error {
		a.Code = m.DynamicCopyEnd(q.ClientID, q.TenantID, q.Key, core.Proposal{Lease: q.DynamicReplicationLeaseID, Epoch: q.DynamicReplicationVersionEpoch})
		return nil
	})
	rpc.Handle(s, wire.DynamicReplicaCopyRevoke, func(_ *rpc.Call, q *wire.DynamicReplicaCopyRevokeRequest, a *void) error {
		a.Code = m.DynamicCopyRevoke(q.ClientID, q.TenantID, q.Key, core.Proposal{Lease: q.DynamicReplicationLeaseID, Epoch: q.DynamicReplicationVersionEpoch})
		return nil
	})
	rpc.Handle(s, wire.MoveStart, func(_ *rpc.Call, q *wire.MoveStartRequest, a *errcode.Result[wire.MovePlan]) error {
		a.Value, a.Code = m.MoveStart(q.ClientID, q.TenantID, q.Key, q.SrcSegment, q.TgtSegment)
		return nil
	})
	rpc.Handle(s, wire.MoveEnd, func(_ *rpc.Call, q *wire.MoveEndRequest, a *void) error {
		a.Code = m.MoveEnd(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.MoveRevoke, func(_ *rpc.Call, q *wire.MoveRevokeRequest, a *void) error {
		a.Code = m.MoveRevoke(q.ClientID, q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.CreateCopyTask, func(_ *rpc.Call, q *wire.CreateCopyTaskRequest, a *errcode.Result[segment.UUID]) error {
		a.Value, a.Code = m.CreateCopyTask(q.TenantID, q.Key, q.Targets)
		return nil
	})
	rpc.Handle(s, wire.CreateMoveTask, func(_ *rpc.Call, q *wire.CreateMoveTaskRequest, a *errcode.Result[segment.UUID]) error {
		a.Value, a.Code = m.CreateMoveTask(q.TenantID, q.Key, q.Source, q.Target)
		return nil
	})
	rpc.Handle(s, wire.QueryTask, func(_ *rpc.Call, q *wire.QueryTaskRequest, a *errcode.Result[wire.TaskView]) error {
		a.Value, a.Code = m.QueryTask(q.TaskID)
		return nil
	})
	rpc.Handle(s, wire.FetchTasks, func(_ *rpc.Call, q *wire.FetchTasksRequest, a *errcode.Result[[]wire.TaskAssignment]) error {
		a.Value, a.Code = m.FetchTasks(q.ClientID, q.BatchSize)
		return nil
	})
	rpc.Handle(s, wire.MarkTaskToComplete, func(_ *rpc.Call, q *wire.MarkTaskToCompleteRequest, a *void) error {
		a.Code = m.MarkTaskToComplete(q.ClientID, q.Request)
		return nil
	})
}
