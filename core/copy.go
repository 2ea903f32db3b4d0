package core

import (
	"math/bits"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// replication is what a call about a copy or move says: who makes it, from which segment, and which
// proposal of the master it follows, if any.
type replication struct {
	client segment.UUID
	source string
	move   bool
	token  Proposal
	own    bool // the master carries the bytes itself
}

// Proposal names a copy that the master itself wants: the calls about it have to give the same lease
// and epoch as its task. The zero Proposal is a copy that somebody else wants.
type Proposal struct {
	Lease segment.UUID
	Epoch uint64
}

// CopyStart begins to copy an object from the segment called source to others: it charges the tenant
// and takes memory on each target that has no replica yet; the client then copies and calls CopyEnd
// or CopyRevoke. The source is not evicted meanwhile.
//
// It answers TenantNotRegistered, UnavailableInStatus for a client that is not known or is silent, InvalidParams for
// more than 1024 targets, SegmentNotFound and UnavailableInStatus about a target, ObjectNotFound, ObjectHasReplicationTask while
// another copy or move is under way or the master is about to make one, ReplicaNotFound when the source
// has no complete replica and UnavailableInStatus when its client is silent, TenantQuotaExceeded, and
// NoAvailableHandle when a target is full. Then nothing has changed.
func (m *Master) CopyStart(id segment.UUID, tenantName, key, source string, targets []string) (object.CopyPlan, errcode.Code) {
	k, code := m.copier(tenantName, id)
	if code != errcode.OK {
		return object.CopyPlan{}, code
	}
	if len(targets) > mostTargets {
		return object.CopyPlan{}, errcode.InvalidParams
	}
	if code := m.placeableTargets(targets); code != errcode.OK {
		return object.CopyPlan{}, code
	}
	return m.startReplication(k, key, targets, &replication{client: id, source: source})
}

// mostTargets is how many targets one copy may have. The replicas of an object are gone through one by one, with
// others waiting.
const mostTargets = 1024

// copier finds the tenant of a copy that a client is to begin.
func (m *Master) copier(tenantName string, id segment.UUID) (*keeper, errcode.Code) {
	k, code := m.writer(tenantName)
	if code == errcode.OK {
		code = m.mayBegin(id)
	}
	return k, code
}

// MoveStart begins to move an object from one segment to another, as CopyStart does. Where the
// target has a replica already, none is made and nothing is charged. It answers InvalidParams when both
// are the same, and otherwise what CopyStart does, TenantNotRegistered last; a copy that the master is
// about to make is no obstacle.
func (m *Master) MoveStart(id segment.UUID, tenantName, key, source, target string) (object.MovePlan, errcode.Code) {
	code := m.named(tenantName)
	if code == errcode.OK {
		code = m.mayBegin(id)
	}
	if code == errcode.OK && source == target {
		code = errcode.InvalidParams
	}
	if code == errcode.OK {
		code = m.placeableTargets([]string{target})
	}
	if code != errcode.OK {
		return object.MovePlan{}, code
	}
	k, code := m.request(tenantName)
	if code == errcode.OK && k == nil {
		code = errcode.ObjectNotFound
	}
	if code != errcode.OK {
		return object.MovePlan{}, code
	}
	plan, code := m.startReplication(k, key, []string{target}, &replication{client: id, source: source, move: true})
	move := object.MovePlan{Source: plan.Source}
	if len(plan.Targets) > 0 {
		move.Target = &plan.Targets[0]
	}
	return move, code
}

// mayBegin says whether a client may begin a copy or move: it has lent something and is not silent.
// Release 0.3.13 doesn't ask.
func (m *Master) mayBegin(id segment.UUID) errcode.Code {
	if m.clients.State(id) != client.Active && !m.release0313() {
		return errcode.UnavailableInStatus
	}
	return errcode.OK
}

// known says whether a client may speak about what it has begun: it has lent something, and is not gone.
func (m *Master) known(id segment.UUID) errcode.Code {
	if m.clients.State(id) == client.Offline && !m.release0313() {
		return errcode.UnavailableInStatus
	}
	return errcode.OK
}

// gated finds the tenant of a call about an object, which has to be one with objects, of a client that gate
// has to let pass.
func (m *Master) gated(tenantName string, id segment.UUID, gate func(segment.UUID) errcode.Code) (*keeper, errcode.Code) {
	k, code := m.request(tenantName)
	if code == errcode.OK {
		code = gate(id)
	}
	if code == errcode.OK && k == nil {
		code = errcode.ObjectNotFound
	}
	return k, code
}

// placeableTargets says what is wrong with the names of segments that something is to be written to.
func (m *Master) placeableTargets(names []string) errcode.Code {
	for _, name := range names {
		seg := m.pool.ByName(name)
		if seg == nil {
			return errcode.SegmentNotFound
		}
		if seg.Status() != segment.StatusOK || seg.Suspended() {
			return errcode.UnavailableInStatus
		}
	}
	return errcode.OK
}

// startReplication begins a copy or move whose targets are mounted.
func (m *Master) startReplication(k *keeper, key string, targets []string, q *replication) (object.CopyPlan, errcode.Code) {
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if code := m.replicable(k, sh, o, key, q); code != errcode.OK {
		return object.CopyPlan{}, code
	}
	w, code := m.beginReplication(k, sh, o, missing(sh, o, targets), q)
	return copyPlan(sh, o, w), code
}

// replicable says why an object, which is nil if it isn't there, can't be copied or moved now.
func (m *Master) replicable(k *keeper, sh *object.Shard, o *object.Object, key string, q *replication) errcode.Code {
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case sh.Work(o, object.SlotReplication) != nil,
		!q.move && q.token.Lease.IsZero() && m.dynamic.reserved(k.name, key, o.Ref(), m.clock.Now()):
		return errcode.ObjectHasReplicationTask
	}
	return errcode.OK
}

// copyPlan is what a client is told of a copy or move that has begun; nil has not.
func copyPlan(sh *object.Shard, o *object.Object, w *object.Work) object.CopyPlan {
	var p object.CopyPlan
	if w == nil {
		return p
	}
	p.Source = sh.DescribeOne(o, sh.ByID(o, w.Sources[0]))
	for _, id := range w.Targets {
		p.Targets = append(p.Targets, sh.DescribeOne(o, sh.ByID(o, id)))
	}
	return p
}

// missing returns the targets that have no replica of an object.
func missing(sh *object.Shard, o *object.Object, targets []string) []string {
	var names []string
	for _, name := range targets {
		if replicaOn(sh, o, name, anyReplica) == nil {
			names = append(names, name)
		}
	}
	return names
}

// beginReplication begins a copy or move to the targets, which have no replica yet. Nothing else
// goes on with the object. The shard is locked for writing.
func (m *Master) beginReplication(k *keeper, sh *object.Shard, o *object.Object, targets []string, q *replication) (*object.Work, errcode.Code) {
	sources, code := sources(sh, o, q)
	if code != errcode.OK {
		return nil, code
	}
	allocs, charge, code := m.chargeTargets(k, sh, o.Size, targets)
	if code != errcode.OK {
		return nil, code
	}
	w := &object.Work{
		Slot: object.SlotReplication, Move: q.move, Client: q.client, Started: m.clock.Now(), Carried: q.own,
		Sources: sources, Charge: charge, Lease: q.token.Lease, Epoch: q.token.Epoch,
	}
	for _, a := range allocs {
		r := object.Replica{ID: m.replicaID.Add(1), Memory: a, Status: object.ReplicaProcessing, Staged: true}
		w.Targets = append(w.Targets, r.ID)
		sh.Add(o, r)
	}
	sh.BeginWork(o, w)
	return w, errcode.OK
}

// sources returns the ids of the replicas that are read from. A client reads from the one it names. The master
// may read from any that is complete, even of a client that is silent; a move takes the first one away.
func sources(sh *object.Shard, o *object.Object, q *replication) ([]uint64, errcode.Code) {
	named := replicaOn(sh, o, q.source, isComplete)
	switch {
	case !q.own && named != nil && !named.Readable():
		return nil, errcode.UnavailableInStatus
	case !q.own && named != nil:
		return []uint64{named.ID}, errcode.OK
	case !q.own, named == nil && q.move:
		return nil, errcode.ReplicaNotFound
	}
	var ids []uint64
	if named != nil {
		ids = append(ids, named.ID)
	}
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r != named && r.Kind == object.KindMemory && isComplete(r) && alive(r) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errcode.ReplicaNotFound
	}
	return ids, errcode.OK
}

// chargeTargets charges and takes memory of size bytes on each segment; on anything but OK nothing has
// changed.
func (m *Master) chargeTargets(k *keeper, sh *object.Shard, size uint64, names []string) (allocs []segment.Allocation, charge uint64, _ errcode.Code) {
	hi, charge := bits.Mul64(size, uint64(len(names)))
	if hi != 0 || charge > tenant.MaxBytes {
		return nil, 0, errcode.InvalidParams
	}
	switch reason, _ := k.account(sh).ChargeWithin(charge, 0); reason {
	case tenant.NotRegistered:
		return nil, 0, errcode.TenantNotRegistered
	case tenant.QuotaExceeded:
		k.acct.CountRejected()
		return nil, 0, errcode.TenantQuotaExceeded
	}
	for _, name := range names {
		a, err := m.pool.AllocateOn(name, size)
		if err != nil {
			segment.FreeAll(allocs)
			k.account(sh).Release(charge)
			return nil, 0, allocationCode(err)
		}
		allocs = append(allocs, a)
	}
	return allocs, charge, errcode.OK
}

// replicaOn returns the first replica that matches in the memory of the segment of that name, or nil.
func replicaOn(sh *object.Shard, o *object.Object, name string, match func(*object.Replica) bool) *object.Replica {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory && r.Memory.Seg().Info.Name == name && match(r) {
			return r
		}
	}
	return nil
}

// CopyEnd completes a copy of the client: what it has written can be read from now on. It answers
// InvalidParams for an invalid tenant, UnavailableInStatus for a client that is not known, ObjectNotFound,
// ObjectNoReplicationTask, IllegalClient when somebody else copies, InvalidParams when it is a move,
// InvalidVersion when the master wanted it, and ReplicaIsGone when the source, or one of the targets, was lost meanwhile; of the
// targets those that are left are kept if the source is there.
func (m *Master) CopyEnd(id segment.UUID, tenantName, key string) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id}, m.completeReplication)
}

// CopyRevoke takes a copy of the client back. Codes are those of CopyEnd.
func (m *Master) CopyRevoke(id segment.UUID, tenantName, key string) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id}, m.revokeReplication)
}

// MoveEnd completes a move of the client: the target can be read and the source can't from now on.
// The source's memory is kept for the release timeout, since somebody may be reading it. Codes are
// those of CopyEnd; when the source or the target was lost meanwhile, what is left stays as it was.
func (m *Master) MoveEnd(id segment.UUID, tenantName, key string) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id, move: true}, m.completeReplication)
}

// MoveRevoke takes a move of the client back. Codes are those of MoveEnd.
func (m *Master) MoveRevoke(id segment.UUID, tenantName, key string) errcode.Code {
	return m.endReplication(tenantName, key, &replication{client: id, move: true}, m.revokeReplication)
}

// endReplication ends what q says, if it is what goes on with the object, in the given way.
func (m *Master) endReplication(tenantName, key string, q *replication, end func(*keeper, *object.Shard, *object.Object, *object.Work) errcode.Code) errcode.Code {
	k, code := m.gated(tenantName, q.client, m.known)
	if code != errcode.OK {
		return code
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if o == nil {
		return errcode.ObjectNotFound
	}
	w := sh.Work(o, object.SlotReplication)
	switch {
	case w == nil:
		return errcode.ObjectNoReplicationTask
	case w.Client != q.client:
		return errcode.IllegalClient
	case w.Move != q.move:
		return errcode.InvalidParams
	case w.Lease != q.token.Lease || w.Epoch != q.token.Epoch:
		return errcode.InvalidVersion
	}
	code = end(k, sh, o, w)
	m.settle(k, sh, o)
	m.enqueue(k, sh, o, m.clock.Now())
	return code
}

func (m *Master) revokeReplication(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) errcode.Code {
	m.finishWork(k, sh, o, object.SlotReplication, noReplica, free)
	m.replicationEnded(w, false)
	return errcode.OK
}

// completeReplication ends a copy or move whose client has written what it was to.
func (m *Master) completeReplication(k *keeper, sh *object.Shard, o *object.Object, w *object.Work) errcode.Code {
	good := alive
	if !sourceThere(sh, o, w) {
		good = noReplica
	}
	_, kept := m.finishWork(k, sh, o, object.SlotReplication, good, free)
	ok := kept == len(w.Targets) && sourceThere(sh, o, w)
	if w.Move { // where the target had a replica before, that one may have been lost meanwhile
		ok = ok && elsewhere(sh, o, w.Sources[0])
	}
	m.replicationEnded(w, ok)
	if !ok {
		return errcode.ReplicaIsGone
	}
	if w.Move {
		m.takeSource(sh, o, w)
	}
	return errcode.OK
}

// takeSource drops what a move has moved away. Its memory is kept for the release timeout, since somebody may be
// reading it.
func (m *Master) takeSource(sh *object.Shard, o *object.Object, w *object.Work) {
	park := m.park(m.clock.Now() + m.cfg.PutReleaseTimeout.Nanoseconds())
	if sh.Drop(o, func(r *object.Replica) bool { return r.ID == w.Sources[0] }, park) > 0 {
		m.counters.discards.Add(1)
	}
}

func alive(r *object.Replica) bool { return !isGone(r) }

// sourceThere reports whether what a copy or move reads from is still there.
func sourceThere(sh *object.Shard, o *object.Object, w *object.Work) bool {
	return !slices.ContainsFunc(w.Sources, func(id uint64) bool {
		r := sh.ByID(o, id)
		return r == nil || isGone(r)
	})
}

// elsewhere reports whether the object has a complete replica in memory besides one.
func elsewhere(sh *object.Shard, o *object.Object, id uint64) bool {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.ID != id && r.Kind == object.KindMemory && isComplete(r) && alive(r) {
			return true
		}
	}
	return false
}
