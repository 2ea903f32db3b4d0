package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// fleet is a master with clients 1, 2, 3, ... that have segments a, b, c, ... of 64 MiB.
type fleet struct {
	*mastertest.Master
	t *testing.T
}

func newFleet(t *testing.T, clients int, change ...func(*core.Config)) *fleet {
	f := &fleet{mastertest.New(t, append(change, mastertest.Strict, mastertest.NoPoolEviction)...), t}
	for n := range clients {
		f.Mount(uint64(n+1), string(rune('a'+n)), 64*mib)
	}
	f.Policies("x", 48*mib, "y", 48*mib)
	return f
}

func on(names ...string) mastertest.Option { return mastertest.Prefer(names...) }

// job begins to drain and fails the test if that is refused.
func (f *fleet) job(r drain.Request) segment.UUID {
	f.t.Helper()
	if r.Concurrency == 0 {
		r.Concurrency = drain.DefaultConcurrency
	}
	id, code := f.CreateDrainJob(r)
	if code != errcode.OK {
		f.t.Fatalf("draining %v: %v", r, code)
	}
	return id
}

// tick lets half a second pass.
func (f *fleet) tick() { f.Advance(500 * time.Millisecond) }

// fetch returns the moves that a client is asked for.
func (f *fleet) fetch(n uint64) (moves []task.MovePayload, ids []segment.UUID) {
	f.t.Helper()
	list, _ := f.FetchTasks(mastertest.ID(n), 1000)
	for _, a := range list {
		var p task.MovePayload
		if err := json.Unmarshal([]byte(a.Payload), &p); err != nil || a.Type != task.Move {
			f.t.Fatalf("task %+v: %v", a, err)
		}
		moves, ids = append(moves, p), append(ids, a.ID)
	}
	return moves, ids
}

func (f *fleet) mark(n uint64, id segment.UUID, status task.Status) {
	f.t.Helper()
	if code := f.MarkTaskToComplete(mastertest.ID(n), task.Completion{ID: id, Status: status}); code != errcode.OK {
		f.t.Fatalf("ending task %v: %v", id, code)
	}
}

// work does what a client is asked for, as clients do, and returns the first code of each move that
// is not OK.
func (f *fleet) work(n uint64) (codes []errcode.Code) {
	f.t.Helper()
	moves, ids := f.fetch(n)
	for i, p := range moves {
		_, code := f.MoveStart(mastertest.ID(n), p.TenantID, p.Key, p.Source, p.Target)
		if code == errcode.OK {
			code = f.MoveEnd(mastertest.ID(n), p.TenantID, p.Key)
		}
		status := task.Success
		if code != errcode.OK {
			status = task.Failed
		}
		f.mark(n, ids[i], status)
		codes = append(codes, code)
	}
	return codes
}

// run works for clients until the job is over, for at most so many rounds.
func (f *fleet) run(id segment.UUID, rounds int, clients ...uint64) drain.Report {
	f.t.Helper()
	for range rounds {
		f.tick()
		for _, n := range clients {
			f.work(n)
		}
		if r := f.report(id); r.Status.Final() {
			return r
		}
	}
	f.t.Fatalf("after %d rounds: %+v", rounds, f.report(id))
	return drain.Report{}
}

func (f *fleet) cancel(id segment.UUID) errcode.Code {
	_, code := f.CancelDrainJob(id, false)
	return code
}

func (f *fleet) report(id segment.UUID) drain.Report {
	f.t.Helper()
	r, code := f.QueryDrainJob(id)
	if code != errcode.OK {
		f.t.Fatalf("job %v: %v", id, code)
	}
	return r
}

func (f *fleet) status(name string, want segment.Status) {
	f.t.Helper()
	if got, code := f.QuerySegmentStatus(name); got != want || code != errcode.OK {
		f.t.Errorf("segment %s is %v (%v), want %v", name, got, code, want)
	}
}

// where returns the segments that hold a readable replica.
func (f *fleet) where(tenantName, key string) (names []string) {
	var list object.ReplicaList
	f.AdminReplicas(tenantName, key, &list)
	for _, r := range list.Replicas {
		names = append(names, r.Location.Memory.Buffer.Endpoint)
	}
	slices.Sort(names)
	return names
}

func (f *fleet) charged(want map[string]uint64) {
	f.t.Helper()
	for name, bytes := range want {
		if got := f.Charged(name); got != bytes {
			f.t.Errorf("tenant %s is charged %d bytes, want %d", name, got, bytes)
		}
	}
}

func TestDrainJobSchedulesMoveTaskAndConvergesToDrained(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	if r := f.report(id); r.Status != drain.Created || r.Message != "Drain job created" {
		t.Errorf("at first: %+v", r)
	}
	f.status("a", segment.StatusDraining)
	f.tick()
	r := f.report(id)
	want := drain.Report{
		ID: id, Status: drain.Running, CreatedMs: r.CreatedMs, UpdatedMs: r.UpdatedMs, Request: r.Request,
		Active: 1, Total: 1, Remaining: 1, Message: "Drain job running",
	}
	if fmt.Sprint(r) != fmt.Sprint(want) || r.UpdatedMs != r.CreatedMs+500 {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	if codes := f.work(1); len(codes) != 1 || codes[0] != errcode.OK {
		t.Fatalf("the move: %v", codes)
	}
	f.tick()
	r = f.report(id)
	want = drain.Report{
		ID: id, Status: drain.Succeeded, CreatedMs: r.CreatedMs, UpdatedMs: r.CreatedMs + 1000, Request: r.Request,
		Succeeded: 1, MigratedBytes: mib, Total: 1, Message: "Drain job finished successfully",
	}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	f.status("a", segment.StatusDrained)
	if at := f.where("x", "k"); !slices.Equal(at, []string{"b"}) {
		t.Errorf("the object is on %v", at)
	}
	f.charged(map[string]uint64{"x": mib})
	// It takes nothing any more, and can be unmounted.
	f.MustPut("x", "other", mib, on("a"))
	if at := f.where("x", "other"); !slices.Equal(at, []string{"b"}) {
		t.Errorf("a new object is on %v", at)
	}
	if code := f.UnmountSegment(mastertest.Segment(1, "a", 0).ID, mastertest.ID(1)); code != errcode.OK {
		t.Errorf("unmounting: %v", code)
	}
	f.Drain(t)
}

func TestDrainJobRefusals(t *testing.T) {
	f := newFleet(t, 3)
	f.Mount(4, "d", mib)
	if code := f.GracefulUnmountSegment(mastertest.Segment(4, "d", 0).ID, mastertest.ID(4), 60000); code != errcode.OK {
		t.Fatal(code)
	}
	for _, c := range []struct {
		r    drain.Request
		want errcode.Code
	}{
		{drain.Request{Concurrency: 1}, errcode.InvalidParams},
		{drain.Request{Segments: []string{"a"}}, errcode.InvalidParams},
		{drain.Request{Segments: []string{"a", "b", "a"}, Concurrency: 1}, errcode.InvalidParams},
		{drain.Request{Segments: []string{"z", "z"}, Concurrency: 1}, errcode.InvalidParams},
		{drain.Request{Segments: []string{"a", "z", "d"}, Concurrency: 1}, errcode.SegmentNotFound},
		{drain.Request{Segments: []string{"a", "d", "z"}, Concurrency: 1}, errcode.UnavailableInStatus},
		{drain.Request{Segments: []string{"a"}, Targets: []string{"b", "a", "z"}, Concurrency: 1}, errcode.InvalidParams},
		{drain.Request{Segments: []string{"a"}, Targets: []string{"z", "a"}, Concurrency: 1}, errcode.SegmentNotFound},
		{drain.Request{Segments: []string{"a"}, Targets: []string{"d", "a"}, Concurrency: 1}, errcode.UnavailableInStatus},
	} {
		if _, code := f.CreateDrainJob(c.r); code != c.want {
			t.Errorf("%+v: %v, want %v", c.r, code, c.want)
		}
		f.status("a", segment.StatusOK)
	}
	f.job(drain.Request{Segments: []string{"a"}})
	if _, code := f.CreateDrainJob(drain.Request{Segments: []string{"b", "a"}, Concurrency: 1}); code != errcode.UnavailableInStatus {
		t.Errorf("a second job: %v", code)
	}
	f.status("b", segment.StatusOK)
	if _, code := f.QueryDrainJob(mastertest.ID(9)); code != errcode.JobNotFound {
		t.Errorf("unknown job: %v", code)
	}
}

func TestCancelDrainJobRestoresSegmentStatus(t *testing.T) {
	f := newFleet(t, 3)
	f.MustPut("x", "pinned", mib, on("a"), mastertest.HardPin)
	id := f.job(drain.Request{Segments: []string{"a", "b"}})
	f.tick()
	f.status("a", segment.StatusDraining)
	f.status("b", segment.StatusDrained) // there was nothing on it
	if r := f.report(id); r.Blocked != 1 || r.Active != 0 || r.Status != drain.Running || r.Remaining != 1 {
		t.Errorf("blocked: %+v", r)
	}
	if code := f.cancel(id); code != errcode.OK {
		t.Fatal(code)
	}
	f.status("a", segment.StatusOK)
	f.status("b", segment.StatusOK)
	if r := f.report(id); r.Status != drain.Canceled || r.Message != "Drain job canceled" {
		t.Errorf("canceled: %+v", r)
	}
	if code := f.cancel(id); code != errcode.UnavailableInStatus {
		t.Errorf("again: %v", code)
	}
	if code := f.cancel(mastertest.ID(9)); code != errcode.JobNotFound {
		t.Errorf("unknown: %v", code)
	}
	f.tick()
	f.status("a", segment.StatusOK)
	f.MustPut("x", "more", mib, on("a"))
	if at := f.where("x", "more"); !slices.Equal(at, []string{"a"}) {
		t.Errorf("a new object is on %v", at)
	}
}

func TestCancelDrainJobRejectsActiveMoveTasks(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.tick()
	if code := f.cancel(id); code != errcode.UnavailableInStatus {
		t.Fatalf("with an active move: %v", code)
	}
	f.status("a", segment.StatusDraining)
	_, ids := f.fetch(1)
	f.mark(1, ids[0], task.Failed)
	f.Master.Get("x", "k") // it is leased now, and blocked
	f.tick()
	if r := f.report(id); r.Failed != 1 || r.Blocked != 1 || r.Active != 0 {
		t.Errorf("after the failure: %+v", r)
	}
	if code := f.cancel(id); code != errcode.OK {
		t.Errorf("without: %v", code)
	}
	f.status("a", segment.StatusOK)
}

func TestDrainJobFailsAfterRetryBudgetExhausted(t *testing.T) {
	f := newFleet(t, 3)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a", "c"}})
	for i := range 3 {
		f.tick()
		_, ids := f.fetch(1)
		if len(ids) != 1 {
			t.Fatalf("round %d: %d tasks", i, len(ids))
		}
		f.mark(1, ids[0], task.Failed)
	}
	f.tick()
	if r := f.report(id); r.Status != drain.Failed || r.Failed != 3 || r.Succeeded != 0 || r.Remaining != 1 || r.Message != "Drain job failed: unrecoverable units remain" {
		t.Errorf("%+v", r)
	}
	f.status("a", segment.StatusOK)
	f.status("c", segment.StatusOK) // drained before, and lent again
	f.charged(map[string]uint64{"x": mib})
}

func TestDrainJobTakesLeasesAndWritesAsTheyEnd(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "leased", mib, on("a"))
	f.Master.Get("x", "leased") // for 10 s
	if code := f.Start("x", "unfinished", mib, on("a")); code != errcode.OK {
		t.Fatal(code)
	}
	f.MustPut("y", "free", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.tick()
	if r := f.report(id); r.Active != 1 || r.Blocked != 2 || r.Total != 3 {
		t.Errorf("at first: %+v", r)
	}
	f.work(1)
	f.tick()
	if r := f.report(id); r.Active != 0 || r.Blocked != 2 || r.Succeeded != 1 {
		t.Errorf("then: %+v", r)
	}
	f.End("x", "unfinished")
	f.tick()
	f.work(1)
	f.tick()
	if r := f.report(id); r.Blocked != 1 || r.Succeeded != 2 || r.Remaining != 1 {
		t.Errorf("when it is written: %+v", r)
	}
	r := f.run(id, 30, 1)
	if r.Status != drain.Succeeded || r.Succeeded != 3 || r.MigratedBytes != 3*mib {
		t.Errorf("at the end: %+v", r)
	}
	if took := r.UpdatedMs - r.CreatedMs; took < 10000 || took > 12000 {
		t.Errorf("it took %d ms, the lease 10000", took)
	}
	f.charged(map[string]uint64{"x": 2 * mib, "y": mib})
}

func TestDrainJobDropsCopyThatEveryTargetHas(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "both", mib, mastertest.Replicas(2))
	f.charged(map[string]uint64{"x": 2 * mib})
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.tick()
	f.tick()
	if r := f.report(id); r.Status != drain.Succeeded || r.Succeeded != 1 || r.MigratedBytes != 0 {
		t.Errorf("%+v", r)
	}
	f.status("a", segment.StatusDrained)
	if at := f.where("x", "both"); !slices.Equal(at, []string{"b"}) {
		t.Errorf("it is on %v", at)
	}
	f.charged(map[string]uint64{"x": mib})
	if used := f.SegmentViews()[0].Used; used != 0 {
		t.Errorf("%d bytes are used on a", used)
	}
}

func TestDrainJobKeepsTheOnlyReadableCopy(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "both", mib, mastertest.Replicas(2))
	f.Silence(2)
	f.Advance(11 * time.Second) // client 2 is suspected
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.tick()
	f.tick()
	if r := f.report(id); r.Blocked != 1 || r.Succeeded != 0 {
		t.Errorf("%+v", r)
	}
	f.charged(map[string]uint64{"x": 2 * mib})
	if code := f.cancel(id); code != errcode.OK {
		t.Fatal(code)
	}
}

func TestDrainJobOfTwoSegments(t *testing.T) {
	f := newFleet(t, 4)
	for i := range 6 {
		f.MustPut("x", fmt.Sprint("a", i), mib, on("a"))
		f.MustPut("y", fmt.Sprint("b", i), mib, on("b"))
	}
	f.MustPut("x", "both", mib, mastertest.Replicas(2), on("a", "b"))
	id := f.job(drain.Request{Segments: []string{"a", "b"}, Targets: []string{"c"}, Concurrency: 3})
	f.tick()
	if r := f.report(id); r.Active != 3 || r.Total != 14 {
		t.Errorf("at first: %+v", r)
	}
	r := f.run(id, 20, 1, 2)
	if r.Status != drain.Succeeded || r.Succeeded != 14 || r.MigratedBytes != 13*mib || r.Failed != 0 {
		t.Errorf("at the end: %+v", r)
	}
	for _, key := range []string{"a0", "a5", "both"} {
		if at := f.where("x", key); !slices.Equal(at, []string{"c"}) {
			t.Errorf("%s is on %v", key, at)
		}
	}
	f.status("a", segment.StatusDrained)
	f.status("b", segment.StatusDrained)
	f.charged(map[string]uint64{"x": 7 * mib, "y": 6 * mib})
}

func TestDrainJobGoesToTheEmptiestTarget(t *testing.T) {
	f := newFleet(t, 3)
	f.MustPut("y", "there", mib, on("b"))
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.run(id, 5, 1)
	if at := f.where("x", "k"); !slices.Equal(at, []string{"c"}) {
		t.Errorf("it is on %v", at)
	}
}

func TestDrainJobWhoseTargetGoesAway(t *testing.T) {
	f := newFleet(t, 3)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}, Targets: []string{"b", "c"}})
	f.tick()
	moves, ids := f.fetch(1)
	if len(moves) != 1 {
		t.Fatalf("%d moves", len(moves))
	}
	gone, other := moves[0].Target, "b"
	if gone == "b" {
		other = "c"
	}
	n := uint64(gone[0]-'a') + 1
	if _, code := f.MoveStart(mastertest.ID(1), "x", "k", "a", gone); code != errcode.OK {
		t.Fatal(code)
	}
	if code := f.UnmountSegment(mastertest.Segment(n, gone, 0).ID, mastertest.ID(n)); code != errcode.OK {
		t.Fatal(code)
	}
	if code := f.MoveEnd(mastertest.ID(1), "x", "k"); code != errcode.ReplicaIsGone {
		t.Fatalf("ending the move: %v", code)
	}
	f.mark(1, ids[0], task.Failed)
	f.charged(map[string]uint64{"x": mib})
	r := f.run(id, 5, 1)
	if r.Status != drain.Succeeded || r.Failed != 1 || r.Succeeded != 1 {
		t.Errorf("%+v", r)
	}
	if at := f.where("x", "k"); !slices.Equal(at, []string{other}) {
		t.Errorf("it is on %v, want %s", at, other)
	}
}

func TestDrainJobWithNowhereToGoWaits(t *testing.T) {
	f := newFleet(t, 1)
	f.MustPut("x", "k", mib)
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.Advance(5 * time.Second)
	if r := f.report(id); r.Status != drain.Running || r.Blocked != 1 {
		t.Errorf("alone: %+v", r)
	}
	f.Mount(2, "b", 64*mib)
	if r := f.run(id, 5, 1); r.Status != drain.Succeeded {
		t.Errorf("with another: %+v", r)
	}
}

func TestDrainJobWhoseSourceGoesAway(t *testing.T) {
	for name, leave := range map[string]func(*fleet){
		"unmount":          func(f *fleet) { f.UnmountSegment(mastertest.Segment(1, "a", 0).ID, mastertest.ID(1)) },
		"graceful unmount": func(f *fleet) { f.GracefulUnmountSegment(mastertest.Segment(1, "a", 0).ID, mastertest.ID(1), 1000) },
		"death":            func(f *fleet) { f.Silence(1); f.Advance(40 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.MustPut("x", "k", mib, on("a"))
			f.MustPut("x", "pinned", mib, on("a"), mastertest.HardPin)
			id := f.job(drain.Request{Segments: []string{"a"}})
			leave(f)
			f.Advance(2 * time.Second)
			if r := f.report(id); r.Active != 0 && r.Status != drain.Succeeded {
				f.Advance(301 * time.Second) // the task that nobody fetches
			}
			if r := f.report(id); r.Status != drain.Succeeded || r.Remaining != 0 {
				t.Errorf("%+v", r)
			}
			if _, code := f.QuerySegmentStatus("a"); code != errcode.SegmentNotFound {
				t.Errorf("a: %v", code)
			}
			f.charged(map[string]uint64{"x": 0})
			f.Mount(1, "a", 64*mib) // it may come back
			f.MustPut("x", "new", mib, on("a"))
			f.Advance(2 * time.Second)
			f.status("a", segment.StatusOK)
			if at := f.where("x", "new"); !slices.Equal(at, []string{"a"}) {
				t.Errorf("the new object is on %v", at)
			}
		})
	}
}

func TestDrainingSegmentUnmountedGracefullyStaysSo(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	if code := f.GracefulUnmountSegment(mastertest.Segment(1, "a", 0).ID, mastertest.ID(1), 60000); code != errcode.OK {
		t.Fatal(code)
	}
	f.status("a", segment.StatusGracefullyUnmounting)
	if r := f.run(id, 5, 1); r.Status != drain.Succeeded || r.Succeeded != 1 { // it is moved all the same
		t.Errorf("%+v", r)
	}
	f.status("a", segment.StatusGracefullyUnmounting)
	f.Advance(61 * time.Second)
	if _, code := f.QuerySegmentStatus("a"); code != errcode.SegmentNotFound {
		t.Errorf("after the grace: %v", code)
	}
	if at := f.where("x", "k"); !slices.Equal(at, []string{"b"}) {
		t.Errorf("the object is on %v", at)
	}
}

func TestDrainedSegmentAndItsClient(t *testing.T) {
	f := newFleet(t, 2)
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.run(id, 2, 1)
	f.status("a", segment.StatusDrained)
	info := mastertest.Segment(1, "a", 64*mib)
	if code := f.MountSegment(info, mastertest.ID(1)); code != errcode.UnavailableInStatus {
		t.Errorf("mounting it again: %v", code)
	}
	if code := f.GracefulUnmountSegment(info.ID, mastertest.ID(1), 1); code != errcode.UnavailableInStatus {
		t.Errorf("unmounting it gracefully: %v", code)
	}
	f.Silence(1)
	f.Advance(15 * time.Second) // suspected, and back
	f.Revive(1)
	f.Advance(time.Second)
	f.status("a", segment.StatusDrained)
	f.Silence(1)
	f.Advance(40 * time.Second) // gone, and back
	f.Mount(1, "a", 64*mib)
	f.status("a", segment.StatusOK)
}

func TestDrainJobIsNotFooledByAClientThatLies(t *testing.T) {
	f := newFleet(t, 2)
	f.MustPut("x", "k", mib, on("a"))
	id := f.job(drain.Request{Segments: []string{"a"}})
	for range 3 {
		f.tick()
		_, ids := f.fetch(1)
		f.mark(1, ids[0], task.Success)
	}
	f.tick()
	if r := f.report(id); r.Status != drain.Failed {
		t.Errorf("%+v", r)
	}
}

func TestDrainJobOfRemovedObjects(t *testing.T) {
	f := newFleet(t, 2)
	for i := range 5 {
		f.MustPut("x", fmt.Sprint("k", i), mib, on("a"), mastertest.HardPin)
	}
	id := f.job(drain.Request{Segments: []string{"a"}})
	f.tick()
	if r := f.report(id); r.Blocked != 5 {
		t.Errorf("%+v", r)
	}
	for i := range 5 {
		if code := f.Remove("x", fmt.Sprint("k", i), true); code != errcode.OK {
			t.Fatal(code)
		}
	}
	f.tick()
	f.tick()
	if r := f.report(id); r.Status != drain.Succeeded || r.Succeeded != 0 || r.Total != 5 || r.Remaining != 0 {
		t.Errorf("%+v", r)
	}
}

func TestFinishedDrainJobsAreForgottenAfterAThousand(t *testing.T) {
	f := newFleet(t, 2)
	first := f.job(drain.Request{Segments: []string{"a"}})
	f.cancel(first)
	kept := f.job(drain.Request{Segments: []string{"b"}})
	var second segment.UUID
	for i := range 1001 {
		id, code := f.CreateDrainJob(drain.Request{Segments: []string{"a"}, Concurrency: 1})
		if code != errcode.OK {
			t.Fatal(code)
		}
		if i == 1 {
			second = id
		}
		if code := f.cancel(id); code != errcode.OK {
			t.Fatal(code)
		}
	}
	if _, code := f.QueryDrainJob(first); code != errcode.JobNotFound {
		t.Errorf("the first: %v", code)
	}
	if _, code := f.QueryDrainJob(second); code != errcode.OK {
		t.Errorf("a later one: %v", code)
	}
	if r := f.report(kept); r.Status != drain.Created {
		t.Errorf("the one that goes on: %+v", r)
	}
	if n := len(f.DrainJobs()); n != 1001 {
		t.Errorf("%d jobs are remembered, want 1001", n)
	}
}

func TestCancelDrainJobPatiently(t *testing.T) {
	f := newFleet(t, 2)
	for i := range 5 {
		f.MustPut("x", fmt.Sprint("k", i), mib, on("a"))
	}
	id := f.job(drain.Request{Segments: []string{"a"}, Concurrency: 2})
	f.tick()
	if done, code := f.CancelDrainJob(id, true); done || code != errcode.OK {
		t.Fatalf("done %v, %v", done, code)
	}
	f.tick()
	if r := f.report(id); r.Status != drain.Running || r.Active != 2 || !r.Canceling {
		t.Errorf("meanwhile: %+v", r)
	}
	f.status("a", segment.StatusDraining)
	f.work(1)
	f.tick()
	if r := f.report(id); r.Status != drain.Canceled || r.Succeeded != 2 || r.Remaining != 3 || r.Canceling {
		t.Errorf("then: %+v", r)
	}
	f.status("a", segment.StatusOK)
	if done, code := f.CancelDrainJob(id, true); done || code != errcode.UnavailableInStatus {
		t.Errorf("again: %v, %v", done, code)
	}
}
