package core

import (
	"container/heap"
	"math"

	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// oldestFirst is the tenants of a pass by the rank of what each would give up first. Ranks are as
// they were when a tenant was looked at last; they only grow.
type oldestFirst []giver

type giver struct {
	k    *keeper
	rank int64
}

func (h oldestFirst) Len() int           { return len(h) }
func (h oldestFirst) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h oldestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *oldestFirst) Push(x any)        { *h = append(*h, x.(giver)) }
func (h *oldestFirst) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = giver{}
	*h = old[:len(old)-1]
	return last
}

// openOldest begins a pass as release 0.3.13 has it: it gives up the oldest objects whoever owns them,
// where the usual one takes the same share from every tenant.
func (m *Master) openOldest() {
	p := &m.pass
	objects := 0
	m.keepers(func(k *keeper) { objects += k.space.Order.Len() })
	p.goal, p.least = evict.Count(p.target, objects), evict.Count(p.lower, objects)
	p.given, p.success = 0, false
	m.gatherOldest(false)
	p.open.Store(true)
	m.counters.evictionAttempts.Add(1)
}

// gatherOldest puts the tenants in order that have anything to give.
func (m *Master) gatherOldest(pinned bool) {
	p := &m.pass
	p.all, p.pinned = p.all[:0], pinned
	m.keepers(func(k *keeper) {
		if rank := k.first(pinned); rank != math.MaxInt64 {
			p.all = append(p.all, giver{k, rank})
		}
	})
	heap.Init(&p.all)
}

// first is the rank of what the tenant would give up first.
func (k *keeper) first(pinned bool) int64 {
	rank := k.space.Order.First(evict.Plain)
	if pinned {
		rank = min(rank, k.space.Order.First(evict.Pinned))
	}
	return rank
}

// biteOldest goes on with the open pass until it has given up so many objects, or is over. The lock of
// the pass is held.
func (m *Master) biteOldest(objects int, except object.Ref) (g got) {
	p := &m.pass
	for g.worked() < objects {
		due := p.goal - p.given
		if p.pinned {
			due = p.least - p.given
		}
		if due <= 0 {
			p.all = p.all[:0]
			return g
		}
		if len(p.all) == 0 {
			if p.pinned || !m.cfg.AllowEvictSoftPins || p.given >= p.least {
				return g
			}
			m.gatherOldest(true)
			if len(p.all) == 0 {
				return g
			}
		}
		k, known := p.all[0].k, p.all[0].rank
		if rank := k.first(p.pinned); rank > known {
			p.look(rank)
			continue
		}
		part := m.reclaim(k, want{objects: 1, pinned: p.pinned, except: except})
		p.given += part.worked()
		g.add(part)
		if part.worked() == 0 {
			heap.Pop(&p.all) // what it has left can't go now
			continue
		}
		p.look(k.first(p.pinned))
	}
	return g
}

// look notes what the first tenant would give up next.
func (p *poolPass) look(rank int64) {
	if rank == math.MaxInt64 {
		heap.Pop(&p.all)
		return
	}
	p.all[0].rank = rank
	heap.Fix(&p.all, 0)
}
