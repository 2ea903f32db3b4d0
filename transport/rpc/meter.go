package rpc

import (
	"sync/atomic"
	"time"
)

// meter tells how much of its time an event loop is not waiting. While waits are short it looks
// at the clock around one in sampleWaits only, and takes that one for the others.
type meter struct {
	waits  uint64
	began  int64 // of the period
	start  int64 // of the wait that is measured
	weight int64 // for how many waits that one stands; 0 when it is not measured
	long   bool  // the last one measured was
	waited int64 // in this period

	load atomic.Int32 // of the last period, in thousandths
	at   atomic.Int64 // when that was

	full, slack int // periods in a row in which the loop was saturated, or could be spared
}

const (
	sampleWaits = 8
	longWait    = time.Millisecond
	// meterPeriod is over how long the load is taken.
	meterPeriod = 100 * time.Millisecond
)

// reset forgets what was when the loop ran last.
func (m *meter) reset() {
	m.began, m.waited, m.long, m.full, m.slack = 0, 0, false, 0, 0
}

// before is called before a wait.
func (m *meter) before(clock func() int64) {
	m.waits++
	switch {
	case m.long:
		m.weight = 1
	case m.waits%sampleWaits == 0:
		m.weight = sampleWaits
	default:
		m.weight = 0
		return
	}
	m.start = clock()
}

// after is called after a wait and reports whether there is a new load.
func (m *meter) after(now int64) bool {
	if m.weight > 0 {
		m.waited += (now - m.start) * m.weight
		m.long = now-m.start > int64(longWait)
	}
	if m.began == 0 {
		m.began = now
	}
	period := now - m.began
	if period < int64(meterPeriod) {
		return false
	}
	m.load.Store(int32(1000 - 1000*min(m.waited, period)/period))
	m.at.Store(now)
	m.began, m.waited = now, 0
	return true
}

// recent is the load of the last period, 0 when nothing has happened since.
func (m *meter) recent(now int64) int {
	if now-m.at.Load() > 10*int64(meterPeriod) {
		return 0
	}
	return int(m.load.Load())
}
