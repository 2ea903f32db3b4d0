package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

const hammers = 16

// TestHammer lets 16 goroutines call everything at once on the same few keys and groups of
// tenants that are always full, in memory that is full, too, with the background work running
// by real tickers (faster than usual), while segments come and go, a client falls
// silent now and then, and a policy comes and goes. No answer is known, but codes must be
// possible ones, no charge may pass its quota, and all must add up in the end.
func TestHammer(t *testing.T) {
	for _, replace := range []bool{false, true} {
		t.Run(fmt.Sprintf("replace=%v", replace), func(t *testing.T) {
			t.Parallel()
			ops, seed := modelOps(t, 40_000)
			newHammer(t, replace).run(ops/hammers, seed)
		})
	}
}

type hammer struct {
	t       *testing.T
	m       *mastertest.Master
	replace bool // objects are upserted, which may charge the old and the new value for a while
	fail    atomic.Bool
}

func newHammer(t *testing.T, replace bool) *hammer {
	m := mastertest.New(t, mastertest.Strict, patient, func(c *core.Config) {
		c.LeaseTTL = 20 * time.Millisecond
		c.PutDiscardTimeout = 50 * time.Millisecond
		c.PutReleaseTimeout = 100 * time.Millisecond
		c.ClientActiveTTL = 500 * time.Millisecond
		c.ClientSuspicionTTL = 500 * time.Millisecond
	})
	for c := range uint64(4) {
		m.Mount(c+1, segmentName(c+1, 0), 200_000)
	}
	h := &hammer{t: t, m: m, replace: replace}
	h.policies(true)
	return h
}

func (h *hammer) policies(all bool) {
	pairs := []any{"a", 200_000, "b", 300_000} // with c, as much as the three segments that stay
	if all {
		pairs = append(pairs, "c", 100_000)
	}
	h.m.Policies(pairs...)
}

func (h *hammer) run(ops int, seed uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	var background, workers sync.WaitGroup
	background.Go(func() {
		h.m.Run(ctx, func(period time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(max(period/500, 200*time.Microsecond))
			return ticker.C, ticker.Stop
		})
	})
	background.Go(func() { h.time(ctx, rand.New(rand.NewPCG(seed, 1))) })
	background.Go(func() { h.watch(ctx) })
	for i := range uint64(hammers) {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2+i))
			for n := 0; n < ops || n < patience*ops && !h.shown(); n++ {
				if h.fail.Load() {
					return
				}
				h.call(r)
			}
		})
	}
	workers.Wait()
	cancel()
	background.Wait()
	if err := h.m.Check(); err != nil {
		h.t.Errorf("invariants: %v", err)
	}
	s := h.m.Stats()
	if !h.shown() {
		h.t.Errorf("this run shows nothing: %+v", s)
	}
	h.t.Logf("evicted %d of the pool, tenants %+v, %d discards, clients %+v", s.EvictedKeys, s.Tenants, s.PutStartDiscards, s.Clients)
	h.m.Drain(h.t)
}

// patience is how many times as many calls as asked for a run makes until it has shown something.
const patience = 20

// shown reports whether the run has met what it is for: evictions, abandoned writes, silent clients.
func (h *hammer) shown() bool {
	s := h.m.Stats()
	return s.EvictedKeys != 0 && s.PutStartDiscards != 0 && s.Clients.SuspectedTotal != 0
}

// time lets the clock run, as every call does, and does what clients and operators do.
func (h *hammer) time(ctx context.Context, r *rand.Rand) {
	silent := h.m.Clock.Now() + int64(1400*time.Millisecond)
	for ctx.Err() == nil {
		h.m.Clock.Set(time.Millisecond)
		time.Sleep(20 * time.Microsecond)
		if h.m.Clock.Now() < silent {
			continue
		}
		h.m.Ping(mastertest.ID(4))
		segment := mastertest.Segment(4, segmentName(4, r.IntN(2)), 200_000)
		switch r.IntN(200) {
		case 0:
			silent = h.m.Clock.Now() + r.Int64N(int64(2*time.Second))
		case 1:
			h.m.UnmountSegment(segment.ID, mastertest.ID(4))
		case 2:
			h.m.GracefulUnmountSegment(segment.ID, mastertest.ID(4), r.Uint64N(100))
		case 3, 4, 5:
			h.m.MountSegment(segment, mastertest.ID(4))
		case 6:
			h.policies(false)
			h.policies(true)
		case 7:
			if h.m.BeginRemoval("c") == errcode.OK {
				h.m.CancelRemoval("c")
			}
		}
	}
}

// watch looks for a charge above the quota. The quotas of a and b never change.
func (h *hammer) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, s := range h.m.TenantSnapshots() {
			if !h.replace && s.TenantID != "c" && s.ChargedBytes > s.EffectiveQuotaBytes {
				h.failf("tenant %s is charged %d of %d bytes", s.TenantID, s.ChargedBytes, s.EffectiveQuotaBytes)
			}
		}
		h.m.Stats()
		time.Sleep(100 * time.Microsecond)
	}
}

func (h *hammer) failf(format string, args ...any) {
	if !h.fail.Swap(true) {
		h.t.Errorf(format, args...)
	}
}

// expect fails the test unless the code is OK or one of those that are possible.
func (h *hammer) expect(call string, code errcode.Code, possible ...errcode.Code) {
	if code != errcode.OK && !slices.Contains(possible, code) {
		h.failf("%s answers %v", call, code)
	}
}

func (h *hammer) call(r *rand.Rand) {
	m := h.m
	m.Clock.Set(100 * time.Microsecond)
	m.Ping(mastertest.ID(1 + r.Uint64N(3)))
	tenantName := []string{"a", "b", "c"}[r.IntN(3)]
	n := r.IntN(60)
	key := fmt.Sprint("k", n)
	client := mastertest.ID(1 + r.Uint64N(4))
	size := uint64(1000 + 500*(n%20))
	if h.replace {
		size = 1000 + 500*r.Uint64N(20)
	}
	cfg := mastertest.Config(mastertest.Replicas(1 + r.Uint64N(2)))
	if n%3 == 0 {
		mastertest.Group(fmt.Sprint("g", n%9), 1)(cfg)
	}
	if r.IntN(10) == 0 {
		mastertest.SoftPin(time.Second)(cfg)
	}
	full := []errcode.Code{errcode.TenantQuotaExceeded, errcode.NoAvailableHandle, errcode.TenantNotRegistered}
	switch r.IntN(14) {
	case 0, 1, 2:
		_, code := m.PutStart(client, tenantName, key, size, cfg, nil)
		h.expect("PutStart", code, append(full, errcode.ObjectAlreadyExists)...)
		if code == errcode.OK && r.IntN(10) != 0 {
			h.expect("PutEnd", m.PutEnd(client, tenantName, &object.Meta{Key: key}, object.ReplicaAll),
				errcode.ObjectNotFound, errcode.IllegalClient, errcode.InvalidWrite)
		}
	case 3, 4:
		if !h.replace {
			return
		}
		_, code := m.UpsertStart(client, tenantName, key, size, cfg, nil)
		h.expect("UpsertStart", code, append(full, errcode.UnavailableInStatus, errcode.InvalidParams)...)
		if code == errcode.OK && r.IntN(10) != 0 {
			h.expect("UpsertEnd", m.PutEnd(client, tenantName, &object.Meta{Key: key}, object.ReplicaAll),
				errcode.ObjectNotFound, errcode.IllegalClient, errcode.InvalidWrite)
		}
	case 5:
		h.expect("PutRevoke", m.PutRevoke(client, tenantName, key, object.ReplicaAll),
			errcode.ObjectNotFound, errcode.IllegalClient, errcode.InvalidWrite)
	case 6:
		_, code := m.ExistKey(tenantName, key)
		h.expect("ExistKey", code)
	case 7:
		h.expect("GetReplicaList", m.Get(tenantName, key), errcode.ObjectNotFound, errcode.ReplicaIsNotReady)
	case 8:
		keys := manyKeys("", 60)[n/2 : n/2+10]
		for _, got := range m.BatchGetReplicaList(tenantName, keys, nil) {
			h.expect("BatchGetReplicaList", got.Code, errcode.ObjectNotFound, errcode.ReplicaIsNotReady)
		}
	case 9:
		h.expect("Remove", m.Remove(tenantName, key, r.IntN(2) == 0),
			errcode.ObjectNotFound, errcode.ObjectHasLease, errcode.ReplicaIsNotReady)
	case 10:
		m.BatchReplicaClear(tenantName, []string{key}, client, []string{"", segmentName(4, 0)}[r.IntN(2)])
	case 11:
		m.SetSoftPins(tenantName, []string{key}, nil)
		m.ClearSoftPins(tenantName, []string{key})
	case 12:
		var out []errcode.Result[[]object.ReplicaDescriptor]
		keys := []string{key, "k1", "k2"}
		cfg.GroupIDs = nil
		for _, got := range m.BatchPutStart(client, tenantName, keys, []uint64{size, 1500, 2000}, cfg, out) {
			h.expect("BatchPutStart", got.Code, append(full, errcode.ObjectAlreadyExists)...)
		}
		metas := []object.Meta{{Key: key}, {Key: "k1"}, {Key: "k2"}}
		m.BatchPutEnd(client, tenantName, metas, object.ReplicaAll, nil)
	default:
		if r.IntN(50) == 0 {
			m.RemoveAll(tenantName, false)
		}
		_, code := m.RemoveByRegex(tenantName, "^k1.$", false)
		h.expect("RemoveByRegex", code)
	}
}
