package object

import (
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

func TestExtendLeaseKeepsTheLatest(t *testing.T) {
	o := New("k", 1, segment.UUID{}, 1)
	var wg sync.WaitGroup
	for i := range int64(8) {
		wg.Go(func() {
			for n := range int64(1000) {
				o.ExtendLease(n*8 + i)
			}
		})
	}
	wg.Wait()
	if o.Lease() != 7999 || !o.Leased(7998) || o.Leased(7999) {
		t.Errorf("lease ends at %d", o.Lease())
	}
}

func TestPinIsCommittedOnce(t *testing.T) {
	const second = int64(1e9)
	for _, c := range []struct {
		name string
		had  int64
		pin  PinRequest
		want int64
	}{
		{"keep", 5, PinRequest{SoftPinPreserve, 0}, 5},
		{"keep nothing", 0, PinRequest{SoftPinPreserve, 0}, 0},
		{"set", 0, PinRequest{SoftPinEnable, second}, 10 + second},
		{"set anew", 5, PinRequest{SoftPinEnable, second}, 10 + second},
		{"set to nothing", 5, PinRequest{SoftPinEnable, 0}, 0},
		{"clear", 5, PinRequest{SoftPinDisable, 0}, 0},
		{"clear nothing", 0, PinRequest{SoftPinDisable, 0}, 0},
	} {
		o := New("k", 1, segment.UUID{}, 1)
		o.SetSoftUntil(c.had)
		o.RequestPin(PinRequest{SoftPinEnable, 77}) // an earlier write that never ended
		o.RequestPin(c.pin)
		if o.SoftUntil() != c.had {
			t.Errorf("%s: pinned until %d before the write ended", c.name, o.SoftUntil())
		}
		o.CommitPin(10)
		o.CommitPin(20)
		if o.SoftUntil() != c.want {
			t.Errorf("%s: pinned until %d, want %d", c.name, o.SoftUntil(), c.want)
		}
	}
}

func TestChecksumIsACopy(t *testing.T) {
	o := New("k", 1, segment.UUID{}, 1)
	o.SetChecksum(nil)
	if o.Checksum() != nil {
		t.Fatal("a checksum from nowhere")
	}
	v := uint64(7)
	o.SetChecksum(&v)
	given := o.Checksum()
	v = 8
	o.SetChecksum(&v)
	if *given != 7 || *o.Checksum() != 8 {
		t.Errorf("%d, then %d", *given, *o.Checksum())
	}
	o.SetChecksum(nil)
	if o.Checksum() != nil {
		t.Error("not forgotten")
	}
}

func TestDropKeepsTheOrderOfTheRest(t *testing.T) {
	o := New("k", 1, segment.UUID{}, 1)
	for id := range uint64(6) {
		o.Replicas = append(o.Replicas, Replica{ID: id})
	}
	var dropped []uint64
	n := o.Drop(func(r *Replica) bool { return r.ID%2 == 1 }, func(r *Replica) { dropped = append(dropped, r.ID) })
	if n != 3 || len(o.Replicas) != 3 || o.Replicas[0].ID != 0 || o.Replicas[1].ID != 2 || o.Replicas[2].ID != 4 {
		t.Errorf("dropped %v, left %v", dropped, o.Replicas)
	}
	if tail := o.Replicas[:6]; tail[3].ID != 0 || tail[5].ID != 0 {
		t.Errorf("what was dropped is still referred to: %v", tail)
	}
}

func TestInFlightFindsTheAbandoned(t *testing.T) {
	var f InFlight
	begin := func(o *Object, now int64) {
		o.Begin(segment.UUID{}, now)
		f.Began(o)
	}
	end := func(o *Object) {
		o.End()
		f.Ended()
	}
	a, b, c := New("a", 1, segment.UUID{}, 1), New("b", 1, segment.UUID{}, 1), New("c", 1, segment.UUID{}, 1)
	begin(a, 10)
	begin(b, 20)
	begin(c, 30)
	end(b)
	end(c)
	begin(c, 40)
	if got := f.Before(35); len(got) != 1 || got[0] != a {
		t.Errorf("before 35: %v", got)
	}
	if got := f.Before(40); len(got) != 0 {
		t.Errorf("before 40: %v", got)
	}
	if got := f.Before(41); len(got) != 1 || got[0] != c {
		t.Errorf("before 41: %v", got)
	}
	if f.Len() != 2 {
		t.Errorf("%d writes in flight, want those of a and c", f.Len())
	}
}

func TestInFlightForgetsWhatHasEnded(t *testing.T) {
	var f InFlight
	for i := range int64(100_000) {
		o := New("k", 1, segment.UUID{}, i+1)
		f.Began(o)
		o.End()
		f.Ended()
	}
	if n := len(f.entries); n > 200 {
		t.Errorf("%d entries kept of none", n)
	}
}
