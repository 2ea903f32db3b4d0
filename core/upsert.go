package core

import (
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
		canceled := false
		if old != nil {
			code := errcode.OK
			if canceled, code = m.giveWay(k, sh, old); code != errcode.OK {
				sh.Unlock()
				return out, code
			}
		}
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
			leased := old.Leased(w.now)
			if leased && !m.release0313() && !onlyInMemory(sh, old) {
				sh.Unlock()
				return out, errcode.ObjectHasLease
			}
			if old.Size == w.size && !leased && sh.InMemory(old) {
				out, code := m.rewrite(k, sh, old, w, out)
				sh.Unlock()
				return out, code
			}
		}
		var spare object.Ref
		if old != nil {
			spare = old.Ref()
		}
		out, deficit, code := m.admit(k, sh, h, w, old, out)
		if code != errcode.OK && canceled && m.tier.writesQueue {
			m.queueOffload(k, sh, old) // the old value stays, and was to be written to disk
		}
		sh.Unlock()
		if code == errcode.OK || !m.makeRoom(k, w, deficit, code, spare) {
			return out, code
		}
	}
}

// giveWay says why what goes on with an object forbids to overwrite it. An offload that no client has begun
// doesn't: it is taken back. The shard is locked for writing.
func (m *Master) giveWay(k *keeper, sh *object.Shard, o *object.Object) (canceled bool, _ errcode.Code) {
	if sh.Work(o, object.SlotReplication) != nil || sh.Work(o, object.SlotPromotion) != nil {
		return false, errcode.ObjectHasReplicationTask
	}
	if sh.Work(o, object.SlotOffload) == nil {
		return false, errcode.OK
	}
	if !m.cancelOffload(k, sh, o) {
		return false, errcode.ObjectHasReplicationTask
	}
	return true, errcode.OK
}

// onlyInMemory reports whether an object has replicas nowhere else.
func onlyInMemory(sh *object.Shard, o *object.Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Kind != object.KindMemory {
			return false
		}
	}
	return true
}

// busy says why a complete object can't be overwritten now.
func busy(sh *object.Shard, o *object.Object) errcode.Code {
	if sh.Work(o, object.SlotReplication) != nil || sh.Work(o, object.SlotPromotion) != nil {
		return errcode.ObjectHasReplicationTask
	}
	for _, r := range sh.Replicas(o) {
		if r.Pins > 0 {
			return errcode.ObjectReplicaBusy
		}
	}
	return errcode.OK
}

// rewrite starts a write into the buffers an object of the same size has already. The charge
// does not change; until the write ends nobody can read the object. It is not for objects that
// are leased: somebody may be reading those buffers.
func (m *Master) rewrite(k *keeper, sh *object.Shard, o *object.Object, w *write, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	replicas := sh.Replicas(o)
	for i := range replicas {
		if replicas[i].Memory.Seg().Suspended() {
			return out, errcode.UnavailableInStatus
		}
	}
	before := m.media(sh, o)
	for i := range replicas {
		replicas[i].Status = object.ReplicaProcessing
	}
	m.moved(k, sh, o, before)
	m.weights.Wrote(sh.GroupID(o), w.now)
	m.dynamic.rewritten(k.name, w.key)
	sh.RequestPin(o, w.pin)
	o.Begin(w.client, w.now)
	sh.WriteBegan(o)
	w.observe(sh)
	return sh.Describe(out, o, anyReplica), errcode.OK
}
