package object

import "sync"

// InFlight remembers the writes that have started, oldest first, so that abandoned ones are
// found without looking at every object. The zero value is ready to use.
type InFlight struct {
	mu      sync.Mutex
	entries []write
	live    int
}

type write struct {
	started int64
	o       Ref
}

// Began notes that a write to o started at o.Started(). The shard is locked by the caller.
func (f *InFlight) Began(o *Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live++
	if len(f.entries) > 2*f.live+64 {
		f.sweep()
	}
	f.entries = append(f.entries, write{o.Started(), o.Ref()})
}

// Ended notes that one write is over, however it ended.
func (f *InFlight) Ended() {
	f.mu.Lock()
	f.live--
	f.mu.Unlock()
}

// sweep drops the entries whose write is over.
func (f *InFlight) sweep() {
	kept := f.entries[:0]
	for _, w := range f.entries {
		if w.o.o.Started() == w.started {
			kept = append(kept, w)
		}
	}
	clear(f.entries[len(kept):])
	f.entries = kept
}

// Before removes and returns the objects whose recorded write began before the instant. The
// caller checks under the shard's lock that this write is still the one in flight.
func (f *InFlight) Before(instant int64) []Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	var due []Ref
	n := 0
	for n < len(f.entries) && f.entries[n].started < instant {
		if w := f.entries[n]; w.o.o.Started() == w.started {
			due = append(due, w.o)
		}
		n++
	}
	f.entries = append(f.entries[:0], f.entries[n:]...)
	return due
}

// Len returns the number of writes in flight.
func (f *InFlight) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live
}
