package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

// TestWhoGivesWhenThePoolIsFull fills .90625 of the pool with 32 older objects of one tenant and 84
// younger ones of another: release 0.3.13 takes the seven oldest, 0.3.14 two of the one and five of the
// other, as the two released masters did when they were asked.
func TestWhoGivesWhenThePoolIsFull(t *testing.T) {
	const size = 64 << 10
	for _, c := range []struct {
		as0313   bool
		old, new int
	}{{true, 25, 84}, {false, 30, 79}} {
		t.Run(fmt.Sprint("as 0.3.13: ", c.as0313), func(t *testing.T) {
			m := mastertest.New(t, mastertest.Strict, func(cfg *core.Config) { cfg.GlobalEviction, cfg.TenantWatermark = c.as0313, 0 })
			m.Mount(1, "seg", 128*size)
			m.Policies("old", 64*size, "new", 128*size)
			for i := range 32 {
				m.MustPut("old", fmt.Sprint("k", i), size)
				m.Clock.Set(time.Millisecond)
			}
			for i := range 84 {
				m.MustPut("new", fmt.Sprint("k", i), size)
				m.Clock.Set(time.Millisecond)
			}
			m.Step()
			for _, is := range []struct {
				name string
				put  int
				want int
			}{{"old", 32, c.old}, {"new", 84, c.new}} {
				keys := make(map[string]bool)
				for _, key := range m.AllKeys(is.name) {
					keys[key] = true
				}
				if len(keys) != is.want {
					t.Errorf("%s has %d objects, want %d", is.name, len(keys), is.want)
				}
				for i := range is.put {
					if key := fmt.Sprint("k", i); keys[key] != (i >= is.put-is.want) {
						t.Errorf("%s %s: there %v, want the oldest to have gone", is.name, key, keys[key])
					}
				}
			}
		})
	}
}

// TestOldestFirstTakesSoftPinsLast fills memory, so that a pass as 0.3.13 has it wants all objects and has to
// give up .65 of them: the ten plain ones, and of the pinned ones the three oldest.
func TestOldestFirstTakesSoftPinsLast(t *testing.T) {
	const size = 64 << 10
	m := mastertest.New(t, func(cfg *core.Config) {
		cfg.GlobalEviction, cfg.EvictionRatio, cfg.EvictionWatermark = true, 0.8, 0.5
	})
	m.Mount(1, "seg", 20*size)
	for i := range 20 {
		var opts []mastertest.Option
		if i%2 == 1 {
			opts = append(opts, mastertest.SoftPin(-1))
		}
		m.MustPut("", fmt.Sprint("k", i), size, opts...)
		m.Clock.Set(time.Millisecond)
	}
	m.Step()
	for i := range 20 {
		if got, want := m.Has("", fmt.Sprint("k", i)), i%2 == 1 && i > 5; got != want {
			t.Errorf("object %d: there %v, want %v", i, got, want)
		}
	}
}
