package evict

// entry is one item in a heap as it was when it was put there.
type entry[T Item] struct {
	key int64
	x   T
	gen uint32
	seq uint32 // the item's age; breaks ties: a batch of reads gives many objects the same rank
}

// older compares ages, which wrap around; those of items that live at the same time are close.
func older(a, b uint32) bool { return int32(a-b) < 0 }

func (e *entry[T]) before(f *entry[T]) bool {
	return e.key < f.key || e.key == f.key && older(e.seq, f.seq)
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

// sweep drops the stale entries once they outnumber the live ones, and reports whether it did.
func (h *lazyHeap[T]) sweep(live int, class uint8) bool {
	if len(h.entries) <= 2*live+16 {
		return false
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
	return true
}
