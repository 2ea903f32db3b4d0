package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
)

// carryRig is a master that carries an object, "k" of tenant "t", and is interrupted at it. Segments a to d are of
// clients 1 to 4; the object has 200 KiB, and pieces have 64.
type carryRig struct {
	t       *testing.T
	m       *mastertest.Master
	content []byte
	task    segment.UUID
	lies    []string // where the object lies when it begins
	made    []string // where it is made
	asked   int      // targets there were to be
	moves   bool

	mu      sync.Mutex
	reached chan struct{} // closed when the point of interruption is reached
	free    chan struct{} // closed when the call that is held there may go on
	failure error         // what that call answers then
	ending  string        // what else ends it
}

const (
	carrySize    = 200 << 10
	carrySegment = 512 << 10
)

// carryOperations begin something.
var carryOperations = []struct {
	name       string
	lies, made []string
	do         func(m *mastertest.Master) (segment.UUID, errcode.Code)
	moves      bool
}{
	{"copy", []string{"a"}, []string{"b"}, func(m *mastertest.Master) (segment.UUID, errcode.Code) {
		return m.CreateCopyTask("t", "k", []string{"b"})
	}, false},
	{"copy to two", []string{"a"}, []string{"b", "c"}, func(m *mastertest.Master) (segment.UUID, errcode.Code) {
		return m.CreateCopyTask("t", "k", []string{"b", "c"})
	}, false},
	{"copy of two", []string{"a", "c"}, []string{"b"}, func(m *mastertest.Master) (segment.UUID, errcode.Code) {
		return m.CreateCopyTask("t", "k", []string{"b"})
	}, false},
	{"move", []string{"a"}, []string{"b"}, func(m *mastertest.Master) (segment.UUID, errcode.Code) { return m.CreateMoveTask("t", "k", "a", "b") }, true},
	{"move of one of two", []string{"a", "c"}, []string{"b"}, func(m *mastertest.Master) (segment.UUID, errcode.Code) { return m.CreateMoveTask("t", "k", "a", "b") }, true},
}

// carryPoints say which call is held: the n-th read or write, before it has moved bytes or after.
var carryPoints = []struct {
	name  string
	write bool
	n     int
	after bool
}{
	{"before the first read", false, 1, false},
	{"in the middle of reading", false, 2, false},
	{"before the first write", true, 1, false},
	{"in the middle of writing", true, 2, false},
	{"after the last write", true, 4, true},
}

// carryInterruptions are what may come in between. Some say how the call that is held ends.
var carryInterruptions = []struct {
	name string
	do   func(r *carryRig)
}{
	{"nothing", func(*carryRig) {}},
	{"end by a client", func(r *carryRig) {
		r.code("end", errcode.IllegalClient, r.m.CopyEnd(mastertest.ID(1), "t", "k"))
		r.code("revoke", errcode.IllegalClient, r.m.MoveRevoke(mastertest.ID(1), "t", "k"))
		r.code("end of the task", errcode.IllegalClient, r.m.MarkTaskToComplete(mastertest.ID(1), task.Completion{ID: r.task, Status: task.Success}))
	}},
	{"release timeout", func(r *carryRig) { r.m.Clock.Set(10 * time.Minute); r.m.Step(); r.m.Advance(2 * time.Second) }},
	{"source unmounted", func(r *carryRig) { r.unmount("a") }},
	{"target unmounted", func(r *carryRig) { r.unmount("b") }},
	{"source and target unmounted", func(r *carryRig) { r.unmount("a"); r.unmount("b") }},
	{"all unmounted", func(r *carryRig) { r.unmount("a"); r.unmount("b"); r.unmount("c") }},
	{"source unmounted and back", func(r *carryRig) { r.unmount("a"); r.m.Mount(1, "a", carrySegment) }},
	{"target unmounted and back", func(r *carryRig) { r.unmount("b"); r.m.Mount(2, "b", carrySegment) }},
	{"source's client silent", func(r *carryRig) { r.m.Silence(1); r.m.Advance(12 * time.Second) }},
	{"source's client gone", func(r *carryRig) { r.m.Silence(1); r.m.Advance(33 * time.Second); r.lost("a") }},
	{"target's client gone", func(r *carryRig) { r.m.Silence(2); r.m.Advance(33 * time.Second); r.lost("b") }},
	{"removal", func(r *carryRig) {
		want := errcode.ReplicaIsNotReady
		r.code("removal", want, r.m.Remove("t", "k", false))
		r.code("removal by force", want, r.m.Remove("t", "k", true))
		if n := r.m.RemoveAll("t", true); n != 0 {
			r.t.Errorf("%d objects were removed", n)
		}
	}},
	{"clearing of the source", func(r *carryRig) {
		if got, _ := r.m.BatchReplicaClear("t", []string{"k"}, mastertest.ID(1), "a"); len(got) != 1 {
			r.t.Errorf("cleared %v", got)
		}
		r.lost("a")
	}},
	{"clearing of all", func(r *carryRig) {
		if got, _ := r.m.BatchReplicaClear("t", []string{"k"}, mastertest.ID(1), ""); len(got) != 0 {
			r.t.Errorf("cleared %v", got)
		}
	}},
	{"put and upsert", func(r *carryRig) {
		r.code("put", errcode.ObjectAlreadyExists, r.m.Start("t", "k", 1))
		for _, size := range []uint64{1, carrySize} {
			_, code := r.m.UpsertStart(mastertest.ID(2), "t", "k", size, mastertest.Config(), nil)
			r.code("upsert", errcode.ObjectHasReplicationTask, code)
		}
	}},
	{"another copy and move", func(r *carryRig) {
		r.code("copy", errcode.ObjectHasReplicationTask, startCopy(r.m, 1, "k", "a", "d"))
		r.code("move", errcode.ObjectHasReplicationTask, startMove(r.m, 1, "k", "a", "d"))
	}},
	{"eviction", func(r *carryRig) {
		r.m.Policies("t", 1)
		r.m.Advance(3 * time.Second)
		r.m.Policies("t", 64*mega)
	}},
	{"policy removed", func(r *carryRig) { r.m.ApplyPolicies(nil) }},
	{"policy removed and back", func(r *carryRig) { r.m.ApplyPolicies(nil); r.m.Advance(time.Second); r.m.Policies("t", 64*mega) }},
	{"removal of the tenant", func(r *carryRig) { r.code("removal", errcode.TenantNotEmpty, r.m.BeginRemoval("t")) }},
	{"cancel", func(r *carryRig) { r.code("cancel", errcode.OK, r.m.CancelTransfer(r.task)); r.ends("canceled") }},
	{"end of the master", func(r *carryRig) {
		go r.m.StopTransfers()
		r.ends("canceled")
	}},
	{"timeout", func(r *carryRig) { r.m.Clock.Set(20 * time.Minute); r.ends("timeout") }},
	{"broken", func(r *carryRig) { r.failure = errors.New("broken") }},
}

func (r *carryRig) code(what string, want, got errcode.Code) {
	r.t.Helper()
	wantCode(r.t, what, got, want)
}

func (r *carryRig) unmount(name string) {
	unmount(r.t, r.m, uint64(name[0]-'a'+1), name)
	r.lost(name)
}

// lost notes that what lay on a segment, or was to, doesn't any more.
func (r *carryRig) lost(name string) {
	r.lies = slices.DeleteFunc(slices.Clone(r.lies), func(n string) bool { return n == name })
	r.made = slices.DeleteFunc(slices.Clone(r.made), func(n string) bool { return n == name })
}

// ends notes that the transfer is given up.
func (r *carryRig) ends(cause string) { r.ending = cause }

// wantCharge compares what is charged and used with replicas on some segments.
func (r *carryRig) wantCharge(when string, replicas int) {
	r.t.Helper()
	if got := r.m.ChargedOf("t"); got != uint64(replicas)*carrySize {
		r.t.Errorf("%s: %d bytes are charged, want those of %d replicas", when, got, replicas)
	}
	if err := r.m.Check(); err != nil {
		r.t.Errorf("%s: %v", when, err)
	}
}

// TestEveryInterruptionOfATransfer interrupts every kind of transfer at every point by everything. While it is interrupted
// and afterwards what is charged is exact; afterwards the object lies where it must, with its bytes; the task says
// how it ended; and at last nothing is charged or in use.
func TestEveryInterruptionOfATransfer(t *testing.T) {
	for _, op := range carryOperations {
		for _, point := range carryPoints {
			for _, in := range carryInterruptions {
				t.Run(fmt.Sprintf("%s/%s/%s", op.name, point.name, in.name), func(t *testing.T) {
					t.Parallel()
					m := carryMasterOf(t, carrySegment, core.ExecutorMaster, func(c *core.Config) {
						c.Transfer.Memory, c.Transfer.Concurrency, c.Transfer.Stall, c.Transfer.Timeout = 128<<10, 1, 10*time.Hour, 15*time.Minute
					})
					m.Mount(4, "d", carrySegment)
					r := &carryRig{t: t, m: m, lies: op.lies, made: op.made, asked: len(op.made), moves: op.moves, reached: make(chan struct{}), free: make(chan struct{})}
					r.content = stored(t, m, "k", carrySize, mastertest.Replicas(uint64(len(op.lies))), mastertest.Prefer(op.lies...))
					n := point.n
					if point.write {
						n *= len(op.made) // each piece is written to all
					}
					r.hold(point.write, n, point.after)
					var code errcode.Code
					r.task, code = op.do(m)
					wantCode(t, op.name, code, errcode.OK)
					m.Step()
					<-r.reached
					r.wantCharge("when it is interrupted", len(r.lies)+len(r.made))
					in.do(r)
					if r.ending == "" { // else it ends by itself
						r.wantCharge("after the interruption", len(r.lies)+len(r.made))
						close(r.free)
					}
					m.AwaitTransfers()
					r.verify(point.write)
				})
			}
		}
	}
}

// hold holds the n-th read or write.
func (r *carryRig) hold(write bool, n int, after bool) {
	calls := 0
	hook := func(ctx context.Context, c transfertest.Call) error {
		r.mu.Lock()
		if c.Write == write {
			calls++
		}
		mine := c.Write == write && calls == n
		r.mu.Unlock()
		if !mine {
			return nil
		}
		close(r.reached)
		select {
		case <-r.free:
			return r.failure
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if after {
		r.m.Memory.After(hook)
	} else {
		r.m.Memory.Before(hook)
	}
}

// verify compares how it ended. write says whether the call that was held is a write.
func (r *carryRig) verify(write bool) {
	r.t.Helper()
	r.m.Ping(mastertest.ID(1)) // what is silent isn't shown
	v, _ := r.m.QueryTask(r.task)
	var list object.ReplicaList
	r.m.AdminReplicas("t", "k", &list)
	on := replicasOn(&list)
	status, want := task.Success, slices.Concat(r.lies, r.made)
	if r.moves {
		want = slices.DeleteFunc(want, func(n string) bool { return n == "a" })
	}
	switch {
	case r.failure != nil && write && len(r.made) > 1: // one of the targets is whole all the same, whichever it is
		status = task.Failed
		if len(on) == 2 && on[0] == "a" && slices.Contains(r.made, on[1]) {
			want = on
		}
	case r.ending != "", len(r.lies) == 0, len(r.made) == 0, r.failure != nil && (write || len(r.lies) == 1):
		status, want = task.Failed, r.lies
	case len(r.made) < r.asked:
		status = task.Failed
	}
	if v.Status != status || !slices.Equal(on, want) || !strings.Contains(v.Message, r.ending) {
		r.t.Errorf("it lies on %v, want %v; the task is %+v, want status %d and %q", on, want, v, status, r.ending)
	}
	r.m.Memory.Before(nil)
	r.m.Memory.After(nil)
	wantOn(r.t, r.m, "k", r.content, strings.Join(on, " "))
	r.wantCharge("at the end", len(on))
	if got := r.m.Stats().Tasks; got.UnderWay != 0 || got.Transfers.UnderWay != 0 || got.Queue.Processing != 0 {
		r.t.Errorf("at the end there are %+v", got)
	}
	r.m.Drain(r.t)
}

func replicasOn(list *object.ReplicaList) []string {
	var on []string
	for i := range list.Replicas {
		if r := &list.Replicas[i]; r.Status == object.ReplicaComplete {
			on = append(on, place(r).Owner)
		}
	}
	return on
}
