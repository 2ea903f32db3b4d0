package object

import (
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Shard is a part of a space behind one lock. All methods need the lock, for reading or, where
// they change something, for writing.
type Shard struct {
	sync.RWMutex
	space    *Space
	index    index
	slab     objects
	writes   inFlight
	works    works
	inMemory int // objects with a replica in memory
	keys     keys
	more     map[*Object][]Replica // of objects with more than one
	extras   map[*Object]*extra    // of objects with flagExtra

	// Lookups that found a readable object, all lookups, and the bytes found, since start.
	Hits, Lookups, HitBytes atomic.Uint64

	// Replicas in files, on clients' disks or on the one that all share, and their sizes.
	Files, FileBytes atomic.Int64
}

// Key returns the key of a live object. The string lies in the shard's memory: it is good only
// while the lock is held.
func (sh *Shard) Key(o *Object) string {
	block, length := o.keyAt()
	if length == 0 {
		return ""
	}
	return unsafe.String(&sh.keys.of(length).at(block)[0], length)
}

// KeyCopy returns a copy of the key that may be kept.
func (sh *Shard) KeyCopy(o *Object) string { return strings.Clone(sh.Key(o)) }

// Get returns the object of a key, or nil.
func (sh *Shard) Get(h Hash, key string) *Object {
	o := sh.GetAny(h, key)
	if o != nil && o.flags&flagExtra != 0 && sh.space.groups.doomed(sh.extra(o)) {
		return nil
	}
	return o
}

// GetAny is Get that also returns an object its group's eviction has chosen already.
func (sh *Shard) GetAny(h Hash, key string) *Object {
	hash := h.index()
	slot, next, ok := sh.index.find(hash, hash)
	for ok {
		if o := sh.slab.at(slot); sh.Key(o) == key {
			return o
		}
		slot, next, ok = sh.index.find(hash, next)
	}
	return nil
}

// index is the part of the hash that shards don't use.
func (h Hash) index() uint32 { return uint32(h >> 32) }

// Live returns the object that r names, or nil if it has died since.
func (sh *Shard) Live(r Ref) *Object {
	if r.o.gen != r.gen || r.o.Dead() {
		return nil
	}
	return r.o
}

// Insert enters an object of size bytes that owner starts to write at now, which must not be
// zero. There is none under its key. The key is copied.
func (sh *Shard) Insert(h Hash, key string, size uint64, owner segment.UUID, now int64) *Object {
	o := sh.slab.take()
	o.Size, o.Owner, o.Ledger = size, owner, tenant.Ledger{}
	o.HardPin, o.DataType, o.replicas = false, 0, 0
	o.lease.Store(0)
	o.write.Store(now)
	o.hash = h.index()
	b := sh.keys.of(len(key))
	block := uint32(0)
	if len(key) > 0 {
		block = b.take()
		copy(b.at(block), key)
	}
	o.name.Store(uint64(block)<<32 | uint64(uint32(len(key))))
	sh.index.insert(o.hash, o.self)
	return o
}

// Delete takes an object out of the space for ever: out of the shard, its group and the
// eviction order. Its replicas are the caller's to release first. The object may be looked at
// until the lock is released.
func (sh *Shard) Delete(o *Object) {
	if o.Dead() {
		return
	}
	if x := sh.extra(o); x != nil {
		sh.space.groups.leave(o, x)
		delete(sh.extras, o)
	}
	if o.replicas > 1 {
		delete(sh.more, o)
	}
	sh.space.Order.Remove(o)
	sh.index.remove(o.hash, o.self)
	if block, length := o.keyAt(); length > 0 {
		b := sh.keys.of(length)
		b.free = append(b.free, block)
	}
	o.flags = flagDead
	o.gen++
	sh.slab.give(o)
}

// Each calls f for every object. f may delete it.
func (sh *Shard) Each(f func(*Object)) { sh.slab.each(f) }

// Some calls f for the objects in so many slots from one on, and returns where to go on, and
// whether there is more. f may delete the object. Between two calls the lock may be given up:
// objects stay where they are, so that those which are there all along are met, and once only.
func (sh *Shard) Some(from uint32, slots int, f func(*Object)) (next uint32, more bool) {
	next = sh.slab.some(from, uint32(slots), f)
	return next, next < sh.slab.used
}

// Number returns which shard of its space this is.
func (sh *Shard) Number() int { return int(sh.slab.shard) }

// Len returns the number of objects.
func (sh *Shard) Len() int { return sh.index.len() }
