package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// bucket limits bytes per second. Who asks first goes first; what is asked for may be more than a second's worth.
type bucket struct {
	now    func() int64
	after  Timer
	rate   uint64 // bytes per second, 0 = no limit
	waited atomic.Int64

	mu     sync.Mutex
	free   int64 // nanoseconds at which everything that was asked for until now has gone through
	served bool  // free means something
}

// burst is how much of the time that nobody used may be made up for.
const burst = 50 * time.Millisecond

// wait waits until n bytes may be moved. It fails when ctx ends first.
func (b *bucket) wait(ctx context.Context, n int) error {
	if b.rate == 0 {
		return nil
	}
	takes := int64(float64(n) / float64(b.rate) * float64(time.Second))
	b.mu.Lock()
	now := b.now()
	if earliest := now - int64(burst); !b.served || b.free < earliest {
		b.free, b.served = earliest, true
	}
	pause := b.free - now
	b.free += takes
	b.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	b.waited.Add(pause)
	c, stop := b.after(time.Duration(pause))
	defer stop()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		b.free -= takes
		b.mu.Unlock()
		return ended(ctx)
	}
}
