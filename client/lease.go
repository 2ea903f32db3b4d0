package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
)

// lease keeps what a lookup has found from being evicted and written over while it is read: it asks the master again
// before the time is over that the master protects it for.
type lease struct {
	c   *Client
	key string
	f   *found

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // what the timer has started or may start

	mu      sync.Mutex // guards the following
	until   time.Time
	latest  *found   // by the last lookup
	used    []source // what has been read from
	lost    error    // why what is read may not be the value any more
	timer   *time.Timer
	stopped bool
}

// hold begins a lease on what was found.
func (c *Client) hold(ctx context.Context, key string, f *found) *lease {
	l := &lease{c: c, key: key, f: f, until: f.until, latest: f}
	l.ctx, l.cancel = context.WithCancel(ctx)
	if f.ttl > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.arm(time.Until(f.until) - f.ttl/2)
	}
	return l
}

// arm has the lease renewed after a while. mu is held.
func (l *lease) arm(after time.Duration) {
	l.work.Add(1)
	l.timer = time.AfterFunc(after, func() {
		defer l.work.Done()
		l.renew()
	})
}

// renew asks the master once more.
func (l *lease) renew() {
	now, err := l.c.find(l.ctx, l.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	late := time.Now().After(l.until)
	switch {
	case err != nil && !late:
		l.arm(l.f.ttl / 8) // the master may be back in time
	case err != nil:
		l.lost = l.expired(err)
	case !l.kept(now):
		l.lost = fmt.Errorf("get %q: %w", l.key, ErrReplaced)
	case late:
		l.lost = l.expired(nil)
	default:
		l.until, l.latest = now.until, now
		l.arm(max(time.Until(now.until)-l.f.ttl/2, 0))
	}
}

// expired says that the time is over.
func (l *lease) expired(cause error) error {
	err := fmt.Errorf("get %q: %w: reading took longer than the %v for which the master protects the value (--default_kv_lease_ttl), and that could not be extended in time", l.key, errcode.LeaseExpired, l.f.ttl)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// check returns nil if what has been read until now was the value.
func (l *lease) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && l.f.ttl > 0 && time.Now().After(l.until) {
		l.lost = l.expired(nil)
	}
	return l.lost
}

// use says that a replica is going to be read from. It reports false if the replica has gone meanwhile.
func (l *lease) use(s source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.latest.sources, s) {
		return false
	}
	if !slices.Contains(l.used, s) {
		l.used = append(l.used, s)
	}
	return true
}

// kept reports whether a lookup has found all that has been read from. mu is held.
func (l *lease) kept(now *found) bool {
	for _, s := range l.used {
		if !slices.Contains(now.sources, s) {
			return false
		}
	}
	return true
}

// confirm is check after the last read. Where the master grants no lease it is asked whether the replicas are still
// there.
func (l *lease) confirm() error {
	if l.f.ttl > 0 {
		return l.check()
	}
	now, err := l.c.find(l.ctx, l.key)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.kept(now) {
		return fmt.Errorf("get %q: %w", l.key, ErrReplaced)
	}
	return nil
}

// end gives the lease up.
func (l *lease) end() {
	l.mu.Lock()
	l.stopped = true
	pending := l.timer != nil && l.timer.Stop()
	l.mu.Unlock()
	if pending {
		l.work.Done()
	}
	l.cancel()
	l.work.Wait()
}
