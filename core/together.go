package core

import (
	"math/bits"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// startTogether starts the keys of a piece by shard if it cannot matter in which order: all of them
// fit, and none chooses where the next one goes. It reports whether it has; what didn't fit all
// the same, because somebody else was quicker, has been started by itself.
func (m *Master) startTogether(tenantName string, w *write, keys []string, sizes []uint64, from, end int, out []errcode.Result[[]object.ReplicaDescriptor]) bool {
	c := w.config
	k, code := m.writer(tenantName)
	if code != errcode.OK || c.PreferAllocInSameNode || c.NoFReplicaNum > 0 {
		return false
	}
	m.makeQuotaTogether(k, tenantName, w, keys, sizes, from, end)
	if !m.roomy(k, sizes[from:end], c.ReplicaNum) {
		return false
	}
	var room []segment.Allocation
	if c.ReplicaNum == 1 && c.PreferredSegment == "" && len(c.PreferredSegments) == 0 {
		f := newFreeing()
		f.list = resize(f.list, end-from)
		room = f.list
		m.pool.PlaceMany(sizes[from:end], room)
		defer f.done() // what nobody has taken
	}
	now, late := m.clock.Now(), false
	m.inShards(k.space, end-from, func(i int) string { return keys[from+i] }, func(sh *object.Shard, h object.Hash, i int) {
		i += from
		w.set(keys[i], sizes[i], i)
		r := &out[i]
		r.Value = r.Value[:0]
		if r.Code = m.check(tenantName, w); r.Code == errcode.OK {
			w.now, w.placed = now, nil
			if room != nil {
				w.placed = &room[i-from]
			}
			r.Value, _, r.Code = m.enter(k, sh, h, w, r.Value)
		}
		late = late || noRoom(r.Code)
	})
	w.placed = nil
	if late {
		for i := from; i < end; i++ {
			if noRoom(out[i].Code) {
				m.startNext(tenantName, w, keys[i], sizes[i], i, &out[i], m.put)
			}
		}
	}
	return true
}

// makeQuotaTogether gives up what the new objects of a piece need within the tenant's quota, if
// together they are more than fits. It is what making room for one after the other would give up: the oldest
// until all fit. Where that isn't possible nothing is given up, and each stands for itself; likewise where a
// key exists already, which might be what is given up.
func (m *Master) makeQuotaTogether(k *keeper, tenantName string, w *write, keys []string, sizes []uint64, from, end int) {
	limit := k.acct.Effective()
	if k.free != nil || m.cfg.QuotaExceeded != EvictOwn || k.acct.Closed() {
		return
	}
	var sum uint64
	for _, size := range sizes[from:end] {
		sum += min(size, tenant.MaxBytes/pieceKeys/maxTogether/plenty)
	}
	sum *= min(w.config.ReplicaNum, maxTogether)
	if w.config.ReplicaNum > maxTogether || k.acct.Charged()+sum <= limit || !m.pool.HasFree(sum*plenty) {
		return
	}
	sum = 0
	exists := false
	groupByShard(k.space, end-from, func(i int) string { return keys[from+i] }, func(sh *object.Shard, indexes []int32, hashes []object.Hash) {
		sh.RLock()
		defer sh.RUnlock()
		for n, i := range indexes {
			w.set(keys[from+int(i)], sizes[from+int(i)], from+int(i))
			exists = exists || sh.GetAny(hashes[i], w.key) != nil
			if m.check(tenantName, w) != errcode.OK || w.charge > limit/2 ||
				slices.ContainsFunc(indexes[:n], func(j int32) bool { return hashes[j] == hashes[i] }) {
				continue // not admitted, or not without giving up half of all
			}
			if sum += w.charge; sum > tenant.MaxBytes {
				sum = tenant.MaxBytes // more than there is; and no sum wraps around
			}
		}
	})
	if need := k.acct.Charged() + sum; sum > 0 && need > limit && !exists {
		g := m.reclaim(k, want{bytes: need - limit, pinned: m.cfg.AllowEvictSoftPins, whole: true, pending: k.leaving.expected()})
		k.acct.CountEvicted(g.bytes)
	}
}

func noRoom(c errcode.Code) bool {
	return c == errcode.TenantQuotaExceeded || c == errcode.NoAvailableHandle
}

// plenty is how many times as much memory as a piece of a batch needs has to be free, so that
// fragmentation is unlikely to refuse any of it.
const plenty = 8

// roomy reports whether values of these sizes fit together, into the tenant's quota and into memory.
func (m *Master) roomy(k *keeper, sizes []uint64, replicas uint64) bool {
	var sum uint64
	for _, size := range sizes {
		sum += min(size, tenant.MaxBytes/pieceKeys/plenty)
	}
	hi, need := bits.Mul64(sum, replicas*plenty)
	if hi != 0 || replicas > maxTogether || !m.pool.HasFree(need) {
		return false
	}
	return k.free != nil || k.acct.Charged()+sum*replicas <= k.acct.Effective()
}
