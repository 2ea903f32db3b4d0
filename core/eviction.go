package core

import (
	"github.com/mooncake-go/mooncake-master/core/object"
)

// makeQuota gives up the tenant's own oldest objects if together they make a write fit that
// its quota has refused, and reports whether trying again may help.
func (m *Master) makeQuota(k *keeper, w *write, deficit uint64, except object.Ref) bool {
	if w.charge > k.acct.Effective() {
		return false
	}
	g := m.reclaim(k, want{bytes: deficit, pinned: m.cfg.AllowEvictSoftPins, whole: true, except: except, pending: k.leaving.expected()})
	k.acct.CountEvicted(g.bytes)
	return g.objects > 0
}

// makeMemory evicts because a write found no room, and reports whether trying again may help.
// It gives up at once where no eviction can help, and after AllocationWait. The object that the
// write replaces, if any, is spared: it has to stay when the write is refused.
func (m *Master) makeMemory(w *write, except object.Ref) bool {
	if w.config.ReplicaNum > uint64(m.pool.NameCount()) || !m.pool.CanEverFit(w.size) {
		return false
	}
	if parked := uint64(m.parked.bytes.Load()); parked+w.size > m.pool.CapacityBytes() {
		return false // what is in the way is nobody's to evict; its time has to come
	}
	if m.cfg.AllocationWait <= 0 {
		wake(m.wakePool)
		return false
	}
	now := m.clock.Now()
	if w.waitUntil == 0 {
		w.waitUntil = now + m.cfg.AllocationWait.Nanoseconds()
	}
	if now > w.waitUntil {
		return false
	}
	bite := waitingBite << min(w.waits, 4)
	w.waits++
	return m.evictFor(bite, except)
}

// usedRatio is the share of the pool's bytes that is allocated.
func (m *Master) usedRatio() float64 {
	capacity := m.pool.CapacityBytes()
	if capacity == 0 {
		return 0
	}
	return float64(m.pool.UsedBytes()) / float64(capacity)
}

// evictTenants brings every tenant that is above its watermark down. For one TTL after the
// start it waits while clients are coming back: the quotas are scaled to memory that is about
// to grow. A tenant without a policy,
// or whose quota is scaled to nothing, is left to the pool's eviction: it may be back once its
// policy is corrected or the memory has returned.
func (m *Master) evictTenants() {
	if !m.cfg.MultiTenant || m.cfg.TenantWatermark <= 0 {
		return
	}
	if now := m.clock.Now(); now-m.started <= m.cfg.ClientActiveTTL.Nanoseconds() && m.clients.Remounting(now) {
		return
	}
	m.keepers(func(k *keeper) {
		if !k.acct.HasPolicy() {
			return
		}
		used := k.acct.Charged()
		used -= min(used, k.acct.Replaced()+k.leaving.expected())
		if excess := m.tenantMark.TenantExcess(used, k.acct.Effective()); excess > 0 {
			m.evictTenant(k, excess)
		}
	})
}

// evictTenant gives up so many bytes of a tenant's oldest unleased objects, in bites: the tenant's
// writers make room under the same lock.
func (m *Master) evictTenant(k *keeper, excess uint64) {
	for {
		g := m.reclaim(k, want{bytes: excess, pinned: m.cfg.AllowEvictSoftPins, most: restingBite})
		k.acct.CountEvicted(g.bytes)
		if done := g.bytes + g.later; done >= excess || g.worked() < restingBite {
			return
		}
		excess -= g.bytes + g.later
		m.yield()
	}
}

// releaseParked frees the parked buffers whose time has come and returns how many there were.
func (m *Master) releaseParked() int {
	now, total := m.clock.Now(), 0
	for {
		n := m.parked.release(now, parkedBite)
		m.counters.releases.Add(uint64(n))
		if total += n; n < parkedBite {
			return total
		}
	}
}

// expireWrites gives up the writes that nobody has ended within the release timeout.
func (m *Master) expireWrites() {
	now := m.clock.Now()
	limit := now - m.cfg.PutReleaseTimeout.Nanoseconds()
	m.keepers(func(k *keeper) {
		for _, r := range k.space.WritesBefore(limit) {
			sh := k.space.ShardOf(r)
			sh.Lock()
			if o := sh.Live(r); o != nil && o.InFlight() && o.Started() < limit {
				m.counters.discards.Add(1)
				m.counters.releases.Add(1)
				m.shed(k, sh, o, isProcessing, free)
				m.enqueue(k, sh, o, now)
			}
			sh.Unlock()
		}
	})
}
