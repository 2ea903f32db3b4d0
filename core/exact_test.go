package core_test

import (
	"fmt"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

// TestEvictsExactlyTheOldest counts what one pass of the pool gives up: the oldest, as many as
// the ratio of all objects, rounded up.
func TestEvictsExactlyTheOldest(t *testing.T) {
	for _, c := range []struct {
		objects, soft int
		excess        float64 // how far use is above the watermark; the pass takes that share
		want          int
	}{
		{400, 0, 0.05, 20},
		{250, 0, 0.10, 25},
		{200, 0, 0.80, 160},
		{10, 10, 0.80, 16}, // all plain ones and the six oldest soft-pinned
		{1000, 0, 0.0005, 1},
		{7, 0, 0.9, 7},
	} {
		t.Run(fmt.Sprintf("%d+%d at %v", c.objects, c.soft, c.excess), func(t *testing.T) {
			const used = 0.95
			total := c.objects + c.soft
			m := mastertest.New(t, func(cfg *core.Config) {
				cfg.EvictionRatio = 0
				cfg.EvictionWatermark = used - c.excess
			})
			const size = 1000
			m.Mount(1, "seg", uint64(float64(total*size)/used)+1)
			for i := range c.soft {
				m.MustPut("t", fmt.Sprint("s", i), size, mastertest.SoftPin(-1))
			}
			for i := range c.objects {
				m.MustPut("t", fmt.Sprint("k", i), size)
			}
			m.Step()
			plain, soft := min(c.want, c.objects), max(c.want-c.objects, 0)
			for i := range c.objects {
				if got, want := m.Has("t", fmt.Sprint("k", i)), i >= plain; got != want {
					t.Errorf("k%d is there: %v, want %v", i, got, want)
				}
			}
			for i := range c.soft {
				if got, want := m.Has("t", fmt.Sprint("s", i)), i >= soft; got != want {
					t.Errorf("s%d is there: %v, want %v", i, got, want)
				}
			}
			if got := m.Stats().EvictedKeys; got != uint64(c.want) {
				t.Errorf("%d counted, want %d", got, c.want)
			}
		})
	}
}

// TestRefusalDoesNotWalkTheTenant bounds what a refused write costs: a tenant full of leased
// objects is met once, and not again before the leases end (reports A2).
func TestRefusalDoesNotWalkTheTenant(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "seg", 64*mib)
	const n = 5000
	m.Policies("t", n*1000)
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
		m.MustPut("t", keys[i], 1000)
	}
	m.BatchExistKey("t", keys, nil)
	m.Start("t", "more", 1000) // sees that all are leased
	if allocs := testing.AllocsPerRun(100, func() { m.Start("t", "more", 1000) }); allocs > 4 {
		t.Errorf("a refusal allocates %v times; it looks at objects that are leased", allocs)
	}
	for _, key := range keys {
		if !m.Has("t", key) {
			t.Fatalf("%s is lost", key)
		}
	}
}
