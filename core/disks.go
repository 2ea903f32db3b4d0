package core

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tier"
)

// MountLocalDisk notes that a client has a disk of its own, and whether it takes objects to write
// there; it is a sign of life. A disk that is mounted stays as it is. It answers UnableOffload where
// offloading is off.
func (m *Master) MountLocalDisk(id segment.UUID, accepts bool) errcode.Code {
	if !m.cfg.Offload.Enabled {
		return errcode.UnableOffload
	}
	m.mounting.Lock()
	defer m.mounting.Unlock()
	if m.tier.disks.Find(id) == nil {
		m.tier.disks.Register(id, accepts)
		m.log.Info("disk mounted", "client", id, "takes_objects", accepts)
	}
	if m.clients.Mounted(id, m.clock.Now()) {
		m.pool.Resume(id)
	}
	m.tierBack(id)
	return errcode.OK
}

// UnmountLocalDisk forgets a client's disk, and drops all replicas there. A disk that is not mounted is
// no error. It answers UnableOffload where offloading is off.
func (m *Master) UnmountLocalDisk(id segment.UUID) errcode.Code {
	if !m.cfg.Offload.Enabled {
		return errcode.UnableOffload
	}
	if m.removeDisks(id) > 0 {
		m.log.Info("disk unmounted", "client", id)
	}
	return errcode.OK
}

// ReportDiskCapacity notes how many bytes a client's disk has. It answers InvalidParams for a negative
// number, UnavailableInStatus for an unknown client, SegmentNotFound for one without a disk.
func (m *Master) ReportDiskCapacity(id segment.UUID, bytes int64) errcode.Code {
	if bytes < 0 {
		return errcode.InvalidParams
	}
	if code := m.known(id); code != errcode.OK {
		return code
	}
	d := m.mountedDisk(id)
	if d == nil {
		return errcode.SegmentNotFound
	}
	d.SetCapacity(bytes)
	return errcode.OK
}

// PollRemoveAll reports whether a client is to empty its disk, once: what was there is dropped then. It
// answers SegmentNotFound for a client without a disk.
func (m *Master) PollRemoveAll(id segment.UUID) (bool, errcode.Code) {
	d := m.mountedDisk(id)
	if d == nil {
		return false, errcode.SegmentNotFound
	}
	wipe := d.TakeWipe()
	if wipe && d.Holds() {
		forget := d.Renew()
		m.dropGone()
		forget()
	}
	return wipe, errcode.OK
}

// mountedDisk returns the disk that a client has mounted, or nil.
func (m *Master) mountedDisk(id segment.UUID) *tier.Disk {
	if !m.cfg.Offload.Enabled {
		return nil // what is known of disks has only been reported
	}
	return m.tier.disks.Find(id)
}

// EvictDiskReplica drops the replicas of an object in the shared file system, or those on the caller's
// own disk; that there are none is fine. It answers InvalidParams for another kind and for an
// invalid tenant, and ObjectNotFound.
func (m *Master) EvictDiskReplica(id segment.UUID, tenantName, key string, kind object.ReplicaType) errcode.Code {
	_, code := m.evictDisk(tenantName, key, kind, func(r *object.Replica) bool { return onDiskOf(r, id, kind) })
	return code
}

// EvictDiskReplicaIfCurrent is EvictDiskReplica for the replica with the given id, and reports whether
// there was one.
func (m *Master) EvictDiskReplicaIfCurrent(id segment.UUID, tenantName, key string, kind object.ReplicaType, current uint64) (bool, errcode.Code) {
	n, code := m.evictDisk(tenantName, key, kind, func(r *object.Replica) bool { return r.ID == current && onDiskOf(r, id, kind) })
	return n > 0, code
}

// onDiskOf reports whether a replica is one of those that EvictDiskReplica is about.
func onDiskOf(r *object.Replica, id segment.UUID, kind object.ReplicaType) bool {
	return kind.Covers(r.Kind) && (r.Kind != object.KindLocalDisk || r.Memory.Seg().Client == id)
}

func (m *Master) evictDisk(tenantName, key string, kind object.ReplicaType, match func(*object.Replica) bool) (int, errcode.Code) {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return 0, code
	}
	if k == nil {
		return 0, errcode.ObjectNotFound
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if o == nil {
		return 0, errcode.ObjectNotFound
	}
	if kind != object.ReplicaDisk && kind != object.ReplicaLocalDisk {
		return 0, errcode.InvalidParams
	}
	if m.managed(sh, o) {
		return 0, errcode.UnavailableInStatus
	}
	n := m.shed(k, sh, o, match, free)
	if n > 0 {
		m.enqueue(k, sh, o, m.clock.Now())
	}
	return n, errcode.OK
}
