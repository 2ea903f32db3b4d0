package core

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

type handClock struct{ now int64 }

func (c *handClock) Now() int64 { return c.now }

type dice struct{}

func (dice) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// TestExpiredSegmentsAreTold shows who hears of a segment whose client has gone: nobody of one
// that was unmounted in order.
func TestExpiredSegmentsAreTold(t *testing.T) {
	clock := &handClock{now: int64(time.Hour)}
	var told []string
	m, err := New(Default(), Deps{Clock: clock, Rand: dice{}, Log: hclog.NewNullLogger(), SegmentExpired: func(info segment.Info) {
		told = append(told, info.Name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two", "left", "alive"} {
		owner := segment.UUID{First: uint64(i) / 3}
		info := segment.Info{ID: segment.UUID{First: uint64(i + 1)}, Name: name, Base: 1 << 32, Size: 1 << 20}
		if code := m.MountSegment(info, owner); code != errcode.OK {
			t.Fatal(code)
		}
	}
	m.UnmountSegment(segment.UUID{First: 3}, segment.UUID{})
	for range 40 {
		clock.now += int64(time.Second)
		m.Ping(segment.UUID{First: 1})
		m.Step()
	}
	slices.Sort(told)
	if !slices.Equal(told, []string{"one", "two"}) {
		t.Errorf("told of %q", told)
	}
	if n := len(m.SegmentViews()); n != 1 {
		t.Errorf("%d segments left", n)
	}
}
