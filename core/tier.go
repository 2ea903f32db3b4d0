package core

import (
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// tiers is what the master knows of places other than memory: clients' own disks and the file
// system that all of them share.
type tiers struct {
	disks      tier.Disks
	shared     *segment.Mounted // the file system; nil if there is none
	sketch     *tier.Sketch     // of reads; nil where nothing is promoted by them
	candidates tier.Candidates

	writesQueue bool // an object that is written is to be written to disk
	defers      bool // an object that is to be evicted is to be written to disk first

	promotions atomic.Int64 // under way
	leaving    leaving
	promoted   promotionCounters
	fileHits   atomic.Uint64 // lookups answered with a replica on a disk first
	fileBytes  atomic.Uint64
}

func (t *tiers) init(cfg *Config) {
	t.writesQueue = cfg.Offload.Enabled && !cfg.Offload.OnEvict
	t.defers = cfg.Offload.Enabled && cfg.Offload.OnEvict
	if cfg.Disk.Root != "" {
		t.shared = segment.NewStore(segment.UUID{}, "")
	}
	if cfg.Offload.Enabled && cfg.Promotion.OnHit {
		t.sketch = tier.NewSketch(maphash.MakeSeed())
	}
}

// tierLost is told of a promotion or offload whose object has gone.
func (m *Master) tierLost(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) {
	if w.Slot == object.SlotPromotion {
		m.tier.promoted.canceled.Add(1)
	} else {
		// Of an object that has gone nobody shall be asked for, whoever was asked before it was reported.
		m.tier.disks.Each(func(d *tier.Disk) { d.DropOffload(k.name, sh.Key(o)) })
	}
	m.tierEnded(k, sh, o, w)
}

// tierExpired is told of a promotion or offload that nobody has ended in time.
func (m *Master) tierExpired(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) {
	if w.Slot == object.SlotPromotion {
		m.tier.promoted.expired.Add(1)
		m.tierEnded(k, sh, o, w)
		return
	}
	m.offloadEnded(k, w) // who has not asked for it yet may still have it
}

// tierEnded takes a promotion or offload that is over out of the queues in which its client has
// not met it yet. The shard is locked.
func (m *Master) tierEnded(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) {
	switch w.Slot {
	case object.SlotPromotion:
		m.tier.promotions.Add(-1)
		if d := m.tier.disks.Find(w.Client); d != nil {
			d.DropPromotion(k.name, sh.Key(o))
		}
	case object.SlotOffload:
		for _, id := range w.Mirrors {
			if d := m.tier.disks.Find(id); d != nil {
				d.DropOffload(k.name, sh.Key(o))
			}
		}
		m.offloadEnded(k, w)
	}
}

// written is told that a write has ended whose object can be read now. The shard is locked for
// writing.
func (m *Master) written(k *keeper, sh *object.Shard, o *object.Object, kind object.ReplicaType) {
	if !kind.Covers(object.KindMemory) {
		return
	}
	if len(sh.Replicas(o)) > 1 {
		m.dropOutdated(k, sh, o)
	}
	if m.tier.writesQueue {
		m.queueOffload(k, sh, o)
	}
}

// dropOutdated drops the replicas on clients' own disks that a write in place has made out of date. Nobody
// writes there before the object is offloaded anew.
func (m *Master) dropOutdated(k *keeper, sh *object.Shard, o *object.Object) {
	outdated := func(r *object.Replica) bool { return r.Kind == object.KindLocalDisk && isProcessing(r) }
	if m.shed(k, sh, o, outdated, free) > 0 {
		m.enqueue(k, sh, o, m.clock.Now())
	}
}

// tierSilent and tierBack are told that a client that may have a disk is silent, and that it is back.
// They are called without locks of shards.
func (m *Master) tierSilent(id segment.UUID) { m.suspendDisk(id, true) }
func (m *Master) tierBack(id segment.UUID)   { m.suspendDisk(id, false) }

func (m *Master) suspendDisk(id segment.UUID, silent bool) {
	if d := m.tier.disks.Find(id); d != nil {
		d.Suspend(silent)
	}
}

// removeDisks ends disks and drops the replicas there. It returns how many there were. It is called without
// locks.
func (m *Master) removeDisks(ids ...segment.UUID) int {
	gone := m.closeDisks(ids)
	m.dropDisks(gone)
	return len(gone)
}

// closeDisks ends disks: nothing is read there or asked of them any more. It is for dropDisks to do the rest.
func (m *Master) closeDisks(ids []segment.UUID) (gone []*tier.Disk) {
	for _, id := range ids {
		if d := m.tier.disks.Remove(id); d != nil {
			gone = append(gone, d)
		}
	}
	return gone
}

// dropDisks drops the replicas on disks that have been closed, and what their clients were to write there. It is called
// without locks.
func (m *Master) dropDisks(gone []*tier.Disk) {
	if len(gone) == 0 {
		return
	}
	m.leaveMirrors(gone)
	if slices.ContainsFunc(gone, (*tier.Disk).Holds) {
		m.dropGone()
	}
	for _, d := range gone {
		d.Forget()
	}
}

// leaveMirrors ends the offloads that were waiting for no disks but some that are gone: nobody could.
func (m *Master) leaveMirrors(gone []*tier.Disk) {
	of := make(map[segment.UUID]bool, len(gone))
	for _, d := range gone {
		of[d.Client] = true
	}
	lost := func(w *object.Work) bool {
		return w.Slot == object.SlotOffload && slices.ContainsFunc(w.Mirrors, func(id segment.UUID) bool { return of[id] })
	}
	m.keepers(func(k *keeper) {
		for _, f := range k.space.WorksThat(lost) {
			sh := k.space.ShardOf(f.Object)
			sh.Lock()
			if o := sh.Live(f.Object); o != nil && sh.Going(o, f.Work) {
				f.Work.Mirrors = slices.DeleteFunc(f.Work.Mirrors, func(id segment.UUID) bool {
					d := m.tier.disks.Find(id)
					return of[id] && (d == nil || !d.Waits(k.name, sh.Key(o))) // it may have one anew
				})
				if len(f.Work.Mirrors) == 0 {
					m.endOffload(k, sh, o)
				}
			}
			sh.Unlock()
		}
	})
}

// tierCleared is told that everything, or with a keeper everything of its tenant, has been removed
// by RemoveAll. It is called without locks. As release 0.3.13 the master tells clients to empty
// their disks when everything has gone; what other tenants have there would go, too, if it did so for
// one.
func (m *Master) tierCleared(k *keeper) {
	if m.release0313() && (k == nil || k == m.single) {
		m.tier.disks.Each((*tier.Disk).Wipe)
	}
}
