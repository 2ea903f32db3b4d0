package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
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

// Bytes that aren't those that were written are not kept; another replica with the right ones is.
func TestChecksumsOfTransfers(t *testing.T) {
	for _, good := range []bool{false, true} {
		m := carryMaster(t, core.ExecutorMaster)
		content := stored(t, m, "k", 3*mega, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
		var list object.ReplicaList
		m.AdminReplicas("t", "k", &list)
		for i := range list.Replicas {
			if r := &list.Replicas[i]; !good || place(r).Owner == "a" {
				if err := m.Memory.Poke(place(r), []byte("something else")); err != nil {
					t.Fatal(err)
				}
			}
		}
		id, code := m.CreateMoveTask("t", "k", "a", "c")
		wantCode(t, "move", code, errcode.OK)
		carried(m)
		if good {
			wantTask(t, m, id, task.Success, "carried by the master")
			wantOn(t, m, "k", content, "b c")
		} else {
			wantTask(t, m, id, task.Failed, "checksum_mismatch")
			if got := m.Stats().Tasks.Transfers.Failed; !strings.Contains(fmt.Sprint(got), "{checksum_mismatch 1}") {
				t.Errorf("counted %v", got)
			}
		}
		wantCharged(t, m, "then", 6*mega)
		m.Drain(t)
	}
}

// A write that was given up may still arrive: its memory is kept out of use for the release timeout.
func TestTargetsOfGivenUpWritesAreParked(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	stored(t, m, "k", mega, mastertest.Prefer("a"))
	m.Memory.Before(func(ctx context.Context, c transfertest.Call) error {
		if c.Write {
			return errors.New("broken")
		}
		return nil
	})
	id, _ := m.CreateCopyTask("t", "k", []string{"b"})
	carried(m)
	wantTask(t, m, id, task.Failed, "target_unreachable at b: broken")
	wantCharged(t, m, "then", mega)
	if used, _, _ := m.QuerySegment("b"); used != mega {
		t.Errorf("%d bytes of the target are in use", used)
	}
	m.Advance(602 * time.Second)
	if used, _, _ := m.QuerySegment("b"); used != 0 {
		t.Errorf("%d bytes of the target are in use after the release timeout", used)
	}
}

// A target without room is asked again, as clients do.
func TestTransferWaitsForRoom(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	stored(t, m, "x", 16*mega, mastertest.Prefer("b"))
	id, _ := m.CreateCopyTask("t", "k", []string{"b"})
	m.Step()
	m.Clock.AwaitTimer(50 * time.Millisecond)
	wantCode(t, "removal", m.Remove("t", "x", true), errcode.OK)
	m.Clock.Set(50 * time.Millisecond)
	m.AwaitTransfers()
	wantTask(t, m, id, task.Success, "carried by the master")
	wantOn(t, m, "k", content, "a b")
}

// A hung carrier costs what it carries and nothing else.
func TestHungCarrier(t *testing.T) {
	m := carryMaster(t, core.ExecutorMaster)
	content := stored(t, m, "k", mega, mastertest.Prefer("a"))
	free := make(chan struct{})
	m.Memory.Before(func(context.Context, transfertest.Call) error { return m.Memory.Hold(free) })
	id, _ := m.CreateMoveTask("t", "k", "a", "b")
	m.Step()
	for m.Memory.Held() == 0 {
		time.Sleep(time.Millisecond)
	}
	m.Clock.Set(30 * time.Second)
	m.Clock.AwaitTimer(time.Second)
	m.Clock.Set(time.Second)
	m.AwaitTransfers()
	wantTask(t, m, id, task.Failed, "stalled at a")
	wantOn(t, m, "k", content, "a")
	wantCharged(t, m, "then", mega)
	if got := m.Stats().Tasks.Transfers; got.Stuck != 1 {
		t.Errorf("counted %+v", got)
	}
	close(free)
	for m.Stats().Tasks.Transfers.Stuck != 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestTransferHammer has the master carry many objects at once, with drains, faults, cancellations, removals, and segments
// and clients that come and go. At the end all of its books are right, every replica has its bytes, and nothing
// is left under way, in buffers or charged.
func TestTransferHammer(t *testing.T) {
	const keys, rounds, workers = 60, 150, 4
	m := carryMaster(t, core.ExecutorMaster, func(c *core.Config) { c.Transfer.Memory, c.Transfer.Concurrency = 512<<10, 4 })
	m.Mount(4, "d", 16*mega)
	names := []string{"a", "b", "c", "d"}
	content := make(map[string][]byte)
	for i := range keys {
		key := fmt.Sprint("k", i)
		content[key] = stored(t, m, key, 1+rand.IntN(200<<10), mastertest.Replicas(uint64(1+rand.IntN(2))), mastertest.Prefer(names[rand.IntN(4)], names[rand.IntN(4)]))
	}
	m.Memory.Before(func(_ context.Context, c transfertest.Call) error {
		if rand.IntN(30) == 0 {
			return errors.New("broken")
		}
		return nil
	})
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range workers {
		wg.Go(func() {
			var mine []segment.UUID
			for range rounds {
				key, one, other := fmt.Sprint("k", rand.IntN(keys)), names[rand.IntN(4)], names[rand.IntN(4)]
				switch rand.IntN(12) {
				case 0, 1, 2, 3:
					if id, code := m.CreateCopyTask("t", key, []string{one}); code == errcode.OK {
						mine = append(mine, id)
					}
				case 4, 5, 6, 7:
					if id, code := m.CreateMoveTask("t", key, one, other); code == errcode.OK {
						mine = append(mine, id)
					}
				case 8:
					if len(mine) > 0 {
						m.CancelTransfer(mine[rand.IntN(len(mine))])
					}
				case 9:
					if rand.IntN(8) == 0 {
						m.Remove("t", key, true)
					}
				case 10:
					if rand.IntN(4) == 0 {
						m.BatchReplicaClear("t", []string{key}, mastertest.ID(1), one)
					}
				case 11:
					if id, code := m.CreateDrainJob(drain.Request{Segments: []string{one}, Concurrency: 3}); code == errcode.OK {
						time.Sleep(time.Millisecond)
						m.CancelDrainJob(id, true)
					}
				}
				m.Transfers()
			}
		})
	}
	var steps sync.WaitGroup
	steps.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			m.Clock.Set(10 * time.Millisecond)
			for c := range uint64(4) {
				m.Ping(mastertest.ID(c + 1))
			}
			if n%200 == 199 {
				wantCode(t, "unmount", m.UnmountSegment(mastertest.Segment(4, "d", 0).ID, mastertest.ID(4)), errcode.OK)
				m.Mount(4, "d", 16*mega)
			}
			m.Step()
			time.Sleep(100 * time.Microsecond)
		}
	})
	wg.Wait()
	close(done)
	steps.Wait()
	m.Memory.Before(nil)
	for range 1000 {
		m.Clock.Set(500 * time.Millisecond)
		for c := range uint64(4) {
			m.Ping(mastertest.ID(c + 1))
		}
		carried(m)
		if q := m.Stats().Tasks.Queue; q.Pending == 0 && q.Processing == 0 {
			break
		}
	}
	s := m.Stats().Tasks
	if s.Queue.Pending != 0 || s.Queue.Processing != 0 || s.UnderWay != 0 || s.Transfers.UnderWay != 0 || s.Transfers.Stuck != 0 {
		t.Errorf("left: %+v", s)
	}
	if s.Transfers.Done < 5 {
		t.Errorf("only %d were carried: %+v", s.Transfers.Done, s)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	for key, want := range content {
		var list object.ReplicaList
		m.AdminReplicas("t", key, &list)
		for i := range list.Replicas {
			r := &list.Replicas[i]
			got, err := m.Memory.Peek(place(r), len(want))
			if err != nil || transfer.Sum(got) != transfer.Sum(want) {
				t.Errorf("%s has other bytes on %s (%v)", key, place(r).Owner, err)
			}
		}
	}
	for range 10 { // drain jobs that are being canceled
		m.Clock.Set(time.Second)
		carried(m)
	}
	m.Drain(t)
	m.StopTransfers()
	if buffers, calls, most := m.Memory.Use(); buffers != 0 || calls != 0 || most > 512<<10 {
		t.Errorf("%d buffers and %d calls are left, there were %d bytes at most", buffers, calls, most)
	}
}
