package object

import (
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// lone returns a shard of its own and an object in it.
func lone(key string, now int64) (*Shard, *Object) {
	sh, h := NewSpace(1).Locate(key)
	return sh, sh.Insert(h, key, 1, segment.UUID{}, now)
}

func TestExtendLeaseKeepsTheLatest(t *testing.T) {
	_, o := lone("k", 1)
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
		sh, o := lone("k", 1)
		sh.SetSoftUntil(o, c.had)
		sh.RequestPin(o, PinRequest{SoftPinEnable, 77}) // an earlier write that never ended
		sh.RequestPin(o, c.pin)
		if sh.SoftUntil(o) != c.had {
			t.Errorf("%s: pinned until %d before the write ended", c.name, sh.SoftUntil(o))
		}
		sh.CommitPin(o, 10)
		sh.CommitPin(o, 20)
		if sh.SoftUntil(o) != c.want {
			t.Errorf("%s: pinned until %d, want %d", c.name, sh.SoftUntil(o), c.want)
		}
	}
}

func TestChecksumIsACopy(t *testing.T) {
	sh, o := lone("k", 1)
	sh.SetChecksum(o, nil)
	if sh.Checksum(o) != nil {
		t.Fatal("a checksum from nowhere")
	}
	v := uint64(7)
	sh.SetChecksum(o, &v)
	given := sh.Checksum(o)
	v = 8
	sh.SetChecksum(o, &v)
	if *given != 7 || *sh.Checksum(o) != 8 {
		t.Errorf("%d, then %d", *given, *sh.Checksum(o))
	}
	sh.SetChecksum(o, nil)
	if sh.Checksum(o) != nil {
		t.Error("not forgotten")
	}
}

func TestDropKeepsTheOrderOfTheRest(t *testing.T) {
	sh, o := lone("k", 1)
	for id := range uint64(6) {
		sh.Add(o, Replica{ID: id})
	}
	var dropped []uint64
	n := sh.Drop(o, func(r *Replica) bool { return r.ID%2 == 1 }, func(r *Replica) { dropped = append(dropped, r.ID) })
	if n != 3 || len(sh.Replicas(o)) != 3 || sh.Replicas(o)[0].ID != 0 || sh.Replicas(o)[1].ID != 2 || sh.Replicas(o)[2].ID != 4 {
		t.Errorf("dropped %v, left %v", dropped, sh.Replicas(o))
	}
	for _, keep := range []uint64{4, 0} {
		sh.Drop(o, func(r *Replica) bool { return r.ID == keep }, func(*Replica) {})
	}
	if all := sh.Replicas(o); len(all) != 1 || all[0].ID != 2 || len(sh.more) != 0 {
		t.Errorf("left %v, %d lists of several", all, len(sh.more))
	}
	if n := sh.Drop(o, func(*Replica) bool { return true }, func(*Replica) {}); n != 1 || len(sh.Replicas(o)) != 0 {
		t.Errorf("dropped %d, left %v", n, sh.Replicas(o))
	}
}

func TestWritesInFlightFindTheAbandoned(t *testing.T) {
	space := NewSpace(1)
	insert := func(key string, now int64) *Object {
		sh, h := space.Locate(key)
		o := sh.Insert(h, key, 1, segment.UUID{}, now)
		sh.WriteBegan(o)
		return o
	}
	sh := &space.Shards()[0]
	end := func(o *Object) {
		o.End()
		sh.WriteEnded()
	}
	a, b, c := insert("a", 10), insert("b", 20), insert("c", 30)
	end(b)
	end(c)
	c.Begin(segment.UUID{}, 40)
	sh.WriteBegan(c)
	if got := space.WritesBefore(35); len(got) != 1 || got[0] != a.Ref() {
		t.Errorf("before 35: %v", got)
	}
	if got := space.WritesBefore(40); len(got) != 0 {
		t.Errorf("before 40: %v", got)
	}
	if got := space.WritesBefore(41); len(got) != 1 || got[0] != c.Ref() {
		t.Errorf("before 41: %v", got)
	}
	if space.Numbers().Writes != 2 {
		t.Errorf("%d writes in flight, want those of a and c", space.Numbers().Writes)
	}
}

func TestWritesInFlightForgetWhatHasEnded(t *testing.T) {
	space := NewSpace(1)
	sh, h := space.Locate("k")
	for i := range int64(100_000) {
		o := sh.Insert(h, "k", 1, segment.UUID{}, i+1)
		sh.WriteBegan(o)
		o.End()
		sh.WriteEnded()
		sh.Delete(o)
	}
	if n := len(sh.writes.entries); n > 50 {
		t.Errorf("%d entries kept of none", n)
	}
}
