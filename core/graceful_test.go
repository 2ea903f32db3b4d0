package core

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

type still struct{ now int64 }

func (s *still) Now() int64 { return s.now }

type first struct{}

func (first) Uint64N(uint64) uint64 { return 0 }

// TestGracefulTimersEndWithTheirSegments: however often a client asks, there is one for a segment, and
// none for a segment that has gone in another way.
func TestGracefulTimersEndWithTheirSegments(t *testing.T) {
	clock := &still{int64(time.Hour)}
	m, err := New(Default(), Deps{Clock: clock, Rand: first{}, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	who := segment.UUID{First: 1}
	info := func(n uint64) segment.Info {
		return segment.Info{ID: segment.UUID{First: n}, Name: "s", Base: 1, Size: 1 << 20}
	}
	for n := range uint64(3) {
		if code := m.MountSegment(info(n+1), who); code != errcode.OK {
			t.Fatal(code)
		}
		for _, ms := range []uint64{60_000, 1 << 63, 70_000, 50_000, 90_000} {
			if code := m.GracefulUnmountSegment(info(n+1).ID, who, ms); code != errcode.OK {
				t.Fatal(code)
			}
		}
	}
	if n := len(m.graceful.timers); n != 3 {
		t.Errorf("%d timers, want 3", n)
	}
	m.UnmountSegment(info(1).ID, who)
	if n := len(m.graceful.timers); n != 2 {
		t.Errorf("%d timers after an unmount, want 2", n)
	}
	clock.now += 50_000*1e6 - 1
	m.endGraces()
	if n := m.pool.Len(); n != 2 {
		t.Errorf("%d segments before the earliest instant, want 2", n)
	}
	clock.now++
	m.endGraces()
	if n := m.pool.Len(); n != 0 || len(m.graceful.timers) != 0 {
		t.Errorf("%d segments and %d timers after it", n, len(m.graceful.timers))
	}
	// A client that dies takes its timers along.
	if code := m.MountSegment(info(4), who); code != errcode.OK {
		t.Fatal(code)
	}
	m.GracefulUnmountSegment(info(4).ID, who, 1<<30)
	for range 40 {
		clock.now += 1e9
		m.Step()
	}
	if n := m.pool.Len(); n != 0 || len(m.graceful.timers) != 0 {
		t.Errorf("%d segments and %d timers after the client's death", n, len(m.graceful.timers))
	}
}
