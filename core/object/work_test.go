package object

import (
	"fmt"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// beginWorks begins n works at the instants 1, 2, 3, ... of objects named by those.
func beginWorks(s *Space, n int) {
	for i := range n {
		key := fmt.Sprint(i + 1)
		sh, h := s.Locate(key)
		sh.Lock()
		o := sh.Insert(h, key, 1, segment.UUID{}, 0)
		sh.BeginWork(o, &Work{Slot: WorkSlot(i % int(workSlots)), Started: int64(i + 1)})
		sh.Unlock()
	}
}

func TestWorksBefore(t *testing.T) {
	s := NewSpace(2)
	beginWorks(s, 100)
	for _, want := range []struct {
		instant int64
		n       int
	}{{1, 0}, {2, 1}, {2, 0}, {51, 49}, {50, 0}, {101, 50}, {1000, 0}} {
		if got := s.WorksBefore(want.instant); len(got) != want.n {
			t.Errorf("%d works before %d, want %d", len(got), want.instant, want.n)
		}
	}
	// One that has ended is passed over, and does not hide those behind it.
	s = NewSpace(1)
	beginWorks(s, 3)
	sh, h := s.Locate("1")
	sh.Lock()
	sh.EndWork(sh.Get(h, "1"), SlotReplication)
	sh.Unlock()
	if got := s.WorksBefore(3); len(got) != 1 || got[0].Work.Started != 2 {
		t.Errorf("before 3: %+v", got)
	}
	if got := s.WorksBefore(4); len(got) != 1 || got[0].Work.Started != 3 {
		t.Errorf("before 4: %+v", got)
	}
}

func TestWorksThat(t *testing.T) {
	s := NewSpace(1)
	beginWorks(s, 3*worksBite+1)
	ended := 0
	found := s.WorksThat(func(w *Work) bool { return w.Slot == SlotOffload && w.Started%2 == 0 })
	for _, f := range found {
		if f.Work.Slot != SlotOffload || f.Work.Started%2 != 0 || s.ShardOf(f.Object).Live(f.Object) == nil {
			t.Fatalf("found %+v", f.Work)
		}
		s.ShardOf(f.Object).EndWork(s.ShardOf(f.Object).Live(f.Object), SlotOffload)
		ended++
	}
	if ended != worksBite/2 {
		t.Errorf("found %d, want %d", ended, worksBite/2)
	}
	if again := s.WorksThat(func(w *Work) bool { return w.Slot == SlotOffload }); len(again) != worksBite/2 {
		t.Errorf("then %d, want %d", len(again), worksBite/2)
	}
}
