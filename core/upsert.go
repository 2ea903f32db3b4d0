package core

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// upsert runs a checked UpsertStart.
func (m *Master) upsert(k *keeper, w *write, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	for {
		sh, h := k.space.Locate(w.key)
		w.now = m.clock.Now()
		sh.Lock()
		if k.acct.Closed() {
			sh.Unlock()
			return out, errcode.TenantNotRegistered
		}
		old := m.current(k, sh, h, w.key)
		if m.sealed(sh, old, w.group) {
			sh.Unlock()
			return out, errcode.UnavailableInStatus
		}
		if old != nil && (w.grouped && w.group != sh.GroupID(old) || w.affine && w.affinity != sh.Affinity(old)) {
			sh.Unlock()
			return out, errcode.InvalidParams
		}
		if old != nil {
			code := m.mayGiveWay(k, sh, old)
			if code == errcode.OK && old.Leased(w.now) && !m.release0313() && elsewhereThanInMemory(sh, old) {
				code = errcode.ObjectHasLease
			}
			if code != errcode.OK {
				sh.Unlock()
				return out, code
			}
		}
		canceled := false // an offload that no client had begun
		if old != nil && old.InFlight() {
			// The running write, whoever's it is, has lost: its End will be refused unless the
			// same client wrote. Its buffers are parked, for it may still be writing.
			m.counters.discards.Add(1)
			m.discardWrite(k, sh, old)
			if old.Dead() {
				old = nil
			}
		}
		if old != nil {
			if code := busy(sh, old); code != errcode.OK {
				sh.Unlock()
				return out, code
			}
			inPlace := old.Size == w.size && !old.Leased(w.now) && sh.InMemory(old)
			if inPlace && silent(sh, old) {
				sh.Unlock()
				return out, errcode.UnavailableInStatus
			}
			// Nothing but want of room refuses the write from here on.
			going := sh.Work(old, object.SlotOffload) != nil
			if !m.cancelOffload(k, sh, old) { // its client has just begun it
				sh.Unlock()
				return out, errcode.ObjectHasReplicationTask
			}
			canceled = going
			if inPlace {
				out = m.rewrite(k, sh, old, w, out)
				sh.Unlock()
				return out, errcode.OK
			}
		}
		var spare object.Ref
		if old != nil {
			spare = old.Ref()
		}
		out, deficit, code := m.admit(k, sh, h, w, old, out)
		if code != errcode.OK && canceled { // the old value stays, and was to be written to disk
			if m.tier.writesQueue {
				m.queueOffload(k, sh, old)
			} else {
				m.deferEviction(k, sh, old)
			}
		}
		sh.Unlock()
		if code == errcode.OK || !m.makeRoom(k, w, deficit, code, spare) {
			return out, code
		}
	}
}

// mayGiveWay says why what goes on with an object forbids to overwrite it. An offload that no client has begun
// doesn't: it can be taken back. Nothing changes. The shard is locked for writing.
func (m *Master) mayGiveWay(k *keeper, sh *object.Shard, o *object.Object) errcode.Code {
	if sh.Work(o, object.SlotReplication) != nil || sh.Work(o, object.SlotPromotion) != nil {
		return errcode.ObjectHasReplicationTask
	}
	if w := sh.Work(o, object.SlotOffload); w != nil && !m.tier.disks.Wait(w.Mirrors, k.name, sh.Key(o)) {
		return errcode.ObjectHasReplicationTask
	}
	return errcode.OK
}

// elsewhereThanInMemory reports whether an object has a complete replica that is not in memory.
func elsewhereThanInMemory(sh *object.Shard, o *object.Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Kind != object.KindMemory && (isComplete(&all[i]) || !o.InFlight()) {
			return true
		}
	}
	return false
}

// busy says why a complete object can't be overwritten now, but for an offload that can be taken back.
func busy(sh *object.Shard, o *object.Object) errcode.Code {
	if sh.Work(o, object.SlotReplication) != nil || sh.Work(o, object.SlotPromotion) != nil {
		return errcode.ObjectHasReplicationTask
	}
	offload := sh.Work(o, object.SlotOffload)
	for _, r := range sh.Replicas(o) {
		pins := r.Pins
		if offload != nil && slices.Contains(offload.Sources, r.ID) {
			pins--
		}
		if pins > 0 {
			return errcode.ObjectReplicaBusy
		}
	}
	return errcode.OK
}

// silent reports whether one of the clients with whom an object lies is.
func silent(sh *object.Shard, o *object.Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Memory.Seg().Suspended() {
			return true
		}
	}
	return false
}

// rewrite starts a write into the buffers an object of the same size has already. The charge
// does not change; until the write ends nobody can read the object. It is not for objects that
// are leased: somebody may be reading those buffers.
func (m *Master) rewrite(k *keeper, sh *object.Shard, o *object.Object, w *write, out []object.ReplicaDescriptor) []object.ReplicaDescriptor {
	replicas := sh.Replicas(o)
	before := m.media(sh, o)
	for i := range replicas {
		replicas[i].Status = object.ReplicaProcessing
	}
	m.moved(k, sh, o, before)
	m.weights.Wrote(sh.GroupID(o), w.now)
	m.dynamic.rewritten(k.name, w.key)
	w.inPlace = true
	sh.RequestPin(o, w.pin)
	o.Begin(w.client, w.now)
	sh.WriteBegan(o)
	w.observe(sh)
	return sh.Describe(out, o, anyReplica)
}
