package core

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// This file answers for what the master does not do: it starts no copies, moves, tasks or
// promotions and keeps nothing on disks. The calls are checked as if it did, so that a client
// learns first what is wrong with its request.

// lookup says whether a tenant's object exists: OK, ObjectNotFound, or InvalidParams for an
// invalid tenant.
func (m *Master) lookup(tenantName, key string) errcode.Code {
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
	if m.current(k, sh, h, key) == nil {
		return errcode.ObjectNotFound
	}
	return errcode.OK
}

// CopyRefused is the answer to a request to copy or move an object to segments: the first
// thing wrong with it, else UnavailableInMode.
func (m *Master) CopyRefused(tenantName, key string, targets []string) errcode.Code {
	if _, code := m.writer(tenantName); code != errcode.OK {
		return code
	}
	for _, name := range targets {
		if _, code := m.QuerySegmentStatus(name); code != errcode.OK {
			return code
		}
	}
	if code := m.lookup(tenantName, key); code != errcode.OK {
		return code
	}
	return errcode.UnavailableInMode
}

// NoCopy is the answer about a copy or move that can't be running.
func (m *Master) NoCopy(tenantName, key string) errcode.Code {
	return m.Idle(tenantName, key, errcode.ObjectNoReplicationTask)
}

// TaskRefused is the answer to a request for a task that involves segments: the first thing
// wrong with it, else UnavailableInMode.
func (m *Master) TaskRefused(tenantName, key string, segments ...string) errcode.Code {
	if _, code := m.writer(tenantName); code != errcode.OK {
		return code
	}
	if len(segments) == 0 {
		return errcode.InvalidParams
	}
	if code := m.lookup(tenantName, key); code != errcode.OK {
		return code
	}
	for _, name := range segments {
		if _, code := m.QuerySegmentStatus(name); code != errcode.OK {
			return errcode.InvalidParams
		}
	}
	return errcode.UnavailableInMode
}

// EvictDisk is the answer to a request to drop an object's replica on disk. It has none.
func (m *Master) EvictDisk(tenantName, key string, kind object.ReplicaType) errcode.Code {
	if kind == object.ReplicaDisk || kind == object.ReplicaLocalDisk {
		return m.lookup(tenantName, key)
	}
	return m.Idle(tenantName, key, errcode.InvalidParams)
}

// PromotionRefused is the answer to a request for memory to promote an object to.
func (m *Master) PromotionRefused(tenantName, key string) errcode.Code {
	if _, code := m.writer(tenantName); code != errcode.OK {
		return code
	}
	return m.Idle(tenantName, key, errcode.ReplicaIsNotReady)
}

// Idle is the answer about something that can't be going on with an object: present if
// the object exists, else ObjectNotFound.
func (m *Master) Idle(tenantName, key string, present errcode.Code) errcode.Code {
	if code := m.lookup(tenantName, key); code != errcode.OK {
		return code
	}
	return present
}
