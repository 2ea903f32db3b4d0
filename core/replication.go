package core

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// DynamicCopyStart is CopyStart of a copy that the master has proposed; with the zero Proposal it is
// CopyStart. It answers TenantNotRegistered, UnavailableInStatus for a client that is not known or
// is silent, ObjectNotFound, ObjectHasReplicationTask while a copy or move is under way,
// UnavailableInStatus when nothing is proposed, or was too long ago, InvalidVersion for another
// proposal, ObjectHasReplicationTask for another source or target, IllegalClient for a client that doesn't
// own the source, ObjectAlreadyExists when the target has a replica by now, and what CopyStart does. From
// ObjectAlreadyExists on the proposal is over.
func (m *Master) DynamicCopyStart(id segment.UUID, tenantName, key, source string, targets []string, token Proposal) (object.CopyPlan, errcode.Code) {
	if token.Lease.IsZero() {
		return m.CopyStart(id, tenantName, key, source, targets)
	}
	k, code := m.copier(tenantName, id)
	if code != errcode.OK {
		return object.CopyPlan{}, code
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	switch {
	case o == nil:
		return object.CopyPlan{}, errcode.ObjectNotFound
	case sh.Work(o, object.SlotReplication) != nil:
		return object.CopyPlan{}, errcode.ObjectHasReplicationTask
	}
	p, ok := m.dynamic.find(k.name, key, o.Ref(), m.clock.Now())
	switch {
	case !ok:
		return object.CopyPlan{}, errcode.UnavailableInStatus
	case p.Proposal != token:
		return object.CopyPlan{}, errcode.InvalidVersion
	case source != p.source || len(targets) != 1 || targets[0] != p.target:
		return object.CopyPlan{}, errcode.ObjectHasReplicationTask
	case id != p.owner:
		return object.CopyPlan{}, errcode.IllegalClient
	}
	m.dynamic.drop(p.name) // its copy begins now, or can't
	names := missing(sh, o, targets)
	if len(names) == 0 {
		return object.CopyPlan{}, errcode.ObjectAlreadyExists
	}
	if code := m.placeableTargets(names); code != errcode.OK {
		return object.CopyPlan{}, code
	}
	plan, code := m.beginReplication(k, sh, o, names, &replication{client: id, source: source, token: token})
	if code == errcode.OK {
		m.dynamic.begun.Add(1)
	}
	return plan, code
}

// DynamicCopyEnd is CopyEnd of a copy that the master has proposed. It answers InvalidVersion for
// another one.
func (m *Master) DynamicCopyEnd(id segment.UUID, tenantName, key string, token Proposal) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id, token: token}, m.completeReplication)
}

// DynamicCopyRevoke is CopyRevoke of a copy that the master has proposed. It answers InvalidVersion for
// another one.
func (m *Master) DynamicCopyRevoke(id segment.UUID, tenantName, key string, token Proposal) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id, token: token}, m.revokeReplication)
}

// replicationEnded counts a copy or move that has ended.
func (m *Master) replicationEnded(w *object.Work, ok bool) {
	c := &m.counters.replications
	switch {
	case w.Move && ok:
		c.moved.Add(1)
	case ok:
		c.copied.Add(1)
	default:
		c.failed.Add(1)
	}
	if w.Lease.IsZero() || m.dynamic == nil {
		return
	}
	if ok {
		m.dynamic.completed.Add(1)
	} else {
		m.dynamic.failed.Add(1)
	}
}

// replicationLost is told of a copy or move that has timed out or whose object has gone.
func (m *Master) replicationLost(_ *keeper, _ *object.Shard, _ *object.Object, w *object.Work) {
	m.replicationEnded(w, false)
}
