package rpc

import (
	"sync"
	"time"
)

// limiter lets a few log lines per reason through in each period, and counts the others.
type limiter struct {
	now   func() time.Time
	mu    sync.Mutex // guards slots
	slots [reasonCount + 2]struct {
		start      time.Time
		used       int
		suppressed uint64
	}
}

const (
	logPeriod = 10 * time.Second
	logBurst  = 5
)

// allow reports whether a line about slot may be logged, and how many were kept back since
// the last one that was.
func (l *limiter) allow(slot int) (suppressed uint64, ok bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slots[slot]
	if s.start.IsZero() || now.Sub(s.start) >= logPeriod {
		s.start, s.used = now, 0
	}
	if s.used >= logBurst {
		s.suppressed++
		return 0, false
	}
	s.used++
	suppressed, s.suppressed = s.suppressed, 0
	return suppressed, true
}
