package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// action is something the author of a trace may do next.
type action struct {
	weight int
	do     func(w *world)
}

// objectActions are the calls about objects.
var objectActions = []action{
	{90, (*world).putWhole},
	{25, func(w *world) { w.startOne(false) }},
	{45, func(w *world) { w.startOne(true) }},
	{40, (*world).startMany},
	{70, (*world).endOne},
	{30, (*world).revokeOne},
	{40, (*world).endMany},
	{60, (*world).readOne},
	{40, (*world).readMany},
	{10, (*world).search},
	{30, (*world).admin},
	{40, (*world).removeOne},
	{15, (*world).removeMany},
	{3, (*world).removeFound},
	{1, (*world).removeAll},
	{12, (*world).clear},
	{8, (*world).pin},
}

// begun notes a write.
func (w *world) begun(tenant, key string, client int, size uint64, c *object.ReplicateConfig, i int) {
	p := &written{client: client, size: size, open: true}
	p.at = slices.Clone(c.PreferredSegments[:min(c.ReplicaNum, uint64(len(c.PreferredSegments)))])
	if c.GroupIDs != nil && i < len(*c.GroupIDs) {
		p.group = (*c.GroupIDs)[i]
	}
	w.writes[w.scoped(tenant, key)] = p
}

// closed notes the end of a write.
func (w *world) closed(tenant, key string) {
	if p := w.writes[w.scoped(tenant, key)]; p != nil {
		p.open = false
	}
}

func (w *world) number(id segment.UUID) int { return int(id.First) - 1 }

// putWhole writes an object from start to end.
func (w *world) putWhole() {
	tenant, key, client := w.tenant(), w.key(), w.client()
	for range 3 { // one that isn't there, if there is one
		if w.writes[w.scoped(tenant, key)] == nil {
			break
		}
		tenant, key = w.tenant(), w.key()
	}
	c, size := w.replicate([]string{key}), w.size()
	w.begun(tenant, key, w.number(client), size, &c, 0)
	scoped := w.scoped(tenant, key)
	w.add(call(wire.PutStart, wire.PutStartRequest{ClientID: client, Key: key, SliceLength: size, Config: c, TenantID: tenant}), scoped)
	w.add(call(wire.PutEnd, wire.PutEndRequest{ClientID: client, ObjectMeta: w.meta(key), ReplicaType: object.ReplicaAll, TenantID: tenant}), scoped)
	w.closed(tenant, key)
}

func (w *world) meta(key string) object.Meta {
	m := object.Meta{Key: key}
	if w.chance(30) {
		m.Checksum = pointer(w.r.Uint64())
	}
	return m
}

func (w *world) startOne(upsert bool) {
	tenant, key := w.object(w.chance(20))
	client := w.writer(tenant, key)
	if w.chance(20) {
		client = w.client()
	}
	if w.chance(1) {
		key = pick(w, oddKeys)
	}
	c, size, scoped := w.replicate([]string{key}), w.size(), w.scoped(tenant, key)
	if p := w.writes[scoped]; p != nil && upsert && w.chance(60) {
		size = p.size
		if w.chance(80) {
			c.GroupIDs = nil
		} else if p.group != "" {
			c.GroupIDs = &[]string{p.group}
		}
	}
	w.begun(tenant, key, w.number(client), size, &c, 0)
	if upsert {
		o := call(wire.UpsertStart, wire.UpsertStartRequest{ClientID: client, Key: key, SliceLength: size, Config: c, TenantID: tenant})
		o.minds = true
		w.add(o, scoped)
		w.follow(tenant, []string{key}, client)
		if w.chance(60) {
			w.add(call(wire.UpsertEnd, wire.UpsertEndRequest{ClientID: client, ObjectMeta: w.meta(key), ReplicaType: object.ReplicaAll, TenantID: tenant}), scoped)
			w.closed(tenant, key)
		}
		return
	}
	w.add(call(wire.PutStart, wire.PutStartRequest{ClientID: client, Key: key, SliceLength: size, Config: c, TenantID: tenant}), scoped)
}

func (w *world) startMany() {
	tenant, _ := w.object(false)
	keys := w.several()
	client := w.client()
	sizes := make([]uint64, len(keys))
	c := w.replicate(keys)
	for i, key := range keys {
		sizes[i] = w.size()
		if p := w.writes[w.scoped(tenant, key)]; p != nil && w.chance(40) {
			sizes[i] = p.size
		}
		w.begun(tenant, key, w.number(client), sizes[i], &c, i)
	}
	if w.chance(3) {
		sizes = append(sizes, 1)
	}
	names := w.all(tenant, keys)
	if w.chance(50) {
		w.add(call(wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: client, Keys: keys, SliceLengths: sizes, Config: c, TenantID: tenant}), names...)
	} else {
		if w.chance(80) {
			c.GroupIDs = nil
		}
		o := call(wire.BatchUpsertStart, wire.BatchUpsertStartRequest{ClientID: client, Keys: keys, SliceLengths: sizes, Config: c, TenantID: tenant})
		o.minds = true
		w.add(o, names...)
		w.follow(tenant, keys, client)
	}
	if w.chance(60) {
		w.finish(tenant, keys, client)
	}
}

// follow looks at what an upsert did to the tenant's charge.
func (w *world) follow(tenant string, keys []string, _ segment.UUID) {
	if w.config.policy != "" {
		o := httpOp("GET", "/api/v1/tenant_quotas?tenant_id="+url.QueryEscape(tenant), "")
		w.add(o, w.all(tenant, keys)...)
	}
}

// kind is a replica type to end or revoke, mostly the usual one.
func (w *world) kind() object.ReplicaType {
	if w.chance(85) {
		return object.ReplicaAll
	}
	return pick(w, []object.ReplicaType{
		object.ReplicaMemory, object.ReplicaMemory, object.ReplicaMemory, object.ReplicaDisk, object.ReplicaLocalDisk,
		object.ReplicaNoF, object.ReplicaDFS, 7,
	})
}

func (w *world) finish(tenant string, keys []string, client segment.UUID) {
	names := w.all(tenant, keys)
	metas := make([]object.Meta, len(keys))
	for i, key := range keys {
		metas[i] = w.meta(key)
	}
	switch {
	case w.chance(45):
		w.add(call(wire.BatchPutEnd, wire.BatchPutEndRequest{ClientID: client, ObjectMetas: metas, ReplicaType: w.kind(), TenantID: tenant}), names...)
	case w.chance(60):
		w.add(call(wire.BatchUpsertEnd, wire.BatchUpsertEndRequest{ClientID: client, ObjectMetas: metas, TenantID: tenant}), names...)
	case w.chance(50):
		w.add(call(wire.BatchPutRevoke, wire.BatchPutRevokeRequest{ClientID: client, Keys: keys, ReplicaType: w.kind(), TenantID: tenant}), names...)
	default:
		w.add(call(wire.BatchUpsertRevoke, wire.BatchUpsertRevokeRequest{ClientID: client, Keys: keys, TenantID: tenant}), names...)
	}
	for _, key := range keys {
		w.closed(tenant, key)
	}
}

func (w *world) endMany() {
	tenant, key := w.object(true)
	w.finish(tenant, append(w.several(), key), w.writer(tenant, key))
}

func (w *world) endOne() {
	tenant, key := w.object(true)
	client, scoped := w.writer(tenant, key), w.scoped(tenant, key)
	if w.chance(60) {
		w.add(call(wire.PutEnd, wire.PutEndRequest{ClientID: client, ObjectMeta: w.meta(key), ReplicaType: w.kind(), TenantID: tenant}), scoped)
	} else {
		w.add(call(wire.UpsertEnd, wire.UpsertEndRequest{ClientID: client, ObjectMeta: w.meta(key), ReplicaType: w.kind(), TenantID: tenant}), scoped)
	}
	w.closed(tenant, key)
}

func (w *world) revokeOne() {
	tenant, key := w.object(true)
	client, scoped := w.writer(tenant, key), w.scoped(tenant, key)
	if w.chance(50) {
		w.add(call(wire.PutRevoke, wire.PutRevokeRequest{ClientID: client, Key: key, ReplicaType: w.kind(), TenantID: tenant}), scoped)
	} else {
		w.add(call(wire.UpsertRevoke, wire.UpsertRevokeRequest{ClientID: client, Key: key, ReplicaType: w.kind(), TenantID: tenant}), scoped)
	}
	w.closed(tenant, key)
}

func (w *world) readOne() {
	tenant, key := w.object(false)
	scoped := w.scoped(tenant, key)
	switch w.r.IntN(10) {
	case 0, 1, 2:
		o := call(wire.ExistKey, wire.ExistKeyRequest{Key: key, TenantID: tenant})
		o.leases = true
		w.add(o, scoped)
	case 3, 4:
		w.add(call(wire.ProbeKey, wire.ProbeKeyRequest{Key: key, TenantID: tenant}), scoped)
	default:
		o := call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: tenant})
		o.leases = true
		w.add(o, scoped)
	}
}

func (w *world) readMany() {
	tenant := w.tenant()
	keys := w.several()
	names := w.all(tenant, keys)
	var o *op
	switch w.r.IntN(4) {
	case 0:
		o = call(wire.BatchExistKey, wire.BatchExistKeyRequest{Keys: keys, TenantID: tenant})
	case 1:
		policy := wire.LeasePolicy{Mode: wire.LeaseMode(w.r.IntN(2)), CandidateSize: uint64(1 + w.r.IntN(3))}
		if w.chance(10) {
			policy = wire.LeasePolicy{Mode: wire.LeaseMode(w.r.IntN(4)), CandidateSize: uint64(w.r.IntN(2))}
		}
		o = call(wire.BatchProbeKey, wire.BatchProbeKeyRequest{Policy: policy, Keys: keys, TenantID: tenant})
	default:
		o = call(wire.BatchGetReplicaList, wire.BatchGetReplicaListRequest{Keys: keys, TenantID: tenant})
	}
	o.leases = true
	w.add(o, names...)
}

// pattern returns a regular expression.
func (w *world) pattern() string {
	return pick(w, []string{
		".*", "^k", "m[0-3]$", "^" + w.key() + "$", "(k|m)1", "k(?!1)", "[", "nothing", "(k)\\1", "\\d", w.key(), "^[[:alpha:]]2", "",
	})
}

func (w *world) search() {
	tenant := w.tenant()
	o := call(wire.GetReplicaListByRegex, wire.GetReplicaListByRegexRequest{Regex: w.pattern(), TenantID: tenant})
	o.leases = true
	w.add(o)
}

func (w *world) admin() {
	tenant, key := w.object(false)
	switch w.r.IntN(5) {
	case 0, 1:
		w.add(call(wire.GetReplicaListForAdmin, wire.GetReplicaListForAdminRequest{Key: key, TenantID: tenant}), w.scoped(tenant, key))
	case 2, 3:
		keys := w.several()
		w.add(call(wire.BatchGetReplicaListForAdmin, wire.BatchGetReplicaListForAdminRequest{Keys: keys, TenantID: tenant}), w.all(tenant, keys)...)
	case 4:
		if w.chance(50) {
			w.add(httpOp("GET", "/batch_query_keys?keys="+key+","+w.key(), ""))
			return
		}
		// The original leases what it is asked about; so both sides have it leased in the end.
		scoped := w.scoped("default", key)
		o := httpOp("GET", "/query_key?key="+key, "")
		o.leases = true
		w.add(o, scoped)
		o = call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: "default"})
		o.leases = true
		w.add(o, scoped)
	}
}

// gone notes that an object has gone, if it has.
func (w *world) gone(tenant string, keys ...string) {
	for _, key := range keys {
		if p := w.writes[w.scoped(tenant, key)]; p != nil && !p.open {
			delete(w.writes, w.scoped(tenant, key))
		}
	}
}

func (w *world) removeOne() {
	tenant, key := w.object(false)
	o := call(wire.Remove, wire.RemoveRequest{Key: key, Force: w.chance(60), TenantID: tenant})
	o.minds = true
	w.add(o, w.scoped(tenant, key))
	w.gone(tenant, key)
}

func (w *world) removeMany() {
	tenant, keys := w.tenant(), w.several()
	o := call(wire.BatchRemove, wire.BatchRemoveRequest{Keys: keys, Force: w.chance(60), TenantID: tenant})
	o.minds = true
	w.add(o, w.all(tenant, keys)...)
	w.gone(tenant, keys...)
}

func (w *world) removeFound() {
	tenant := w.tenant()
	o := call(wire.RemoveByRegex, wire.RemoveByRegexRequest{Regex: w.pattern(), Force: w.chance(50), TenantID: tenant})
	o.minds = true
	w.add(o)
}

func (w *world) removeAll() {
	tenant := w.tenant()
	if w.chance(30) {
		o := httpOp("POST", "/api/v1/remove_all"+pick(w, []string{"", "?force=true", "?force=1&tenant_id=" + url.QueryEscape(tenant), "?force=0&tenant_id=default"}), "")
		o.minds = true
		w.add(o)
		return
	}
	if w.chance(20) {
		tenant = ""
	}
	o := call(wire.RemoveAll, wire.RemoveAllRequest{Force: w.chance(50), TenantID: tenant})
	o.minds = true
	w.add(o)
}

// clear drops replicas of objects on one segment, or everywhere.
func (w *world) clear() {
	tenant, key := w.object(false)
	q := wire.BatchReplicaClearRequest{ObjectKeys: append(w.several(), key), ClientID: w.writer(tenant, key), TenantID: tenant}
	if w.chance(60) {
		q.SegmentName = w.segment().info.Name
	}
	if w.chance(5) {
		q.SegmentName = "nowhere:1"
	}
	if w.chance(10) {
		q.TenantID = wire.DefaultTenant
		o := rpcOp(wire.BatchReplicaClear, q, binding[wire.BatchReplicaClearRequest, errcode.Result[[]string]]{old: true})
		o.name, o.minds, o.instead = "BatchReplicaClear as 0.3.13", true, call(wire.BatchReplicaClear, q)
		w.add(o, w.all(wire.DefaultTenant, q.ObjectKeys)...)
	}
	o := call(wire.BatchReplicaClear, q)
	o.minds = true
	w.add(o, w.all(q.TenantID, q.ObjectKeys)...)
	w.gone(q.TenantID, q.ObjectKeys...)
}

// pin asks for soft pins over HTTP.
func (w *world) pin() {
	tenant, key := w.object(false)
	keys := fmt.Sprintf(`["%s","%s"]`, key, w.key())
	body := pick(w, []string{
		`{"keys":` + keys + `,"tenant_id":"` + tenant + `","ttl_ms":100000}`, `{"keys":` + keys + `,"tenant_id":"` + tenant + `","ttl_ms":100000}`,
		`{"keys":` + keys + `}`, `{"keys":` + keys + `,"tenant_id":"` + tenant + `"}`, `{"keys":[]}`, `{}`, `[`, ``, `{"keys":["a"],"tenant_id":"_x"}`,
		`{"keys":` + keys + `,"ttl_ms":0}`, `{"keys":` + keys + `,"ttl_ms":-1}`, `{"keys":` + keys + `,"ttl_ms":604800001}`, `{"keys":"k"}`,
	})
	if strings.Contains(tenant, "\x01") {
		return
	}
	w.add(httpOp("POST", pick(w, []string{"/api/v1/soft_pin", "/api/v1/soft_pin", "/api/v1/soft_unpin"}), body))
}
