package core

import (
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// This file is about eviction that writes objects to disk first. What is only in memory stays there until
// a client says that it has it on its disk; a later eviction takes it then.

// deferrable reports whether an object that is to be evicted is on no client's disk and not being written to one
// yet. A file in the folder that all clients share doesn't count: such an object is read from there, but never promoted. The
// shard is locked.
func (m *Master) deferrable(sh *object.Shard, o *object.Object) bool {
	return m.tier.defers && !onClientDisk(sh, o) && sh.Work(o, object.SlotOffload) == nil
}

// onClientDisk reports whether a client has all of an object on its disk.
func onClientDisk(sh *object.Shard, o *object.Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		r := &all[i]
		if r.Kind == object.KindLocalDisk && r.Readable() && r.Memory.Size == o.Size {
			return true
		}
	}
	return false
}

// deferEviction asks one of the clients in whose memory an object lies to write it to its disk, and keeps the
// replica there until it has. It reports false when none of them takes it. The shard is locked for
// writing.
func (m *Master) deferEviction(k *keeper, sh *object.Shard, o *object.Object) bool {
	item := tier.Item{Tenant: k.name, Size: int64(o.Size)}
	all := sh.Replicas(o)
	for i := range all {
		r := &all[i]
		if !r.Evictable() {
			continue
		}
		id := r.Memory.Seg().Client
		d := m.tier.disks.Find(id)
		if d == nil || !d.Accepts() {
			continue
		}
		if item.Key == "" {
			item.Key = sh.KeyCopy(o)
		}
		if d.Offload(item, m.cfg.Offload.QueueLimit) {
			k.leaving.begin(o.Size)
			m.tier.leaving.begin(o.Size)
			sh.BeginWork(o, &object.Work{
				Slot: object.SlotOffload, Client: id, Started: m.clock.Now(),
				Sources: []uint64{r.ID}, Mirrors: []segment.UUID{id}, Frees: o.Size,
			})
			return true
		}
	}
	return false
}

// taken reports whether a client would take an object to write. The shard is locked.
func (m *Master) taken(sh *object.Shard, o *object.Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if d := m.tier.disks.Find(all[i].Memory.Seg().Client); all[i].Evictable() && d != nil && d.Room(m.cfg.Offload.QueueLimit) {
			return true
		}
	}
	return false
}

// leavingRatio is the share of the pool's bytes that is to be free once it is on a disk.
func (m *Master) leavingRatio() float64 {
	return float64(m.tier.leaving.expected()) / float64(max(m.pool.CapacityBytes(), 1))
}

// leaving counts the bytes of memory that are to be free when they are on a disk. Clients write when
// they have enough for a file of many objects, and what one of them has been given may wait there for more: when nothing
// arrives for a while, the bytes under way are not counted on, and others are given to it besides.
type leaving struct {
	bytes   atomic.Int64  // of all under way
	stalled atomic.Int64  // of those: not counted on
	ended   atomic.Uint64 // how many are not under way any more
	seen    atomic.Uint64 // the same, when last looked at
}

func (l *leaving) begin(bytes uint64) { l.bytes.Add(int64(bytes)) }

func (l *leaving) end(bytes uint64) {
	l.bytes.Add(-int64(bytes))
	l.ended.Add(1)
	l.stalled.Store(0)
}

// expected is how many bytes can be counted on.
func (l *leaving) expected() uint64 { return uint64(max(l.bytes.Load()-l.stalled.Load(), 0)) }

// look is called every tidyPeriod.
func (l *leaving) look() {
	if ended := l.ended.Load(); l.seen.Swap(ended) == ended {
		l.stalled.Store(l.bytes.Load())
	}
}

// lookAtLeaving finds out whether what is being written to disks arrives.
func (m *Master) lookAtLeaving() {
	if m.tier.defers {
		m.tier.leaving.look()
		m.keepers(func(k *keeper) { k.leaving.look() })
	}
}

// mostDeferred is how many objects one pass of eviction writes to disk before it evicts others without; zero
// where nothing is ever evicted without.
func (m *Master) mostDeferred() int {
	if !m.tier.defers || !m.cfg.Offload.ForceEvict {
		return 0
	}
	return int(float64(m.cfg.Offload.QueueLimit) * m.cfg.Offload.CapRatio)
}

// passedOver is how many objects that can't go at once a write over its quota looks at before it is
// refused.
const passedOver = 256

// weigh says how many of the bytes that evicting an object frees are free at once: all, unless it has to
// be written to disk first. If so the object is remembered, as long as fewer bytes are on their way than the
// reclamation wants. The shard is locked.
func (m *Master) weigh(h *harvest, sh *object.Shard, o *object.Object, bytes uint64, w want) uint64 {
	if bytes == 0 || !m.deferrable(sh, o) {
		return bytes
	}
	if m.cfg.Offload.ForceEvict && (len(h.waiting) >= m.mostDeferred() || !m.taken(sh, o)) {
		return bytes
	}
	h.passed++
	if w.pending+h.pending < w.bytes {
		h.pending += o.Size
		h.waiting = append(h.waiting, o.Ref())
	}
	return bytes - o.Size
}

// deferWaiting has the objects that are in a write's way written to disk, so that a later one finds
// room.
func (m *Master) deferWaiting(k *keeper, h *harvest, now int64) {
	for _, r := range h.waiting {
		sh := k.space.ShardOf(r)
		sh.Lock()
		if o := sh.Live(r); o != nil && !o.InFlight() && !o.Leased(now) && m.deferrable(sh, o) && m.deferEviction(k, sh, o) {
			h.given.deferred++
		}
		sh.Unlock()
	}
}
