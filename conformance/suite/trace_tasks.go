package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// taskActions are the calls about copies, moves and tasks.
var taskActions = []action{
	{30, (*world).copyStart},
	{30, (*world).moveStart},
	{35, func(w *world) { w.copyEnd(true) }},
	{12, func(w *world) { w.copyEnd(false) }},
	{6, (*world).dynamic},
	{14, (*world).copyTask},
	{14, (*world).moveTask},
	{10, (*world).fetchTasks},
	{25, (*world).completeTask},
	{12, (*world).queryTask},
}

// targets returns names of segments a key may go to.
func (w *world) targets(key string) []string {
	var names []string
	for _, i := range w.r.Perm(len(w.segs)) {
		if s := w.segs[i]; key[:1] != "m" || s.owner == 0 {
			names = append(names, s.info.Name)
		}
	}
	return names
}

func (w *world) target(key string) string {
	if w.chance(3) {
		return pick(w, []string{"", "nowhere:1"})
	}
	return w.targets(key)[0]
}

func (w *world) copyStart() {
	tenant, key := w.object(false)
	client := w.client()
	names := w.targets(key)
	names = names[:w.r.IntN(min(3, len(names))+1)]
	if w.chance(60) {
		names = []string{w.elsewhere(tenant, key)}
	}
	if w.chance(3) {
		names = append(names, w.target(key))
	}
	scoped := w.scoped(tenant, key)
	w.add(call(wire.CopyStart, wire.CopyStartRequest{ClientID: client, Key: key, TenantID: tenant, SrcSegment: w.source(tenant, key), TgtSegments: names}), scoped)
	w.copying(scoped, tenant, key, client, true)
}

func (w *world) moveStart() {
	tenant, key := w.object(false)
	client, scoped := w.client(), w.scoped(tenant, key)
	w.add(call(wire.MoveStart, wire.MoveStartRequest{ClientID: client, Key: key, TenantID: tenant, SrcSegment: w.source(tenant, key), TgtSegment: w.elsewhere(tenant, key)}), scoped)
	w.copying(scoped, tenant, key, client, false)
}

// copying ends a copy or move at once, or leaves it for later.
func (w *world) copying(scoped, tenant, key string, client segment.UUID, isCopy bool) {
	if w.chance(60) {
		w.end(tenant, key, client, isCopy)
		return
	}
	w.queued = append(w.queued, scoped)
	if len(w.queued) > 20 {
		w.queued = w.queued[1:]
	}
}

func (w *world) end(tenant, key string, client segment.UUID, isCopy bool) {
	scoped := w.scoped(tenant, key)
	switch revoke := w.chance(25); {
	case isCopy && !revoke:
		w.add(call(wire.CopyEnd, wire.CopyEndRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	case isCopy:
		w.add(call(wire.CopyRevoke, wire.CopyRevokeRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	case !revoke:
		w.add(call(wire.MoveEnd, wire.MoveEndRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	default:
		w.add(call(wire.MoveRevoke, wire.MoveRevokeRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	}
}

// copyEnd ends a copy or move that may be under way: by every client, so that one of them is right.
func (w *world) copyEnd(all bool) {
	tenant, key := w.object(false)
	if len(w.queued) > 0 && w.chance(80) {
		i := w.r.IntN(len(w.queued))
		tenant, key = cut(w.queued[i])
	}
	if !all {
		w.end(tenant, key, w.client(), w.chance(50))
		return
	}
	for _, client := range w.clients[:known] {
		isCopy := w.chance(50)
		w.end(tenant, key, client, isCopy)
		w.end(tenant, key, client, !isCopy)
	}
}

// cut is the reverse of world.scoped.
func cut(scoped string) (tenant, key string) {
	i := strings.LastIndexByte(scoped, '/')
	return scoped[:i], scoped[i+1:]
}

// dynamic is about copies that the master itself wants, of which there are none.
func (w *world) dynamic() {
	tenant, key := w.object(false)
	client, scoped, lease := w.client(), w.scoped(tenant, key), segment.UUID{First: uint64(w.r.IntN(2)), Second: 1}
	switch w.r.IntN(3) {
	case 0:
		w.add(call(wire.DynamicReplicaCopyStart, wire.DynamicReplicaCopyStartRequest{
			ClientID: client, Key: key, TenantID: tenant, SrcSegment: w.target(key), TgtSegments: []string{w.target(key)}, DynamicReplicationLeaseID: lease, DynamicReplicationVersionEpoch: 1,
		}), scoped)
	case 1:
		w.add(call(wire.DynamicReplicaCopyEnd, wire.DynamicReplicaCopyEndRequest{ClientID: client, Key: key, TenantID: tenant, DynamicReplicationLeaseID: lease}), scoped)
	case 2:
		w.add(call(wire.DynamicReplicaCopyRevoke, wire.DynamicReplicaCopyRevokeRequest{ClientID: client, Key: key, TenantID: tenant, DynamicReplicationLeaseID: lease}), scoped)
	}
}

// taskName is what the task of an operation is called.
func taskName(n int) segment.UUID { return segment.UUID{First: 1 << 63, Second: uint64(n)} }

func (w *world) created(o *op, scoped string) {
	w.add(o, scoped)
	w.tasks = append(w.tasks, o.n)
}

// learnTask remembers which task an operation created.
func learnTask(o **op) func(s *side, a *errcode.Result[segment.UUID]) {
	return func(s *side, a *errcode.Result[segment.UUID]) {
		if a.Code == 0 {
			s.created[(*o).n] = a.Value
			s.names[a.Value] = "task of #" + strconv.Itoa((*o).n)
		}
	}
}

func (w *world) copyTask() {
	tenant, key := w.object(false)
	for range 4 { // one whose replicas all lie with one client, as the source is chosen at random
		if key[:1] == "m" {
			break
		}
		tenant, key = w.object(false)
	}
	names := w.targets(key)
	names = names[:1]
	if w.chance(5) {
		names = nil
	}
	if w.chance(10) {
		names = append(names, w.target(key))
	}
	if key[:1] != "m" {
		if names = []string{"nowhere:1"}; w.chance(30) {
			names = nil
		}
	}
	var o *op
	o = rpcOp(wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: key, TenantID: tenant, Targets: names}, binding[wire.CreateCopyTaskRequest, errcode.Result[segment.UUID]]{learn: learnTask(&o)})
	w.created(o, w.scoped(tenant, key))
}

func (w *world) moveTask() {
	tenant, key := w.object(false)
	var o *op
	o = rpcOp(wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: key, TenantID: tenant, Source: w.source(tenant, key), Target: w.elsewhere(tenant, key)}, binding[wire.CreateMoveTaskRequest, errcode.Result[segment.UUID]]{learn: learnTask(&o)})
	w.created(o, w.scoped(tenant, key))
}

// chosen hides what the original chose at random.
var chosen = regexp.MustCompile(`\\"source\\":\\"[^"]*\\",\\"targets\\"`)

func (w *world) fetchTasks() {
	o := call(wire.FetchTasks, wire.FetchTasksRequest{ClientID: w.client(), BatchSize: uint64(w.r.IntN(6))})
	if w.chance(10) {
		o = call(wire.FetchTasks, wire.FetchTasksRequest{ClientID: pick(w, w.clients), BatchSize: 1000})
	}
	o.mask = func(s string) string { return chosen.ReplaceAllString(s, `\"source\":\"*\",\"targets\"`) }
	w.add(o)
}

func (w *world) completeTask() {
	n := w.task()
	q := wire.MarkTaskToCompleteRequest{ClientID: w.clients[w.r.IntN(lenders)], Request: wire.TaskCompletion{
		ID: taskName(n), Status: pick(w, []wire.TaskStatus{wire.TaskSuccess, wire.TaskSuccess, wire.TaskSuccess, wire.TaskFailed, wire.TaskFailed, wire.TaskPending, wire.TaskProcessing, 9}),
		Message: pick(w, []string{"", "done", "bad luck"}),
	}}
	o := rpcOp(wire.MarkTaskToComplete, q, binding[wire.MarkTaskToCompleteRequest, errcode.Result[errcode.Void]]{
		bind: func(_ context.Context, s *side, q *wire.MarkTaskToCompleteRequest) error {
			if id, ok := s.created[n]; ok {
				q.Request.ID = id
			}
			return nil
		},
	})
	w.add(o)
	w.queryOne(n)
}

func (w *world) queryTask() { w.queryOne(w.task()) }

func (w *world) queryOne(n int) {
	w.add(rpcOp(wire.QueryTask, wire.QueryTaskRequest{TaskID: taskName(n)}, binding[wire.QueryTaskRequest, errcode.Result[wire.TaskView]]{
		bind: func(_ context.Context, s *side, q *wire.QueryTaskRequest) error {
			if id, ok := s.created[n]; ok {
				q.TaskID = id
			}
			return nil
		},
	}))
}
