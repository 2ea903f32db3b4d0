package object

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Whoever looks for abandoned writes skips a space in which none can be old enough. None may be
// lost by that while others begin.
func TestNoAbandonedWriteIsMissed(t *testing.T) {
	const writers, each = 4, 2000
	space := NewSpace(8)
	var clock atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				sh, h := space.Locate(fmt.Sprint(w, "-", i))
				sh.Lock()
				sh.WriteBegan(sh.Insert(h, fmt.Sprint(w, "-", i), 1, segment.UUID{}, clock.Add(1)))
				sh.Unlock()
			}
		})
	}
	found := make(map[Ref]bool)
	look := func(before int64) {
		for _, r := range space.WritesBefore(before) {
			sh := space.ShardOf(r)
			sh.RLock()
			started := sh.Live(r).Started()
			sh.RUnlock()
			if started >= before || found[r] {
				t.Errorf("before %d: a write that began at %d, found already: %v", before, started, found[r])
			}
			found[r] = true
		}
	}
	for now := int64(0); now < writers*each; now = clock.Load() {
		look(now)
	}
	wg.Wait()
	look(writers * each) // all but the last
	if len(found) != writers*each-1 {
		t.Errorf("%d abandoned writes found, want %d", len(found), writers*each-1)
	}
	look(writers*each + 1)
	if len(found) != writers*each {
		t.Errorf("%d abandoned writes found of %d", len(found), writers*each)
	}
}
