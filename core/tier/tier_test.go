package tier_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

func id(n uint64) segment.UUID { return segment.UUID{First: n, Second: n} }

func item(key string) tier.Item { return tier.Item{Tenant: "a", Key: key, Size: 8} }

func keys(all []tier.Item) string {
	s := ""
	for _, i := range all {
		s += i.Key + " "
	}
	return s
}

func TestOffloadsAreHandedOutOnceInTheOrderTheyCame(t *testing.T) {
	var disks tier.Disks
	d := disks.Register(id(1), true)
	for n := range 40 {
		d.Offload(item(fmt.Sprintf("k%02d", n)), 100)
	}
	for n := range 38 {
		d.DropOffload("a", fmt.Sprintf("k%02d", n)) // so many that the holes are closed
	}
	if !d.Offload(tier.Item{Tenant: "a", Key: "k39", Size: 9}, 2) {
		t.Error("an object that waits already is not to be written anew")
	}
	d.Offload(item("k00"), 100)
	if got := d.TakeOffloads(true); keys(got) != "k38 k39 k00 " || got[0].Size != 8 || got[1].Size != 9 {
		t.Errorf("handed out %+v", got)
	}
	if got := d.TakeOffloads(true); len(got) != 0 {
		t.Errorf("handed out again: %v", got)
	}
}

func TestQueueIsBoundedAndCanBeTurnedOff(t *testing.T) {
	var disks tier.Disks
	d := disks.Register(id(1), true)
	for n := range 3 {
		d.Offload(item(fmt.Sprint(n)), 2)
	}
	if got := keys(d.TakeOffloads(false)); got != "0 1 " {
		t.Errorf("two may wait, handed out %q", got)
	}
	if d.Offload(item("x"), 2) {
		t.Error("a disk that takes nothing was given an object")
	}
	c := disks.Counts()[0]
	if c.Enqueued() != 2 || c.Rejected() != 1 {
		t.Errorf("counted %d queued and %d rejected, want 2 and 1", c.Enqueued(), c.Rejected())
	}
	if disks.Register(id(1), true) != d || d.Accepts() {
		t.Error("a second registration must change nothing")
	}
}

func TestCancelTakesFromAllQueuesOrNone(t *testing.T) {
	var disks tier.Disks
	one, two := disks.Register(id(1), true), disks.Register(id(2), true)
	one.Offload(item("k"), 9)
	two.Offload(item("k"), 9)
	if !disks.Cancel([]segment.UUID{id(2), id(1)}, "a", "k") {
		t.Fatal("both wait, not taken back")
	}
	one.Offload(item("k"), 9)
	two.Offload(item("k"), 9)
	two.TakeOffloads(true)
	if disks.Cancel([]segment.UUID{id(2), id(1)}, "a", "k") {
		t.Fatal("one client has it already, but it was taken back")
	}
	if !disks.Wait([]segment.UUID{id(1)}, "a", "k") || disks.Wait([]segment.UUID{id(1), id(2)}, "a", "k") || disks.Wait([]segment.UUID{id(1), id(3)}, "a", "k") {
		t.Error("it waits for the first client, neither for the second nor for one that has no disk")
	}
	if got := keys(one.TakeOffloads(true)); got != "k " {
		t.Errorf("the other client is handed out %q", got)
	}
	if disks.Cancel([]segment.UUID{id(3)}, "a", "k") {
		t.Error("taken back from a client that has no disk")
	}
}

func TestPromotionsAFewAtATime(t *testing.T) {
	var disks tier.Disks
	d := disks.Register(id(1), true)
	for _, k := range []string{"c", "a", "b"} {
		d.Promote(item(k))
	}
	if d.Promote(item("a")) {
		t.Error("an object that waits already was queued again")
	}
	d.DropPromotion("a", "a")
	if got := keys(d.TakePromotions(1)); got != "c " {
		t.Errorf("handed out %q first", got)
	}
	if got := keys(d.TakePromotions(5)); got != "b " {
		t.Errorf("handed out %q then", got)
	}
}

func TestStoresFollowTheirClient(t *testing.T) {
	var disks tier.Disks
	d := disks.Register(id(1), true)
	s := d.Store("here:1")
	if d.Store("here:1") != s || d.Store("there:1") == s {
		t.Fatal("a store is known by its endpoint")
	}
	d.Suspend(true)
	if s.Readable() || d.Store("new:1").Readable() {
		t.Error("what lies with a silent client can't be read")
	}
	d.Suspend(false)
	if !s.Readable() {
		t.Error("its client is back")
	}
	if disks.Remove(id(1)) != d || s.Alive() || d.Store("here:1") != nil || d.Offload(item("k"), 9) || d.Promote(item("k")) {
		t.Error("the disk is gone, and all that lay there")
	}
	if disks.Remove(id(1)) != nil || disks.Find(id(1)) != nil {
		t.Error("it is gone once")
	}
}

// A client that names another endpoint in every report costs no more than what lies there.
func TestEmptyStoresAreForgotten(t *testing.T) {
	var disks tier.Disks
	d := disks.Register(id(1), true)
	used, empty := d.Store("used"), d.Store("empty")
	held := used.Hold(8)
	for n := range 1000 {
		d.Store(fmt.Sprint(n))
	}
	if d.Store("used") != used || !used.Alive() || held.Seg() != used {
		t.Error("a store with replicas is gone")
	}
	if empty.Alive() || d.Store("empty") == empty {
		t.Error("an empty store of a thousand is still there")
	}
}

func TestSketchCountsAndForgets(t *testing.T) {
	s := tier.NewSketch(maphash.MakeSeed())
	for want := 1; want <= 3; want++ {
		if got := s.Read("a", "k"); got != want {
			t.Fatalf("read %d times, estimated %d", want, got)
		}
	}
	if got := s.Read("b", "k"); got != 1 {
		t.Errorf("the same key of another tenant is estimated %d", got)
	}
	for range 300 {
		s.Read("a", "hot")
	}
	if got := s.Read("a", "hot"); got != 255 {
		t.Errorf("counts stop at 255, this is %d", got)
	}
	for range 16384 - 305 {
		s.Read("a", "other")
	}
	if got := s.Read("a", "hot"); got != 128 {
		t.Errorf("halved once and read once: %d, want 128", got)
	}
}

const ms = int64(time.Millisecond)

func due(c *tier.Candidates, now int64) []string {
	var names []string
	for _, e := range c.Due(now, 10) {
		names = append(names, e.Key)
	}
	slices.Sort(names)
	return names
}

func TestCandidatesComeBackLaterAndLater(t *testing.T) {
	var c tier.Candidates
	c.Record("a", "k", 0, 0)
	now := int64(0)
	for _, wait := range []int64{10, 20, 40, 80, 160, 320, 640} {
		if got := due(&c, now); len(got) != 1 {
			t.Fatalf("at %d ms %v is due", now/ms, got)
		}
		c.Again("a", "k", now)
		now += wait*ms - 1
		if got := due(&c, now); len(got) != 0 {
			t.Fatalf("%v is due a nanosecond before %d ms have passed", got, wait)
		}
		now++
	}
	due(&c, now)
	c.Again("a", "k", now) // the eighth time
	if c.Len() != 0 || c.Expired.Load() != 1 || c.Recorded.Load() != 1 {
		t.Errorf("%d left, %d expired, %d recorded; want 0, 1, 1", c.Len(), c.Expired.Load(), c.Recorded.Load())
	}
}

func TestCandidatesEnd(t *testing.T) {
	var c tier.Candidates
	c.Record("a", "old", 0, 0)
	c.Record("a", "read", 0, 0)
	c.Record("a", "gone", 0, 0)
	c.Record("a", "read", 2, 59_000*ms) // begins anew
	c.Drop("a", "gone")
	c.Drop("a", "unknown")
	all := c.Due(60_000*ms, 10)
	if len(all) != 1 || all[0].Key != "read" || all[0].Failures != 2 {
		t.Fatalf("due are %+v", all)
	}
	if c.ExpiredUntried.Load() != 1 || c.Len() != 1 {
		t.Errorf("%d expired untried, %d left; want 1 and 1", c.ExpiredUntried.Load(), c.Len())
	}
}

func TestCandidateReadWhileItIsTried(t *testing.T) {
	var c tier.Candidates
	c.Record("a", "k", 0, 0)
	c.Due(0, 10)
	c.Record("a", "k", 0, 5*ms)
	c.Again("a", "k", 5*ms) // says nothing: it was asked for anew
	if got := due(&c, 5*ms); len(got) != 1 {
		t.Errorf("due are %v", got)
	}
}
