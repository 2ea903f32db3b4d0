package core

import (
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// promotionCounters count what became of promotions, and why reads began none.
type promotionCounters struct {
	admitted, completed, bytes, expired, failed, canceled atomic.Uint64
	rare, full, many                                      atomic.Uint64 // read too rarely; memory too full; too many under way
	retried, retryRefused, gaveUp                         atomic.Uint64
}

// attempt is what became of one to begin a promotion.
type attempt int

const (
	promoted attempt = iota
	pointless
	tooFull // worth trying again, as is the next one
	tooMany
)

// promoteOnHit considers bringing an object that was read back to memory. It is called without
// locks, if promotion is on.
func (m *Master) promoteOnHit(k *keeper, key string, out *object.ReplicaList) {
	if m.tier.sketch == nil || !onlyOnDisk(out.Replicas) {
		return
	}
	if m.tier.sketch.Read(k.name, key) < m.cfg.Promotion.Admission {
		m.tier.promoted.rare.Add(1)
		return
	}
	if v := m.promote(k, key, 0); v == tooFull || v == tooMany {
		m.tier.candidates.Record(k.name, key, 0, m.clock.Now())
	}
}

func onlyOnDisk(all []object.ReplicaDescriptor) bool {
	disk := false
	for i := range all {
		switch all[i].Location.Index {
		case object.LocationMemory:
			return false
		case object.LocationLocalDisk:
			disk = true
		}
	}
	return disk
}

// promote asks the client on whose disk an object lies to bring it back to memory, if it lies in
// no memory and memory is not full.
func (m *Master) promote(k *keeper, key string, failures int) attempt {
	if m.usedRatio() >= m.poolMark.High {
		m.tier.promoted.full.Add(1)
		return tooFull
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if o == nil || o.InFlight() || sh.Work(o, object.SlotPromotion) != nil || hasKind(sh, o, object.KindMemory) {
		return pointless
	}
	source := localReplica(sh, o, (*object.Replica).Readable)
	if source == nil {
		return pointless
	}
	if m.tier.promotions.Load() >= int64(m.cfg.Promotion.QueueLimit) {
		m.tier.promoted.many.Add(1)
		return tooMany
	}
	id := source.Memory.Seg().Client
	d := m.tier.disks.Find(id)
	if d == nil || !d.Promote(tier.Item{Tenant: k.name, Key: sh.KeyCopy(o), Size: int64(source.Memory.Size)}) {
		return pointless
	}
	m.tier.candidates.Drop(k.name, key)
	m.beginPromotion(sh, o, source, &object.Work{Client: id, Failures: failures})
	m.tier.promoted.admitted.Add(1)
	return promoted
}

func (m *Master) beginPromotion(sh *object.Shard, o *object.Object, source *object.Replica, w *object.Work) {
	w.Slot, w.Started, w.Sources, w.Size = object.SlotPromotion, m.clock.Now(), []uint64{source.ID}, source.Memory.Size
	sh.BeginWork(o, w)
	m.tier.promotions.Add(1)
}

// hasKind reports whether an object has a replica of a kind, in whatever state.
func hasKind(sh *object.Shard, o *object.Object, kind object.Kind) bool {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Kind == kind {
			return true
		}
	}
	return false
}

// localReplica returns the first replica on a client's own disk that matches, or nil.
func localReplica(sh *object.Shard, o *object.Object, match func(*object.Replica) bool) *object.Replica {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindLocalDisk && isComplete(r) && match(r) {
			return r
		}
	}
	return nil
}

// How many promotions that could not be begun are tried again at a time.
const retryBite = 128

// retryPromotions tries those again that are due.
func (m *Master) retryPromotions() {
	now := m.clock.Now()
	for _, c := range m.tier.candidates.Due(now, retryBite) {
		v := pointless
		if k, _ := m.request(c.Tenant); k != nil {
			v = m.promote(k, c.Key, c.Failures)
		}
		switch v {
		case promoted:
			m.tier.promoted.retried.Add(1)
		case pointless:
			m.tier.candidates.Drop(c.Tenant, c.Key)
		default:
			m.tier.promoted.retryRefused.Add(1)
			m.tier.candidates.Again(c.Tenant, c.Key, now)
		}
	}
}

// PromotionHeartbeat returns what a client is to bring back from its disk, a few objects at a time. It answers
// UnavailableInStatus for a client that is unknown or silent, SegmentNotFound for one without a disk.
func (m *Master) PromotionHeartbeat(id segment.UUID) ([]tier.Item, errcode.Code) {
	if code := m.mayBegin(id); code != errcode.OK {
		return nil, code
	}
	d := m.mountedDisk(id)
	if d == nil {
		return nil, errcode.SegmentNotFound
	}
	return d.TakePromotions(m.cfg.Promotion.MaxPerHeartbeat), errcode.OK
}

// RegisterPrefetch begins the promotion of an object that the client is about to bring back from its own
// disk without having been asked. It answers InvalidParams for an invalid tenant and where the object is not on that disk,
// UnavailableInStatus for a client that is unknown or silent, ObjectNotFound, ReplicaIsNotReady while the object
// is being written, PromotionAlreadyExists while a promotion is under way and when there is a
// replica in memory, KeysUltraLimit when too many promotions are.
func (m *Master) RegisterPrefetch(id segment.UUID, tenantName, key string) errcode.Code {
	k, code := m.gated(tenantName, id, m.mayBegin)
	if code != errcode.OK {
		return code
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.InFlight():
		return errcode.ReplicaIsNotReady
	case sh.Work(o, object.SlotPromotion) != nil, hasKind(sh, o, object.KindMemory):
		return errcode.PromotionAlreadyExists
	}
	source := localReplica(sh, o, func(r *object.Replica) bool { return r.Memory.Seg().Client == id })
	switch {
	case source == nil:
		return errcode.InvalidParams
	case m.tier.promotions.Load() >= int64(m.cfg.Promotion.QueueLimit):
		return errcode.KeysUltraLimit
	}
	m.tier.candidates.Drop(k.name, key)
	m.beginPromotion(sh, o, source, &object.Work{Client: id, Own: true})
	return errcode.OK
}

// StartPromotion charges and places the replica in memory that a promotion fills, preferably on the segments
// with the given names. It answers TenantNotRegistered, UnavailableInStatus for a client that is unknown or silent,
// ObjectNotFound, ReplicaIsNotReady when no promotion is under way, the replica has been placed or another is in
// memory already, InvalidParams when another client promotes the object or the size is not that on disk,
// TenantQuotaExceeded, NoAvailableHandle. After the last two the promotion is still under way.
func (m *Master) StartPromotion(id segment.UUID, tenantName, key string, size uint64, preferred []string) (object.ReplicaDescriptor, errcode.Code) {
	var none object.ReplicaDescriptor
	code := m.named(tenantName)
	if code == errcode.OK {
		code = m.mayBegin(id)
	}
	k, _ := m.request(tenantName)
	if code == errcode.OK && k == nil {
		code = errcode.ObjectNotFound
	}
	if code != errcode.OK {
		return none, code
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o, w, code := m.promotion(k, sh, h, key, id)
	switch {
	case code != errcode.OK:
		return none, code
	case o.InFlight():
		return none, errcode.ReplicaIsNotReady
	}
	switch {
	case w.Size != size:
		return none, errcode.InvalidParams
	case len(w.Targets) > 0, hasKind(sh, o, object.KindMemory):
		return none, errcode.ReplicaIsNotReady
	}
	switch reason, _ := k.account(sh).TryCharge(size); reason {
	case tenant.NotRegistered:
		return none, errcode.TenantNotRegistered
	case tenant.QuotaExceeded:
		k.acct.CountRejected()
		wake(m.wakeTenants)
		return none, errcode.TenantQuotaExceeded
	}
	allocs, err := m.pool.Place(&segment.Request{Size: size, Replicas: 1, Preferred: preferred}, nil)
	if err != nil {
		k.account(sh).Release(size)
		return none, allocationCode(err)
	}
	o.Size = size // nothing else counts: the object has no memory
	r := object.Replica{ID: m.replicaID.Add(1), Memory: allocs[0], Status: object.ReplicaProcessing, Staged: true}
	sh.Add(o, r)
	w.Targets, w.Charge, w.Started = []uint64{r.ID}, size, m.clock.Now()
	sh.BeginWork(o, w)
	return sh.DescribeOne(o, &r), errcode.OK
}

// promotion finds the promotion of an object that a client is at: ObjectNotFound, ReplicaIsNotReady without
// one, InvalidParams when another client is. The shard is locked for writing.
func (m *Master) promotion(k *keeper, sh *object.Shard, h object.Hash, key string, id segment.UUID) (*object.Object, *object.Work, errcode.Code) {
	o := m.current(k, sh, h, key)
	if o == nil {
		return nil, nil, errcode.ObjectNotFound
	}
	w := sh.Work(o, object.SlotPromotion)
	switch {
	case w == nil:
		return o, nil, errcode.ReplicaIsNotReady
	case w.Client != id:
		return o, w, errcode.InvalidParams
	}
	return o, w, errcode.OK
}

// EndPromotion takes a client's word that the replica it was given is filled: the object is in memory. It
// answers InvalidParams for an invalid tenant and when another client promotes the object,
// UnavailableInStatus for an unknown client, ObjectNotFound, and ReplicaIsNotReady when no replica was placed or its segment
// has gone.
func (m *Master) EndPromotion(id segment.UUID, tenantName, key string) errcode.Code {
	return m.withPromotion(id, tenantName, key, func(k *keeper, sh *object.Shard, o *object.Object, w *object.Work, code errcode.Code) errcode.Code {
		switch {
		case w == nil || len(w.Targets) == 0:
			return errcode.ReplicaIsNotReady
		case code != errcode.OK:
			return code
		}
		bytes := w.Size
		if m.closePromotion(k, sh, o, func(r *object.Replica) bool { return r.Memory.Seg().Alive() }) == 0 {
			m.tier.promoted.canceled.Add(1)
			return errcode.ReplicaIsNotReady
		}
		m.tier.promoted.completed.Add(1)
		m.tier.promoted.bytes.Add(bytes)
		return errcode.OK
	})
}

// FailPromotion takes a client's word that it could not promote an object. What was placed and charged is
// given back. Unless the client promoted it unasked it is asked again soon, a few times. It answers as EndPromotion
// does, and OK when no promotion is under way.
func (m *Master) FailPromotion(id segment.UUID, tenantName, key string) errcode.Code {
	return m.withPromotion(id, tenantName, key, func(k *keeper, sh *object.Shard, o *object.Object, w *object.Work, code errcode.Code) errcode.Code {
		switch {
		case w == nil:
			return errcode.OK
		case code != errcode.OK:
			return code
		}
		m.closePromotion(k, sh, o, noReplica)
		m.tier.promoted.failed.Add(1)
		switch {
		case w.Own || m.tier.sketch == nil:
		case w.Failures >= tier.CandidateFailures:
			m.tier.promoted.gaveUp.Add(1)
		default:
			m.tier.candidates.Record(k.name, key, w.Failures+1, m.clock.Now())
		}
		return errcode.OK
	})
}

// withPromotion calls f for the end of a promotion, with the shard locked for writing: the work is nil, or code says
// that it is not the client's.
func (m *Master) withPromotion(id segment.UUID, tenantName, key string, f func(*keeper, *object.Shard, *object.Object, *object.Work, errcode.Code) errcode.Code) errcode.Code {
	k, code := m.gated(tenantName, id, m.known)
	if code != errcode.OK {
		return code
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o, w, code := m.promotion(k, sh, h, key, id)
	if o == nil {
		return code
	}
	return f(k, sh, o, w, code)
}

// closePromotion ends the promotion of an object, of which good replicas stay, and returns how many
// those are.
func (m *Master) closePromotion(k *keeper, sh *object.Shard, o *object.Object, good func(*object.Replica) bool) int {
	w, kept := m.finishWork(k, sh, o, object.SlotPromotion, good, free)
	m.tierEnded(k, sh, o, w)
	m.settle(k, sh, o)
	m.enqueue(k, sh, o, m.clock.Now())
	return kept
}
