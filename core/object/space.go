package object

import (
	"hash/maphash"
	"math"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/evict"
)

// Space is one tenant's objects.
type Space struct {
	seed       maphash.Seed
	shards     []Shard
	mask       uint64
	groups     groups
	oldest     bound                 // of the writes that the shards remember
	oldestWork bound                 // of the works
	Order      *evict.Order[*Object] // a part for each shard

	// Reclaim serialises making room in this space, so that two writers never refuse each
	// other because each holds half of the candidates. It is taken before any shard lock.
	Reclaim sync.Mutex

	// FilePath is where a key's replica in a shared file system lies. It is set before there is
	// any, and called with the shard locked.
	FilePath func(key string) string
}

// NewSpace makes a space of the given number of shards, a power of two up to 65536.
func NewSpace(shards int) *Space {
	s := &Space{seed: maphash.MakeSeed(), shards: make([]Shard, shards), mask: uint64(shards - 1), Order: evict.NewOrder[*Object](shards)}
	s.oldest.Store(math.MaxInt64)
	s.oldestWork.Store(math.MaxInt64)
	for i := range s.shards {
		s.shards[i].space = s
		s.shards[i].slab.shard = uint16(i)
	}
	return s
}

// Hash is a key as its space knows it: the shard, and the place inside it.
type Hash uint64

// Hash returns the hash of a key.
func (s *Space) Hash(key string) Hash { return Hash(maphash.String(s.seed, key)) }

// Shards returns all shards.
func (s *Space) Shards() []Shard { return s.shards }

// ShardIndex returns the number of the shard that keys of this hash belong to.
func (s *Space) ShardIndex(h Hash) int { return int(uint64(h) & s.mask) }

// Shard returns the shard that keys of this hash belong to.
func (s *Space) Shard(h Hash) *Shard { return &s.shards[uint64(h)&s.mask] }

// Locate returns the shard that a key belongs to, and the key's hash.
func (s *Space) Locate(key string) (*Shard, Hash) {
	h := s.Hash(key)
	return s.Shard(h), h
}

// ShardOf returns the shard of an object that may be dead.
func (s *Space) ShardOf(r Ref) *Shard { return &s.shards[r.o.shard] }

// Numbers are how many things there are in a space.
type Numbers struct {
	Objects, InMemory int // all, and those with a replica in memory
	Writes            int // under way
	Works             [workSlots]int
}

// Numbers counts what there is. It locks one shard after the other.
func (s *Space) Numbers() (n Numbers) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.RLock()
		n.Objects += sh.Len()
		n.InMemory += sh.inMemory
		n.Writes += sh.writes.live
		for slot, live := range sh.works.live {
			n.Works[slot] += live
		}
		sh.RUnlock()
	}
	return n
}

// Len returns the number of objects. It locks one shard after the other.
func (s *Space) Len() int { return s.Numbers().Objects }
