package core

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// queueOffload asks the clients in whose memory an object lies to write it to their disks, as far as
// these take it. The first replica of those stays where it is until one of them says it has. The
// shard is locked for writing.
func (m *Master) queueOffload(k *keeper, sh *object.Shard, o *object.Object) {
	if sh.Work(o, object.SlotOffload) != nil {
		return
	}
	var w *object.Work
	item := tier.Item{Tenant: k.name, Size: int64(o.Size)}
	replicas := sh.Replicas(o)
	for i := range replicas {
		r := &replicas[i]
		if r.Kind == object.KindDFS && isProcessing(r) {
			break // its own end queues the object
		}
		if r.Kind != object.KindMemory || !isComplete(r) || r.Staged {
			continue
		}
		id := r.Memory.Seg().Client
		d := m.tier.disks.Find(id)
		if d == nil || !d.Accepts() {
			continue
		}
		if item.Key == "" {
			item.Key = sh.KeyCopy(o)
		}
		if !d.Offload(item, m.cfg.Offload.QueueLimit) {
			continue
		}
		if w == nil {
			w = &object.Work{Slot: object.SlotOffload, Client: id, Started: m.clock.Now(), Sources: []uint64{r.ID}}
		}
		w.Mirrors = append(w.Mirrors, id)
	}
	if w != nil {
		sh.BeginWork(o, w)
	}
}

// endOffload notes that an object's offload, if there is one, is over. The shard is locked for writing.
func (m *Master) endOffload(k *keeper, sh *object.Shard, o *object.Object) bool {
	w, _ := m.finishWork(k, sh, o, object.SlotOffload, noReplica, free)
	if w == nil {
		return false
	}
	m.offloadEnded(k, w)
	k.space.Order.Remove(o) // where it may have been put back for a while, as nobody could evict it
	m.enqueue(k, sh, o, m.clock.Now())
	return true
}

// offloadEnded forgets the bytes that an offload was to free.
func (m *Master) offloadEnded(k *keeper, w *object.Work) {
	if w.Frees > 0 {
		k.leaving.end(w.Frees)
		m.tier.leaving.end(w.Frees)
		w.Frees = 0
	}
}

// cancelOffload takes back an offload that no client has begun and reports whether none is in the way
// now. The shard is locked for writing.
func (m *Master) cancelOffload(k *keeper, sh *object.Shard, o *object.Object) bool {
	w := sh.Work(o, object.SlotOffload)
	if w == nil {
		return true
	}
	if !m.tier.disks.Cancel(w.Mirrors, k.name, sh.Key(o)) {
		return false
	}
	return m.endOffload(k, sh, o)
}

// OffloadHeartbeat says whether a client takes objects to write to its disk, and returns those that it is to
// write. One that doesn't gets none, and what waited for it is forgotten. It answers
// UnavailableInStatus for a client that is unknown or silent, SegmentNotFound for one without a disk.
func (m *Master) OffloadHeartbeat(id segment.UUID, accepts bool) ([]tier.Item, errcode.Code) {
	if code := m.mayBegin(id); code != errcode.OK {
		return nil, code
	}
	d := m.mountedDisk(id)
	if d == nil {
		return nil, errcode.SegmentNotFound
	}
	items := d.TakeOffloads(accepts)
	if accepts {
		return items, errcode.OK
	}
	for _, i := range items {
		if k, _ := m.request(i.Tenant); k != nil {
			sh, h := k.space.Locate(i.Key)
			sh.Lock()
			if o := m.current(k, sh, h, i.Key); o != nil && m.asked(sh, o, id) {
				m.endOffload(k, sh, o)
			}
			sh.Unlock()
		}
	}
	return nil, errcode.OK
}

// asked reports whether a client has been asked to write an object to its disk, and that goes on.
func (m *Master) asked(sh *object.Shard, o *object.Object, id segment.UUID) bool {
	w := sh.Work(o, object.SlotOffload)
	return w != nil && slices.Contains(w.Mirrors, id)
}

// DiskReport is what a client says about an object on its disk: that Size bytes of it lie there and are
// read through Endpoint, or, with a negative Size, that it could not write it.
type DiskReport struct {
	Tenant, Key string
	Size        int64
	Endpoint    string
}

// NotifyOffload takes a client's reports about its disk. What it has written becomes a replica; an object that
// is not known is made, with that replica only. It answers InvalidParams if any tenant is invalid,
// UnavailableInStatus for an unknown client, TenantNotRegistered at the first report about a tenant without
// policy, if the master hasn't asked for that object, and SegmentNotFound at the end if replicas were refused because the
// client has no disk any more.
func (m *Master) NotifyOffload(id segment.UUID, reports []DiskReport) errcode.Code {
	for i := range reports {
		if _, code := m.request(reports[i].Tenant); code != errcode.OK {
			return code
		}
	}
	if code := m.known(id); code != errcode.OK {
		return code
	}
	if slices.ContainsFunc(reports, func(r DiskReport) bool { return r.Size >= 0 }) {
		m.knowDisk(id)
	}
	answer := errcode.OK
	for i := range reports {
		switch code := m.noteOffload(id, &reports[i]); code {
		case errcode.OK:
		case errcode.SegmentNotFound:
			answer = code
		default:
			return code
		}
	}
	return answer
}

// noteOffload takes one report: SegmentNotFound if the client has no disk.
func (m *Master) noteOffload(id segment.UUID, r *DiskReport) errcode.Code {
	if k, _ := m.request(r.Tenant); k != nil {
		sh, h := k.space.Locate(r.Key)
		sh.Lock()
		o := m.current(k, sh, h, r.Key)
		if o != nil && m.endOffload(k, sh, o) {
			defer sh.Unlock()
			d := m.tier.disks.Find(id)
			if d != nil && r.Size < 0 {
				d.NotWritten()
			}
			if r.Size < 0 {
				return errcode.OK
			}
			if d == nil {
				return errcode.SegmentNotFound
			}
			d.Written()
			return m.addDisk(k, sh, o, d, r)
		}
		sh.Unlock()
	}
	if r.Size < 0 {
		return errcode.OK
	}
	k, code := m.writer(tenant.Normalize(r.Tenant))
	if code != errcode.OK {
		return code
	}
	d := m.tier.disks.Find(id)
	if d == nil {
		return errcode.SegmentNotFound
	}
	sh, h := k.space.Locate(r.Key)
	sh.Lock()
	defer sh.Unlock()
	if k.acct.Closed() {
		return errcode.TenantNotRegistered
	}
	o := m.current(k, sh, h, r.Key)
	if o == nil {
		if r.Size == 0 {
			return errcode.OK
		}
		o = sh.Insert(h, r.Key, uint64(r.Size), id, m.clock.Now())
		o.End()
	}
	return m.addDisk(k, sh, o, d, r)
}

// knowDisk enters the disk of a client that reports about one, where no client can mount any.
func (m *Master) knowDisk(id segment.UUID) {
	if m.cfg.Offload.Enabled || m.tier.disks.Find(id) != nil {
		return
	}
	m.mounting.Lock() // it is not given up meanwhile
	defer m.mounting.Unlock()
	if m.known(id) == errcode.OK {
		d := m.tier.disks.Register(id, false)
		d.Suspend(m.clients.State(id) != client.Active)
		if m.clients.State(id) == client.Active { // it pinged in between
			d.Suspend(false)
		}
	}
}

// addDisk gives an object a replica on a client's disk. It keeps the one it has, unless nobody can read it
// because its client is silent. The shard is locked for writing.
func (m *Master) addDisk(k *keeper, sh *object.Shard, o *object.Object, d *tier.Disk, report *DiskReport) errcode.Code {
	store := d.Store(report.Endpoint)
	has := false
	replicas := sh.Replicas(o)
	for i := range replicas {
		r := &replicas[i]
		if r.Kind != object.KindLocalDisk {
			continue
		}
		seg := r.Memory.Seg()
		has = has || seg.Client == d.Client || !seg.Suspended()
	}
	if store != nil && !has {
		before := m.media(sh, o)
		sh.Add(o, object.Replica{ID: m.replicaID.Add(1), Kind: object.KindLocalDisk, Memory: store.Hold(uint64(report.Size)), Status: object.ReplicaComplete})
		m.moved(k, sh, o, before)
	}
	// The disk may have gone in between, and whoever drops what was there may be past this shard.
	if store == nil || !store.Alive() {
		m.shed(k, sh, o, isGone, free)
		return errcode.SegmentNotFound
	}
	return errcode.OK
}
