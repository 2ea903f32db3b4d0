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
	q := &replication{client: id, source: source, token: token}
	if code := m.replicable(k, sh, o, key, q); code != errcode.OK {
		return object.CopyPlan{}, code
	}
	names, code := m.follow(k, sh, o, key, targets, q)
	if code == errcode.OK {
		code = m.placeableTargets(names)
	}
	if code != errcode.OK {
		return object.CopyPlan{}, code
	}
	w, code := m.beginProposed(k, sh, o, names, q)
	return copyPlan(sh, o, w), code
}

// follow takes up the proposal that a copy names, and returns the targets that have no replica yet. The shard is locked
// for writing.
func (m *Master) follow(k *keeper, sh *object.Shard, o *object.Object, key string, targets []string, q *replication) ([]string, errcode.Code) {
	p, ok := m.dynamic.find(k.name, key, o.Ref(), m.clock.Now())
	switch {
	case !ok:
		return nil, errcode.UnavailableInStatus
	case p.Proposal != q.token:
		return nil, errcode.InvalidVersion
	case q.source != p.source || len(targets) != 1 || targets[0] != p.target:
		return nil, errcode.ObjectHasReplicationTask
	case q.client != p.owner && !q.own:
		return nil, errcode.IllegalClient
	}
	m.dynamic.drop(p.name) // its copy begins now, or can't
	names := missing(sh, o, targets)
	if len(names) == 0 {
		return nil, errcode.ObjectAlreadyExists
	}
	return names, errcode.OK
}

// beginProposed begins a copy whose proposal has been taken up.
func (m *Master) beginProposed(k *keeper, sh *object.Shard, o *object.Object, targets []string, q *replication) (*object.Work, errcode.Code) {
	w, code := m.beginReplication(k, sh, o, targets, q)
	if code == errcode.OK {
		m.dynamic.begun.Add(1)
	}
	return w, code
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
