package main

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// keyspace hands out the numbers of keys. Each tenant counts its own from 0: those below filled
// are stored before anything is measured, puts go on from there. No two tenants share a key, so
// that a master without tenants holds as many objects.
type keyspace struct {
	tenants []*tenantKeys
	filled  uint64 // per tenant
	namer   keyNamer
}

// tenantShift makes room for the keys of one tenant.
const tenantShift = 42

// tenantKeys are the counters of one tenant, shared by all loads.
type tenantKeys struct {
	name    string
	base    uint64        // what its numbers are counted from
	next    atomic.Uint64 // first number that was never put
	removed atomic.Uint64 // first number that was never removed
}

// tenantName names tenant i; all names of a run are equally long.
func tenantName(i, count int) string {
	if count <= 1 {
		return "default"
	}
	return fmt.Sprintf("tenant-%06d", i)
}

// newKeyspace divides keys, rounded up, among tenants.
func newKeyspace(tenants int, keys uint64, namer keyNamer) *keyspace {
	s := &keyspace{namer: namer, filled: (keys + uint64(tenants) - 1) / uint64(tenants)}
	for i := range tenants {
		s.tenants = append(s.tenants, &tenantKeys{name: tenantName(i, tenants), base: uint64(i) << tenantShift})
	}
	return s
}

// stored is how many objects a fill stores.
func (s *keyspace) stored() uint64 { return s.filled * uint64(len(s.tenants)) }

// tenantLen is the length of every tenant's name.
func (s *keyspace) tenantLen() int { return len(s.tenants[0].name) }

// chooser draws the keys of one load.
type chooser struct {
	space  *keyspace
	rng    *rand.Rand
	slots  int    // operations that all loads keep in flight
	batch  int    // largest number of keys per operation
	moving bool   // lookups follow the puts instead of staying with what was filled
	turn   uint64 // tenant whose turn it is where tenants take turns
}

// tenant draws one.
func (c *chooser) tenant() *tenantKeys {
	if len(c.space.tenants) == 1 {
		return c.space.tenants[0]
	}
	return c.space.tenants[c.rng.IntN(len(c.space.tenants))]
}

// choose appends the numbers of n keys of one tenant for an operation in a slot. Fewer than n,
// or none, are left when the operation uses keys up and they come to an end.
func (c *chooser) choose(o op, slot, n int, keys []uint64) (*tenantKeys, []uint64) {
	switch o {
	case opFill:
		return c.consume(n, keys, func(t *tenantKeys) (*atomic.Uint64, uint64) { return &t.next, c.space.filled })
	case opRemove:
		return c.consume(n, keys, func(t *tenantKeys) (*atomic.Uint64, uint64) {
			if c.moving {
				return &t.removed, c.settled(t)
			}
			return &t.removed, c.space.filled
		})
	case opPut:
		t := c.tenant()
		first := t.next.Add(uint64(n)) - uint64(n)
		for i := range uint64(n) {
			keys = append(keys, t.base+first+i)
		}
		return t, keys
	case opUpsert:
		// Slots have parts of their own, so that no two write one key at once.
		t := c.tenant()
		part := c.space.filled / uint64(c.slots)
		at := c.rng.Uint64N(part)
		for i := range uint64(n) {
			keys = append(keys, t.base+uint64(slot)*part+(at+i)%part)
		}
		return t, keys
	case opPing:
		return c.space.tenants[0], keys
	}
	t := c.tenant()
	low, count := uint64(0), c.space.filled
	if c.moving {
		high := c.settled(t)
		low = high - min(high, c.space.filled)
		count = max(high-low, 1)
	}
	for range n {
		keys = append(keys, t.base+low+c.rng.Uint64N(count))
	}
	return t, keys
}

// settledRounds is how far puts may lag behind those that began after them and still not be
// looked up, in operations per slot.
const settledRounds = 8

// settled is a number below which no put is likely to be in flight.
func (c *chooser) settled(t *tenantKeys) uint64 {
	next := t.next.Load()
	return next - min(next, uint64(settledRounds*c.slots*c.batch))
}

// consume takes up to n numbers from a counter of the next tenant that has any left.
func (c *chooser) consume(n int, keys []uint64, of func(*tenantKeys) (counter *atomic.Uint64, limit uint64)) (*tenantKeys, []uint64) {
	for range c.space.tenants {
		t := c.space.tenants[c.turn%uint64(len(c.space.tenants))]
		c.turn++
		counter, limit := of(t)
		for {
			first := counter.Load()
			if first >= limit {
				break
			}
			last := min(first+uint64(n), limit)
			if !counter.CompareAndSwap(first, last) {
				continue
			}
			for k := first; k < last; k++ {
				keys = append(keys, t.base+k)
			}
			return t, keys
		}
	}
	return nil, keys
}
