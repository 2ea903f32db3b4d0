package core_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// modelOps is how many random calls a test against the model makes; CORE_MODEL_OPS sets another
// number, as in
//
//	CORE_MODEL_OPS=1000000 go test -race -run 'TestModel' -timeout 2h ./core
//
// CORE_MODEL_SEED repeats a run.
func modelOps(t testing.TB, short int) (ops int, seed uint64) {
	ops, seed = short, rand.Uint64()
	if text := os.Getenv("CORE_MODEL_OPS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("CORE_MODEL_OPS: %v", err)
		}
		ops = n
	}
	if text := os.Getenv("CORE_MODEL_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CORE_MODEL_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("%d operations, seed %d", ops, seed)
	return ops, seed
}

// world adds to a walk what is not about objects: time, clients, segments and policies.
type world struct {
	walk
	nextStep int64
	silent   map[uint64]bool
}

const (
	modelClients = 64
	segmentBytes = 1 << 20
)

func newWorld(t testing.TB, seed uint64, change ...func(*core.Config)) *world {
	m := mastertest.New(t, append([]func(*core.Config){mastertest.Strict, mastertest.NoPoolEviction, patient}, change...)...)
	tenants := manyTenants(8)
	w := &world{
		walk: walk{
			t: t, m: m, model: newModel(m.Config(), m.Clock.Now(), tenants), r: rand.New(rand.NewPCG(seed, 0)),
			clients: modelClients, tenants: tenants, keys: manyKeys("", 40), batches: true,
			answers: map[errcode.Code]int{},
		},
		nextStep: m.Clock.Now(),
		silent:   map[uint64]bool{},
	}
	for c := range uint64(modelClients) {
		w.mount(c+1, segmentName(c+1, 0))
		w.remount(c + 1)
	}
	w.policies()
	return w
}

// patient gives patterns all the time they need: it is the machine's time, not the test's.
func patient(c *core.Config) { c.RegexTimeout = time.Hour }

func segmentName(client uint64, n int) string {
	return "c" + strconv.FormatUint(client, 10) + "-" + strconv.Itoa(n)
}

// advance lets time pass, with a step of both sides at every full second.
func (w *world) advance(d time.Duration) {
	end := w.model.now + int64(d)
	for w.nextStep <= end {
		w.setClock(w.nextStep)
		for c := range uint64(modelClients) {
			if !w.silent[c+1] {
				w.ping(c + 1)
			}
		}
		w.m.Step()
		w.model.step()
		w.nextStep += int64(time.Second)
		w.ledgers()
	}
	w.setClock(end)
}

func (w *world) setClock(now int64) {
	w.m.Clock.Set(time.Duration(now - w.model.now))
	w.model.now = now
}

func (w *world) ping(c uint64) {
	w.same(int(w.m.Ping(mastertest.ID(c))), w.model.ping(c), "ping of %d", c)
}

func (w *world) mount(c uint64, name string) {
	w.same(w.m.MountSegment(mastertest.Segment(c, name, segmentBytes), mastertest.ID(c)), w.model.mount(c, name, segmentBytes), "mount of %s", name)
}

func (w *world) remount(c uint64) {
	var infos []segment.Info
	for _, s := range w.model.segs {
		if s.client == c && !s.graceful {
			infos = append(infos, mastertest.Segment(c, s.name, segmentBytes))
		}
	}
	w.same(w.m.ReMountSegment(infos, mastertest.ID(c)), errcode.OK, "remount of %d", c)
	w.model.remount(c)
}

func (w *world) policies() {
	set := map[string]uint64{}
	var pairs []any
	for _, name := range w.tenants {
		quota := 20_000 + int(w.r.Uint64N(120_000))
		switch {
		case w.chance(12):
			continue // an orphan, if it has objects
		case w.chance(30):
			quota = 1 << 40 // everybody else gets a share of what is left, next to nothing
		}
		set[name] = uint64(quota)
		pairs = append(pairs, name, quota)
	}
	w.m.Policies(pairs...)
	w.model.policies(set)
}

// event is one thing that is not about objects.
func (w *world) event(liveness bool) {
	c := w.client()
	known := w.model.clients[c] != nil
	n := w.r.IntN(9)
	if !liveness && n >= 3 {
		n %= 3
	}
	switch n {
	case 0:
		w.policies()
	case 1:
		name := w.tenant()
		w.same(w.m.BeginRemoval(name), w.model.beginRemoval(name), "removal of %s", name)
		if w.chance(2) {
			w.m.CancelRemoval(name)
			w.model.tenants[name].removing = false
		}
	case 2:
		w.advance(time.Duration(w.r.IntN(3)) * time.Second)
	case 3, 4:
		if len(w.silent) < 20 {
			w.silent[c] = true
		}
	case 5, 6:
		for c := range w.silent { // any
			delete(w.silent, c)
			w.ping(c)
			if w.model.clients[c] == nil {
				w.mount(c, segmentName(c, w.r.IntN(3)))
				w.remount(c)
			}
			break
		}
	case 7:
		if known && !w.silent[c] {
			w.mount(c, segmentName(c, w.r.IntN(3)))
		}
	default:
		w.leave(c)
	}
}

// leave unmounts a segment of a client, unless it is the last but few.
func (w *world) leave(c uint64) {
	name := segmentName(c, w.r.IntN(3))
	s := w.model.segment(name)
	if w.model.placeable() < 20 {
		return
	}
	id := mastertest.Segment(c, name, segmentBytes).ID
	if w.chance(2) {
		grace := time.Duration(w.r.IntN(20)) * time.Second
		other := c
		if w.chance(4) {
			other = w.client()
		}
		w.same(w.m.GracefulUnmountSegment(id, mastertest.ID(other), uint64(grace.Milliseconds())),
			w.model.graceful(other, name, grace), "graceful unmount of %s by %d", name, other)
		return
	}
	w.same(w.m.UnmountSegment(id, mastertest.ID(c)), errcode.OK, "unmount of %s", name)
	if s != nil {
		w.model.unmount(s)
	}
}

func (w *world) run(ops int, liveness bool) {
	for w.ops < ops && !w.failed {
		w.advance(time.Duration(1 + w.r.IntN(20_000_000)))
		switch {
		case w.chance(60):
			w.event(liveness)
		case w.chance(5000):
			w.advance(31 * time.Second) // unfinished writes may be taken over
		}
		w.object()
		w.ledgers()
		if w.ops%500 == 0 {
			w.objects()
		}
	}
	w.objects()
	for c := range uint64(modelClients) {
		w.m.Revive(c + 1)
	}
	w.m.Drain(w.t)
}

// TestModel compares a master that refuses writes over quota with the model, call by call,
// while clients fall silent, come back, mount and unmount, and policies change.
func TestModel(t *testing.T) {
	t.Parallel()
	ops, seed := modelOps(t, 30_000)
	w := newWorld(t, seed, func(c *core.Config) {
		c.QuotaExceeded = core.Reject
		c.TenantWatermark = 0
	})
	w.run(ops, true)
	if ops < 30_000 {
		return
	}
	for _, code := range []errcode.Code{
		errcode.OK, errcode.InvalidParams, errcode.IllegalClient, errcode.InvalidWrite,
		errcode.ReplicaIsNotReady, errcode.ObjectNotFound, errcode.ObjectAlreadyExists, errcode.ObjectHasLease,
		errcode.TenantQuotaExceeded, errcode.TenantNotRegistered, errcode.TenantNotEmpty,
	} {
		if w.answers[code] == 0 {
			t.Errorf("no call was answered %v", code)
		}
	}
	t.Logf("answers %v, clients %+v", w.answers, w.m.Stats().Clients)
}

// TestModelOfEviction compares a master that evicts for writes over quota, and by the
// watermark: the model says which objects go.
func TestModelOfEviction(t *testing.T) {
	t.Parallel()
	ops, seed := modelOps(t, 30_000)
	w := newWorld(t, seed, func(c *core.Config) { c.LeaseTTL = 300 * time.Millisecond })
	w.batches = false // of objects with equal leases either may go
	w.run(ops, false)
	var evicted uint64
	for _, s := range w.m.Stats().Tenants {
		evicted += s.EvictedBytes
	}
	if evicted == 0 || !slices.ContainsFunc(w.m.Stats().Tenants, func(s core.TenantStat) bool { return s.Rejected > 0 }) {
		t.Errorf("%d bytes evicted; this run shows nothing: %+v", evicted, w.m.Stats().Tenants)
	}
}
