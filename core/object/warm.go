package object

import (
	"sync"
	"unsafe"
)

// Where Warm begins to pay: fewer keys have little to overlap, and all shards together are near
// the core anyway when each is this small. The bound is low because thousands of tenants with
// middling shards are far from it.
const (
	warmKeys    = 8
	warmEntries = 32
)

// warmer is the scratch space of one Warm.
type warmer struct {
	lines   []uintptr
	objects []*Object
}

var warmers = sync.Pool{New: func() any { return new(warmer) }}

// Warm fetches what lookups of these keys are going to touch, for all of them at once. A lookup
// is a chain of three accesses, to the index, the object and its key, which in a large table are all far
// from the core; one key after the other would wait for each in turn. Warm takes no lock and
// changes nothing: what it sees may be old, and then it has fetched in vain.
func (s *Space) Warm(hashes []Hash) {
	if len(hashes) < warmKeys {
		return
	}
	if shown := s.shards[uint64(hashes[0])&s.mask].index.shown.Load(); shown == nil || len(*shown) < warmEntries {
		return
	}
	w := warmers.Get().(*warmer)
	lines := w.lines[:0]
	for _, h := range hashes {
		if home := s.shards[uint64(h)&s.mask].index.home(h.index()); home != nil {
			lines = append(lines, uintptr(unsafe.Pointer(home)))
		}
	}
	fetch(lines, 1)
	lines, objects := lines[:0], w.objects[:0]
	for _, h := range hashes {
		sh := &s.shards[uint64(h)&s.mask]
		slot, ok := sh.index.glance(h.index())
		if !ok {
			continue
		}
		if o := sh.slab.glance(slot); o != nil {
			objects = append(objects, o)
			lines = append(lines, uintptr(unsafe.Pointer(o)))
		}
	}
	fetch(lines, objectLines)
	lines = lines[:0]
	for _, o := range objects {
		block, length := o.keyAt()
		if key := s.shards[o.shard].keys.glance(block, length); key != nil {
			lines = append(lines, uintptr(unsafe.Pointer(key)))
		}
	}
	fetch(lines, 2)
	clear(objects)
	w.lines, w.objects = lines, objects
	warmers.Put(w)
}

// objectLines is how many cache lines of 64 bytes an object spans.
const objectLines = (unsafe.Sizeof(Object{}) + 63) / 64

// fetch asks for so many cache lines from each address on. It never faults and never waits.
func fetch(addresses []uintptr, lines uintptr) {
	if canFetch && len(addresses) > 0 {
		fetchAll(&addresses[0], uintptr(len(addresses)), lines)
	}
}
