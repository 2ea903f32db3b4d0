package core

import (
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// hand is a clock that shows another nanosecond each time, so that no two objects are of one age.
type hand struct {
	frozen
	now int64
}

func (h *hand) Now() int64 { h.now++; return h.now }

// small is a master with segments of the given size, and a way to put objects.
func small(t *testing.T, segments int, size uint64) (m *Master, put func(key string, size uint64) errcode.Code) {
	t.Helper()
	clock := &hand{now: 1e12}
	m, err := New(Default(), Deps{Clock: clock, Rand: frozen{}, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	me := segment.UUID{First: 1}
	for i := range segments {
		info := segment.Info{ID: segment.UUID{First: uint64(i) + 1}, Name: fmt.Sprint("seg", i), Base: 1 << 32, Size: size}
		if code := m.MountSegment(info, me); code != errcode.OK {
			t.Fatal(code)
		}
	}
	t.Cleanup(func() {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
	return m, func(key string, size uint64) errcode.Code {
		if _, code := m.PutStart(me, "", key, size, &object.ReplicateConfig{ReplicaNum: 1}, nil); code != errcode.OK {
			return code
		}
		return m.PutEnd(me, "", &object.Meta{Key: key}, object.ReplicaAll)
	}
}

func mustFill(t *testing.T, put func(string, uint64) errcode.Code, n int) {
	t.Helper()
	for i := range n {
		if code := put(fmt.Sprint("k", i), 1024); code != errcode.OK {
			t.Fatalf("object %d: %v", i, code)
		}
	}
}

// firstKept is the number of the oldest object left of n, of which all younger ones must be there.
func firstKept(t *testing.T, m *Master, n int) int {
	t.Helper()
	first := n
	for i := n - 1; i >= 0; i-- {
		there, _ := m.ProbeKey("", fmt.Sprint("k", i))
		if there && first != i+1 {
			t.Errorf("object %d is there, the younger %d is not", i, i+1)
		}
		if there {
			first = i
		}
	}
	return first
}

// TestAPassGoesInBites counts the rests of a pass. In each the master can be used, and what has
// gone until then are the oldest.
func TestAPassGoesInBites(t *testing.T) {
	const n = 7700 // of 8192: .94, so that the pass has to give up .09
	m, put := small(t, 1, 8192<<10)
	mustFill(t, put, n)
	rests := 0
	m.evictPool(false, func() bool {
		rests++
		if got := firstKept(t, m, n); got != rests*restingBite {
			t.Errorf("rest %d: the oldest left is %d, want %d", rests, got, rests*restingBite)
		}
		if _, code := m.ExistKey("", fmt.Sprint("k", n-1)); code != errcode.OK {
			t.Error(code)
		}
		return true
	})
	const goal = 693 // 0.09 of 7700, as used is .9399
	if got := firstKept(t, m, n); got < goal-1 || got > goal+1 || rests != 2 {
		t.Errorf("%d objects have gone with %d rests, want about %d with 2", got, rests, goal)
	}
	if m.pass.open.Load() {
		t.Error("the pass is still open")
	}
	s := m.Stats()
	if s.AttemptedEvictions != 1 || s.SuccessfulEvictions != 1 {
		t.Errorf("%d passes, %d of them successful; want one", s.AttemptedEvictions, s.SuccessfulEvictions)
	}
}

// TestWritersKeepUpWithThemselves puts far more than fits while nothing runs in the background
// but the opening of passes: use stays near the watermark, because writers give up as much as they
// take while a pass is open.
func TestWritersKeepUpWithThemselves(t *testing.T) {
	m, put := small(t, 4, 2048<<10)
	mustFill(t, put, 7400) // .903
	for i := range 8000 {
		if i%500 == 0 {
			m.evictPool(false, func() bool { return false }) // one bite, then it's the writers'
		}
		if code := put(fmt.Sprint("n", i), 1024); code != errcode.OK {
			t.Fatal(code)
		}
		if used := m.usedRatio(); used > 0.97 {
			t.Fatalf("%.3f is in use after %d more objects", used, i)
		}
	}
	if s := m.Stats(); s.PutStartAllocFailures != 0 {
		t.Errorf("%d puts were refused", s.PutStartAllocFailures)
	}
}

// TestNothingIsRefusedWhileSomethingCanGo puts large objects into memory full of small ones:
// however many bites it takes, room is made.
func TestNothingIsRefusedWhileSomethingCanGo(t *testing.T) {
	const n = 16384
	m, put := small(t, 4, 4096<<10)
	mustFill(t, put, n)
	if _, code := m.ExistKey("", "k0"); code != errcode.OK { // leased: stays, in the way
		t.Fatal(code)
	}
	for i := range 8 {
		if code := put(fmt.Sprint("large", i), 1<<20); code != errcode.OK {
			t.Fatalf("large object %d: %v", i, code)
		}
	}
	if there, _ := m.ProbeKey("", "k0"); !there {
		t.Error("a leased object has gone")
	}
	if there, _ := m.ProbeKey("", fmt.Sprint("k", n-1)); !there {
		t.Error("the youngest of the small objects has gone for half of the memory")
	}
}

// TestBitesLeaveTheGoalAlone gives up as much in bites by writers as in one pass.
func TestBitesLeaveTheGoalAlone(t *testing.T) {
	for _, rest := range []bool{true, false} {
		m, put := small(t, 1, 8192<<10)
		mustFill(t, put, 8000)
		for m.evictPool(false, func() bool { return rest }); m.pass.open.Load(); {
			m.assist(7)
		}
		// used .9766, mark .9: .1266 of 8000
		if got := m.Stats().EvictedKeys; got != 1013 {
			t.Errorf("in bites by writers %v: %d objects have gone, want 1013", !rest, got)
		}
	}
}

// TestSweepsMeetAll removes everything there is, in bites, with a put in between.
func TestSweepsMeetAll(t *testing.T) {
	m, put := small(t, 1, 1<<30)
	calls := 0
	m.yield = func() {
		calls++
		if code := put(fmt.Sprint("young", calls), 1024); code != errcode.OK {
			t.Error(code)
		}
	}
	const n = 100_000
	mustFill(t, put, n)
	if got := m.RemoveAll("", false); got < n || got > int64(n+calls) {
		t.Errorf("%d objects removed, want the %d that were there", got, n)
	}
	if calls < n/sweepBite-64 {
		t.Errorf("others had their turn %d times only", calls)
	}
	if left := len(m.AllKeys("")); left > calls {
		t.Errorf("%d objects left, %d came in meanwhile", left, calls)
	}
}
