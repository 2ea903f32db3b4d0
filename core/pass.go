package core

import (
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// How many objects a pass of the pool's eviction gives up at a time.
const (
	waitingBite = 64  // for a write that waits for memory; twice as many each time it isn't enough
	restingBite = 256 // in the background, every bitePeriod
	largestBite = 1024
)

// poolPass is a pass of the pool's eviction over all tenants. What it has to give up is fixed
// when it opens; it goes on in bites, so that nobody waits for more than one: the background
// takes one now and then, a write that waits for memory takes what it needs, and while a pass
// is open every other write gives up about as much as it has taken.
type poolPass struct {
	mu       sync.Mutex // held for one bite
	open     atomic.Bool
	bites    atomic.Uint64 // those that made room; written with mu held
	tenants  []*keeper     // that have still to give; the first one is giving
	begun    bool          // the first one is
	pinned   bool          // its soft-pinned objects, too
	goal     int           // what it is to give
	least    int           // the same if only soft-pinned objects are left
	given    int           // what it has given
	success  bool          // somebody has given something
	released int           // parked buffers freed when the pass opened

	target, lower float64
	all           oldestFirst // the tenants of a pass that takes the oldest objects whoever owns them
}

// evictPool runs one pass over all tenants if more of the pool is in use than its watermark,
// or failed says that an allocation has failed. Between bites rest is called without locks,
// until it says that it's enough.
func (m *Master) evictPool(failed bool, rest func() bool) {
	p := &m.pass
	for goOn := true; goOn; goOn = rest() {
		p.mu.Lock()
		if !p.open.Load() && !m.openPass(failed) {
			p.mu.Unlock()
			return
		}
		failed = false
		m.bite(restingBite, object.Ref{})
		open := p.open.Load()
		p.mu.Unlock()
		if !open {
			return
		}
	}
}

// evictFor makes room for a write that waits for it, sparing one object, unless somebody else
// has made some while it waited for its turn: many writers that fail at once need one bite, not
// one each. It reports whether trying again may help.
func (m *Master) evictFor(objects int, except object.Ref) bool {
	p := &m.pass
	seen := p.bites.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bites.Load() != seen {
		return true
	}
	if p.open.Load() && m.bite(objects, except) > 0 {
		return true
	}
	if !m.openPass(true) {
		return p.released > 0
	}
	return m.bite(objects, except) > 0 || p.released > 0
}

// assist gives up as many objects as a call has written, while a pass is open: eviction keeps up
// with the writers however many there are, and no write waits for a whole pass. Where
// somebody else is at it already, it is left to them.
func (m *Master) assist(written int) {
	if written == 0 || !m.pass.open.Load() || !m.pass.mu.TryLock() {
		return
	}
	m.bite(min(written, largestBite), object.Ref{})
	m.pass.mu.Unlock()
}

// openPass begins a pass where one is due; none is open.
func (m *Master) openPass(failed bool) bool {
	p := &m.pass
	p.released = 0
	used := m.usedRatio() - m.leavingRatio()
	if !failed && used <= m.poolMark.High {
		return false
	}
	p.released = m.releaseParked()
	p.target, p.lower = m.poolMark.PoolTarget(used)
	if p.released > 0 {
		p.bites.Add(1)
	}
	if failed && p.target <= 0 {
		return false
	}
	if m.cfg.GlobalEviction {
		m.openOldest()
		return true
	}
	p.tenants = p.tenants[:0]
	m.keepers(func(k *keeper) { p.tenants = append(p.tenants, k) })
	p.begun, p.success = false, false
	p.open.Store(true)
	m.counters.evictionAttempts.Add(1)
	return true
}

// bite goes on with the open pass until it has given up so many objects, and returns how many
// that were: more, if the last of them belong to a group. The pass is closed when nobody has
// anything left to give.
func (m *Master) bite(objects int, except object.Ref) int {
	p := &m.pass
	var g got
	if m.cfg.GlobalEviction {
		g = m.biteOldest(objects, except)
	}
	for g.worked() < objects && p.next() {
		k := p.tenants[0]
		due := p.goal - p.given
		if p.pinned {
			due = p.least - p.given
		}
		n := min(due, objects-g.worked())
		part := m.reclaim(k, want{objects: n, pinned: p.pinned, except: except})
		p.given += part.worked()
		g.add(part)
		switch {
		case part.worked() >= due || part.worked() < n && (p.pinned || !m.cfg.AllowEvictSoftPins || p.given >= p.least):
			p.leave()
		case part.worked() < n:
			p.pinned = true
		}
	}
	if g.worked() > 0 && !p.success {
		p.success = true
		m.counters.evictionSuccesses.Add(1)
	}
	if g.objects > 0 {
		p.bites.Add(1)
		m.counters.evictedKeys.Add(uint64(g.objects))
		m.counters.evictedBytes.Add(g.bytes)
	}
	if !p.next() && len(p.all) == 0 {
		p.open.Store(false)
	}
	return g.objects
}

// next sees to it that the first tenant has something to give, and reports whether there is one.
func (p *poolPass) next() bool {
	for !p.begun && len(p.tenants) > 0 {
		n := p.tenants[0].space.Order.Len()
		p.goal, p.least = evict.Count(p.target, n), evict.Count(p.lower, n)
		p.given, p.pinned = 0, false
		p.begun = p.goal > 0
		if !p.begun {
			p.leave()
		}
	}
	return p.begun
}

// leave is done with the first tenant.
func (p *poolPass) leave() {
	p.tenants[0] = nil
	p.tenants = p.tenants[1:]
	p.begun = false
}
