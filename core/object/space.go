package object

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/evict"
)

// Space is one tenant's objects.
type Space struct {
	seed   maphash.Seed
	shards []Shard
	mask   uint64
	groups groups
	Order  evict.Order[*Object]
	Writes InFlight

	// Reclaim serialises making room in this space, so that two writers never refuse each
	// other because each holds half of the candidates. It is taken before any shard lock.
	Reclaim sync.Mutex
}

// Shard is a part of a space behind one lock.
type Shard struct {
	sync.RWMutex
	space   *Space
	objects map[string]*Object

	// Lookups that found a readable object, all lookups, and the bytes found, since start.
	Hits, Lookups, HitBytes atomic.Uint64
}

// NewSpace makes a space of the given number of shards, a power of two.
func NewSpace(shards int) *Space {
	s := &Space{seed: maphash.MakeSeed(), shards: make([]Shard, shards), mask: uint64(shards - 1)}
	for i := range s.shards {
		s.shards[i].space = s
	}
	return s
}

// Shards returns all shards.
func (s *Space) Shards() []Shard { return s.shards }

// ShardIndex returns the number of the shard that key belongs to.
func (s *Space) ShardIndex(key string) int {
	return int(maphash.String(s.seed, key) & s.mask)
}

// Shard returns the shard that key belongs to.
func (s *Space) Shard(key string) *Shard { return &s.shards[s.ShardIndex(key)] }

// Len returns the number of objects. It locks one shard after the other.
func (s *Space) Len() int {
	n := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.RLock()
		n += len(sh.objects)
		sh.RUnlock()
	}
	return n
}

// Get returns the object of a key, or nil. The shard is locked by the caller.
func (sh *Shard) Get(key string) *Object {
	o := sh.objects[key]
	if o == nil || o.extra == nil || o.extra.group == nil {
		return o
	}
	if sh.space.groups.doomed(o) {
		return nil
	}
	return o
}

// GetAny is Get that also returns an object its group's eviction has chosen already.
func (sh *Shard) GetAny(key string) *Object { return sh.objects[key] }

// Insert enters an object. The shard is locked by the caller and has none under its key.
func (sh *Shard) Insert(o *Object) {
	if sh.objects == nil {
		sh.objects = make(map[string]*Object)
	}
	sh.objects[o.Key] = o
}

// Delete takes an object out of the space for ever: out of the shard, its group and the
// eviction order. Its replicas are the caller's to release. The shard is locked by the caller.
func (sh *Shard) Delete(o *Object) {
	if o.dead {
		return
	}
	o.dead = true
	delete(sh.objects, o.Key)
	sh.space.groups.leave(o)
	sh.space.Order.Remove(o)
}

// Each calls f for every object of the shard, which the caller has locked. f may delete.
func (sh *Shard) Each(f func(*Object)) {
	for _, o := range sh.objects {
		f(o)
	}
}

// Len returns the number of objects of the shard, which the caller has locked.
func (sh *Shard) Len() int { return len(sh.objects) }
