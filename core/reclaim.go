package core

import (
	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// want is how much a reclamation is to give up: until both goals are reached.
type want struct {
	bytes   uint64
	objects int
	pinned  bool       // soft-pinned objects may go, after all others
	whole   bool       // give up nothing unless both goals can be reached
	most    int        // stop at so many objects, though the goals are not reached; 0 = don't
	pending uint64     // bytes that are on their way to be free already
	except  object.Ref // not this one
}

// got is what a reclamation gave up.
type got struct {
	bytes    uint64
	objects  int
	deferred int    // objects that are to be given up once they are on a disk
	later    uint64 // bytes of those
}

// worked is how many objects something has been done about.
func (g got) worked() int { return g.objects + g.deferred }

func (g *got) add(part got) {
	g.bytes += part.bytes
	g.objects += part.objects
	g.deferred += part.deferred
	g.later += part.later
}

func (g got) reaches(w want) bool { return g.bytes >= w.bytes && g.objects >= w.objects }

func (g got) enough(w want) bool { return g.reaches(w) || w.most > 0 && g.objects >= w.most }

// groupVictims are the members of a group that can go; they go together.
type groupVictims struct {
	group   *object.Group
	members []object.Ref
}

// harvest collects victims from one tenant. It is the tenant's, so that its memory is used
// again, and guarded by the space's Reclaim lock.
type harvest struct {
	singles []object.Ref
	groups  []groupVictims
	total   got                  // what the goals are measured by
	given   got                  // what has been given up
	frees   []segment.Allocation // memory of what has been given up, still to be freed
	taken   map[object.Ref]bool  // members of groups
	back    []object.Ref         // popped, and as good candidates as before for somebody else
	aside   []object.Ref         // popped, but nobody can evict them now
	waiting []object.Ref         // those in the way that have to be written to disk first
	pending uint64               // bytes of those
	passed  int                  // how many were passed over because they can't go at once
}

func (h *harvest) reset() {
	h.singles, h.groups, h.total, h.given = h.singles[:0], h.groups[:0], got{}, got{}
	h.frees = h.frees[:0]
	clear(h.taken)
	h.back, h.aside = h.back[:0], h.aside[:0]
	h.waiting, h.pending, h.passed = h.waiting[:0], 0, 0
}

// retryAfter is when an object that can't be evicted for a reason other than its lease is
// looked at again, in nanoseconds.
const retryAfter = int64(1e9)

// reclaim gives up a tenant's oldest unleased objects. Its cost follows what it gives up: an
// object that was read since it got in line is met, moved, and not met again before its lease
// has ended. What needs not be whole is given up as it is met.
func (m *Master) reclaim(k *keeper, w want) got {
	k.space.Reclaim.Lock()
	defer k.space.Reclaim.Unlock()
	now := m.clock.Now()
	h := &k.harvest
	h.reset()
	m.collect(k, h, w, evict.Plain, now)
	if w.pinned {
		m.collect(k, h, w, evict.Pinned, now)
	}
	if w.whole && !h.total.reaches(w) {
		h.back = append(h.back, h.singles...)
		for _, v := range h.groups {
			h.back = append(h.back, v.members...)
		}
		m.deferWaiting(k, h, now)
	} else {
		m.deferWaiting(k, h, now) // what is older than the others that are evicted without
		for _, r := range h.singles {
			m.evictOne(k, h, r, now)
		}
		for _, v := range h.groups {
			if !k.space.Doom(v.group, v.members, now) {
				h.back = append(h.back, v.members...) // leased in between
				continue
			}
			for _, r := range v.members {
				m.evictOne(k, h, r, now)
			}
		}
	}
	for _, r := range h.back {
		m.putBack(k, r, 0)
	}
	for _, r := range h.aside {
		m.putBack(k, r, now+retryAfter)
	}
	segment.FreeAll(h.frees)
	return h.given
}

// collect pops candidates of a class until the goals are reached or none is due.
func (m *Master) collect(k *keeper, h *harvest, w want, class evict.Class, now int64) {
	for !h.total.enough(w) && h.passed < passedOver {
		o, generation, rank, ok := k.space.Order.PopDue(class, now)
		if !ok {
			return
		}
		if r := object.Found(o, generation); !h.taken[r] {
			m.consider(k, h, r, rank, w, class, now)
		}
	}
}

// consider decides what becomes of a popped candidate.
func (m *Master) consider(k *keeper, h *harvest, r object.Ref, rank int64, w want, class evict.Class, now int64) {
	sh := k.space.ShardOf(r)
	sh.Lock()
	o := sh.Live(r)
	if o == nil || o.InFlight() || o.HardPin || !sh.InMemory(o) {
		sh.Unlock() // gone, or its End puts it in line again
		return
	}
	rankNow, pinUntil := sh.Rank(o), sh.SoftUntil(o)
	if rankNow > rank || (class == evict.Plain && pinUntil > now) {
		k.space.Order.Insert(o, rankNow, pinUntil, now)
		sh.Unlock()
		return
	}
	bytes := o.Size * uint64(sh.EvictableReplicas(o))
	can := bytes > 0
	if w.whole && m.tier.defers {
		bytes = m.weigh(h, sh, o, bytes, w)
	}
	group := sh.Group(o)
	if group != nil && m.weights.Managed(group.ID) {
		bytes, can = 0, false
	}
	if !w.whole && bytes > 0 && group == nil && r != w.except {
		h.total.bytes += bytes
		h.total.objects++
		m.giveUp(k, sh, o, h, bytes, now)
		sh.Unlock()
		return
	}
	sh.Unlock()
	switch {
	case !can:
		h.aside = append(h.aside, r)
	case r == w.except, bytes == 0 && group == nil:
		h.back = append(h.back, r)
	case group == nil:
		h.singles = append(h.singles, r)
		h.total.bytes += bytes
		h.total.objects++
	default:
		m.considerGroup(k, h, group, w, class, now)
		if !h.taken[r] {
			h.back = append(h.back, r) // leased in between
		}
	}
}

// considerGroup collects what can go of a group.
func (m *Master) considerGroup(k *keeper, h *harvest, group *object.Group, w want, class evict.Class, now int64) {
	v := groupVictims{group: group}
	for _, r := range k.space.Members(group) {
		if h.taken[r] || r == w.except {
			continue
		}
		bytes := m.evictable(k, r, class, now)
		if bytes == 0 {
			continue
		}
		if h.taken == nil {
			h.taken = make(map[object.Ref]bool)
		}
		h.taken[r] = true
		v.members = append(v.members, r)
		h.total.bytes += bytes
		h.total.objects++
	}
	h.groups = append(h.groups, v)
}

// evictable returns how many bytes evicting a member of a group would free.
func (m *Master) evictable(k *keeper, r object.Ref, class evict.Class, now int64) uint64 {
	sh := k.space.ShardOf(r)
	sh.RLock()
	defer sh.RUnlock()
	o := sh.Live(r)
	if o == nil || o.InFlight() || o.HardPin || o.Leased(now) || (class == evict.Plain && sh.SoftUntil(o) > now) {
		return 0
	}
	return o.Size * uint64(sh.EvictableReplicas(o))
}

// evictOne drops a victim's replicas, unless it has been leased since; then it goes back in
// line.
func (m *Master) evictOne(k *keeper, h *harvest, r object.Ref, now int64) {
	sh := k.space.ShardOf(r)
	sh.Lock()
	defer sh.Unlock()
	o := sh.Live(r)
	if o == nil {
		return
	}
	bytes := o.Size * uint64(sh.EvictableReplicas(o))
	if o.InFlight() || o.Leased(now) {
		bytes = 0
	}
	m.giveUp(k, sh, o, h, bytes, now)
}

// giveUp drops the replicas of an object that can be evicted, so many bytes; what is left of it, which
// without any is all, goes back in line. The shard is locked for writing.
func (m *Master) giveUp(k *keeper, sh *object.Shard, o *object.Object, h *harvest, bytes uint64, now int64) {
	if bytes > 0 && m.deferrable(sh, o) {
		switch force := m.cfg.Offload.ForceEvict; {
		case force && h.given.deferred >= m.mostDeferred():
		case m.deferEviction(k, sh, o):
			h.given.deferred++
			h.given.later += o.Size
			bytes -= o.Size // the other replicas are not needed any more
		case !force:
			h.aside = append(h.aside, o.Ref())
			sh.Spare(o)
			return
		}
	}
	if bytes > 0 {
		m.shed(k, sh, o, (*object.Replica).Evictable, func(r *object.Replica) { h.frees = append(h.frees, r.Memory) })
		h.given.bytes += bytes
		h.given.objects++
	}
	if !o.Dead() {
		if bytes > 0 {
			m.dynamic.stripped(k.name, sh.Key(o), now)
		}
		sh.Spare(o)
		m.enqueue(k, sh, o, now)
	}
}

// putBack puts an object that was popped in line again, where it was but not to be met before
// the instant.
func (m *Master) putBack(k *keeper, r object.Ref, instant int64) {
	sh := k.space.ShardOf(r)
	sh.RLock()
	defer sh.RUnlock()
	if o := sh.Live(r); o != nil && !o.InFlight() && !o.HardPin && sh.InMemory(o) {
		k.space.Order.Insert(o, max(sh.Rank(o), instant), sh.SoftUntil(o), m.clock.Now())
	}
}
