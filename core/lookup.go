package core

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

func readable(r *object.Replica) bool { return r.Readable() }

// ExistKey reports whether a key has a readable replica, and leases the object if so.
func (m *Master) ExistKey(tenantName, key string) (bool, errcode.Code) {
	return m.exist(tenantName, key, true)
}

// ProbeKey is ExistKey that grants no lease.
func (m *Master) ProbeKey(tenantName, key string) (bool, errcode.Code) {
	return m.exist(tenantName, key, false)
}

func (m *Master) exist(tenantName, key string, lease bool) (bool, errcode.Code) {
	k, code := m.request(tenantName)
	if k == nil {
		return false, code
	}
	sh, h := k.space.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	return m.found(sh, h, key, lease, m.clock.Now()), errcode.OK
}

// found looks for a readable object in a shard that is locked for reading.
func (m *Master) found(sh *object.Shard, h object.Hash, key string, lease bool, now int64) bool {
	o := sh.Get(h, key)
	if o == nil || !sh.Readable(o) {
		return false
	}
	if lease {
		sh.Lease(o, now, m.cfg.LeaseTTL.Nanoseconds())
	}
	return true
}

// BatchExistKey answers ExistKey for each key, in the order of keys, appended to out.
func (m *Master) BatchExistKey(tenantName string, keys []string, out []errcode.Result[bool]) []errcode.Result[bool] {
	return m.batchExist(tenantName, keys, out, true)
}

func (m *Master) batchExist(tenantName string, keys []string, out []errcode.Result[bool], lease bool) []errcode.Result[bool] {
	first := len(out)
	out = slices.Grow(out, len(keys))[:first+len(keys)]
	results := out[first:]
	k, code := m.request(tenantName)
	clear(results)
	if k == nil {
		for i := range results {
			results[i].Code = code
		}
		return out
	}
	now := m.clock.Now()
	byShard(k.space, keys, func(sh *object.Shard, indexes []int32, hashes []object.Hash) {
		sh.RLock()
		defer sh.RUnlock()
		for _, i := range indexes {
			results[i].Value = m.found(sh, hashes[i], keys[i], lease, now)
		}
	})
	return out
}

// LeaseMode says which keys of a probe are leased.
type LeaseMode uint8

// The modes of BatchProbeKey.
const (
	LeaseNone        LeaseMode = 0
	LeaseLastHitOnly LeaseMode = 1
)

// BatchProbeKey answers for each key whether it has a readable replica. With LeaseLastHitOnly
// the keys are taken in groups of candidateSize, and the last group whose keys all exist is
// leased; the number of keys must then be a multiple of candidateSize, else every key is
// answered InvalidParams.
func (m *Master) BatchProbeKey(mode LeaseMode, candidateSize uint64, tenantName string, keys []string, out []errcode.Result[bool]) []errcode.Result[bool] {
	n := uint64(len(keys))
	switch {
	case mode == LeaseNone:
		return m.batchExist(tenantName, keys, out, false)
	case mode != LeaseLastHitOnly || candidateSize == 0 || n%candidateSize != 0:
		for range keys {
			out = append(out, errcode.Result[bool]{Code: errcode.InvalidParams})
		}
		return out
	}
	first := uint64(len(out))
	out = m.batchExist(tenantName, keys, out, false)
	results := out[first:]
	for end := n; end > 0; end -= candidateSize {
		if !slices.ContainsFunc(results[end-candidateSize:end], func(r errcode.Result[bool]) bool { return !r.Value }) {
			for _, key := range keys[end-candidateSize : end] {
				m.exist(tenantName, key, true)
			}
			break
		}
	}
	return out
}

// GetReplicaList fills out with the readable replicas of a key and leases the object. It
// answers ObjectNotFound, or ReplicaIsNotReady while there is none to read. The slice in out is
// reused.
func (m *Master) GetReplicaList(tenantName, key string, out *object.ReplicaList) errcode.Code {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return code
	}
	if k == nil {
		m.counters.strayLookups.Add(1)
		return errcode.ObjectNotFound
	}
	sh, h := k.space.Locate(key)
	sh.RLock()
	code = m.read(k, sh, h, key, m.clock.Now(), out)
	sh.RUnlock()
	if m.watchReads && code == errcode.OK {
		m.hit(k, key, out)
	}
	return code
}

// hit considers what a read that was answered may set off. It is called without locks.
func (m *Master) hit(k *keeper, key string, out *object.ReplicaList) {
	if m.cfg.Promotion.OnHit {
		m.promoteOnHit(k, key, out)
	}
	if m.cfg.DynamicReplication.Mode != ReplicationOff {
		m.heat(k, key, out)
	}
}

// read answers one lookup in a shard that is locked for reading.
func (m *Master) read(k *keeper, sh *object.Shard, h object.Hash, key string, now int64, out *object.ReplicaList) errcode.Code {
	sh.Lookups.Add(1)
	o, code := m.describe(sh, h, key, out)
	if code != errcode.OK {
		return code
	}
	sh.Lease(o, now, m.cfg.LeaseTTL.Nanoseconds())
	if out.Replicas[0].Location.Index >= object.LocationDisk {
		m.tier.fileHits.Add(1)
		m.tier.fileBytes.Add(o.Size)
	} else {
		sh.Hits.Add(1)
		sh.HitBytes.Add(o.Size)
	}
	out.ResolvedTenantID = &k.name
	return errcode.OK
}

// describe fills out without any side effect.
func (m *Master) describe(sh *object.Shard, h object.Hash, key string, out *object.ReplicaList) (*object.Object, errcode.Code) {
	out.Replicas = out.Replicas[:0]
	out.LeaseTTLMs, out.Checksum, out.ResolvedTenantID = 0, nil, nil
	o := sh.Get(h, key)
	if o == nil {
		return nil, errcode.ObjectNotFound
	}
	out.Replicas = sh.Describe(out.Replicas, o, readable)
	if len(out.Replicas) == 0 {
		replicas := sh.Replicas(o)
		for i := range replicas {
			if !isGone(&replicas[i]) {
				return nil, errcode.ReplicaIsNotReady
			}
		}
		return nil, errcode.ObjectNotFound
	}
	out.LeaseTTLMs = uint64(m.cfg.LeaseTTL.Milliseconds())
	out.Checksum = sh.Checksum(o)
	return o, errcode.OK
}

// BatchGetReplicaList answers GetReplicaList for each key, in the order of keys. It returns out
// with exactly one element per key, reusing what it holds.
func (m *Master) BatchGetReplicaList(tenantName string, keys []string, out []errcode.Result[object.ReplicaList]) []errcode.Result[object.ReplicaList] {
	out = resized(out, len(keys))
	k, code := m.request(tenantName)
	if k == nil {
		if code == errcode.OK {
			code = errcode.ObjectNotFound
			m.counters.strayLookups.Add(uint64(len(keys)))
		}
		for i := range out {
			out[i].Code = code
		}
		return out
	}
	now := m.clock.Now()
	byShard(k.space, keys, func(sh *object.Shard, indexes []int32, hashes []object.Hash) {
		sh.RLock()
		defer sh.RUnlock()
		for _, i := range indexes {
			out[i].Code = m.read(k, sh, hashes[i], keys[i], now, &out[i].Value)
		}
	})
	if m.watchReads {
		for i := range out {
			if out[i].Code == errcode.OK {
				m.hit(k, keys[i], &out[i].Value)
			}
		}
	}
	return out
}

// AdminReplicas is GetReplicaList without lease and without counting.
func (m *Master) AdminReplicas(tenantName, key string, out *object.ReplicaList) errcode.Code {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return code
	}
	if k == nil {
		return errcode.ObjectNotFound
	}
	sh, h := k.space.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	_, code = m.describe(sh, h, key, out)
	return code
}

// NamedReplicas are the readable replicas of one key.
type NamedReplicas struct {
	Key   string
	Value []object.ReplicaDescriptor
}

// GetReplicaListByRegex returns the keys that match the pattern and have readable replicas,
// and leases them. It answers InvalidParams for a pattern that is wrong or takes too long.
func (m *Master) GetReplicaListByRegex(tenantName, pattern string) ([]NamedReplicas, errcode.Code) {
	k, code := m.request(tenantName)
	if code != errcode.OK {
		return nil, code
	}
	match, err := m.compile(pattern)
	if err != nil {
		m.log.Debug("regular expression refused", "tenant", tenantName, "error", err)
		return nil, errcode.InvalidParams
	}
	if k == nil {
		return nil, errcode.OK
	}
	var found []NamedReplicas
	err = m.matching(k, match, func(key string) {
		sh, h := k.space.Locate(key)
		sh.RLock()
		defer sh.RUnlock()
		if o := sh.Get(h, key); o != nil && sh.Readable(o) {
			sh.Lease(o, m.clock.Now(), m.cfg.LeaseTTL.Nanoseconds())
			found = append(found, NamedReplicas{Key: key, Value: sh.Describe(nil, o, readable)})
		}
	})
	if err != nil {
		m.log.Warn("regular expression took too long", "tenant", k.name, "error", err)
		return nil, errcode.InvalidParams
	}
	return found, errcode.OK
}

// AllKeys returns the keys of a tenant that have a readable replica, in no particular order.
func (m *Master) AllKeys(tenantName string) []string {
	k, _ := m.request(tenantName)
	if k == nil {
		return nil
	}
	var keys []string
	_ = m.view(k, func(sh *object.Shard, o *object.Object) {
		if sh.Readable(o) {
			keys = append(keys, sh.KeyCopy(o))
		}
	}, func() error { return nil })
	return keys
}
