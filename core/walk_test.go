package core_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// walk drives a master and a model with the same random calls and compares every answer.
type walk struct {
	t       testing.TB
	m       *mastertest.Master
	model   *model
	r       *rand.Rand
	clients uint64
	tenants []string
	keys    []string
	prefix  string // of keys and groups
	batches bool   // calls that give many objects the same lease
	ops     int
	failed  bool
	answers map[errcode.Code]int // how often each code was the answer of both
}

func (w *walk) failf(format string, args ...any) {
	if !w.failed {
		w.failed = true
		w.t.Errorf("operation %d: %s", w.ops, fmt.Sprintf(format, args...))
	}
}

func (w *walk) same(got, want any, call string, args ...any) {
	if got != want {
		w.failf("%s: master answers %v, model %v", fmt.Sprintf(call, args...), got, want)
	}
	if code, ok := got.(errcode.Code); ok {
		w.answers[code]++
	}
}

func (w *walk) sameList(got, want []string, call string, args ...any) {
	if !slices.Equal(got, want) {
		w.failf("%s: master answers %q, model %q", fmt.Sprintf(call, args...), got, want)
	}
}

func (w *walk) key() string    { return w.keys[w.r.IntN(len(w.keys))] }
func (w *walk) tenant() string { return w.tenants[w.r.IntN(len(w.tenants))] }
func (w *walk) client() uint64 { return 1 + w.r.Uint64N(w.clients) }
func (w *walk) chance(n int) bool {
	return w.r.IntN(n) == 0
}

func (w *walk) some() (keys []string) {
	for range 1 + w.r.IntN(12) {
		keys = append(keys, w.key())
	}
	return keys
}

// writer is mostly who writes the key, if anybody does.
func (w *walk) writer(tenantName, key string) uint64 {
	if o := w.model.tenants[tenantName].objects[key]; o != nil && !w.chance(5) {
		return o.owner
	}
	return w.client()
}

// write makes up a write.
func (w *walk) write(key string) (modelWrite, *object.ReplicateConfig) {
	mw := modelWrite{
		client: w.client(), key: key,
		size:     []uint64{100, 1000, 1000, 4096}[w.r.IntN(4)],
		replicas: []uint64{1, 1, 1, 2, 3}[w.r.IntN(5)],
		hard:     w.chance(40),
	}
	cfg := mastertest.Config(mastertest.Replicas(mw.replicas))
	cfg.WithHardPin = mw.hard
	switch w.r.IntN(8) {
	case 0:
		ttl := time.Duration(w.r.IntN(60)) * time.Second
		mastertest.SoftPin(ttl)(cfg)
		mw.pin = modelPin{object.SoftPinEnable, int64(ttl)}
	case 1:
		mastertest.Unpin(cfg)
		mw.pin = modelPin{action: object.SoftPinDisable}
	}
	if w.chance(4) {
		mw.grouped = true
		if !w.chance(3) {
			mw.group = w.prefix + "g" + string(rune('0'+w.r.IntN(5)))
		}
		mastertest.Group(mw.group, 1)(cfg)
	}
	return mw, cfg
}

func names(replicas []object.ReplicaDescriptor) (names []string) {
	for i := range replicas {
		names = append(names, replicas[i].Location.Memory.Buffer.Endpoint)
	}
	return names
}

func (w *walk) start() {
	tenantName, key := w.tenant(), w.key()
	mw, cfg := w.write(key)
	call, modelCall := w.m.PutStart, w.model.put
	if w.chance(2) {
		call, modelCall = w.m.UpsertStart, w.model.upsert
	}
	replicas, code := call(mastertest.ID(mw.client), tenantName, key, mw.size, cfg, nil)
	o, fresh, want := modelCall(tenantName, mw)
	w.same(code, want, "start of %s/%s, %d bytes", tenantName, key, mw.size)
	if code == errcode.OK && want == errcode.OK {
		w.check(o, fresh, mw, replicas)
	}
}

func (w *walk) check(o *modelObject, fresh bool, mw modelWrite, replicas []object.ReplicaDescriptor) {
	if fresh {
		if !w.model.placed(o, mw.replicas, names(replicas)) {
			w.failf("replicas of %s are on %q, of %d wanted", mw.key, names(replicas), mw.replicas)
		}
		return
	}
	var have []string
	for _, s := range o.at {
		have = append(have, s.name)
	}
	w.sameList(names(replicas), have, "replicas rewritten in place of %s", mw.key)
}

func (w *walk) batchStart() {
	tenantName, keys := w.tenant(), w.some()
	mw, cfg := w.write("")
	cfg.GroupIDs, mw.grouped, mw.group = nil, false, ""
	var sizes []uint64
	for range keys {
		sizes = append(sizes, 100+100*w.r.Uint64N(3))
	}
	call, modelCall := w.m.BatchPutStart, w.model.put
	if w.chance(2) {
		call, modelCall = w.m.BatchUpsertStart, w.model.upsert
	}
	results := call(mastertest.ID(mw.client), tenantName, keys, sizes, cfg, nil)
	for i, key := range keys {
		mw.key, mw.size = key, sizes[i]
		o, fresh, want := modelCall(tenantName, mw)
		w.same(results[i].Code, want, "batch start of %s/%s", tenantName, key)
		if results[i].Code == errcode.OK && want == errcode.OK {
			w.check(o, fresh, mw, results[i].Value)
		}
	}
}

var kinds = []object.ReplicaType{object.ReplicaAll, object.ReplicaAll, object.ReplicaAll, object.ReplicaMemory, object.ReplicaDisk, object.ReplicaDFS}

func (w *walk) finish() {
	tenantName, key := w.tenant(), w.key()
	for range 4 { // look for one that is being written
		if o := w.model.tenants[tenantName].objects[key]; o != nil && o.writing {
			break
		}
		key = w.key()
	}
	client, kind := w.writer(tenantName, key), kinds[w.r.IntN(len(kinds))]
	if w.chance(6) {
		w.same(w.m.PutRevoke(mastertest.ID(client), tenantName, key, kind),
			w.model.revoke(tenantName, key, client, kind), "revoke of %s/%s", tenantName, key)
		return
	}
	var sum *uint64
	if w.chance(3) {
		v := w.r.Uint64()
		sum = &v
	}
	w.same(w.m.PutEnd(mastertest.ID(client), tenantName, &object.Meta{Key: key, Checksum: sum}, kind),
		w.model.end(tenantName, key, client, kind, sum, w.model.now), "end of %s/%s", tenantName, key)
}

func (w *walk) batchFinish() {
	tenantName, keys := w.tenant(), w.some()
	client := w.writer(tenantName, keys[0])
	if w.chance(4) {
		for i, got := range w.m.BatchPutRevoke(mastertest.ID(client), tenantName, keys, object.ReplicaAll, nil) {
			w.same(got.Code, w.model.revoke(tenantName, keys[i], client, object.ReplicaAll), "batch revoke of %s/%s", tenantName, keys[i])
		}
		return
	}
	var metas []object.Meta
	for _, key := range keys {
		metas = append(metas, object.Meta{Key: key})
	}
	for i, got := range w.m.BatchPutEnd(mastertest.ID(client), tenantName, metas, object.ReplicaAll, nil) {
		w.same(got.Code, w.model.end(tenantName, keys[i], client, object.ReplicaAll, nil, w.model.now+int64(i)), "batch end of %s/%s", tenantName, keys[i])
	}
}

func (w *walk) read() {
	tenantName, key := w.tenant(), w.key()
	switch w.r.IntN(4) {
	case 0:
		got, code := w.m.ExistKey(tenantName, key)
		_, want := w.model.look(tenantName, key, true)
		w.same(got, want == errcode.OK && code == errcode.OK, "exist of %s/%s", tenantName, key)
	case 1:
		got, code := w.m.ProbeKey(tenantName, key)
		_, want := w.model.look(tenantName, key, false)
		w.same(got, want == errcode.OK && code == errcode.OK, "probe of %s/%s", tenantName, key)
	case 2:
		var list object.ReplicaList
		code := w.m.AdminReplicas(tenantName, key, &list)
		want, wantCode := w.model.look(tenantName, key, false)
		w.same(code, wantCode, "admin read of %s/%s", tenantName, key)
		w.sameList(names(list.Replicas), want, "replicas of %s/%s", tenantName, key)
	default:
		var list object.ReplicaList
		code := w.m.GetReplicaList(tenantName, key, &list)
		w.compare(tenantName, key, code, &list)
	}
}

func (w *walk) compare(tenantName, key string, code errcode.Code, list *object.ReplicaList) {
	want, wantCode := w.model.look(tenantName, key, true)
	w.same(code, wantCode, "read of %s/%s", tenantName, key)
	if code != errcode.OK || wantCode != errcode.OK {
		return
	}
	w.sameList(names(list.Replicas), want, "replicas of %s/%s", tenantName, key)
	o := w.model.tenants[tenantName].objects[key]
	if (list.Checksum == nil) != (o.sum == nil) || list.Checksum != nil && *list.Checksum != *o.sum {
		w.failf("checksum of %s/%s differs", tenantName, key)
	}
	if list.ResolvedTenantID == nil || *list.ResolvedTenantID != tenantName {
		w.failf("read of %s/%s says another tenant", tenantName, key)
	}
}

func (w *walk) batchRead() {
	tenantName, keys := w.tenant(), w.some()
	if w.chance(2) {
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
		for i, got := range w.m.BatchExistKey(tenantName, keys, nil) {
			_, want := w.model.look(tenantName, keys[i], true)
			w.same(got.Value, want == errcode.OK, "batch exist of %s/%s", tenantName, keys[i])
		}
		return
	}
	for i, got := range w.m.BatchGetReplicaList(tenantName, keys, nil) {
		w.compare(tenantName, keys[i], got.Code, &got.Value)
	}
}

func (w *walk) remove() {
	tenantName, key, force := w.tenant(), w.key(), w.chance(3)
	client := w.writer(tenantName, key)
	switch w.r.IntN(8) {
	case 0:
		keys := w.some()
		for i, got := range w.m.BatchRemove(tenantName, keys, force, nil) {
			w.same(got.Code, w.model.remove(tenantName, keys[i], force), "batch remove of %s/%s", tenantName, keys[i])
		}
	case 1:
		pattern := "^" + w.prefix + "k1?" + string(rune('0'+w.r.IntN(10))) + "$"
		got, code := w.m.RemoveByRegex(tenantName, pattern, force)
		re, want := regexp.MustCompile(pattern), int64(0)
		for _, key := range w.keys {
			if re.MatchString(key) && w.model.remove(tenantName, key, force) == errcode.OK {
				want++
			}
		}
		w.same(code, errcode.OK, "removal by %s", pattern)
		w.same(got, want, "removal by %s", pattern)
	case 2:
		segment := ""
		if o := w.model.tenants[tenantName].objects[key]; o != nil && w.chance(2) {
			segment = o.at[w.r.IntN(len(o.at))].name
		}
		got, _ := w.m.BatchReplicaClear(tenantName, []string{key}, mastertest.ID(client), segment)
		w.same(len(got) == 1, w.model.clear(tenantName, key, client, segment), "clearing %s/%s of %q", tenantName, key, segment)
	case 3:
		ttl := time.Duration(w.r.IntN(30)) * time.Second
		ms := uint64(ttl.Milliseconds())
		w.same(w.m.SetSoftPins(tenantName, []string{key}, &ms)[0], w.model.pinNow(tenantName, key, ttl), "pin of %s/%s", tenantName, key)
	default:
		w.same(w.m.Remove(tenantName, key, force), w.model.remove(tenantName, key, force), "remove of %s/%s", tenantName, key)
	}
}

// nonsense is refused by both, and must change nothing.
func (w *walk) nonsense() {
	tenantName, key := w.tenant(), w.key()
	id := mastertest.ID(w.client())
	start := func(tenantName, key string, size uint64, change ...mastertest.Option) errcode.Code {
		_, code := w.m.PutStart(id, tenantName, key, size, mastertest.Config(change...), nil)
		return code
	}
	switch w.r.IntN(6) {
	case 0:
		w.same(start("_"+tenantName, key, 1), errcode.TenantNotRegistered, "put of a bad tenant")
	case 1:
		w.same(start("", key, 1), errcode.TenantNotRegistered, "put of no tenant")
	case 2:
		w.same(start(tenantName, "", 1), errcode.InvalidParams, "put of no key")
	case 3:
		w.same(start(tenantName, key, 0), errcode.InvalidParams, "put of nothing")
	case 4:
		w.same(start(tenantName, key, 1, mastertest.Group("g", 2)), errcode.InvalidParams, "put with two groups")
	default:
		w.same(w.m.Remove("_x", key, true), errcode.InvalidParams, "remove of a bad tenant")
	}
}

// object runs one random call about objects.
func (w *walk) object() {
	w.ops++
	switch n := w.r.IntN(100); {
	case n < 26:
		w.start()
	case n < 30:
		w.batchStart()
	case n < 54:
		w.finish()
	case n < 58:
		w.batchFinish()
	case n < 78:
		w.read()
	case n < 84:
		if w.batches {
			w.batchRead()
		} else {
			w.read()
		}
	case n < 98:
		w.remove()
	default:
		w.nonsense()
	}
}

// ledgers compares what every tenant is charged and entitled to.
func (w *walk) ledgers() {
	for _, name := range w.tenants {
		t := w.model.tenants[name]
		s, known := w.m.TenantSnapshot(name)
		if known != (t.quota > 0 || t.charged() > 0) {
			w.failf("tenant %s: master knows it %v", name, known)
		}
		if !known {
			continue
		}
		if s.ChargedBytes != t.charged() || s.EffectiveQuotaBytes != t.effective || s.RequestedQuotaBytes != t.quota || s.AdmissionClosed == t.open() {
			w.failf("tenant %s: master says %+v, model charged %d effective %d requested %d open %v", name, s, t.charged(), t.effective, t.quota, t.open())
		}
	}
}

// objects compares the readable keys of every tenant, and the numbers about all objects.
func (w *walk) objects() {
	var keys, pinned, rewritten int64
	for _, name := range w.tenants {
		var want []string
		for _, o := range w.model.tenants[name].objects {
			keys++
			if !o.hard && o.soft > w.model.now {
				if o.writing {
					rewritten++
				} else {
					pinned++
				}
			}
			if w.model.readable(o) != nil {
				want = append(want, o.key)
			}
		}
		got := w.m.AllKeys(name)
		slices.Sort(got)
		slices.Sort(want)
		w.sameList(got, want, "keys of %s", name)
	}
	s := w.m.Stats()
	w.same(s.Keys, keys, "number of keys")
	if n := s.SoftPinnedKeys; n < pinned || n > pinned+rewritten {
		w.failf("master counts %d soft-pinned keys, model %d and %d that are being rewritten", n, pinned, rewritten)
	}
	if err := w.m.Check(); err != nil {
		w.failf("invariants: %v", err)
	}
}

func manyKeys(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, "k", i))
	}
	return keys
}

func manyTenants(n int) []string {
	return strings.Fields("a b c default e f g h")[:n]
}
