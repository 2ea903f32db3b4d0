package main

// pacer says when operations of an open loop are meant to start: evenly spaced, whatever the
// master does. Times are nanoseconds of the run's clock.
//
// A latency is counted from the intended start, so that operations that had to wait because
// the master was busy with earlier ones are as slow in the figures as they were for whoever
// wanted them. In a closed loop, a stall delays the next request and is seen once; here it is
// seen by everything that it delayed.
type pacer struct {
	start    int64
	interval float64
	issued   int64
}

// newPacer starts at start and intends rate operations per second.
func newPacer(start int64, rate float64) *pacer {
	return &pacer{start: start, interval: 1e9 / rate}
}

// at is when the next operation is meant to start.
func (p *pacer) at() int64 { return p.start + int64(float64(p.issued)*p.interval) }

// take returns the intended start of the next operation if that has come.
func (p *pacer) take(now int64) (intended int64, due bool) {
	intended = p.at()
	if intended > now {
		return 0, false
	}
	p.issued++
	return intended, true
}
