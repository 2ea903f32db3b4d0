package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
)

// carryMaster is copyMaster with a carrier.
func carryMaster(t *testing.T, executor string, change ...func(*core.Config)) *mastertest.Master {
	return carryMasterOf(t, 16*mega, executor, change...)
}

// carryMasterOf is carryMaster with segments of another size, since bytes are really lent.
func carryMasterOf(t *testing.T, size uint64, executor string, change ...func(*core.Config)) *mastertest.Master {
	m := mastertest.NewCarrying(t, append([]func(*core.Config){mastertest.Strict, mastertest.NoPoolEviction, func(c *core.Config) {
		c.Transfer.Executor = executor
		c.Transfer.Memory, c.Transfer.Concurrency = 1<<20, 2
		c.BreakerMinClients = 100
	}}, change...)...)
	for n, name := range []string{"a", "b", "c"} {
		m.Mount(uint64(n+1), name, size)
	}
	m.Policies("t", 64*mega)
	return m
}

// stored puts an object of random bytes, really, and returns them.
func stored(t *testing.T, m *mastertest.Master, key string, size int, options ...mastertest.Option) []byte {
	t.Helper()
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	replicas, code := m.PutStart(mastertest.ID(1), "t", key, uint64(size), mastertest.Config(options...), nil)
	wantCode(t, "start of "+key, code, errcode.OK)
	for _, r := range replicas {
		if err := m.Memory.Poke(place(&r), content); err != nil {
			t.Fatal(err)
		}
	}
	sum := uint64(transfer.Sum(content))
	wantCode(t, "end of "+key, m.PutEnd(mastertest.ID(1), "t", &object.Meta{Key: key, Checksum: &sum}, object.ReplicaAll), errcode.OK)
	m.Clock.Set(time.Microsecond)
	return content
}

func place(r *object.ReplicaDescriptor) transfer.Place {
	b := &r.Location.Memory.Buffer
	return transfer.Place{Owner: b.Endpoint, Address: b.Address}
}

// wantOn compares where an object can be read, and that its bytes are there.
func wantOn(t *testing.T, m *mastertest.Master, key string, content []byte, want string) {
	t.Helper()
	var list object.ReplicaList
	m.AdminReplicas("t", key, &list)
	var on []string
	for i := range list.Replicas {
		r := &list.Replicas[i]
		if r.Status != object.ReplicaComplete || r.Location.Index != object.LocationMemory {
			continue
		}
		on = append(on, place(r).Owner)
		if got, err := m.Memory.Peek(place(r), len(content)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the replica of %s on %s has other bytes (%v)", key, place(r).Owner, err)
		}
	}
	if got := strings.Join(on, " "); got != want {
		t.Errorf("%s lies on %q, want %q", key, got, want)
	}
}

func wantTask(t *testing.T, m *mastertest.Master, id segment.UUID, want task.Status, message string) {
	t.Helper()
	v, code := m.QueryTask(id)
	if code != errcode.OK || v.Status != want || !strings.Contains(v.Message, message) {
		t.Errorf("the task is %+v (%v), want status %d and %q", v, code, want, message)
	}
}

// carried lets the master take up what waits, and waits until it is done.
func carried(m *mastertest.Master) {
	m.Step()
	m.AwaitTransfers()
}

func TestMasterCarries(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	content := stored(t, m, "k", 3*mega+5, mastertest.Prefer("a"))
	size := uint64(len(content))
	id, code := m.CreateCopyTask("t", "k", []string{"b", "c"})
	wantCode(t, "copy", code, errcode.OK)
	if list, _ := m.FetchTasks(mastertest.ID(1), 9); len(list) != 0 {
		t.Errorf("the client is given %+v", list)
	}
	carried(m)
	wantTask(t, m, id, task.Success, "carried by the master")
	wantOn(t, m, "k", content, "a b c")
	wantCharged(t, m, "after the copy", 3*size)

	content = stored(t, m, "l", mega, mastertest.Prefer("a"))
	id, code = m.CreateMoveTask("t", "l", "a", "b")
	wantCode(t, "move", code, errcode.OK)
	carried(m)
	wantTask(t, m, id, task.Success, "carried by the master")
	wantOn(t, m, "l", content, "b")
	wantCharged(t, m, "after the move", 3*size+mega)

	if got := m.Stats().Tasks; got.Transfers.Done != 2 || got.Transfers.Written != 2*size+mega || got.Copied != 1 || got.Moved != 1 || got.UnderWay != 0 || got.Queue.Claimed != 2 {
		t.Errorf("counted %+v", got)
	}
	m.Drain(t)
}

// The client has a while; then the master goes on, unless it can't reach what it would have to.
func TestTakeover(t *testing.T) {
	m := carryMaster(t, core.ExecutorAuto)
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	copyTask := func() segment.UUID {
		id, code := m.CreateCopyTask("t", "k", []string{"b"})
		wantCode(t, "copy", code, errcode.OK)
		return id
	}
	first := copyTask()
	m.Advance(2900 * time.Millisecond)
	carried(m)
	wantTask(t, m, first, task.Pending, "")
	if list, _ := m.FetchTasks(mastertest.ID(1), 9); len(list) != 1 {
		t.Fatalf("the client is given %+v", list)
	}
	m.Advance(20 * time.Second)
	carried(m)
	wantTask(t, m, first, task.Processing, "")
	wantOn(t, m, "k", content, "a")
	wantCode(t, "end by the client", m.MarkTaskToComplete(mastertest.ID(1), task.Completion{ID: first, Status: task.Failed, Message: "no"}), errcode.OK)

	m.Memory.Before(func(_ context.Context, c transfertest.Call) error {
		if c.At.Owner == "b" {
			return errors.New("no way")
		}
		return nil
	})
	second := copyTask()
	m.Advance(3100 * time.Millisecond)
	carried(m)
	wantTask(t, m, second, task.Pending, "")
	m.Memory.Before(nil)
	m.Advance(5 * time.Second)
	carried(m)
	wantTask(t, m, second, task.Pending, "") // b is left alone for a while
	m.Advance(6 * time.Second)
	carried(m)
	wantTask(t, m, second, task.Success, "carried by the master")
	wantOn(t, m, "k", content, "a b")
	wantCode(t, "end by the client", m.MarkTaskToComplete(mastertest.ID(1), task.Completion{ID: second, Status: task.Failed, Message: "no"}), errcode.OK)
	wantTask(t, m, second, task.Success, "carried by the master")
	if got := m.Stats().Tasks.Queue; got.Fetched != 1 || got.Claimed != 1 {
		t.Errorf("counted %+v", got)
	}
}

// What a silent client would have to do the master does at once, if the bytes can be had.
func TestTakeoverFromTheSilent(t *testing.T) {
	m := carryMaster(t, core.ExecutorAuto)
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	other := stored(t, m, "l", mega, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
	m.Silence(1)
	m.Advance(11 * time.Second)
	_, code := m.CreateCopyTask("t", "k", []string{"b"})
	wantCode(t, "copy from a silent client by another", code, errcode.UnavailableInStatus)
	id, code := m.CreateCopyTask("t", "l", []string{"c"})
	wantCode(t, "copy of what another has", code, errcode.OK)
	job, code := m.CreateDrainJob(drain.Request{Segments: []string{"a"}, Concurrency: 4})
	wantCode(t, "drain", code, errcode.OK)
	for range 5 {
		m.Clock.Set(500 * time.Millisecond)
		carried(m)
	}
	m.Advance(3 * time.Second)
	carried(m)
	wantTask(t, m, id, task.Success, "carried by the master")
	wantOn(t, m, "k", content, "c")
	wantOn(t, m, "l", other, "b c")
	report, _ := m.QueryDrainJob(job)
	if report.Status != drain.Succeeded {
		t.Errorf("the drain of a silent client's segment: %+v", report)
	}
}

// A task whose client has fetched it and is gone is begun anew, where there is another replica.
func TestTakeoverFromTheGone(t *testing.T) {
	m := carryMaster(t, core.ExecutorAuto)
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	id, _ := m.CreateCopyTask("t", "k", []string{"c"})
	if list, _ := m.FetchTasks(mastertest.ID(1), 9); len(list) != 1 {
		t.Fatalf("fetched %+v", list)
	}
	wantCode(t, "copy to b", startCopy(m, 1, "k", "a", "b"), errcode.OK)
	wantCode(t, "end", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.OK)
	var list object.ReplicaList
	m.AdminReplicas("t", "k", &list)
	for i := range list.Replicas {
		_ = m.Memory.Poke(place(&list.Replicas[i]), content)
	}
	wantCode(t, "start", startCopy(m, 1, "k", "a", "c"), errcode.OK)
	m.Silence(1)
	m.Advance(35 * time.Second)
	carried(m)
	wantTask(t, m, id, task.Success, "carried by the master")
	wantOn(t, m, "k", content, "b c")
	wantCharged(t, m, "then", 2*mega)
}

func TestCanceledTransfers(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	stored(t, m, "k", mega, mastertest.Prefer("a"))
	begun := make(chan struct{})
	m.Memory.Before(func(ctx context.Context, c transfertest.Call) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	id, _ := m.CreateMoveTask("t", "k", "a", "b")
	m.Step()
	<-begun
	views := m.Transfers()
	want := core.TransferView{ID: id, Tenant: "t", Key: "k", Type: task.Move, Source: "a", Targets: []string{"b"}, Bytes: mega, SinceMs: views[0].SinceMs, Executor: core.ExecutorMaster, Client: mastertest.ID(1)}
	if len(views) != 1 || fmt.Sprint(views[0]) != fmt.Sprint(want) || views[0].SinceMs != m.Clock.Now()/1e6 {
		t.Errorf("under way: %+v, want %+v", views, want)
	}
	wantCharged(t, m, "while it is moved", 2*mega)
	wantCode(t, "cancel", m.CancelTransfer(id), errcode.OK)
	m.AwaitTransfers()
	wantTask(t, m, id, task.Failed, "carried by the master: canceled: by an operator")
	wantCode(t, "cancel again", m.CancelTransfer(id), errcode.TaskNotFound)
	wantCharged(t, m, "then", mega)

	waiting, _ := m.CreateMoveTask("t", "k", "a", "b")
	wantCode(t, "cancel of what waits", m.CancelTransfer(waiting), errcode.OK)
	wantTask(t, m, waiting, task.Failed, "canceled by an operator")

	auto := carryMaster(t, core.ExecutorAuto)
	stored(t, auto, "k", mega, mastertest.Prefer("a"))
	fetched, _ := auto.CreateMoveTask("t", "k", "a", "b")
	auto.FetchTasks(mastertest.ID(1), 1)
	wantCode(t, "cancel of what a client does", auto.CancelTransfer(fetched), errcode.UnavailableInStatus)
	if views := auto.Transfers(); len(views) != 1 || views[0].Executor != core.ExecutorClient || views[0].Bytes != mega {
		t.Errorf("under way: %+v", views)
	}
}

// Proposals of dynamic replication are tasks like any.
func TestMasterCarriesProposals(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster, func(c *core.Config) {
		c.DynamicReplication = core.DynamicReplicationConfig{Mode: core.ReplicationEnforce, HeatWindow: 3 * time.Second, AdmissionQPS: 1, MaxReplicas: 2}
	})
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 3)
	m.Step()
	carried(m)
	var list object.ReplicaList
	m.AdminReplicas("t", "k", &list)
	if len(list.Replicas) != 2 {
		t.Fatalf("%d replicas", len(list.Replicas))
	}
	wantOn(t, m, "k", content, "a "+place(&list.Replicas[1]).Owner)
	if got := m.Stats().Tasks.Dynamic; got.Proposed != 1 || got.Begun != 1 || got.Completed != 1 || got.Failed != 0 {
		t.Errorf("counted %+v", got)
	}
}

// A client that has stopped and isn't known to be silent yet holds up a drain for a moment only, where its objects lie
// elsewhere too.
func TestDrainOfAStoppedClient(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	content := make(map[string][]byte)
	for i := range 12 {
		key := fmt.Sprint("k", i)
		content[key] = stored(t, m, key, 100_000, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
	}
	m.Memory.Before(func(ctx context.Context, c transfertest.Call) error {
		if c.At.Owner == "a" {
			return m.Memory.Hold(ctx.Done())
		}
		return nil
	})
	job, code := m.CreateDrainJob(drain.Request{Segments: []string{"a"}, Concurrency: 4})
	wantCode(t, "drain", code, errcode.OK)
	began := m.Clock.Now()
	for range 6 {
		m.Step()
		idle := make(chan struct{})
		go func() { m.AwaitTransfers(); close(idle) }()
		for waiting := true; waiting; {
			select {
			case <-idle:
				waiting = false
			case <-time.After(time.Millisecond):
				if m.Memory.Held() > 0 {
					m.Clock.Set(100 * time.Millisecond)
				}
			}
		}
		for n := range uint64(3) {
			m.Ping(mastertest.ID(n + 1))
		}
	}
	if took := time.Duration(m.Clock.Now() - began); took < 3*time.Second || took > 20*time.Second {
		t.Errorf("took %v", took) // a stall is 30 s
	}
	if report, _ := m.QueryDrainJob(job); report.Status != drain.Succeeded || report.Succeeded != 12 || report.Failed != 0 {
		t.Errorf("at the end: %+v", report)
	}
	for key, value := range content {
		wantOn(t, m, key, value, "b c")
	}
}
