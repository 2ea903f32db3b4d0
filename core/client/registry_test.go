package client

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

const second = int64(1e9)

func id(n uint64) segment.UUID { return segment.UUID{First: n, Second: n} }

func newTest() *Registry {
	return NewRegistry(TTLs{10 * second, 20 * second}, Breaker{4, 0.5}, second)
}

// run sweeps once a second from one instant to another and collects what was found.
func run(r *Registry, from, to int64) (all Sweep) {
	for now := from; now <= to; now += second {
		s := r.Sweep(now)
		all.Suspected = append(all.Suspected, s.Suspected...)
		all.Offline = append(all.Offline, s.Offline...)
		all.Held += s.Held
	}
	return all
}

func TestSilenceSuspectsThenDrops(t *testing.T) {
	r := newTest()
	if st, _ := r.Ping(id(1), second); st != StatusNeedRemount || len(r.Views(second)) != 0 {
		t.Fatalf("first ping answers %d, tracked %v", st, r.Views(second))
	}
	r.Mounted(id(1), second)
	if st, _ := r.Ping(id(1), second); st != StatusNeedRemount {
		t.Fatalf("mounting alone makes the answer %d", st)
	}
	r.Remounted(id(1), second)
	if s := run(r, second, 11*second); len(s.Suspected) != 0 {
		t.Fatalf("suspected at exactly the TTL: %+v", s)
	}
	if s := run(r, 12*second, 12*second); len(s.Suspected) != 1 || r.State(id(1)) != Suspected {
		t.Fatalf("not suspected after the TTL: %+v", s)
	}
	if st, revived := r.Ping(id(1), 13*second); st != StatusOK || !revived {
		t.Fatalf("ping of a suspected client: %d revived %v", st, revived)
	}
	if s := run(r, 13*second, 43*second); len(s.Suspected) != 1 || len(s.Offline) != 0 {
		t.Fatalf("up to the limit: %+v", s)
	}
	if s := run(r, 44*second, 44*second); len(s.Offline) != 1 {
		t.Fatalf("past the limit: %+v", s)
	}
	if st, _ := r.Ping(id(1), 45*second); st != StatusNeedRemount {
		t.Fatalf("ping of a dropped client answers %d", st)
	}
}

func TestRemountingUntilEveryClientHasTold(t *testing.T) {
	r := newTest()
	if r.Remounting(second) {
		t.Fatal("nobody is there")
	}
	r.Ping(id(1), second)
	r.Mounted(id(2), second)
	if !r.Remounting(second) {
		t.Fatal("two clients have told nothing")
	}
	r.Remounted(id(1), second)
	if !r.Remounting(second) {
		t.Fatal("one has only mounted")
	}
	r.Remounted(id(2), second)
	if r.Remounting(second) {
		t.Fatal("both have told all")
	}
	r.Ping(id(3), second)
	run(r, second, 12*second)
	if r.Remounting(12*second) || len(r.strangers) != 0 {
		t.Fatal("a stranger that is gone is waited for")
	}
}

func TestStrangersAreBounded(t *testing.T) {
	r := newTest()
	for n := range uint64(maxStrangers + 10) {
		r.Ping(id(n), second)
	}
	if len(r.strangers) != maxStrangers {
		t.Fatalf("%d strangers are remembered", len(r.strangers))
	}
}

func TestNoSuspicionDropsAtOnce(t *testing.T) {
	r := NewRegistry(TTLs{10 * second, 0}, Breaker{4, 0.5}, second)
	r.Remounted(id(1), second)
	if s := run(r, second, 12*second); len(s.Offline) != 1 || len(s.Suspected) != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestOwnStallMovesTheClocks(t *testing.T) {
	r := newTest()
	for n := range uint64(10) {
		r.Mounted(id(n), second)
	}
	run(r, second, 5*second)
	s := r.Sweep(65 * second)
	if len(s.Suspected)+len(s.Offline) != 0 || s.Stall != 59*second {
		t.Fatalf("a stall of the master cost clients: %+v", s)
	}
	// After the stall the ordinary clock goes on: 4 s had passed before it, 1 s is the period.
	if s := run(r, 66*second, 70*second); len(s.Suspected) != 0 {
		t.Fatalf("too early: %+v", s)
	}
	if s := run(r, 71*second, 72*second); len(s.Suspected) != 10 {
		t.Fatalf("silence after the stall is not counted: %+v", s)
	}
}

func TestBreakerHoldsAMassExpiryOnce(t *testing.T) {
	r := newTest()
	for n := range uint64(8) {
		r.Mounted(id(n), second)
	}
	s := run(r, second, 32*second)
	if s.Held != 8 || len(s.Offline) != 0 {
		t.Fatalf("not held: %+v", s)
	}
	if s := run(r, 33*second, 42*second); len(s.Offline) != 0 {
		t.Fatalf("dropped within the extra TTL: %+v", s)
	}
	if s := run(r, 43*second, 44*second); len(s.Offline) != 8 {
		t.Fatalf("held for ever: %+v", s)
	}
}

func TestBreakerLetsFewGo(t *testing.T) {
	r := newTest()
	for n := range uint64(8) {
		r.Mounted(id(n), second)
	}
	for now := second; now <= 33*second; now += second {
		for n := range uint64(5) {
			r.Ping(id(n), now)
		}
		r.Sweep(now)
	}
	if c := r.Counts(); c.Active != 5 || c.Suspected != 0 || c.OfflineTotal != 3 || c.HeldTotal != 0 {
		t.Fatalf("%+v", c)
	}
}
