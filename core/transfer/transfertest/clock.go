// Package transfertest is what tests of transfers need: memory of processes that don't exist, with a carrier whose
// calls a test can delay and fail, and a clock that stands still until it is moved.
package transfertest

import (
	"sync"
	"time"
)

// Clock stands still until it is moved. The zero value shows 0.
type Clock struct {
	mu     sync.Mutex
	now    int64
	timers []*timer
	change chan struct{} // closed when a timer is set or given up
}

type timer struct {
	at int64
	c  chan time.Time
}

// Now returns the time in nanoseconds.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After is a transfer.Timer.
func (c *Clock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.now + int64(d), make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	c.fire()
	c.changed()
	return t.c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(t)
		c.changed()
	}
}

// Set moves the clock by d and fires the timers whose time has come.
func (c *Clock) Set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += int64(d)
	c.fire()
}

// AwaitTimer waits until a timer is set that fires in d or less, and after more than nothing.
func (c *Clock) AwaitTimer(d time.Duration) {
	for {
		c.mu.Lock()
		for _, t := range c.timers {
			if t.at > c.now && t.at <= c.now+int64(d) {
				c.mu.Unlock()
				return
			}
		}
		if c.change == nil {
			c.change = make(chan struct{})
		}
		change := c.change
		c.mu.Unlock()
		<-change
	}
}

// Timers returns how many timers have neither fired nor been given up.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// fire and the others are called with mu held.
func (c *Clock) fire() {
	var later []*timer
	for _, t := range c.timers {
		if t.at <= c.now {
			t.c <- time.Unix(0, c.now)
		} else {
			later = append(later, t)
		}
	}
	c.timers = later
}

func (c *Clock) drop(t *timer) {
	for i := range c.timers {
		if c.timers[i] == t {
			c.timers = append(c.timers[:i:i], c.timers[i+1:]...)
			return
		}
	}
}

func (c *Clock) changed() {
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
}
