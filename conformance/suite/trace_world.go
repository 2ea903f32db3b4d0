package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// world is what the author of a trace believes about the masters. It only makes hits likelier:
// operations never depend on answers.
type world struct {
	config  *traceConfig
	r       *rand.Rand
	ops     []*op
	clients []segment.UUID
	segs    []*lent
	writes  map[string]*written // by TENANT/KEY
	tasks   []int               // numbers of the operations that created tasks
	queued  []string            // TENANT/KEY of copies and moves begun
	setup   bool
}

// lent is a segment and its owner.
type lent struct {
	info    segment.Info
	owner   int
	mounted bool
}

// written is the last write of a key.
type written struct {
	client int
	size   uint64
	open   bool
	group  string
	at     []string // names of the segments it was meant for
}

// The clients: three lend memory, the fourth has none, the fifth is never heard of.
const lenders, known, strangers = 3, 4, 5

const gib = 1 << 30

func newWorld(config *traceConfig, seed uint64, chapter int) *world {
	w := &world{config: config, r: rand.New(rand.NewPCG(seed, uint64(chapter))), writes: map[string]*written{}}
	for i := range strangers {
		w.clients = append(w.clients, segment.UUID{First: uint64(i + 1), Second: uint64(100 + i)})
	}
	owners := []int{0, 0, 1, 1, 2}
	for i, owner := range owners[:config.segments] {
		name := fmt.Sprintf("10.0.%d.%d:1234%d", owner, owner+1, i)
		w.segs = append(w.segs, &lent{owner: owner, info: segment.Info{
			ID: segment.UUID{First: uint64(1000 + i), Second: uint64(i)}, Name: name, Base: uint64(i+1) << 40, Size: config.segmentSize,
			Endpoint: name, Protocol: "tcp", HostID: fmt.Sprint("host", owner),
		}})
	}
	w.setup = true
	config.prepare(w)
	w.setup = false
	return w
}

// add appends an operation.
func (w *world) add(o *op, touches ...string) *op {
	o.n, o.touches, o.setup = len(w.ops), touches, w.setup
	o.leases = o.leases || strings.HasSuffix(o.name, "PutStart") // one that is refused leases what there is
	w.ops = append(w.ops, o)
	return o
}

// fill makes operations until there are n.
func (w *world) fill(n int) []*op {
	total := 0
	for _, a := range w.config.actions {
		total += a.weight
	}
	for at := len(w.ops); len(w.ops) < n; {
		pick := w.r.IntN(total)
		for _, a := range w.config.actions {
			if pick -= a.weight; pick < 0 {
				a.do(w)
				break
			}
		}
		if w.config.policy != "" && len(w.ops)-at >= 100 {
			at = len(w.ops)
			w.add(httpOp("GET", "/api/v1/tenant_quotas", ""))
		}
	}
	w.last()
	return w.ops
}

// last looks at everything there is.
func (w *world) last() {
	w.add(httpOp("GET", "/api/v1/tenant_quotas", ""))
	for _, tenant := range w.config.tenants {
		w.add(call(wire.BatchGetReplicaListForAdmin, wire.BatchGetReplicaListForAdminRequest{Keys: w.config.keys, TenantID: tenant}))
	}
	w.add(httpOp("GET", "/get_all_keys", ""))
	for _, tenant := range w.config.tenants {
		w.add(call(wire.GetReplicaListByRegex, wire.GetReplicaListByRegexRequest{Regex: ".*", TenantID: tenant}))
	}
	w.add(httpOp("GET", "/get_segments_detail", ""))
}

func (w *world) chance(percent int) bool { return w.r.IntN(100) < percent }

func pick[T any](w *world, all []T) T { return all[w.r.IntN(len(all))] }

// key returns a key; a few are in fashion at a time.
func (w *world) key() string {
	keys := w.config.keys
	if w.chance(80) {
		return keys[(len(w.ops)/400*3+w.r.IntN(4))%len(keys)]
	}
	return pick(w, keys)
}

// tenant returns a tenant, mostly one that may write.
func (w *world) tenant() string {
	switch {
	case w.chance(2):
		return pick(w, []string{"", "_x", "bad\x01", "ghost", "a/b c", "Ä"})
	case w.chance(70):
		return w.config.tenants[0]
	}
	return pick(w, w.config.tenants)
}

// scoped names a key of a tenant as the masters see it.
func (w *world) scoped(tenant, key string) string {
	if tenant == "" || w.config.policy == "" {
		tenant = "default"
	}
	return tenant + "/" + key
}

// all names keys of one tenant.
func (w *world) all(tenant string, keys []string) []string {
	var names []string
	for _, k := range keys {
		names = append(names, w.scoped(tenant, k))
	}
	return names
}

// object returns a tenant and a key of it: with luck one whose write is open, or not.
func (w *world) object(open bool) (tenant, key string) {
	for range 6 {
		tenant, key = w.tenant(), w.key()
		if p := w.writes[w.scoped(tenant, key)]; p != nil && p.open == open {
			break
		}
	}
	return tenant, key
}

// writer returns the client that last wrote an object, or now and then another.
func (w *world) writer(tenant, key string) segment.UUID {
	if p := w.writes[w.scoped(tenant, key)]; p != nil && !w.chance(8) {
		return w.clients[p.client]
	}
	return w.client()
}

func (w *world) client() segment.UUID {
	if w.chance(12) {
		return pick(w, w.clients)
	}
	return w.clients[w.r.IntN(lenders)]
}

// at returns the segments where an object should lie.
func (w *world) at(tenant, key string) []string {
	if p := w.writes[w.scoped(tenant, key)]; p != nil {
		return p.at
	}
	return nil
}

// source returns a segment's name that probably holds an object.
func (w *world) source(tenant, key string) string {
	if at := w.at(tenant, key); len(at) > 0 && w.chance(90) {
		return pick(w, at)
	}
	return w.target(key)
}

// elsewhere returns a segment's name that probably doesn't hold an object.
func (w *world) elsewhere(tenant, key string) string {
	at := w.at(tenant, key)
	for _, name := range w.targets(key) {
		if !slices.Contains(at, name) && w.chance(90) {
			return name
		}
	}
	return w.target(key)
}

// several returns one to five keys of a tenant, some twice.
func (w *world) several() []string {
	keys := make([]string, 1+w.r.IntN(5))
	for i := range keys {
		keys[i] = w.key()
		if w.chance(2) {
			keys[i] = pick(w, oddKeys)
		}
	}
	if w.chance(2) {
		return nil
	}
	return keys
}

// oddKeys are met now and then.
var oddKeys = []string{"", "unknown", "k\x00n", "x\x00y", strings.Repeat("long", 300)}

func (w *world) size() uint64 {
	switch w.r.IntN(40) {
	case 0:
		return pick(w, []uint64{0, 1, 7, 1 << 62, 1 << 63, 1<<64 - 1, 5 * gib})
	case 1, 2, 3:
		return uint64(1 + w.r.IntN(3<<20))
	}
	return pick(w, []uint64{100, 1000, 4096, 65536, 100_000, 262_144, 1 << 20})
}

// places returns every segment's name in a random order, so that no master has a choice. Keys
// that begin with m lie only in memory of the first client.
func (w *world) places(key string) []string {
	var first, rest []string
	for _, i := range w.r.Perm(len(w.segs)) {
		if s := w.segs[i]; s.owner == 0 && strings.HasPrefix(key, "m") {
			first = append(first, s.info.Name)
		} else {
			rest = append(rest, s.info.Name)
		}
	}
	all := append(first, rest...)
	if w.chance(3) {
		all = slices.Insert(all, w.r.IntN(len(all)+1), pick(w, []string{"nowhere:1", "", all[0]}))
	}
	return all
}

// replicate returns how to store keys; upsert says that they may exist.
func (w *world) replicate(keys []string) object.ReplicateConfig {
	key := ""
	for _, k := range keys {
		if key = k; strings.HasPrefix(k, "m") {
			break
		}
	}
	c := object.ReplicateConfig{ReplicaNum: 1, PreferredSegments: w.places(key)}
	if w.chance(20) && len(w.segs) > 1 {
		c.ReplicaNum = 2
		if w.chance(30) && !strings.HasPrefix(key, "m") {
			c.ReplicaNum = uint64(2 + w.r.IntN(5))
		}
	}
	if w.chance(8) {
		c.WithHardPin = true
	}
	if w.chance(10) {
		c.SoftPinAction = object.SoftPinAction(w.r.IntN(3))
		if c.SoftPinAction == object.SoftPinEnable && w.chance(70) {
			c.SoftPinTTLMs = pointer(pick(w, []uint64{0, 1_000_000, 604_800_000}))
		}
	}
	if w.chance(10) {
		c.DataType = object.DataType(w.r.IntN(11))
	}
	if w.chance(15) {
		groups := make([]string, len(keys))
		for i := range groups {
			groups[i] = pick(w, []string{"g1", "g2", "g3", ""})
		}
		c.GroupIDs = &groups
	}
	if w.chance(10) {
		c.HostID = pick(w, []string{"host0", "host1", "elsewhere"})
	}
	if w.chance(3) {
		c.PreferAllocInSameNode, c.ReplicaNum = true, 1 // a second replica would lie anywhere
	}
	if w.chance(4) {
		w.spoil(&c, len(keys))
	}
	return c
}

// spoil makes a configuration wrong, or odd.
func (w *world) spoil(c *object.ReplicateConfig, keys int) {
	n := []string{"x"}
	switch w.r.IntN(12) {
	case 0:
		c.ReplicaNum = 0
	case 1:
		c.NoFReplicaNum = 1
	case 2:
		c.ReplicaNum, c.NoFReplicaNum = 0, 1
	case 3:
		c.DFSReplicaNum = uint64(1 + w.r.IntN(2))
	case 4:
		c.ReplicaNum, c.DFSReplicaNum = 0, 1
	case 5:
		c.SoftPinTTLMs = pointer(uint64(1000))
	case 6:
		c.SoftPinAction, c.SoftPinTTLMs = object.SoftPinEnable, pointer(uint64(604_800_001))
	case 7:
		c.SoftPinAction = 7
	case 8:
		groups := slices.Repeat([]string{"g1"}, keys+1)
		c.GroupIDs = &groups
	case 9:
		c.SessionIDs = &n
	case 10:
		c.ResidencyAffinityIDs = &n
	case 11:
		c.PreferredHCANames = &n
	}
}

func pointer[T any](v T) *T { return &v }

// task returns the number of an operation that created a task, mostly a recent one.
func (w *world) task() int {
	switch {
	case len(w.tasks) == 0 || w.chance(3):
		return -1
	case w.chance(80):
		return w.tasks[max(0, len(w.tasks)-1-w.r.IntN(12))]
	}
	return pick(w, w.tasks)
}
