package evict

import "sync"

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
}

// Class selects which items PopDue may return.
type Class uint8

// The two classes of items.
const (
	Plain  = Class(plain)
	Pinned = Class(pinned)
)

// Order keeps the evictable items of one tenant, oldest rank first and of equal ranks the one
// that came first, soft-pinned ones apart. Ranks are instants in nanoseconds. The zero Order is ready to use.
type Order[T Item] struct {
	mu     sync.Mutex
	heaps  [3]lazyHeap[T] // by class; heaps[absent] is unused
	counts [3]int
	pins   lazyHeap[T] // pinned items by the end of their pin
	pin    map[T]pinState
	seq    uint32 // of the last entry made
}

// pinState is what is known of a pinned item: when its pin ends and the rank it was recorded
// with, for the day it becomes plain.
type pinState struct{ until, rank int64 }

// Insert adds x with the given rank. A pinUntil later than now makes it a pinned item until
// then. An item that is there already keeps its place, which can only be too early, unless its
// pin changed.
func (o *Order[T]) Insert(x T, rank, pinUntil, now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	class := plain
	if pinUntil > now {
		class = pinned
	}
	s := x.OrderSlot()
	if s.class == class && (class == plain || o.pin[x].until == pinUntil) {
		return
	}
	o.drop(x)
	o.enter(x, class, rank, pinUntil)
}

// Remove takes x out; removing an absent item does nothing.
func (o *Order[T]) Remove(x T) {
	o.mu.Lock()
	o.drop(x)
	o.mu.Unlock()
}

// Repin changes the pin of x if it is in the order; a pinUntil not later than now ends it.
func (o *Order[T]) Repin(x T, rank, pinUntil, now int64) {
	o.mu.Lock()
	present := x.OrderSlot().class != absent
	o.mu.Unlock()
	if present {
		o.Insert(x, rank, pinUntil, now)
	}
}

// Contains reports whether x is in the order.
func (o *Order[T]) Contains(x T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return x.OrderSlot().class != absent
}

// Len returns the number of items, pinned ones included.
func (o *Order[T]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[plain] + o.counts[pinned]
}

// PinnedLen returns the number of items whose pin has not ended at now.
func (o *Order[T]) PinnedLen(now int64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endPins(now)
	return o.counts[pinned]
}

// PopDue removes and returns the item of the class with the smallest recorded rank, provided
// that rank is not later than now. The caller compares the item's true rank with the one
// returned and inserts it again if it is younger. The generation is the item's when it was
// removed.
func (o *Order[T]) PopDue(c Class, now int64) (x T, generation uint32, rank int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endPins(now)
	h := &o.heaps[c]
	for h.len() > 0 {
		e := h.top()
		if !e.current(uint8(c)) {
			h.pop()
			continue
		}
		if e.key > now {
			break
		}
		h.pop()
		o.leave(e.x)
		return e.x, e.x.Generation(), e.key, true
	}
	return x, 0, 0, false
}

// endPins turns the items whose pin has ended into plain ones.
func (o *Order[T]) endPins(now int64) {
	for o.pins.len() > 0 && o.pins.top().key <= now {
		e := o.pins.pop()
		if e.current(pinned) {
			rank := o.pin[e.x].rank
			o.drop(e.x)
			o.enter(e.x, plain, rank, 0)
		}
	}
}

func (o *Order[T]) enter(x T, class uint8, rank, pinUntil int64) {
	s := x.OrderSlot()
	s.class = class
	o.counts[class]++
	o.seq++
	o.heaps[class].push(entry[T]{rank, x, s.gen, o.seq})
	if class == pinned {
		if o.pin == nil {
			o.pin = make(map[T]pinState)
		}
		o.pin[x] = pinState{pinUntil, rank}
		o.pins.push(entry[T]{pinUntil, x, s.gen, o.seq})
	}
}

// leave forgets x, whose heap entry is gone.
func (o *Order[T]) leave(x T) {
	s := x.OrderSlot()
	if s.class == pinned {
		delete(o.pin, x)
	}
	o.counts[s.class]--
	s.class = absent
	s.gen++
}

// drop forgets x and leaves its entry behind as a tombstone. A heap that is mostly
// tombstones is swept, so removal costs O(1) on average and memory stays bounded.
func (o *Order[T]) drop(x T) {
	class := x.OrderSlot().class
	if class == absent {
		return
	}
	o.leave(x)
	o.heaps[class].sweep(o.counts[class], class)
	if class == pinned {
		o.pins.sweep(o.counts[class], class)
	}
}

// entry is one item in a heap as it was when it was put there.
type entry[T Item] struct {
	key int64
	x   T
	gen uint32
	seq uint32 // breaks ties: a batch of reads gives many objects the same rank
}

func (e *entry[T]) before(f *entry[T]) bool {
	// Sequence numbers wrap; those of entries that live at the same time are close.
	return e.key < f.key || e.key == f.key && int32(e.seq-f.seq) < 0
}

func (e entry[T]) current(class uint8) bool {
	s := e.x.OrderSlot()
	return s.class == class && s.gen == e.gen
}

// lazyHeap is a 4-ary min-heap by key whose entries may be stale.
type lazyHeap[T Item] struct{ entries []entry[T] }

func (h *lazyHeap[T]) len() int      { return len(h.entries) }
func (h *lazyHeap[T]) top() entry[T] { return h.entries[0] }

func (h *lazyHeap[T]) push(e entry[T]) {
	h.entries = append(h.entries, e)
	i := len(h.entries) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h.entries[parent]) {
			break
		}
		h.entries[i] = h.entries[parent]
		i = parent
	}
	h.entries[i] = e
}

func (h *lazyHeap[T]) pop() entry[T] {
	top := h.entries[0]
	last := len(h.entries) - 1
	e := h.entries[last]
	var none entry[T]
	h.entries[last] = none
	h.entries = h.entries[:last]
	if last > 0 {
		h.sink(0, e)
	}
	return top
}

// sink places e at i or below it.
func (h *lazyHeap[T]) sink(i int, e entry[T]) {
	n := len(h.entries)
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if h.entries[c].before(&h.entries[least]) {
				least = c
			}
		}
		if !h.entries[least].before(&e) {
			break
		}
		h.entries[i] = h.entries[least]
		i = least
	}
	h.entries[i] = e
}

// sweep drops the stale entries once they outnumber the live ones.
func (h *lazyHeap[T]) sweep(live int, class uint8) {
	if len(h.entries) <= 2*live+64 {
		return
	}
	kept := h.entries[:0]
	for _, e := range h.entries {
		if e.current(class) {
			kept = append(kept, e)
		}
	}
	clear(h.entries[len(kept):])
	h.entries = kept
	if cap(kept) > 4*len(kept)+256 {
		h.entries = append(make([]entry[T], 0, len(kept)*2), kept...)
	}
	for i := (len(h.entries) - 2) / 4; i >= 0; i-- {
		if i < len(h.entries) {
			h.sink(i, h.entries[i])
		}
	}
}
