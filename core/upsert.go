package core

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// upsert runs a checked UpsertStart.
func (m *Master) upsert(k *keeper, w *write, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	for {
		sh := k.space.Shard(w.key)
		sh.Lock()
		if k.acct.Closed() {
			sh.Unlock()
			return out, errcode.TenantNotRegistered
		}
		old := m.current(k, sh, w.key)
		if old != nil && w.grouped && w.group != old.GroupID() {
			sh.Unlock()
			return out, errcode.InvalidParams
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
			if code := busy(old); code != errcode.OK {
				sh.Unlock()
				return out, code
			}
			if old.Size == w.size {
				out, code := m.rewrite(k, sh, old, w, out)
				sh.Unlock()
				return out, code
			}
		}
		out, deficit, code := m.admit(k, sh, w, old, out)
		sh.Unlock()
		if code == errcode.OK || !m.makeRoom(k, w, deficit, code, old) {
			return out, code
		}
	}
}

// busy says why a complete object can't be overwritten now.
func busy(o *object.Object) errcode.Code {
	for i := range o.Replicas {
		if o.Replicas[i].Pins > 0 {
			return errcode.ObjectReplicaBusy
		}
	}
	return errcode.OK
}

// rewrite starts a write into the buffers an object of the same size has already. The charge
// does not change; until the write ends nobody can read the object.
func (m *Master) rewrite(k *keeper, sh *object.Shard, o *object.Object, w *write, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	for i := range o.Replicas {
		if o.Replicas[i].Memory.Seg.Suspended() {
			return out, errcode.UnavailableInStatus
		}
	}
	for i := range o.Replicas {
		o.Replicas[i].Status = object.ReplicaProcessing
	}
	o.RequestPin(w.pin)
	o.Begin(w.client, m.clock.Now())
	k.space.Writes.Began(o)
	m.counters.valueSizes.observe(w.size)
	return o.Describe(out, anyReplica), errcode.OK
}
