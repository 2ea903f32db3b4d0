package object

import (
	"math"
	"sync/atomic"
)

// inFlight remembers the writes of a shard that have started, oldest first, so that abandoned
// ones are found without looking at every object.
type inFlight struct {
	entries []write
	live    int
}

type write struct {
	started int64
	o       Ref
}

// going reports whether the recorded write is still the one in flight.
func (w write) going() bool { return w.o.o.gen == w.o.gen && w.o.o.Started() == w.started }

// WriteBegan notes that a write to o has started, at o.Started().
func (sh *Shard) WriteBegan(o *Object) {
	f := &sh.writes
	f.live++
	if len(f.entries) > 2*f.live+16 {
		f.sweep()
	}
	f.entries = append(f.entries, write{o.Started(), o.Ref()})
	sh.space.oldest.lower(o.Started())
}

// bound is an instant that nothing in some lists comes before; math.MaxInt64 if they are empty.
type bound struct{ atomic.Int64 }

// lower makes the bound not later than an instant. Nearly always it is that already.
func (b *bound) lower(instant int64) {
	for {
		old := b.Load()
		if old <= instant || b.CompareAndSwap(old, instant) {
			return
		}
	}
}

// WriteEnded notes that one write is over, however it ended.
func (sh *Shard) WriteEnded() { sh.writes.live-- }

// sweep drops the entries whose write is over.
func (f *inFlight) sweep() {
	kept := f.entries[:0]
	for _, w := range f.entries {
		if w.going() {
			kept = append(kept, w)
		}
	}
	clear(f.entries[len(kept):])
	f.entries = kept
}

// before removes and returns the objects whose write began before the instant.
func (f *inFlight) before(instant int64, due []Ref) []Ref {
	n := 0
	for n < len(f.entries) && f.entries[n].started < instant {
		if w := f.entries[n]; w.going() {
			due = append(due, w.o)
		}
		n++
	}
	f.entries = append(f.entries[:0], f.entries[n:]...)
	return due
}

// WritesBefore removes from the lists and returns the objects with a write in flight that
// began before the instant. The caller checks under the shard's lock that it still is. Where
// nothing is that old no shard is looked at: there may be a hundred thousand of them.
func (s *Space) WritesBefore(instant int64) []Ref {
	if s.oldest.Load() >= instant {
		return nil
	}
	// Whatever begins from here on lowers the bound by itself.
	s.oldest.Store(math.MaxInt64)
	var due []Ref
	for i := range s.shards {
		sh := &s.shards[i]
		sh.Lock()
		due = sh.writes.before(instant, due)
		if len(sh.writes.entries) > 0 {
			s.oldest.lower(sh.writes.entries[0].started)
		}
		sh.Unlock()
	}
	return due
}
