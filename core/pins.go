package core

import "github.com/mooncake-go/mooncake-master/core/errcode"

// SetSoftPins pins the given keys softly for ttlMs milliseconds, or for the configured
// lifetime when that is nil, and returns a code for each: ObjectNotFound, ReplicaIsNotReady
// while a write is in flight, InvalidParams for a lifetime above the maximum.
func (m *Master) SetSoftPins(tenantName string, keys []string, ttlMs *uint64) []errcode.Code {
	ttl := uint64(m.cfg.SoftPinTTL.Milliseconds())
	if ttlMs != nil {
		ttl = *ttlMs
	}
	return m.pinKeys(tenantName, keys, ttl)
}

// ClearSoftPins takes the soft pins of the given keys away and returns a code for each.
func (m *Master) ClearSoftPins(tenantName string, keys []string) []errcode.Code {
	return m.pinKeys(tenantName, keys, 0)
}

func (m *Master) pinKeys(tenantName string, keys []string, ttlMs uint64) []errcode.Code {
	codes := make([]errcode.Code, len(keys))
	k, code := m.request(tenantName)
	for i, key := range keys {
		switch {
		case code != errcode.OK:
			codes[i] = code
		case ttlMs > uint64(m.cfg.MaxSoftPinTTL.Milliseconds()):
			codes[i] = errcode.InvalidParams
		default:
			codes[i] = m.pinKey(k, key, ttlMs)
		}
	}
	return codes
}

func (m *Master) pinKey(k *keeper, key string, ttlMs uint64) errcode.Code {
	if k == nil {
		return errcode.ObjectNotFound
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
	}
	now := m.clock.Now()
	until := int64(0)
	if ttlMs > 0 {
		until = now + int64(ttlMs)*1e6
	}
	sh.SetSoftUntil(o, until)
	k.space.Order.Repin(o, sh.Rank(o), until, now)
	return errcode.OK
}
