package core

import "github.com/mooncake-go/mooncake-master/core/object"

var workSlots = [...]object.WorkSlot{object.SlotReplication, object.SlotPromotion, object.SlotOffload}

// finishWork takes what an object is busy with in a slot to its end, whatever that was: the staged
// replicas that good accepts become the object's own, the others go to release, and what was charged
// for those is refunded. It returns the work and how many replicas stayed; nil if there is none. Every work ends
// here, by its client's word, by time, or with its object. The shard is locked for writing; whoever calls it
// calls settle or shed afterwards, and enqueue.
func (m *Master) finishWork(k *keeper, sh *object.Shard, o *object.Object, slot object.WorkSlot, good func(*object.Replica) bool, release func(*object.Replica)) (w *object.Work, kept int) {
	w = sh.EndWork(o, slot)
	if w == nil {
		return nil, 0
	}
	before := m.media(sh, o)
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Staged && w.Makes(r.ID) && good(r) {
			r.Staged, r.Status = false, object.ReplicaComplete
			kept++
		}
	}
	m.moved(k, sh, o, before)
	sh.Drop(o, func(r *object.Replica) bool { return r.Staged && w.Makes(r.ID) }, release)
	if w.Charge > 0 {
		m.ledger(k, o, o.Ledger.SettleAdditional(k.account(sh), w.Charge, o.Size*uint64(kept)))
		w.Charge = 0
	}
	return w, kept
}

// refundLost refunds what was charged for staged replicas that are gone, though the work goes on. The
// shard is locked for writing.
func (m *Master) refundLost(k *keeper, sh *object.Shard, o *object.Object) {
	for _, slot := range []object.WorkSlot{object.SlotReplication, object.SlotPromotion} {
		w := sh.Work(o, slot)
		if w == nil || w.Charge == 0 {
			continue
		}
		left := 0
		for _, id := range w.Targets {
			if sh.ByID(o, id) != nil {
				left++
			}
		}
		if keep := o.Size * uint64(left); keep < w.Charge && k.account(sh).Release(w.Charge-keep) {
			w.Charge = keep
		}
	}
}

// dropWorks ends all works of an object that has no replicas any more.
func (m *Master) dropWorks(k *keeper, sh *object.Shard, o *object.Object) {
	for _, slot := range workSlots {
		if w, _ := m.finishWork(k, sh, o, slot, noReplica, free); w != nil {
			m.workLost(k, sh, o, w)
		}
	}
}

func noReplica(*object.Replica) bool { return false }

// workLost is told of a work whose object has gone. The shard is locked for writing.
func (m *Master) workLost(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) {
	switch w.Slot {
	case object.SlotReplication:
		m.replicationLost(k, sh, o, w)
	default:
		m.tierLost(k, sh, o, w)
	}
}

// expireWorks ends the works that nobody has ended within the release timeout. What they were
// making may still be written to: it is parked. What the master carries itself has timeouts of its own.
func (m *Master) expireWorks() {
	now := m.clock.Now()
	limit := now - m.cfg.PutReleaseTimeout.Nanoseconds()
	m.keepers(func(k *keeper) {
		for _, due := range k.space.WorksBefore(limit) {
			sh := k.space.ShardOf(due.Object)
			sh.Lock()
			if o := sh.Live(due.Object); o != nil && sh.Going(o, due.Work) && due.Work.Started < limit && !due.Work.Carried {
				m.finishWork(k, sh, o, due.Work.Slot, noReplica, m.park(now+m.cfg.PutReleaseTimeout.Nanoseconds()))
				m.workExpired(k, sh, o, due.Work)
				m.settle(k, sh, o)
				m.enqueue(k, sh, o, now)
			}
			sh.Unlock()
		}
	})
}

// workExpired is told of a work that nobody has ended in time. The shard is locked for writing.
func (m *Master) workExpired(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) {
	switch w.Slot {
	case object.SlotReplication:
		m.replicationLost(k, sh, o, w)
	default:
		m.tierExpired(k, sh, o, w)
	}
}
