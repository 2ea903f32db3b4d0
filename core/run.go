package core

import (
	"context"
	"sync"
	"time"
)

// How often the background work is done.
const (
	evictPeriod  = 10 * time.Millisecond
	bitePeriod   = time.Millisecond
	sweepPeriod  = time.Second
	tenantPeriod = time.Second
	tidyPeriod   = time.Second
	drainPeriod  = 500 * time.Millisecond
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
	loop(evictPeriod, nil, func() { m.evictInBites(ctx, tick, false) })
	wg.Go(func() { // what a failed allocation asks for
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.wakePool:
				m.evictInBites(ctx, tick, true)
			}
		}
	})
	loop(tenantPeriod, m.wakeTenants, m.evictTenants)
	loop(tidyPeriod, nil, m.tidy)
	if m.tier.sketch != nil {
		loop(evictPeriod, nil, m.retryPromotions)
	}
	if m.dynamic != nil {
		loop(dynamicPeriod, nil, m.stepDynamic)
	}
	loop(drainPeriod, m.wakeDrains, m.stepDrains)
	if m.transfers.pump != nil {
		loop(transferPeriod, m.transfers.wake, m.stepTransfers)
	}
	if m.cfg.NoF.Enabled {
		loop(evictPeriod, nil, m.evictNoF)
		loop(nofPeriod, nil, m.probeNoF)
	}
	wg.Wait()
	m.StopTransfers()
}

// evictInBites runs a pass of the pool's eviction, if one is due, with rests in between.
func (m *Master) evictInBites(ctx context.Context, tick Ticker, failed bool) {
	var bite <-chan time.Time
	stop := func() {}
	m.evictPool(failed, func() bool {
		if bite == nil {
			bite, stop = tick(bitePeriod)
		}
		select {
		case <-ctx.Done():
			return false
		case <-bite:
			return true
		}
	})
	stop()
}

// tidy ends what has timed out.
func (m *Master) tidy() {
	m.endGraces()
	m.expireWrites()
	m.expireWorks()
	m.tasks.Tidy(m.at())
	m.releaseParked()
	m.tidyWeights()
	m.lookAtLeaving()
}

// Step does once what Run does over and over, in a fixed order. Tests with a clock of their
// own call it instead of Run; transfers that it begins go on by themselves, until StopTransfers.
func (m *Master) Step() {
	m.sweepClients()
	m.tidy()
	failed := false
	select {
	case <-m.wakePool:
		failed = true
	default:
	}
	m.evictPool(failed, func() bool { return true })
	m.evictTenants()
	m.retryPromotions()
	m.stepDynamic()
	m.stepDrains()
	m.stepTransfers()
	m.evictNoF()
	m.probeNoF()
}
