package core

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Remove takes an object away and frees its memory. It answers ObjectNotFound, ObjectHasLease
// unless forced, ReplicaIsNotReady while a write is in flight, ObjectHasReplicationTask while
// a copy reads from it.
func (m *Master) Remove(tenantName, key string, force bool) errcode.Code {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return code
	}
	if k == nil {
		return errcode.ObjectNotFound
	}
	return m.removeOne(k, key, force)
}

func (m *Master) removeOne(k *keeper, key string, force bool) errcode.Code {
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	return m.removeKey(k, sh, h, key, force, m.clock.Now(), free)
}

// removeKey removes one object and gives its replicas to release. The shard is locked for writing.
func (m *Master) removeKey(k *keeper, sh *object.Shard, h object.Hash, key string, force bool, now int64, release func(*object.Replica)) errcode.Code {
	o := m.current(k, sh, h, key)
	if o == nil {
		return errcode.ObjectNotFound
	}
	if m.managed(sh, o) {
		return errcode.UnavailableInStatus
	}
	code := m.removable(sh, o, force, now)
	if code == errcode.OK {
		m.shed(k, sh, o, anyReplica, release)
	}
	return code
}

func (m *Master) removable(sh *object.Shard, o *object.Object, force bool, now int64) errcode.Code {
	switch {
	case !force && o.Leased(now):
		return errcode.ObjectHasLease
	case !complete(sh, o):
		return errcode.ReplicaIsNotReady
	case sh.Work(o, object.SlotReplication) != nil:
		return errcode.ObjectHasReplicationTask
	}
	return errcode.OK
}

// BatchRemove is Remove for each key, in the order of keys, appended to out.
func (m *Master) BatchRemove(tenantName string, keys []string, force bool, out []errcode.Result[errcode.Void]) []errcode.Result[errcode.Void] {
	k, code := m.request(tenantName)
	now := m.clock.Now()
	f := newFreeing()
	defer f.done()
	return m.eachKey(k, code, len(keys), func(i int) string { return keys[i] }, out, func(sh *object.Shard, h object.Hash, i int) errcode.Code {
		if len(f.list) >= pieceKeys {
			f.flush()
		}
		return m.removeKey(k, sh, h, keys[i], force, now, f.add)
	})
}

// RemoveAll removes what Remove would, of one tenant or, for the name "", of all, and returns
// how many objects that were. An invalid name removes nothing.
func (m *Master) RemoveAll(tenantName string, force bool) int64 {
	if tenantName == "" {
		var n int64
		m.keepers(func(k *keeper) { n += m.clearTenant(k, force) })
		m.tierCleared(nil)
		return n
	}
	k, _ := m.request(tenantName)
	if k == nil {
		return 0
	}
	n := m.clearTenant(k, force)
	m.tierCleared(k)
	return n
}

func (m *Master) clearTenant(k *keeper, force bool) int64 {
	var n int64
	left := false
	now := m.clock.Now()
	m.sweep(k, func(sh *object.Shard, o *object.Object) {
		if sh.Stale(o) {
			m.shed(k, sh, o, isGone, free)
		}
		switch {
		case o.Dead():
		case !m.managed(sh, o) && m.removable(sh, o, force, now) == errcode.OK:
			m.shed(k, sh, o, anyReplica, free)
			n++
		default:
			left = true
		}
	})
	if m.events != nil && n > 0 && !left {
		m.events.Cleared(k.name)
	}
	return n
}

// RemoveByRegex removes what Remove would among the keys that match, and returns how many
// objects that were. It answers InvalidParams for a pattern that is wrong or takes too long;
// in the latter case what had matched until then has been removed.
func (m *Master) RemoveByRegex(tenantName, pattern string, force bool) (int64, errcode.Code) {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return 0, code
	}
	match, err := m.compile(pattern)
	if err != nil {
		m.log.Debug("regular expression refused", "tenant", tenantName, "error", err)
		return 0, errcode.InvalidParams
	}
	if k == nil {
		return 0, errcode.OK
	}
	var n int64
	err = m.matching(k, match, func(key string) {
		if m.removeOne(k, key, force) == errcode.OK {
			n++
		}
	})
	if err != nil {
		m.log.Warn("regular expression took too long", "tenant", k.name, "removed", n, "error", err)
		return 0, errcode.InvalidParams
	}
	return n, errcode.OK
}

// BatchReplicaClear drops, of the given keys that the client owns, the replicas on one segment,
// or with the segment "" the whole object, and returns the keys it dropped something of. Keys
// that are missing, leased, somebody else's or being written are passed over.
func (m *Master) BatchReplicaClear(tenantName string, keys []string, client segment.UUID, segmentName string) ([]string, errcode.Code) {
	k, code := m.request(tenantName)
	if k == nil {
		return nil, code
	}
	var cleared []string
	now := m.clock.Now()
	for _, key := range keys {
		if m.clearKey(k, key, client, segmentName, now) {
			cleared = append(cleared, key)
		}
	}
	return cleared, errcode.OK
}

func (m *Master) clearKey(k *keeper, key string, client segment.UUID, segmentName string, now int64) bool {
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if o == nil || o.Owner != client || o.Leased(now) || m.managed(sh, o) {
		return false
	}
	match := anyReplica
	if segmentName != "" {
		match = func(r *object.Replica) bool {
			return isComplete(r) && r.Kind == object.KindMemory && r.Memory.Seg().Info.Name == segmentName
		}
	} else if !complete(sh, o) {
		return false
	}
	return m.shed(k, sh, o, match, free) > 0
}
