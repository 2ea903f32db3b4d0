package evict

import (
	"math"
	"sync"
	"sync/atomic"
)

// Slot is where an item stands in its Order. Items embed one; only the Order touches it.
type Slot struct {
	class uint8
	gen   uint32 // raised whenever the item leaves a heap's view, so that stale entries are known
}

const (
	absent uint8 = iota
	plain        // goes first
	pinned       // soft-pinned: goes when no plain item is left
)

// Item is a member of an Order. Generation tells items apart that follow each other in one
// place of memory; it may change only while the item is not in the order.
type Item interface {
	comparable
	OrderSlot() *Slot
	Generation() uint32
	// OrderPart is the part of the order that the item belongs to, always the same one. Items
	// of different parts can be inserted and removed at once.
	OrderPart() int
	// OrderAge tells which of two items of one rank goes first: the one with the smaller
	// number, which may wrap around. It is asked for during Insert and Repin.
	OrderAge() uint32
}

// Class selects which items PopDue may return.
type Class uint8

// The two classes of items.
const (
	Plain  = Class(plain)
	Pinned = Class(pinned)
)

// Order keeps the evictable items of one tenant, smallest rank first and of equal ranks the
// oldest one, soft-pinned ones apart. Ranks are instants in nanoseconds.
//
// It is one order in parts. Each part has heaps and a lock of its own, so that writers on different
// cores don't meet; whoever pops compares what comes first in each.
type Order[T Item] struct {
	parts []part[T]
	// What comes first in each part, by class; under absent, when the first pin ends. An entry
	// changes rarely, because what comes in is mostly younger than what is there.
	firsts [3][]first
	pins   atomic.Bool // there ever was a pinned item
}

// part holds the items with one OrderPart.
type part[T Item] struct {
	mu     sync.Mutex
	heaps  [3]lazyHeap[T]  // by class; heaps[absent] holds the pinned items by the end of their pin
	counts [3]atomic.Int32 // written with mu held
	pin    map[T]pinState
}

// first is the top of a heap, which may be stale, as it can be read without the part's lock.
// Whoever acts on it looks again with the lock held.
type first struct {
	key atomic.Int64 // math.MaxInt64 for an empty heap
	seq atomic.Uint32
}

// pinState is what is known of a pinned item: when its pin ends and the rank it was recorded
// with, for the day it becomes plain.
type pinState struct{ until, rank int64 }

// NewOrder makes an order of so many parts, at least one.
func NewOrder[T Item](parts int) *Order[T] {
	o := &Order[T]{parts: make([]part[T], parts)}
	for class := range o.firsts {
		o.firsts[class] = make([]first, parts)
		for i := range o.firsts[class] {
			o.firsts[class][i].key.Store(math.MaxInt64)
		}
	}
	return o
}

// Insert adds x with the given rank. A pinUntil later than now makes it a pinned item until
// then. An item that is there already keeps its place, which can only be too early, unless its
// pin changed.
func (o *Order[T]) Insert(x T, rank, pinUntil, now int64) {
	p := o.lock(x)
	defer p.mu.Unlock()
	o.insert(p, x, rank, pinUntil, now)
}

// lock locks the part of an item.
func (o *Order[T]) lock(x T) *part[T] {
	p := &o.parts[x.OrderPart()]
	p.mu.Lock()
	return p
}

func (o *Order[T]) insert(p *part[T], x T, rank, pinUntil, now int64) {
	class := plain
	if pinUntil > now {
		class = pinned
	}
	s := x.OrderSlot()
	if s.class == class && (class == plain || p.pin[x].until == pinUntil) {
		return
	}
	o.drop(p, x)
	o.enter(p, x, class, rank, pinUntil, x.OrderAge())
}

// Remove takes x out; removing an absent item does nothing.
func (o *Order[T]) Remove(x T) {
	p := o.lock(x)
	o.drop(p, x)
	p.mu.Unlock()
}

// Repin changes the pin of x if it is in the order; a pinUntil not later than now ends it.
func (o *Order[T]) Repin(x T, rank, pinUntil, now int64) {
	p := o.lock(x)
	defer p.mu.Unlock()
	if x.OrderSlot().class != absent {
		o.insert(p, x, rank, pinUntil, now)
	}
}

// Contains reports whether x is in the order.
func (o *Order[T]) Contains(x T) bool {
	p := o.lock(x)
	defer p.mu.Unlock()
	return x.OrderSlot().class != absent
}

// Len returns the number of items, pinned ones included. While others insert and remove it is
// near the truth.
func (o *Order[T]) Len() int {
	n := 0
	for i := range o.parts {
		n += int(o.parts[i].counts[plain].Load() + o.parts[i].counts[pinned].Load())
	}
	return n
}

// PinnedLen returns the number of items whose pin has not ended at now.
func (o *Order[T]) PinnedLen(now int64) int {
	o.endPins(now)
	n := 0
	for i := range o.parts {
		n += int(o.parts[i].counts[pinned].Load())
	}
	return n
}

// PopDue removes and returns the item of the class with the smallest recorded rank, provided
// that rank is not later than now. The caller compares the item's true rank with the one
// returned and inserts it again if it is younger. The generation is the item's when it was
// removed.
func (o *Order[T]) PopDue(c Class, now int64) (x T, generation uint32, rank int64, ok bool) {
	o.endPins(now)
	for {
		n, key, seq := o.earliest(uint8(c))
		if key > now {
			return x, 0, 0, false
		}
		p := &o.parts[n]
		p.mu.Lock()
		h := &p.heaps[c]
		if h.len() > 0 {
			if e := h.top(); e.key == key && e.seq == seq {
				h.pop()
				if e.current(uint8(c)) {
					p.leave(e.x)
					generation = e.x.Generation()
					o.show(p, n, uint8(c))
					p.mu.Unlock()
					return e.x, generation, e.key, true
				}
			}
		}
		// Somebody was here in between, or the top was stale.
		for h.len() > 0 {
			if e := h.top(); e.current(uint8(c)) {
				break
			}
			h.pop()
		}
		o.show(p, n, uint8(c))
		p.mu.Unlock()
	}
}

// First returns the rank of what PopDue would look at first, math.MaxInt64 if there is nothing in
// the class. It takes no lock, and what it tells about may have gone: it is never too late.
func (o *Order[T]) First(c Class) int64 {
	_, key, _ := o.earliest(uint8(c))
	return key
}

// earliest returns the part whose top comes first.
func (o *Order[T]) earliest(class uint8) (n int, key int64, seq uint32) {
	key = math.MaxInt64
	firsts := o.firsts[class]
	for i := range firsts {
		f := &firsts[i]
		k := f.key.Load()
		if k > key || k == math.MaxInt64 {
			continue
		}
		if s := f.seq.Load(); k < key || older(s, seq) {
			n, key, seq = i, k, s
		}
	}
	return n, key, seq
}

// show publishes what comes first in a heap. The part is locked.
func (o *Order[T]) show(p *part[T], n int, class uint8) {
	key, seq := int64(math.MaxInt64), uint32(0)
	if h := &p.heaps[class]; h.len() > 0 {
		e := &h.entries[0]
		key, seq = e.key, e.seq
	}
	f := &o.firsts[class][n]
	if f.key.Load() != key {
		f.key.Store(key)
	}
	if f.seq.Load() != seq {
		f.seq.Store(seq)
	}
}

// endPins turns the items whose pin has ended into plain ones.
func (o *Order[T]) endPins(now int64) {
	if !o.pins.Load() {
		return
	}
	for n := range o.parts {
		if o.firsts[absent][n].key.Load() > now {
			continue
		}
		p := &o.parts[n]
		p.mu.Lock()
		pins := &p.heaps[absent]
		for pins.len() > 0 && pins.top().key <= now {
			e := pins.pop()
			if e.current(pinned) {
				rank := p.pin[e.x].rank
				o.drop(p, e.x)
				o.enter(p, e.x, plain, rank, 0, e.seq)
			}
		}
		o.show(p, n, absent)
		p.mu.Unlock()
	}
}

func (o *Order[T]) enter(p *part[T], x T, class uint8, rank, pinUntil int64, age uint32) {
	s, n := x.OrderSlot(), x.OrderPart()
	s.class = class
	p.counts[class].Add(1)
	p.heaps[class].push(entry[T]{rank, x, s.gen, age})
	o.show(p, n, class)
	if class == pinned {
		if p.pin == nil {
			p.pin = make(map[T]pinState)
			o.pins.Store(true)
		}
		p.pin[x] = pinState{pinUntil, rank}
		p.heaps[absent].push(entry[T]{pinUntil, x, s.gen, age})
		o.show(p, n, absent)
	}
}

// leave forgets x, whose heap entry is gone.
func (p *part[T]) leave(x T) {
	s := x.OrderSlot()
	if s.class == pinned {
		delete(p.pin, x)
	}
	p.counts[s.class].Add(-1)
	s.class = absent
	s.gen++
}

// drop forgets x and leaves its entry behind as a tombstone. A heap that is mostly
// tombstones is swept, so removal costs O(1) on average and memory stays bounded.
func (o *Order[T]) drop(p *part[T], x T) {
	class := x.OrderSlot().class
	if class == absent {
		return
	}
	p.leave(x)
	live := int(p.counts[class].Load())
	if p.heaps[class].sweep(live, class) {
		o.show(p, x.OrderPart(), class)
	}
	if class == pinned && p.heaps[absent].sweep(live, class) {
		o.show(p, x.OrderPart(), absent)
	}
}
