package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

// The part of sketch and rig that is about clients' disks. Client 1 has one.

const rigDisk = 1

func (s *sketch) unmountDisk(n uint64) {
	s.clients[n].disk = false
	if s.offload != nil && s.offload.client == n {
		s.offload = nil // nobody could end it any more
	}
	if s.exists {
		s.drop(func(r sketchReplica) bool { return r.disk && r.at == n })
		s.settle()
	}
}

// queueOffload asks the client with the disk to write an object that lies in its memory there.
func (s *sketch) queueOffload() {
	if s.offload == nil && s.clients[rigDisk].disk && s.holds(rigDisk) {
		s.offload = &sketchTier{client: rigDisk, source: rigDisk, started: s.now}
	}
}

// mayBegin and known say who may begin something, and who may speak about it.
func (s *sketch) mayBegin(client uint64) errcode.Code {
	if c := s.clients[client]; c == nil || c.suspected || c.offline {
		return errcode.UnavailableInStatus
	}
	return errcode.OK
}

func (s *sketch) known(client uint64) errcode.Code {
	if c := s.clients[client]; c == nil || c.offline {
		return errcode.UnavailableInStatus
	}
	return errcode.OK
}

// notify is a report about the disk: size bytes are there, or could not be written.
func (s *sketch) notify(client uint64, size int64) errcode.Code {
	if code := s.known(client); code != errcode.OK {
		return code
	}
	asked := s.offload != nil
	s.offload = nil
	switch {
	case size < 0:
		return errcode.OK
	case !asked && s.closed:
		return errcode.TenantNotRegistered
	case !s.clients[client].disk:
		return errcode.SegmentNotFound
	}
	if !s.exists {
		s.exists, s.size, s.owner, s.started, s.lease = true, uint64(size), client, s.now, 0
	}
	if s.count(func(r sketchReplica) bool { return r.disk && (r.at == client || !s.clients[r.at].suspected) }) == 0 {
		s.replicas = append(s.replicas, sketchReplica{at: client, complete: true, disk: true})
	}
	return errcode.OK
}

func (s *sketch) prefetch(client uint64) errcode.Code {
	if code := s.mayBegin(client); code != errcode.OK {
		return code
	}
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case s.writing():
		return errcode.ReplicaIsNotReady
	case s.promotion != nil || s.count(inMemory) > 0:
		return errcode.PromotionAlreadyExists
	case s.count(func(r sketchReplica) bool { return r.disk && r.at == client && r.complete }) == 0:
		return errcode.InvalidParams
	}
	s.promotion = &sketchTier{client: client, started: s.now}
	return errcode.OK
}

// promote is the start of a promotion, whose replica was put somewhere.
func (s *sketch) promote(client, size uint64, placed []uint64) errcode.Code {
	if code := s.mayBegin(client); code != errcode.OK {
		return code
	}
	p := s.promotion
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case p == nil:
		return errcode.ReplicaIsNotReady
	case p.client != client:
		return errcode.InvalidParams
	case s.writing():
		return errcode.ReplicaIsNotReady
	case size != 1000:
		return errcode.InvalidParams
	case p.placed || s.count(inMemory) > 0:
		return errcode.ReplicaIsNotReady
	case s.closed:
		return errcode.TenantNotRegistered
	case s.strict && s.effective() == 0:
		return errcode.TenantQuotaExceeded
	case len(placed) == 0:
		return errcode.NoAvailableHandle
	}
	p.placed, p.started, s.size = true, s.now, size // what an upsert that was revoked had made of it counts no more
	s.replicas = append(s.replicas, sketchReplica{at: placed[0], staged: true, promoted: true})
	return errcode.OK
}

// promoted is the end of a promotion, good or not.
func (s *sketch) promoted(client uint64, failed bool) errcode.Code {
	if code := s.known(client); code != errcode.OK {
		return code
	}
	p := s.promotion
	switch {
	case !s.exists:
		return errcode.ObjectNotFound
	case p == nil && failed:
		return errcode.OK
	case p == nil || !failed && !p.placed:
		return errcode.ReplicaIsNotReady
	case p.client != client:
		return errcode.InvalidParams
	}
	s.promotion = nil
	defer s.settle()
	if failed {
		s.drop(ofPromotion)
		return errcode.OK
	}
	if s.count(ofPromotion) == 0 {
		return errcode.ReplicaIsNotReady
	}
	for i := range s.replicas {
		if r := &s.replicas[i]; ofPromotion(*r) {
			r.complete, r.staged, r.promoted = true, false, false
		}
	}
	return errcode.OK
}

// Calls to both.

func (r *rig) mountDisk() {
	c := r.s.clients[rigDisk]
	c.disk, c.suspected, c.offline, c.ping = true, false, false, r.s.now // it is a sign of life
	r.same(r.m.MountLocalDisk(mastertest.ID(rigDisk), true), errcode.OK, "disk of %d", rigDisk)
}

func (r *rig) unmountDisk() {
	r.s.unmountDisk(rigDisk)
	r.same(r.m.UnmountLocalDisk(mastertest.ID(rigDisk)), errcode.OK, "no disk of %d", rigDisk)
}

func (r *rig) takeOffloads() {
	want := r.s.mayBegin(rigDisk)
	if want == errcode.OK && !r.s.clients[rigDisk].disk {
		want = errcode.SegmentNotFound
	}
	items, code := r.m.OffloadHeartbeat(mastertest.ID(rigDisk), true)
	due := want == errcode.OK && r.s.offload != nil && !r.s.offload.taken
	if due {
		r.s.offload.taken = true
	}
	r.same(fmt.Sprint(code, len(items)), fmt.Sprint(want, map[bool]int{true: 1}[due]), "offloads are taken")
}

func (r *rig) notify(client uint64, size int64) {
	if client == rigDisk && r.s.offload != nil && !r.s.offload.taken {
		if r.takeOffloads(); !r.s.offload.taken {
			return // nobody writes what he hasn't been told of
		}
	}
	name := r.tenant
	r.same(r.m.NotifyOffload(mastertest.ID(client), []core.DiskReport{{Tenant: name, Key: "k", Size: size, Endpoint: "d"}}), r.s.notify(client, size), "report of %d bytes by %d", size, client)
}

func (r *rig) prefetch(client uint64) {
	r.same(r.m.RegisterPrefetch(mastertest.ID(client), r.tenant, "k"), r.s.prefetch(client), "prefetch by %d", client)
}

func (r *rig) promote(client, size uint64) {
	d, code := r.m.StartPromotion(mastertest.ID(client), r.tenant, "k", size, []string{"s2"})
	var at []uint64
	for n := range uint64(4) {
		if code == errcode.OK && rigName(n+1) == d.Location.Memory.Buffer.Endpoint {
			at = append(at, n+1)
		}
	}
	r.same(code, r.s.promote(client, size, at), "promotion of %d bytes by %d", size, client)
}

func (r *rig) promoted(client uint64, failed bool) {
	call := r.m.EndPromotion
	if failed {
		call = r.m.FailPromotion
	}
	r.same(call(mastertest.ID(client), r.tenant, "k"), r.s.promoted(client, failed), "end of a promotion by %d, failed %v", client, failed)
}

// coldObject leaves an object on the disk only.
func (r *rig) coldObject() {
	r.mountDisk()
	r.notify(rigDisk, 1000)
	r.advance(1)
}

// tierOperations are operations about disks.
var tierOperations = []step{
	{"promotion asked for", func(r *rig) { r.coldObject(); r.prefetch(rigDisk) }},
	{"promotion", func(r *rig) { r.coldObject(); r.prefetch(rigDisk); r.promote(rigDisk, 1000) }},
	{"offload", func(r *rig) { r.mountDisk(); r.stored(1) }},
	{"offload of two replicas", func(r *rig) { r.mountDisk(); r.stored(2) }},
	{"offload that was taken", func(r *rig) { r.mountDisk(); r.stored(1); r.takeOffloads() }},
	{"offload beside a copy", func(r *rig) { r.mountDisk(); r.stored(1); r.copy(rigWorker, 1, 2) }},
	{"upsert of another size on disk", func(r *rig) { r.coldObject(); r.upsert(rigWriter, 2500) }},
	{"upsert of the same size on disk", func(r *rig) { r.coldObject(); r.upsert(rigWriter, 1000) }},
	{"upsert in place beside a disk", func(r *rig) { r.mountDisk(); r.stored(1); r.notify(rigDisk, 1000); r.upsert(rigWriter, 1000) }},
	{"put beside a disk", func(r *rig) { r.mountDisk(); r.put(rigWriter, 1000, 1); r.notify(rigDisk, 1000) }},
}

var tierInterruptions = []step{
	{"end of a promotion", func(r *rig) { r.promoted(rigDisk, false) }},
	{"failed promotion", func(r *rig) { r.promoted(rigDisk, true) }},
	{"end of a promotion by another", func(r *rig) { r.promoted(2, false); r.promoted(2, true); r.promoted(rigOther, false) }},
	{"promotion by another", func(r *rig) { r.promote(2, 1000); r.promote(rigOther, 1000); r.promote(rigDisk, 999) }},
	{"promotion twice", func(r *rig) { r.prefetch(rigDisk); r.promote(rigDisk, 1000) }},
	{"disk unmounted", (*rig).unmountDisk},
	{"disk unmounted and back", func(r *rig) { r.unmountDisk(); r.mountDisk() }},
	{"offloads taken", (*rig).takeOffloads},
	{"offload written", func(r *rig) { r.notify(rigDisk, 1000) }},
	{"offload not written", func(r *rig) { r.notify(rigDisk, -1) }},
	{"offload written by another", func(r *rig) { r.notify(rigOther, 1000) }},
}

func (r *rig) finishTier(failed bool) {
	switch {
	case r.s.promotion != nil:
		r.promoted(rigDisk, failed)
	case r.s.offload != nil && failed:
		r.notify(rigDisk, -1)
	case r.s.offload != nil:
		r.notify(rigDisk, 1000)
	default:
		r.finishAll(failed)
	}
}

func withDisks(c *core.Config) { c.Offload.Enabled = true }

// TestEveryInterruptionOfTheDiskTier is TestEveryInterruption of what goes on with a client's disk.
func TestEveryInterruptionOfTheDiskTier(t *testing.T) {
	bothModes(t, func(t *testing.T, strict bool) {
		for _, op := range tierOperations {
			for _, in := range slices.Concat(tierInterruptions, interruptions) {
				for _, failed := range []bool{false, true} {
					for _, late := range []bool{false, true} {
						r := newRig(t, strict, withDisks)
						op.do(r)
						if late {
							r.finishTier(failed)
						}
						in.do(r)
						r.finishTier(failed)
						r.finishAll(failed)
						r.policies(rigQuota)
						r.m.Drain(t)
						if t.Failed() {
							t.Fatalf("%s, %s, failed %v, late %v", op.name, in.name, failed, late)
						}
					}
				}
			}
		}
	})
}

// TestRandomInterruptionsOfTheDiskTier is TestRandomInterruptions with what goes on with a client's disk.
func TestRandomInterruptionsOfTheDiskTier(t *testing.T) {
	ends := append([]step{
		{"tier ended", func(r *rig) { r.finishTier(false) }},
		{"tier failed", func(r *rig) { r.finishTier(true) }},
	}, endings...)
	walkRandomly(t, slices.Concat(tierOperations, operations), slices.Concat(tierInterruptions, interruptions), ends, withDisks)
}
