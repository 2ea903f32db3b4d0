package core

import (
	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// want is how much a reclamation is to give up: until both goals are reached.
type want struct {
	bytes   uint64
	objects int
	pinned  bool           // soft-pinned objects may go, after all others
	whole   bool           // give up nothing unless both goals can be reached
	except  *object.Object // not this one
}

// got is what a reclamation gave up.
type got struct {
	bytes   uint64
	objects int
}

func (g got) reaches(w want) bool { return g.bytes >= w.bytes && g.objects >= w.objects }

// victims are objects that go together: one, or what can go of a group.
type victims struct {
	group   *object.Group
	objects []*object.Object
}

// harvest collects victims from one tenant.
type harvest struct {
	sets  []victims
	total got
	taken map[*object.Object]bool // members of groups in sets
	back  []*object.Object        // popped, and as good candidates as before for somebody else
	aside []*object.Object        // popped, but nobody can evict them now
}

// retryAfter is when an object that can't be evicted for a reason other than its lease is
// looked at again, in nanoseconds.
const retryAfter = int64(1e9)

// reclaim gives up a tenant's oldest unleased objects. Its cost follows what it gives up: an
// object that was read since it got in line is met, moved, and not met again before its lease
// has ended.
func (m *Master) reclaim(k *keeper, w want) got {
	k.space.Reclaim.Lock()
	defer k.space.Reclaim.Unlock()
	now := m.clock.Now()
	var h harvest
	m.collect(k, &h, w, evict.Plain, now)
	if w.pinned {
		m.collect(k, &h, w, evict.Pinned, now)
	}
	var g got
	if w.whole && !h.total.reaches(w) {
		for _, v := range h.sets {
			h.back = append(h.back, v.objects...)
		}
	} else {
		for _, v := range h.sets {
			m.evictSet(k, v, now, &g)
		}
	}
	for _, o := range h.back {
		m.putBack(k, o, 0)
	}
	for _, o := range h.aside {
		m.putBack(k, o, now+retryAfter)
	}
	return g
}

// collect pops candidates of a class until the goals are reached or none is due.
func (m *Master) collect(k *keeper, h *harvest, w want, class evict.Class, now int64) {
	for !h.total.reaches(w) {
		o, rank, ok := k.space.Order.PopDue(class, now)
		if !ok {
			return
		}
		if h.taken[o] {
			continue
		}
		m.consider(k, h, o, rank, w, class, now)
	}
}

// consider decides what becomes of a popped candidate.
func (m *Master) consider(k *keeper, h *harvest, o *object.Object, rank int64, w want, class evict.Class, now int64) {
	sh := k.space.Shard(o.Key)
	sh.RLock()
	if o.Dead() || o.InFlight() || o.HardPin {
		sh.RUnlock() // gone, or its End puts it in line again
		return
	}
	rankNow := k.space.Rank(o)
	pinUntil := o.SoftUntil()
	if rankNow > rank || (class == evict.Plain && pinUntil > now) {
		k.space.Order.Insert(o, rankNow, pinUntil, now)
		sh.RUnlock()
		return
	}
	bytes := o.Size * uint64(o.EvictableReplicas())
	group := o.Group()
	sh.RUnlock()
	switch {
	case bytes == 0:
		h.aside = append(h.aside, o)
		return
	case o == w.except:
		h.back = append(h.back, o)
		return
	}
	if group == nil {
		h.sets = append(h.sets, victims{objects: []*object.Object{o}})
		h.total.bytes += bytes
		h.total.objects++
		return
	}
	v := victims{group: group}
	for _, member := range k.space.Members(o) {
		if h.taken[member] || member == w.except {
			continue
		}
		bytes := m.evictable(k, member, class, now)
		if bytes == 0 {
			continue
		}
		if h.taken == nil {
			h.taken = make(map[*object.Object]bool)
		}
		h.taken[member] = true
		v.objects = append(v.objects, member)
		h.total.bytes += bytes
		h.total.objects++
	}
	if !h.taken[o] {
		h.back = append(h.back, o) // leased in between
	}
	h.sets = append(h.sets, v)
}

// evictable returns how many bytes evicting a member of a group would free.
func (m *Master) evictable(k *keeper, o *object.Object, class evict.Class, now int64) uint64 {
	sh := k.space.Shard(o.Key)
	sh.RLock()
	defer sh.RUnlock()
	if o.Dead() || o.InFlight() || o.HardPin || o.Leased(now) || (class == evict.Plain && o.SoftUntil() > now) {
		return 0
	}
	return o.Size * uint64(o.EvictableReplicas())
}

// evictSet drops the victims' replicas, unless they have been leased since.
func (m *Master) evictSet(k *keeper, v victims, now int64, g *got) {
	if v.group != nil && !k.space.Doom(v.group, v.objects, now) {
		for _, o := range v.objects {
			m.putBack(k, o, 0)
		}
		return
	}
	for _, o := range v.objects {
		sh := k.space.Shard(o.Key)
		sh.Lock()
		bytes := o.Size * uint64(o.EvictableReplicas())
		switch {
		case o.Dead():
		case o.InFlight() || o.Leased(now) || bytes == 0:
			if v.group != nil {
				k.space.Spare(o)
			}
			m.enqueue(k, o, now)
		default:
			m.shed(k, sh, o, (*object.Replica).Evictable, m.free)
			g.bytes += bytes
			g.objects++
			if !o.Dead() && v.group != nil {
				k.space.Spare(o)
			}
			m.enqueue(k, o, now)
		}
		sh.Unlock()
	}
}

// putBack puts an object that was popped in line again, where it was but not to be met before
// the instant.
func (m *Master) putBack(k *keeper, o *object.Object, instant int64) {
	sh := k.space.Shard(o.Key)
	sh.RLock()
	defer sh.RUnlock()
	if !o.Dead() && !o.InFlight() && !o.HardPin {
		k.space.Order.Insert(o, max(k.space.Rank(o), instant), o.SoftUntil(), m.clock.Now())
	}
}

// makeQuota gives up the tenant's own oldest objects if together they make a write fit that
// its quota has refused, and reports whether trying again may help.
func (m *Master) makeQuota(k *keeper, w *write, deficit uint64, except *object.Object) bool {
	if w.charge > k.acct.Effective() || k.space.Order.Len() == 0 {
		return false
	}
	g := m.reclaim(k, want{bytes: deficit, pinned: m.cfg.AllowEvictSoftPins, whole: true, except: except})
	k.acct.CountEvicted(g.bytes)
	return g.objects > 0
}

// makeMemory evicts because a write found no room, and reports whether trying again may help.
// It gives up at once where no eviction can help, and after AllocationWait. The object that the
// write replaces, if any, is spared: it has to stay when the write is refused.
func (m *Master) makeMemory(w *write, except *object.Object) bool {
	if w.config.ReplicaNum > uint64(m.pool.NameCount()) || !m.pool.CanEverFit(w.size) {
		return false
	}
	if m.cfg.AllocationWait <= 0 {
		wake(m.wakePool)
		return false
	}
	now := m.clock.Now()
	if w.waitUntil == 0 {
		w.waitUntil = now + m.cfg.AllocationWait.Nanoseconds()
	}
	return now <= w.waitUntil && m.evictOnce(except)
}

// evictOnce runs one pass that an allocation failure asks for, unless another has made room
// while this one waited for its turn: many writers that fail at once need one pass, not one
// each.
func (m *Master) evictOnce(except *object.Object) bool {
	seen := m.poolPasses.Load()
	m.poolPass.Lock()
	defer m.poolPass.Unlock()
	return m.poolPasses.Load() != seen || m.passPool(true, except)
}

// evictPool runs one pass over all tenants if more of the pool is in use than its watermark,
// or failed says that an allocation has failed. It reports whether anything was freed.
func (m *Master) evictPool(failed bool) bool {
	m.poolPass.Lock()
	defer m.poolPass.Unlock()
	return m.passPool(failed, nil)
}

// passPool is evictPool with the pass lock held, sparing one object.
func (m *Master) passPool(failed bool, except *object.Object) bool {
	used := m.usedRatio()
	if !failed && used <= m.poolMark.High {
		return false
	}
	released := m.releaseParked()
	target, lower := m.poolMark.PoolTarget(used)
	if failed && target <= 0 {
		return released > 0
	}
	var g got
	m.keepers(func(k *keeper) {
		n := k.space.Order.Len()
		if n == 0 {
			return
		}
		part := m.reclaim(k, want{objects: evict.Count(target, n), except: except})
		if least := evict.Count(lower, n); part.objects < least && m.cfg.AllowEvictSoftPins {
			more := m.reclaim(k, want{objects: least - part.objects, pinned: true, except: except})
			part.objects += more.objects
			part.bytes += more.bytes
		}
		g.objects += part.objects
		g.bytes += part.bytes
	})
	m.counters.evictionAttempts.Add(1)
	if g.objects > 0 {
		m.counters.evictionSuccesses.Add(1)
		m.counters.evictedKeys.Add(uint64(g.objects))
		m.counters.evictedBytes.Add(g.bytes)
	}
	if g.objects == 0 && released == 0 {
		return false
	}
	m.poolPasses.Add(1)
	return true
}

// usedRatio is the share of the pool's bytes that is allocated.
func (m *Master) usedRatio() float64 {
	capacity := m.pool.CapacityBytes()
	if capacity == 0 {
		return 0
	}
	return float64(m.pool.UsedBytes()) / float64(capacity)
}

// evictTenants brings every tenant that is above its watermark down. A tenant without a policy,
// or whose quota is scaled to nothing, is left to the pool's eviction: it may be back once its
// policy is corrected or the memory has returned.
func (m *Master) evictTenants() {
	if !m.cfg.MultiTenant || m.cfg.TenantWatermark <= 0 {
		return
	}
	m.keepers(func(k *keeper) {
		if !k.acct.HasPolicy() {
			return
		}
		used := k.acct.Charged()
		used -= min(used, k.acct.Replaced())
		if excess := m.tenantMark.TenantExcess(used, k.acct.Effective()); excess > 0 {
			g := m.reclaim(k, want{bytes: excess, pinned: m.cfg.AllowEvictSoftPins})
			k.acct.CountEvicted(g.bytes)
		}
	})
}

// releaseParked frees the parked buffers whose time has come and returns how many there were.
func (m *Master) releaseParked() int {
	n := m.parked.release(m.clock.Now())
	m.counters.releases.Add(uint64(n))
	return n
}

// expireWrites gives up the writes that nobody has ended within the release timeout.
func (m *Master) expireWrites() {
	now := m.clock.Now()
	limit := now - m.cfg.PutReleaseTimeout.Nanoseconds()
	m.keepers(func(k *keeper) {
		for _, o := range k.space.Writes.Before(limit) {
			sh := k.space.Shard(o.Key)
			sh.Lock()
			if !o.Dead() && o.InFlight() && o.Started() < limit {
				m.counters.discards.Add(1)
				m.counters.releases.Add(1)
				m.shed(k, sh, o, isProcessing, m.free)
				m.enqueue(k, o, now)
			}
			sh.Unlock()
		}
	})
}
