package core_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

const (
	racers      = 64
	roundOps    = 150
	raceSegment = 4 << 20
)

// TestModelConcurrently runs 64 walks at once, each with keys and groups of its own in every
// tenant and a model of its own, so that every answer is known; the tenants' accounts, the
// shards, the segments and the eviction order are shared. Time moves between rounds. Meanwhile
// somebody changes policies, sweeps, reads statistics, and streams through a tenant that is
// always over its quota: none of that may be felt.
func TestModelConcurrently(t *testing.T) {
	t.Parallel()
	ops, seed := modelOps(t, 30_000)
	m := mastertest.New(t, mastertest.Strict, mastertest.NoPoolEviction, patient)
	tenants := manyTenants(8)
	walks := make([]*walk, racers)
	for i := range walks {
		walks[i] = &walk{
			t: t, m: m, model: newModel(m.Config(), m.Clock.Now(), tenants), r: rand.New(rand.NewPCG(seed, uint64(i))),
			clients: racers, tenants: tenants, keys: manyKeys(fmt.Sprint("w", i, "-"), 8), prefix: fmt.Sprint("w", i, "-"),
			batches: true, answers: map[errcode.Code]int{},
		}
	}
	for c := range uint64(racers) {
		name := segmentName(c+1, 0)
		m.Mount(c+1, name, raceSegment)
		for _, w := range walks {
			w.model.mount(c+1, name, raceSegment)
		}
	}
	quotas(m, rand.New(rand.NewPCG(seed, 1<<32)))
	for _, w := range walks {
		set := map[string]uint64{}
		for _, name := range tenants {
			set[name] = 1 << 40 // each may charge what it likes; nobody comes near
		}
		w.model.policies(set)
		for _, t := range w.model.tenants {
			t.effective = t.quota
		}
	}
	meddle := rand.New(rand.NewPCG(seed, 1<<33))
	for done := 0; done < ops && !t.Failed(); done += racers * roundOps {
		stop := make(chan struct{})
		var meddler, round sync.WaitGroup
		meddler.Go(func() { meddling(t, m, meddle, stop) })
		for _, w := range walks {
			round.Go(func() {
				for range roundOps {
					w.object()
				}
			})
		}
		round.Wait()
		close(stop)
		meddler.Wait()
		settled(t, m, walks)
		for range 1 + meddle.IntN(90) {
			m.Advance(time.Second)
			for _, w := range walks {
				w.model.now = m.Clock.Now()
				for _, c := range w.model.clients {
					c.ping = w.model.now
				}
				w.model.step()
			}
		}
		settled(t, m, walks)
	}
	m.Drain(t)
}

// quotas puts new quotas in force, all of them far above what the walks charge.
func quotas(m *mastertest.Master, r *rand.Rand) {
	pairs := []any{"streamer", 100_000, "gone", 1000}
	for _, name := range manyTenants(8) {
		pairs = append(pairs, name, 12<<20+r.IntN(16<<20))
	}
	m.Policies(pairs...)
}

func meddling(t *testing.T, m *mastertest.Master, r *rand.Rand, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		switch r.IntN(8) {
		case 0:
			quotas(m, r)
		case 1:
			m.Step()
		case 2:
			m.Stats()
			m.TenantSnapshots()
			m.AllKeys("a")
		case 3:
			c := 1 + r.Uint64N(racers)
			m.Ping(mastertest.ID(c))
			m.MountSegment(mastertest.Segment(c, segmentName(c, 0), raceSegment), mastertest.ID(c))
		case 4:
			if code := m.BeginRemoval("gone"); code != errcode.OK {
				t.Errorf("removal of an empty tenant: %v", code)
			}
			if code := m.Start("gone", "k", 1); code != errcode.TenantNotRegistered {
				t.Errorf("put of a tenant being removed: %v", code)
			}
			m.CancelRemoval("gone")
		case 5:
			m.RemoveAll("streamer", true)
		default:
			if code := m.Put("streamer", fmt.Sprint(i), 10_000); code != errcode.OK && code != errcode.ObjectAlreadyExists {
				t.Errorf("put of a tenant that streams: %v", code)
			}
		}
	}
}

// settled checks, while nothing runs, that the accounts are what all models together say.
func settled(t *testing.T, m *mastertest.Master, walks []*walk) {
	t.Helper()
	for _, name := range manyTenants(8) {
		var want uint64
		for _, w := range walks {
			want += w.model.tenants[name].charged()
		}
		if got := m.Charged(name); got != want {
			t.Errorf("tenant %s is charged %d bytes, the models say %d", name, got, want)
		}
	}
	if err := m.Check(); err != nil {
		t.Errorf("invariants: %v", err)
	}
}

// TestOneWinner races for the same key: one write begins, and only its owner can end it.
func TestOneWinner(t *testing.T) {
	// reports B4
	m := mastertest.New(t, mastertest.Strict)
	m.Mount(1, "seg", 64*mib)
	m.Policies("t", 64*mib)
	for round := range 100 {
		key := fmt.Sprint("k", round)
		const n = 32
		var starts, ends [n]errcode.Code
		var wg sync.WaitGroup
		for i := range uint64(n) {
			wg.Go(func() {
				_, starts[i] = m.PutStart(mastertest.ID(i+1), "t", key, 1000, mastertest.Config(), nil)
			})
		}
		wg.Wait()
		for i := range uint64(n) {
			wg.Go(func() { ends[i] = m.PutEnd(mastertest.ID(i+1), "t", &object.Meta{Key: key}, object.ReplicaAll) })
		}
		wg.Wait()
		winners := 0
		for i := range starts {
			switch {
			case starts[i] == errcode.OK && ends[i] == errcode.OK:
				winners++
			case starts[i] != errcode.ObjectAlreadyExists || ends[i] != errcode.IllegalClient:
				t.Fatalf("writer %d: start %v, end %v", i, starts[i], ends[i])
			}
		}
		if winners != 1 {
			t.Fatalf("%d winners", winners)
		}
	}
	if got := m.Stats().PutStartAlreadyExists; got != 3100 {
		t.Errorf("%d refusals counted, want 3100", got)
	}
}
