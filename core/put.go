package core

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// write is one PutStart or UpsertStart as it goes through admission.
type write struct {
	client    segment.UUID
	key       string // may alias the request's frame
	size      uint64
	config    *object.ReplicateConfig
	group     string
	grouped   bool // the request names a group, if only ""
	affinity  string
	affine    bool // the request names an affinity, if only ""
	charge    uint64
	pin       object.PinRequest
	place     segment.Request
	attempts  int                   // how often it has made room within its quota
	waits     int                   // how often it has waited for memory
	sizes     sizeTally             // of the values written
	stripe    int                   // where they are counted
	admitted  int                   // keys that were given memory since assist was last called
	ids       uint64                // replica ids reserved for the key and not used yet
	nextID    uint64                // the first of them
	firstID   uint64                // of those reserved for a batch; zero without
	batch     bool                  // one of several of a request
	inPlace   bool                  // the object was written into the buffers it has
	followed  bool                  // config names the node of the batch's first object
	room      [4]segment.Allocation // scratch
	now       int64                 // when the write begins
	noDevice  bool                  // what is lacking is room on devices
	placed    *segment.Allocation   // memory taken for it already, nil or zero if none
	waitUntil int64                 // how long the request may wait for memory; zero until it has to
}

// maxAttempts bounds how often a write makes room within its tenant's quota and finds it taken
// by somebody else.
const maxAttempts = 32

// PutStart admits a write of size bytes under a key that must not exist yet, places its
// replicas and appends them to out. It answers InvalidParams for a request that makes no
// sense, TenantNotRegistered, ObjectAlreadyExists, TenantQuotaExceeded, or NoAvailableHandle
// when memory is full.
func (m *Master) PutStart(client segment.UUID, tenantName, key string, size uint64, config *object.ReplicateConfig, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	return m.startOne(client, tenantName, key, size, config, out, m.put)
}

// UpsertStart admits a write of size bytes under a key that may exist. An object of the same
// size is written in place unless it is leased; any other is replaced, and stays as it is when
// the write is refused. Codes are those of PutStart, and InvalidParams when the request names
// another group, ObjectReplicaBusy while a copy reads the object, UnavailableInStatus when it
// lies with a suspected client.
func (m *Master) UpsertStart(client segment.UUID, tenantName, key string, size uint64, config *object.ReplicateConfig, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	return m.startOne(client, tenantName, key, size, config, out, m.upsert)
}

// starter is put or upsert.
type starter func(*keeper, *write, []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code)

func (m *Master) startOne(client segment.UUID, tenantName, key string, size uint64, config *object.ReplicateConfig, out []object.ReplicaDescriptor, start starter) ([]object.ReplicaDescriptor, errcode.Code) {
	if code := m.named(tenantName); code != errcode.OK {
		return out, code
	}
	if !perKey(config, 1) {
		return out, errcode.InvalidParams
	}
	m.clients.RememberHost(client, config.HostID)
	w := newWrite(client, config)
	defer w.recycle()
	out, code := m.startKey(tenantName, w, key, size, 0, out, start)
	m.finish(w)
	return out, code
}

var writes = sync.Pool{New: func() any { return new(write) }}

func newWrite(client segment.UUID, config *object.ReplicateConfig) *write {
	w := writes.Get().(*write)
	*w = write{client: client, config: config}
	return w
}

// recycle lets another request use w; nothing of this one is kept alive by it.
func (w *write) recycle() {
	*w = write{}
	writes.Put(w)
}

// observe counts the size of a value written to a shard.
func (w *write) observe(sh *object.Shard) {
	w.sizes.observe(w.size)
	w.stripe = sh.Number() % stripes
}

// finish counts what a request has written, and makes room for as much where that is needed. It
// is called without locks.
func (m *Master) finish(w *write) {
	m.counters.valueSizes[w.stripe].add(&w.sizes)
	w.sizes = sizeTally{}
	m.assist(w.admitted)
	w.admitted = 0
}

// maxTogether is for how many replicas of each key a batch reserves ids.
const maxTogether = 4

// reserve makes w the writes of a batch and takes their ids from the master's counter at once. They are in the order of its
// keys, whatever order those are written in; what is not used stays unused.
func (w *write) reserve(m *Master, keys int) {
	w.batch = true
	if n := w.config.ReplicaNum; n <= maxTogether {
		n *= uint64(keys)
		w.firstID = m.replicaID.Add(n) - n + 1
	}
}

// nextReplicaID returns a fresh id, of those reserved for the key if there are any.
func (m *Master) nextReplicaID(w *write) uint64 {
	if w.ids == 0 {
		return m.replicaID.Add(1)
	}
	w.ids--
	w.nextID++
	return w.nextID - 1
}

// startKey runs one key of a request through the checks that every write passes.
func (m *Master) startKey(tenantName string, w *write, key string, size uint64, index int, out []object.ReplicaDescriptor, start starter) ([]object.ReplicaDescriptor, errcode.Code) {
	w.set(key, size, index)
	if code := m.check(tenantName, w); code != errcode.OK {
		return out, code
	}
	k, code := m.writer(tenantName)
	if code != errcode.OK {
		return out, code
	}
	return start(k, w, out)
}

// set turns to the key with that index in the request.
func (w *write) set(key string, size uint64, index int) {
	w.key, w.size, w.attempts, w.waits, w.noDevice, w.inPlace = key, size, 0, 0, false, false
	w.group, w.grouped = "", false
	if g := w.config.GroupIDs; g != nil {
		w.group, w.grouped = (*g)[index], true
	}
	w.affinity, w.affine = "", false
	if ids := w.config.ResidencyAffinityIDs; ids != nil {
		w.affinity, w.affine = (*ids)[index], true
	}
	if w.firstID != 0 {
		w.ids = w.config.ReplicaNum
		w.nextID = w.firstID + uint64(index)*w.ids
	}
}

// perKey reports whether the fields that hold one entry per key hold n of them.
func perKey(c *object.ReplicateConfig, n int) bool {
	for _, list := range []*[]string{c.GroupIDs, c.SessionIDs, c.ResidencyAffinityIDs} {
		if list != nil && len(*list) != n {
			return false
		}
	}
	return true
}

// check validates a write and completes it: what it charges, pins and asks the pool for.
func (m *Master) check(tenantName string, w *write) errcode.Code {
	c := w.config
	switch {
	case c.ReplicaNum == 0 && c.NoFReplicaNum == 0 && c.DFSReplicaNum == 0,
		w.key == "", w.size == 0,
		c.DFSReplicaNum > 1,
		c.DFSReplicaNum > 0 && m.cfg.MultiTenant && tenantName != tenant.Default:
		return errcode.InvalidParams
	case c.DFSReplicaNum > 0:
		return errcode.DFSServiceUnavailable
	case c.NoFReplicaNum > 0 && (c.PreferAllocInSameNode || !m.cfg.NoF.Enabled):
		return errcode.InvalidParams
	}
	pin, code := m.pinRequest(c.SoftPinAction, c.SoftPinTTLMs)
	if code != errcode.OK {
		return code
	}
	w.pin = pin
	if m.cfg.CXL.Enabled && w.size > largestInCXL {
		return errcode.InvalidParams
	}
	hi, charge := bits.Mul64(w.size, c.ReplicaNum)
	if hi != 0 {
		charge = math.MaxUint64
	}
	w.charge = charge // more than any quota is refused in admit, after what else is wrong
	w.place = segment.Request{
		Size:             w.size,
		Replicas:         c.ReplicaNum,
		Preferred:        c.PreferredSegments,
		PreferredSegment: c.PreferredSegment,
		SameNode:         c.PreferAllocInSameNode,
	}
	if m.localFirst || c.PreferAllocInSameNode {
		w.place.HostID = c.HostID
		if w.place.HostID == "" {
			w.place.HostID = m.clients.Host(w.client)
		}
		w.place.KeyHash = maphash.String(m.keySeed, w.key)
	}
	return errcode.OK
}

// pinRequest validates a soft pin; the lifetime is nanoseconds.
func (m *Master) pinRequest(action object.SoftPinAction, ttlMs *uint64) (object.PinRequest, errcode.Code) {
	p := object.PinRequest{Action: action}
	switch action {
	case object.SoftPinPreserve, object.SoftPinDisable:
		if ttlMs != nil {
			return p, errcode.InvalidParams
		}
	case object.SoftPinEnable:
		p.TTL = m.cfg.SoftPinTTL.Nanoseconds()
		if ttlMs != nil {
			if *ttlMs > uint64(m.cfg.MaxSoftPinTTL.Milliseconds()) {
				return p, errcode.InvalidParams
			}
			p.TTL = int64(*ttlMs) * 1e6
		}
	default:
		return p, errcode.InvalidParams
	}
	return p, errcode.OK
}

// put runs a checked PutStart.
func (m *Master) put(k *keeper, w *write, out []object.ReplicaDescriptor) ([]object.ReplicaDescriptor, errcode.Code) {
	sh, h := k.space.Locate(w.key)
	for {
		w.now = m.clock.Now()
		sh.Lock()
		out, deficit, code := m.enter(k, sh, h, w, out)
		sh.Unlock()
		if code == errcode.OK || !m.makeRoom(k, w, deficit, code, object.Ref{}) {
			return out, code
		}
	}
}

// enter makes an object of a write if its key is free. The shard is locked for writing. It makes no
// room: after TenantQuotaExceeded and NoAvailableHandle nothing has changed.
func (m *Master) enter(k *keeper, sh *object.Shard, h object.Hash, w *write, out []object.ReplicaDescriptor) (_ []object.ReplicaDescriptor, deficit uint64, _ errcode.Code) {
	if k.acct.Closed() {
		return out, 0, errcode.TenantNotRegistered
	}
	if w.group != "" && m.sealed(sh, nil, w.group) {
		return out, 0, errcode.UnavailableInStatus
	}
	if o := m.current(k, sh, h, w.key); o != nil && !m.abandoned(k, sh, o) {
		if !m.cfg.Release0313 && sh.Readable(o) {
			sh.Lease(o, w.now, m.cfg.LeaseTTL.Nanoseconds()) // who finds it written already is going to read it
		}
		if w.batch {
			m.counters.batchAlreadyExists.Add(1)
		} else {
			m.counters.alreadyExists.Add(1)
		}
		return out, 0, errcode.ObjectAlreadyExists
	}
	return m.admit(k, sh, h, w, nil, out)
}

// abandoned discards a write that its client has given up, as far as anybody can tell, and
// reports whether the key is free now. Its buffers are kept a while: the client may still be
// writing to them.
func (m *Master) abandoned(k *keeper, sh *object.Shard, o *object.Object) bool {
	if !o.InFlight() || sh.Count(o, object.ReplicaComplete) > 0 || m.clock.Now() <= o.Started()+m.cfg.PutDiscardTimeout.Nanoseconds() {
		return false
	}
	m.counters.discards.Add(1)
	m.discardWrite(k, sh, o)
	return o.Dead()
}

// discardWrite takes the unfinished replicas of a write away and parks their buffers until
// the write's release timeout.
func (m *Master) discardWrite(k *keeper, sh *object.Shard, o *object.Object) {
	until := o.Started() + m.cfg.PutReleaseTimeout.Nanoseconds()
	m.shed(k, sh, o, isProcessing, m.park(until))
}

// admit charges, places and enters a new object for w. old, if not nil, is the object of
// another size that it replaces. On TenantQuotaExceeded deficit is what has to be released
// first. The shard is locked; nothing has changed unless the code is OK.
func (m *Master) admit(k *keeper, sh *object.Shard, h object.Hash, w *write, old *object.Object, out []object.ReplicaDescriptor) (_ []object.ReplicaDescriptor, deficit uint64, _ errcode.Code) {
	if w.charge > tenant.MaxBytes {
		if m.cfg.MultiTenant {
			return out, 0, errcode.InvalidParams
		}
		return out, 0, errcode.NoAvailableHandle
	}
	var credit uint64
	if old != nil {
		credit = old.Ledger.Total()
	}
	switch reason, deficit := k.account(sh).ChargeWithin(w.charge, credit); reason {
	case tenant.NotRegistered:
		return out, 0, errcode.TenantNotRegistered
	case tenant.QuotaExceeded:
		return out, deficit, errcode.TenantQuotaExceeded
	}
	allocs, err := m.allocate(w)
	charge := w.charge
	var onDevices []segment.Allocation
	if w.config.NoFReplicaNum > 0 {
		allocs, onDevices, err = m.withDevices(w, allocs, err)
	}
	if err != nil {
		k.account(sh).Release(charge)
		return out, 0, allocationCode(err)
	}
	missing := w.config.ReplicaNum - uint64(len(allocs))
	if missing > 0 && (!m.cfg.Release0313 || w.config.NoFReplicaNum > 0) { // else it is when the write ends
		k.account(sh).Release(missing * w.size) // what has found no memory costs nothing
		charge -= missing * w.size
	}
	if uint64(len(allocs)) < w.config.ReplicaNum || uint64(len(onDevices)) < w.config.NoFReplicaNum {
		m.counters.partial.Add(1)
	}
	hardPin, group, affinity := w.config.WithHardPin, w.group, w.affinity
	var softUntil int64
	var replaced tenant.Ledger
	if old != nil {
		hardPin = hardPin || old.HardPin
		softUntil, group, affinity = sh.SoftUntil(old), sh.GroupID(old), sh.Affinity(old)
		replaced = m.retire(k, sh, old)
	}
	o := sh.Insert(h, w.key, w.size, w.client, w.now)
	o.HardPin, o.DataType = hardPin, w.config.DataType
	m.ledger(k, o, o.Ledger.AdoptPending(charge))
	if replaced.Total() != 0 {
		m.ledger(k, o, o.Ledger.TransferReplacement(k.account(sh), &replaced))
	}
	for _, a := range allocs {
		sh.Add(o, object.Replica{ID: m.nextReplicaID(w), Memory: a, Status: object.ReplicaProcessing})
	}
	for _, a := range onDevices {
		sh.Add(o, object.Replica{ID: m.nextReplicaID(w), Memory: a, Status: object.ReplicaProcessing, Kind: object.KindNoF})
	}
	if m.tier.shared != nil {
		sh.Add(o, object.Replica{ID: m.nextReplicaID(w), Kind: object.KindDisk, Memory: m.tier.shared.Hold(w.size), Status: object.ReplicaProcessing})
	}
	sh.SetSoftUntil(o, softUntil)
	sh.SetAffinity(o, affinity)
	sh.RequestPin(o, w.pin)
	sh.WriteBegan(o)
	sh.Join(o, group)
	m.weights.Wrote(group, w.now)
	w.observe(sh)
	w.admitted++
	return sh.Describe(out, o, anyReplica), 0, errcode.OK
}

// allocate places the replicas of a write, in the memory that was taken for it if there is some.
func (m *Master) allocate(w *write) ([]segment.Allocation, error) {
	if w.placed != nil && w.placed.Size != 0 {
		allocs := append(w.room[:0], *w.placed)
		*w.placed = segment.Allocation{}
		if allocs[0].Seg().Readable() {
			return allocs, nil
		}
		allocs[0].Free() // its client has gone or fallen silent in between
	}
	return m.pool.Place(&w.place, w.room[:0])
}

// retire takes an object out of the table that another replaces, and returns its ledger, whose
// charge is not released. Its buffers are parked: clients may still read from them.
func (m *Master) retire(k *keeper, sh *object.Shard, old *object.Object) tenant.Ledger {
	ledger, before := old.Ledger, m.media(sh, old)
	sh.Drop(old, anyReplica, m.park(m.clock.Now()+m.cfg.PutReleaseTimeout.Nanoseconds()))
	m.moved(k, sh, old, before)
	sh.Delete(old)
	return ledger
}

// makeRoom is called without locks after a refusal and reports whether trying again may help.
func (m *Master) makeRoom(k *keeper, w *write, deficit uint64, code errcode.Code, except object.Ref) bool {
	switch code {
	case errcode.TenantQuotaExceeded:
		w.attempts++
		if w.attempts < maxAttempts && m.cfg.MultiTenant && m.cfg.QuotaExceeded == EvictOwn && m.makeQuota(k, w, deficit, except) {
			return true
		}
		k.acct.CountRejected()
		wake(m.wakeTenants)
	case errcode.NoAvailableHandle:
		if !w.noDevice && m.makeMemory(w, except) {
			return true
		}
		m.counters.allocFailures.Add(1)
	}
	return false
}

// PutEnd completes the replicas of the given kind of a write in flight. It answers
// ObjectNotFound, IllegalClient when somebody else writes the object, InvalidWrite when no
// write is in flight and the replicas are not complete already.
func (m *Master) PutEnd(client segment.UUID, tenantName string, meta *object.Meta, kind object.ReplicaType) errcode.Code {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return code
	}
	if k == nil {
		return errcode.ObjectNotFound
	}
	sh, h := k.space.Locate(meta.Key)
	sh.Lock()
	defer sh.Unlock()
	return m.endKey(k, sh, h, client, meta, kind, m.clock.Now())
}

// endKey ends one write at the instant now, which ranks the object for eviction. The shard is
// locked for writing.
func (m *Master) endKey(k *keeper, sh *object.Shard, h object.Hash, client segment.UUID, meta *object.Meta, kind object.ReplicaType, now int64) errcode.Code {
	o := m.current(k, sh, h, meta.Key)
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.Owner != client:
		return errcode.IllegalClient
	}
	ended, complete := completeReplicas(sh, o, kind)
	switch {
	case !o.InFlight() && !complete:
		return errcode.InvalidWrite
	case !o.InFlight():
		return errcode.OK // a repeated end; it changes nothing
	}
	if meta.Checksum != nil || kind.Covers(object.KindMemory) || kind.Covers(object.KindNoF) {
		sh.SetChecksum(o, meta.Checksum)
	}
	if ended == 0 {
		return errcode.OK
	}
	sh.CommitPin(o, now)
	m.settle(k, sh, o)
	o.ExtendLease(now)
	m.enqueue(k, sh, o, now)
	m.written(k, sh, o, kind)
	if m.weights.Any() {
		m.weights.Wrote(sh.GroupID(o), now)
	}
	m.stored(k, sh, o)
	return errcode.OK
}

// completeReplicas marks the replicas of a type that are being written complete, and returns how many those
// were, and whether there are any of the type and all are complete now: what a work is making is not.
func completeReplicas(sh *object.Shard, o *object.Object, kind object.ReplicaType) (ended int, complete bool) {
	replicas := sh.Replicas(o)
	covered, done := 0, 0
	for i := range replicas {
		r := &replicas[i]
		if !kind.Covers(r.Kind) {
			continue
		}
		covered++
		if isProcessing(r) {
			r.Status = object.ReplicaComplete
			ended++
		}
		if r.Status == object.ReplicaComplete {
			done++
		}
	}
	return ended, covered > 0 && done == covered
}

// PutRevoke takes back the replicas of the given kind of a write in flight; their memory is
// free at once. It answers ObjectNotFound, IllegalClient, and InvalidWrite when they are
// complete already.
func (m *Master) PutRevoke(client segment.UUID, tenantName, key string, kind object.ReplicaType) errcode.Code {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return code
	}
	if k == nil {
		return errcode.ObjectNotFound
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	return m.revokeKey(k, sh, h, client, key, kind)
}

// revokeKey takes one write back. The shard is locked for writing.
func (m *Master) revokeKey(k *keeper, sh *object.Shard, h object.Hash, client segment.UUID, key string, kind object.ReplicaType) errcode.Code {
	o := m.current(k, sh, h, key)
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.Owner != client:
		return errcode.IllegalClient
	case !o.InFlight():
		return errcode.InvalidWrite
	}
	for _, r := range sh.Replicas(o) {
		if kind.Covers(r.Kind) && !isProcessing(&r) {
			return errcode.InvalidWrite
		}
	}
	m.shed(k, sh, o, func(r *object.Replica) bool { return kind.Covers(r.Kind) && isProcessing(r) }, free)
	if kind.Covers(object.KindMemory) && !o.Dead() {
		m.dropOutdated(k, sh, o)
	}
	m.enqueue(k, sh, o, m.clock.Now())
	return errcode.OK
}

// complete reports whether no replica of an object is being written.
func complete(sh *object.Shard, o *object.Object) bool {
	return sh.Count(o, object.ReplicaComplete) == len(sh.Replicas(o))
}
