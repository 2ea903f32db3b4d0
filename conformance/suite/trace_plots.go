package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// writes are discarded after 4 seconds and released between 10 and 20.
func (p *plot) writes() {
	p.start(0, "taken", 1000, 0)
	p.start(0, "left", 2000, 0)
	p.start(0, "ended", 3000, 0)
	p.put(0, "old", 4000, 0)
	p.upsert(0, "old", 5000, 1)
	p.put(0, "same", 6000, 0)
	p.upsert(0, "same", 6000, 0)
	p.at(1.5)
	p.start(1, "taken", 1500, 2)
	p.quotas()
	p.at(7)
	p.start(1, "taken", 1500, 2)
	p.finishPut(0, "taken")
	p.finishPut(0, "ended")
	p.quotas()
	p.look("taken", "left", "ended", "old", "same")
	p.finishPut(1, "taken")
	p.quotas()
	p.at(23)
	p.look("taken", "left", "ended", "old", "same")
	p.finishPut(0, "left")
	p.finishPut(0, "old")
	p.quotas()
}

// copies and moves that nobody ends are undone between 10 and 20 seconds after their start.
func (p *plot) copies() {
	p.put(0, "c", 1000, 0)
	p.put(0, "m", 2000, 0)
	p.put(0, "n", 4000, 0)
	p.copyFrom(1, "c", 0, 2)
	p.moveFrom(1, "m", 0, 2)
	p.moveFrom(1, "n", 0, 2)
	p.quotas()
	p.at(7)
	p.copyFrom(1, "c", 0, 2)
	p.moveFrom(0, "m", 0, 3)
	p.remove("c")
	p.moved(1, "n")
	p.look("c", "m", "n")
	p.quotas()
	p.at(23)
	p.copied(1, "c")
	p.moved(1, "m")
	p.look("c", "m", "n")
	p.quotas()
	p.copyFrom(1, "c", 0, 2)
	p.copied(1, "c")
	p.remove("c")
	p.remove("m")
	p.remove("n")
	p.quotas()
}

// fetch takes tasks and remembers them by key.
func (p *plot) fetch(client int) {
	o := rpcOp(wire.FetchTasks, wire.FetchTasksRequest{ClientID: p.clients[client], BatchSize: 100}, binding[wire.FetchTasksRequest, errcode.Result[[]wire.TaskAssignment]]{
		learn: func(s *side, a *errcode.Result[[]wire.TaskAssignment]) {
			for _, task := range a.Value {
				var payload taskPayload
				if json.Unmarshal([]byte(task.Payload), &payload) == nil {
					payload.task = task.ID
					s.taken[payload.Key] = payload
					s.names[task.ID] = "task of " + payload.Key
				}
			}
		},
	})
	o.mask = unordered1
	p.do(o)
}

// taskPayload is what a client learns from a task.
type taskPayload struct {
	task segment.UUID
	Key  string `json:"key"`
	// Source and Targets are names of segments.
	Source  string   `json:"source"`
	Targets []string `json:"targets"`
	High    uint64   `json:"dynamic_replication_lease_id_high"`
	Low     uint64   `json:"dynamic_replication_lease_id_low"`
	Epoch   uint64   `json:"dynamic_replication_version_epoch"`
}

var (
	assignment  = regexp.MustCompile(`, (\w*Assignment\{ID)`)
	leaseNumber = regexp.MustCompile(`(dynamic_replication_\w+\\":)[1-9]\d*`)
)

// unordered1 sorts fetched tasks and hides what is different each time.
func unordered1(s string) string {
	s = leaseNumber.ReplaceAllString(strings.Trim(s, "[]"), "${1}*")
	all := strings.Split(assignment.ReplaceAllString(s, "\n$1"), "\n")
	slices.Sort(all)
	return "[" + strings.Join(all, ", ") + "]"
}

// complete reports the end of the task of a key.
func (p *plot) complete(client int, key string, status wire.TaskStatus) {
	p.do(rpcOp(wire.MarkTaskToComplete, wire.MarkTaskToCompleteRequest{ClientID: p.clients[client], Request: wire.TaskCompletion{Status: status, Message: key}}, binding[wire.MarkTaskToCompleteRequest, errcode.Result[errcode.Void]]{
		bind: func(_ context.Context, s *side, q *wire.MarkTaskToCompleteRequest) error {
			q.Request.ID = s.taken[key].task
			return nil
		},
	}))
}

func (p *plot) query(key string) {
	p.do(rpcOp(wire.QueryTask, wire.QueryTaskRequest{}, binding[wire.QueryTaskRequest, errcode.Result[wire.TaskView]]{
		bind: func(_ context.Context, s *side, q *wire.QueryTaskRequest) error {
			q.TaskID = s.taken[key].task
			return nil
		},
	}))
}

func (p *plot) copyTaskOf(key string, to int) {
	p.do(rpcOp(wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: key, TenantID: defaultTenant, Targets: []string{p.place(to)}}, binding[wire.CreateCopyTaskRequest, errcode.Result[segment.UUID]]{
		learn: func(s *side, a *errcode.Result[segment.UUID]) {
			s.taken[key] = taskPayload{task: a.Value, Key: key}
			s.names[a.Value] = "task of " + key
		},
	}))
}

// aging tasks are given up by a pass every 30 seconds.
func (p *plot) aging() {
	for i := range 4 {
		key := fmt.Sprint("done", i)
		p.at(float64(i) / 4)
		p.put(0, key, 100, 0)
		p.copyTaskOf(key, 1)
		p.complete(0, key, wire.TaskSuccess)
	}
	p.at(1.2)
	p.put(0, "taken", 100, 0)
	p.put(0, "late", 100, 0)
	p.copyTaskOf("taken", 1)
	p.fetch(0)
	p.copyTaskOf("late", 1)
	p.query("taken")
	p.query("late")
	p.at(34)
	for _, key := range []string{"taken", "late", "done0", "done1", "done2", "done3"} {
		p.query(key)
	}
	p.fetch(0)
	p.complete(0, "late", wire.TaskSuccess)
	p.complete(0, "taken", wire.TaskSuccess)
	p.query("late")
}

// markers of objects on their way to a disk go between 10 and 20 seconds after.
func (p *plot) markers() {
	p.mountDisks()
	p.put(0, "fetched", 1000, 0)
	p.offloadBeat(0)
	p.put(0, "waiting", 1000, 0)
	p.at(1)
	p.upsert(0, "fetched", 1000, 0)
	p.at(7)
	p.upsert(0, "fetched", 1000, 0)
	p.moveFrom(0, "fetched", 0, 1)
	p.moved(0, "fetched")
	p.dropFrom(0, "fetched", 0)
	p.at(23)
	p.offloadBeat(0)
	p.upsert(0, "fetched", 1000, 0)
	p.onDisk(0, "waiting", 1000)
	p.look("fetched", "waiting")
	p.quotas()
}

func (p *plot) mountDisks() {
	for i := range lenders {
		p.do(call(wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: p.clients[i], EnableOffloading: true}))
	}
}

// promotions that nobody ends are given up between 10 and 20 seconds after their start.
func (p *plot) promotions() {
	p.mountDisks()
	p.diskOnly(1, "waiting", 1000)
	p.diskOnly(2, "begun", 2000)
	p.at(0.5)
	for range 3 {
		p.get("waiting")
		p.get("begun")
	}
	p.promotionBeat(2)
	p.promotionAlloc(2, "begun", 2000)
	p.quotas()
	p.at(7)
	p.promotionAlloc(2, "begun", 2000)
	p.look("waiting", "begun")
	p.quotas()
	p.at(24)
	p.look("waiting", "begun")
	p.quotas()
	p.do(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: p.clients[2], Key: "begun", TenantID: defaultTenant}))
	p.remove("waiting")
	p.remove("begun")
	p.quotas()
}

// retries of promotions come within a second.
func (p *plot) retries() {
	p.mountDisks()
	p.diskOnly(1, "k", 1000)
	p.at(0.5)
	p.get("k")
	p.get("k")
	p.promotionBeat(1)
	p.promotionAlloc(1, "k", 1000)
	p.do(call(wire.NotifyPromotionFailure, wire.NotifyPromotionFailureRequest{ClientID: p.clients[1], Key: "k", TenantID: defaultTenant}))
	p.at(4)
	p.promotionBeat(1)
	p.promotionAlloc(1, "k", 1000)
	p.do(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: p.clients[1], Key: "k", TenantID: defaultTenant}))
	p.look("k")
	p.quotas()
}

func (p *plot) unmountIn(i int, ms uint64) {
	p.do(call(wire.GracefulUnmountSegment, wire.GracefulUnmountSegmentRequest{SegmentID: p.segs[i].info.ID, ClientID: p.clients[p.segs[i].owner], GracePeriodMs: ms}))
}

// graceful unmounts happen at the earliest of their moments.
func (p *plot) graceful() {
	for i := range 5 {
		p.put(0, fmt.Sprint("k", i), 1000, i)
	}
	p.unmountIn(2, 3000)
	p.unmountIn(3, 60_000)
	p.unmountIn(3, 3000)
	p.unmountIn(4, 3000)
	p.unmountIn(4, 60_000)
	p.unmountIn(1, 8000)
	p.at(0.5)
	p.segments()
	p.quotas()
	p.get("k2")
	p.start(0, "new", 100, 2)
	p.copyFrom(0, "k0", 0, 2)
	p.at(5.5)
	p.segments()
	p.quotas()
	p.look("k0", "k1", "k2", "k3", "k4")
	p.mountOne2(2)
	p.put(0, "again", 100, 2)
	p.at(10.5)
	p.segments()
	p.quotas()
	p.look("k0", "k1", "again")
}

func (p *plot) mountOne2(i int) {
	p.do(call(wire.MountSegment, wire.MountSegmentRequest{Segment: p.segs[i].info, ClientID: p.clients[p.segs[i].owner]}))
}

// liveness: clients are suspected between 4 and 5 seconds after the last ping, and gone 8 later.
func (p *plot) liveness() {
	p.mountDisks()
	p.put(0, "a", 1000, 0)
	p.put(1, "b", 1000, 2)
	p.put(2, "c", 1000, 4)
	p.put(0, "ac", 1000, 0, 4)
	p.put(0, "d", 1000, 0)
	p.onDisk(2, "d", 1000)
	p.put(0, "e", 1000, 0)
	p.onDisk(2, "e", 1000)
	p.dropFrom(0, "e", 0)
	p.start(2, "open", 1000, 4)
	p.copyFrom(0, "c", 4, 0)
	beats := func(from, to float64, clients ...int) {
		for t := from; t <= to; t += 0.9 {
			p.at(t)
			for _, c := range clients {
				p.beat(c)
			}
		}
	}
	beats(0.2, 6.5, 0)
	p.at(7.2) // clients 1 and 2 are suspected
	p.segments()
	p.quotas()
	for _, key := range []string{"a", "b", "c", "ac", "d", "e"} {
		p.get(key)
		p.exist(key)
	}
	p.look("a", "b", "c", "ac", "d", "e")
	p.start(1, "new", 100, 2)
	p.finishPut(1, "new")
	p.copyFrom(0, "a", 0, 2)
	p.copied(0, "c")
	p.finishPut(2, "open")
	p.copyFrom(1, "a", 0, 1)
	p.offloadBeat(1)
	p.do(call(wire.BatchQueryIp, wire.BatchQueryIpRequest{ClientIDs: p.clients[:3]}))
	p.do(call(wire.QuerySegmentStatus, wire.QuerySegmentStatusRequest{SegmentName: p.place(2)}))
	p.beat(1)
	p.get("b")
	p.exist("b")
	p.remove("c")
	beats(7.5, 15.5, 0, 1)
	p.at(15.8) // client 2 is gone
	p.segments()
	p.quotas()
	for _, key := range []string{"a", "b", "c", "ac", "d", "e", "open"} {
		p.get(key)
		p.exist(key)
	}
	p.look("a", "b", "c", "ac", "d", "e", "open")
	p.offloadBeat(2)
	p.beat(2)
	p.do(call(wire.PollRemoveAll, wire.PollRemoveAllRequest{ClientID: p.clients[2]}))
	p.mountOne2(4)
	p.beat(2)
	p.do(call(wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{p.segs[4].info}, ClientID: p.clients[2]}))
	p.beat(2)
	p.put(2, "back", 1000, 4)
	p.quotas()
}

// leaseEnds: leases of three seconds.
func (p *plot) leaseEnds() {
	group := p.config(0)
	group.GroupIDs = &[]string{"g"}
	for _, key := range []string{"g1", "g2"} {
		p.do(call(wire.PutStart, wire.PutStartRequest{ClientID: p.clients[0], Key: key, SliceLength: 10, Config: group, TenantID: defaultTenant}))
		p.finishPut(0, key)
	}
	for _, key := range []string{"exist", "get", "refused", "probe", "never"} {
		p.put(0, key, 10, 0)
	}
	p.exist("exist")
	p.get("get")
	p.put(0, "refused", 10, 0)
	p.do(call(wire.ProbeKey, wire.ProbeKeyRequest{Key: "probe", TenantID: defaultTenant}))
	p.get("g1")
	for _, key := range []string{"exist", "get", "refused", "probe", "never", "g1", "g2"} {
		p.remove(key)
	}
	p.at(5.5)
	for _, key := range []string{"exist", "get", "refused", "g1", "g2"} {
		p.remove(key)
	}
}

// drain moves what is on a segment to another.
func (p *plot) drain() {
	p.put(0, "one", 1000, 0)
	p.put(0, "two", 2000, 0)
	p.put(0, "else", 4000, 1)
	job := func(verb, method string) {
		p.do(&op{name: method + " drain", args: verb, ask: func(_ context.Context, s *side) (string, error) {
			status, text, err := s.fetch(method, "/api/v1/drain_jobs/"+verb+"?job_id="+s.job, "")
			return fmt.Sprint(status, " ", scrub(text)), err
		}})
	}
	begin := func(body string) {
		p.do(&op{name: "POST drain", args: body, ask: func(_ context.Context, s *side) (string, error) {
			status, text, err := s.fetch("POST", "/api/v1/drain_jobs", body)
			var reply struct {
				ID string `json:"job_id"`
			}
			if err == nil && json.Unmarshal([]byte(text), &reply) == nil && reply.ID != "" {
				s.job = reply.ID
			}
			return fmt.Sprint(status, " ", scrub(text)), err
		}})
	}
	begin(fmt.Sprintf(`{"segments":[%q],"target_segments":[%q]}`, p.place(0), p.place(2)))
	p.segments()
	p.at(2.5)
	p.fetch(0)
	job("query", "GET")
	job("cancel", "POST")
	p.moveFrom(0, "one", 0, 2)
	p.moved(0, "one")
	p.complete(0, "one", wire.TaskSuccess)
	p.complete(0, "two", wire.TaskFailed)
	p.at(5)
	p.fetch(0) // once more
	job("query", "GET")
	p.moveFrom(0, "two", 0, 2)
	p.moved(0, "two")
	p.complete(0, "two", wire.TaskSuccess)
	p.at(7.5)
	job("query", "GET")
	p.segments()
	p.quotas()
	p.look("one", "two", "else")
	begin(fmt.Sprintf(`{"segments":[%q],"target_segments":[%q]}`, p.place(1), p.place(2)))
	p.at(10)
	p.fetch(0)
	p.complete(0, "else", wire.TaskFailed)
	p.at(12.5)
	p.fetch(0)
	p.complete(0, "else", wire.TaskFailed)
	p.at(15)
	p.fetch(0)
	p.complete(0, "else", wire.TaskFailed)
	p.at(17.5)
	job("query", "GET")
	p.segments()
	begin(fmt.Sprintf(`{"segments":[%q],"target_segments":[%q]}`, p.place(3), p.place(2)))
	p.at(20)
	job("query", "GET")
	job("cancel", "POST")
	p.segments()
}

// replication is what the master wants copied because it is read often.
func (p *plot) replication() {
	p.put(0, "hot", 1000, 0)
	p.put(0, "late", 1000, 0)
	for _, fuller := range []int{3, 4} { // so that one segment of another host is the emptiest: among equals a hash chooses
		p.put(0, fmt.Sprint("filler", fuller), 1000, fuller)
	}
	p.at(0.5)
	for range 12 {
		p.get("hot")
		p.get("late")
	}
	p.at(3)
	p.fetch(0)
	p.query("hot")
	token := func(s *side) (segment.UUID, uint64) {
		task := s.taken["hot"]
		return segment.UUID{First: task.High, Second: task.Low}, task.Epoch
	}
	start := func(client int) {
		p.do(rpcOp(wire.DynamicReplicaCopyStart, wire.DynamicReplicaCopyStartRequest{ClientID: p.clients[client], Key: "hot", TenantID: defaultTenant}, binding[wire.DynamicReplicaCopyStartRequest, errcode.Result[wire.CopyPlan]]{
			bind: func(_ context.Context, s *side, q *wire.DynamicReplicaCopyStartRequest) error {
				q.DynamicReplicationLeaseID, q.DynamicReplicationVersionEpoch = token(s)
				q.SrcSegment, q.TgtSegments = s.taken["hot"].Source, s.taken["hot"].Targets
				return nil
			},
		}))
	}
	finish := func(client int, off uint64) {
		p.do(rpcOp(wire.DynamicReplicaCopyEnd, wire.DynamicReplicaCopyEndRequest{ClientID: p.clients[client], Key: "hot", TenantID: defaultTenant}, binding[wire.DynamicReplicaCopyEndRequest, errcode.Result[errcode.Void]]{
			bind: func(_ context.Context, s *side, q *wire.DynamicReplicaCopyEndRequest) error {
				q.DynamicReplicationLeaseID, q.DynamicReplicationVersionEpoch = token(s)
				q.DynamicReplicationLeaseID.Second += off
				return nil
			},
		}))
	}
	finish(0, 0)
	start(1)
	p.copyFrom(0, "hot", 0, 1)
	start(0)
	finish(1, 0)
	finish(0, 1)
	p.copied(0, "hot")
	finish(0, 0)
	p.look("hot")
	p.complete(0, "hot", wire.TaskSuccess)
	p.at(66)
	p.query("late")
	p.fetch(0)
	p.remove("late")
}
