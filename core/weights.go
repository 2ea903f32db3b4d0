package core

import (
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/weight"
)

// What writers say that an object holds, as far as it matters here.
const (
	dataWeights     object.DataType = 3
	dataDescription object.DataType = 8
)

// Weights returns the store of managed weights, and the tenant that a call is about: the one that it
// names, whatever its request says, or without strict tenants the only one. It is false for a name
// that no tenant can have. A tenant needs no policy to have revisions, only to write objects.
func (m *Master) Weights(tenantName string) (*weight.Store, string, bool) {
	if m.single != nil {
		return m.weights, tenant.Default, true
	}
	tenantName = tenant.Normalize(tenantName)
	return m.weights, tenantName, tenant.Valid(tenantName)
}

// WeightTime is the present instant for calls of the store.
func (m *Master) WeightTime() weight.Time { return weight.Time{Now: m.clock.Now(), Wall: m.wall()} }

// tidyWeights runs the store's round when it is due.
func (m *Master) tidyWeights() {
	now := m.clock.Now()
	due := m.weightsDue.Load()
	if now >= due && m.weightsDue.CompareAndSwap(due, now+weight.Period.Nanoseconds()) {
		m.weights.Tidy(m.WeightTime())
	}
}

// managed reports whether an object belongs to a revision of weights. The shard is locked.
func (m *Master) managed(sh *object.Shard, o *object.Object) bool {
	return m.weights.Any() && m.weights.Managed(sh.GroupID(o))
}

// sealed reports whether neither the object, which may be nil, nor one of the group may be written
// because they belong to a revision of weights that is not being imported. The shard is locked.
func (m *Master) sealed(sh *object.Shard, o *object.Object, group string) bool {
	if !m.weights.Any() {
		return false
	}
	return !m.weights.Writable(group) || o != nil && !m.weights.Writable(sh.GroupID(o))
}

// weightObjects shows the store of weights the objects.
type weightObjects struct{ m *Master }

func (w weightObjects) keeper(tenantName string) *keeper {
	k, code := w.m.request(tenantName)
	if code != errcode.OK {
		return nil
	}
	return k
}

// Members implements weight.Objects.
func (w weightObjects) Members(tenantName, group string) []weight.Member {
	k := w.keeper(tenantName)
	if k == nil {
		return nil
	}
	var all []weight.Member
	for _, r := range k.space.MembersOf(group) {
		sh := k.space.ShardOf(r)
		sh.RLock()
		if o := sh.Live(r); o != nil {
			all = append(all, member(sh, o))
		}
		sh.RUnlock()
	}
	slices.SortFunc(all, func(a, b weight.Member) int { return strings.Compare(a.Key, b.Key) })
	return all
}

func member(sh *object.Shard, o *object.Object) weight.Member {
	v := weight.Member{Key: sh.KeyCopy(o), Size: o.Size}
	switch o.DataType {
	case dataWeights:
		v.Kind = weight.Weights
	case dataDescription:
		v.Kind = weight.Description
	}
	replicas := sh.Replicas(o)
	for i := range replicas {
		if r := &replicas[i]; r.Readable() {
			v.Readable = true
			v.InMemory = v.InMemory || r.Kind == object.KindMemory
			v.OnDisk = v.OnDisk || r.Kind != object.KindMemory
		}
	}
	return v
}

// Remove implements weight.Objects.
func (w weightObjects) Remove(tenantName, key string) bool {
	k := w.keeper(tenantName)
	if k == nil {
		return true
	}
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := w.m.current(k, sh, h, key)
	if o == nil {
		return true
	}
	if w.m.removable(sh, o, true, w.m.clock.Now()) != errcode.OK {
		return false
	}
	w.m.shed(k, sh, o, anyReplica, free)
	return true
}

// Evict implements weight.Objects.
func (w weightObjects) Evict(tenantName string, keys []string) {
	k := w.keeper(tenantName)
	if k == nil {
		return
	}
	for _, key := range keys {
		w.evict(k, key)
	}
}

func (w weightObjects) evict(k *keeper, key string) {
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	if o := w.m.current(k, sh, h, key); o != nil && !o.InFlight() && member(sh, o).OnDisk {
		w.m.shed(k, sh, o, (*object.Replica).Evictable, free)
	}
}

// Fetch implements weight.Objects.
func (w weightObjects) Fetch(tenantName, key string) {
	if k := w.keeper(tenantName); k != nil {
		w.m.promote(k, key, 0)
	}
}
