package core

import (
	"context"
	"sync"
	"time"
)

// How often the background work is done.
const (
	evictPeriod  = 10 * time.Millisecond
	sweepPeriod  = time.Second
	tenantPeriod = time.Second
	tidyPeriod   = time.Second
)

// Ticker returns a channel that delivers every period until stop is called.
type Ticker func(period time.Duration) (c <-chan time.Time, stop func())

// Run does the background work until ctx ends, and returns when all of it has stopped.
func (m *Master) Run(ctx context.Context, tick Ticker) {
	var wg sync.WaitGroup
	loop := func(period time.Duration, woken <-chan struct{}, step func()) {
		wg.Go(func() {
			c, stop := tick(period)
			defer stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-c:
				case <-woken:
				}
				step()
			}
		})
	}
	loop(sweepPeriod, nil, m.sweepClients)
	loop(evictPeriod, nil, func() { m.evictPool(false) })
	wg.Go(func() { // what a failed allocation asks for
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.wakePool:
				m.evictPool(true)
			}
		}
	})
	loop(tenantPeriod, m.wakeTenants, m.evictTenants)
	loop(tidyPeriod, nil, m.tidy)
	wg.Wait()
}

// tidy ends what has timed out.
func (m *Master) tidy() {
	m.endGraces()
	m.expireWrites()
	m.releaseParked()
}

// Step does once what Run does over and over, in a fixed order. Tests with a clock of their
// own call it instead of Run.
func (m *Master) Step() {
	m.sweepClients()
	m.tidy()
	failed := false
	select {
	case <-m.wakePool:
		failed = true
	default:
	}
	m.evictPool(failed)
	m.evictTenants()
}
