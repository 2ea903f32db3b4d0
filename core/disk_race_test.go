package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

const (
	tierRacers  = 8
	tierClients = 4
	tierCalls   = 3000 // of each racer, each a tenth of a millisecond; more while the run has not shown anything
)

// TestDisksComeAndGo lets clients offload, promote, copy, move, write and remove the same few objects at
// once while disks and a segment come and go and a client falls silent. No answer is known; in the end all
// must add up, no offload may be left once no disk is, and nothing at all when everything has been removed.
func TestDisksComeAndGo(t *testing.T) {
	for _, onEvict := range []bool{false, true} {
		t.Run(fmt.Sprintf("OnEvict=%v", onEvict), func(t *testing.T) {
			t.Parallel()
			m := mastertest.New(t, mastertest.Strict, patient, func(c *core.Config) {
				c.LeaseTTL = time.Millisecond
				c.PutDiscardTimeout, c.PutReleaseTimeout = 50*time.Millisecond, 100*time.Millisecond
				c.ClientActiveTTL, c.ClientSuspicionTTL = 500*time.Millisecond, 500*time.Millisecond
				c.Offload.Enabled, c.Offload.OnEvict, c.Offload.QueueLimit = true, onEvict, 20
				c.Promotion.OnHit, c.Promotion.Admission = true, 1
				c.DynamicReplication.Mode, c.DynamicReplication.AdmissionQPS = core.ReplicationEnforce, 1
			})
			for n := range uint64(tierClients) {
				m.Mount(n+1, segmentName(n+1, 0), 100_000)
				m.MountLocalDisk(mastertest.ID(n+1), true)
			}
			m.Policies("a", 200_000, "b", 300_000)
			raceDisks(m, rand.Uint64())
			if err := m.Check(); err != nil {
				t.Errorf("invariants: %v", err)
			}
			for n := range uint64(tierClients) {
				m.UnmountLocalDisk(mastertest.ID(n + 1))
			}
			if n, frees := m.OffloadsUnderWay(); n != 0 || frees != 0 {
				t.Errorf("without disks %d offloads of %d bytes go on", n, frees)
			}
			if !disksShown(m) {
				s := m.Stats()
				t.Errorf("this run shows nothing: %+v, %+v, %+v", s.Tier, s.Tasks, s.Clients)
			}
			m.Drain(t)
			if s := m.Stats(); s.Tier.Promotions.InFlight != 0 {
				t.Errorf("%d promotions are left", s.Tier.Promotions.InFlight)
			}
		})
	}
}

// disksShown reports whether the run has met what it is for.
func disksShown(m *mastertest.Master) bool {
	s := m.Stats()
	p := s.Tier.Promotions
	return p.Completed != 0 && p.Canceled != 0 && s.Tasks.Copied != 0 && s.Tasks.Moved != 0 && s.Clients.OfflineTotal != 0
}

func raceDisks(m *mastertest.Master, seed uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	var background, racers sync.WaitGroup
	background.Go(func() {
		m.Run(ctx, func(period time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(max(period/500, 200*time.Microsecond))
			return ticker.C, ticker.Stop
		})
	})
	for i := range uint64(tierRacers) {
		racers.Go(func() {
			r := rand.New(rand.NewPCG(seed, i))
			for n := 0; n < tierCalls || n < patience*tierCalls && (n%100 != 0 || !disksShown(m)); n++ {
				m.Clock.Set(100 * time.Microsecond)
				for c := range uint64(tierClients - 1) {
					m.Ping(mastertest.ID(c + 1)) // the last one only where it mounts something
				}
				if n%50 == 0 {
					diskComesOrGoes(m, r)
				}
				tierCall(m, r)
			}
		})
	}
	racers.Wait()
	cancel()
	background.Wait()
}

func diskComesOrGoes(m *mastertest.Master, r *rand.Rand) {
	n := 1 + r.Uint64N(tierClients-1)
	if m.Clock.Now()/int64(2*time.Second)%2 == 0 {
		n = tierClients // else it is silent, and gone after a second
	}
	switch last := mastertest.Segment(tierClients, segmentName(tierClients, 0), 100_000); r.IntN(5) {
	case 0:
		m.UnmountLocalDisk(mastertest.ID(n))
	case 1:
		m.UnmountSegment(last.ID, mastertest.ID(tierClients))
	case 2:
		if n == tierClients {
			m.MountSegment(last, mastertest.ID(n))
		}
	default:
		m.MountLocalDisk(mastertest.ID(n), true)
	}
}

func tierCall(m *mastertest.Master, r *rand.Rand) {
	n := 1 + r.Uint64N(tierClients)
	id, tenantName, key := mastertest.ID(n), []string{"a", "b"}[r.IntN(2)], fmt.Sprint("k", r.IntN(30))
	from, to := segmentName(n, 0), segmentName(1+r.Uint64N(tierClients), 0)
	size := 1000 + 500*r.Uint64N(4)
	switch r.IntN(14) {
	case 0, 1:
		if _, code := m.PutStart(id, tenantName, key, size, mastertest.Config(mastertest.Replicas(1+r.Uint64N(2))), nil); code == errcode.OK {
			m.PutEnd(id, tenantName, &object.Meta{Key: key}, object.ReplicaAll)
		}
	case 2:
		if _, code := m.UpsertStart(id, tenantName, key, size, mastertest.Config(), nil); code == errcode.OK && r.IntN(4) != 0 {
			m.PutEnd(id, tenantName, &object.Meta{Key: key}, object.ReplicaAll)
		}
	case 3:
		m.Remove(tenantName, key, r.IntN(2) == 0)
	case 4, 5:
		_ = m.Get(tenantName, key)
	case 6, 7:
		items, _ := m.OffloadHeartbeat(id, r.IntN(10) != 0)
		var reports []core.DiskReport
		for _, i := range items {
			report := core.DiskReport{Tenant: i.Tenant, Key: i.Key, Size: i.Size, Endpoint: from}
			if r.IntN(4) == 0 {
				report.Size = -1
			}
			reports = append(reports, report)
		}
		m.NotifyOffload(id, reports)
	case 8:
		m.NotifyOffload(id, []core.DiskReport{{Tenant: tenantName, Key: key, Size: int64(size), Endpoint: from}})
		if r.IntN(2) == 0 {
			m.BatchReplicaClear(tenantName, []string{key}, id, "")
		}
	case 9, 10:
		items, _ := m.PromotionHeartbeat(id)
		for _, i := range items {
			promoteItem(m, r, n, i.Tenant, i.Key, uint64(i.Size))
		}
		if m.RegisterPrefetch(id, tenantName, key) == errcode.OK {
			promoteItem(m, r, n, tenantName, key, size)
		}
	case 11:
		if _, code := m.CopyStart(id, tenantName, key, from, []string{to}); code == errcode.OK && r.IntN(4) != 0 {
			m.CopyEnd(id, tenantName, key)
		}
	case 12:
		if _, code := m.MoveStart(id, tenantName, key, from, to); code == errcode.OK && r.IntN(4) != 0 {
			m.MoveEnd(id, tenantName, key)
		}
	default:
		m.EvictDiskReplica(id, tenantName, key, object.ReplicaLocalDisk)
		m.PollRemoveAll(id)
		m.ReportDiskCapacity(id, int64(size))
	}
}

func promoteItem(m *mastertest.Master, r *rand.Rand, n uint64, tenantName, key string, size uint64) {
	id := mastertest.ID(n)
	if _, code := m.StartPromotion(id, tenantName, key, size, nil); code == errcode.OK && r.IntN(4) != 0 {
		m.EndPromotion(id, tenantName, key)
	} else {
		m.FailPromotion(id, tenantName, key)
	}
}
