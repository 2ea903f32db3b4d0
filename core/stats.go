package core

import (
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/weight"
)

// counters are the events that can't be read from the state.
type counters struct {
	alreadyExists, batchAlreadyExists          atomic.Uint64
	allocFailures, partial, discards, releases atomic.Uint64
	evictionAttempts, evictionSuccesses        atomic.Uint64
	evictedKeys, evictedBytes                  atomic.Uint64
	strayLookups                               atomic.Uint64 // of tenants without objects
	ledgerErrors                               atomic.Uint64
	valueSizes                                 [stripes]sizeHistogram
	replications                               struct{ copied, moved, failed atomic.Uint64 }
}

// stripes is how many copies there are of what every write counts, so that cores don't wait for
// each other's cache lines.
const stripes = 8

// sizeHistogram counts object sizes by power of four from 4 KiB to 64 MiB.
type sizeHistogram struct {
	counts [len(sizeBounds) + 1]atomic.Uint64
	sum    atomic.Uint64
	_      [56]byte // the next one begins on another cache line
}

var sizeBounds = [...]uint64{4096, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

// sizeTally is what one request adds to a histogram, at once when it's done.
type sizeTally struct {
	counts [len(sizeBounds) + 1]uint32
	sum    uint64
}

func (t *sizeTally) observe(n uint64) {
	i := 0
	for i < len(sizeBounds) && n > sizeBounds[i] {
		i++
	}
	t.counts[i]++
	t.sum += n
}

func (h *sizeHistogram) add(t *sizeTally) {
	if t.sum == 0 {
		return
	}
	for i, n := range t.counts {
		if n != 0 {
			h.counts[i].Add(uint64(n))
		}
	}
	h.sum.Add(t.sum)
}

// Histogram is a cumulative histogram: Counts[i] observations were at most Bounds[i].
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

func sizes(all *[stripes]sizeHistogram) Histogram {
	var s Histogram
	for h := range all {
		s.Sum += float64(all[h].sum.Load())
	}
	for i := range all[0].counts {
		for h := range all {
			s.Count += all[h].counts[i].Load()
		}
		if i < len(sizeBounds) {
			s.Bounds = append(s.Bounds, float64(sizeBounds[i]))
			s.Counts = append(s.Counts, s.Count)
		}
	}
	return s
}

// SegmentStat is the use of the segments of one name, in bytes.
type SegmentStat struct {
	Name                string
	Allocated, Capacity uint64
}

// TenantStat is what a tenant has, and what happened to its writes and objects since start.
type TenantStat struct {
	Tenant                  string
	Keys, InFlightWrites    int64
	Rejected, EvictedBytes  uint64
	Lookups, Hits, HitBytes uint64
}

// ClientStat counts clients and what became of them.
type ClientStat struct {
	Active, Suspected, Remounted                                             int
	SuspectedTotal, RecoveredTotal, OfflineTotal, HeldExpiries, MasterStalls uint64
}

// Stats are the master's numbers, read from its state when asked. Sizes are bytes.
type Stats struct {
	AllocatedBytes, CapacityBytes                                                          uint64
	Keys, SoftPinnedKeys, ActiveClients, MemCacheNums, FileCacheNums                       int64
	InFlightWrites                                                                         int64
	MemCacheHits, FileCacheHits, MemCacheHitBytes, FileCacheHitBytes, ValidGets, TotalGets uint64
	SuccessfulEvictions, AttemptedEvictions, EvictedKeys, EvictedBytes                     uint64
	PutStartDiscards, PutStartReleases, PutStartAllocFailures, PutStartPartialAllocations  uint64
	PutStartAlreadyExists, BatchPutStartAlreadyExists                                      uint64
	LedgerErrors                                                                           uint64
	DiscardedStagingBytes                                                                  int64
	Segments                                                                               []SegmentStat
	ValueSizes                                                                             Histogram
	Tenants                                                                                []TenantStat // those of which something is not 0
	Clients                                                                                ClientStat
	NoF                                                                                    NoFStats
	Tasks                                                                                  TaskStats
	Tier                                                                                   TierStats
	Weights                                                                                WeightStats
}

// WeightStats is what Stats tells of managed weights.
type WeightStats = weight.Stats

// Stats reads the numbers. It locks one shard after the other, for a moment each.
func (m *Master) Stats() Stats {
	c := &m.counters
	s := Stats{
		Weights:                    m.weights.Stats(m.WeightTime()),
		AllocatedBytes:             m.pool.UsedBytes(),
		CapacityBytes:              m.pool.CapacityBytes(),
		SuccessfulEvictions:        c.evictionSuccesses.Load(),
		AttemptedEvictions:         c.evictionAttempts.Load(),
		EvictedKeys:                c.evictedKeys.Load(),
		EvictedBytes:               c.evictedBytes.Load(),
		PutStartDiscards:           c.discards.Load(),
		PutStartReleases:           c.releases.Load(),
		PutStartAllocFailures:      c.allocFailures.Load(),
		PutStartPartialAllocations: c.partial.Load(),
		PutStartAlreadyExists:      c.alreadyExists.Load(),
		BatchPutStartAlreadyExists: c.batchAlreadyExists.Load(),
		LedgerErrors:               c.ledgerErrors.Load(),
		TotalGets:                  c.strayLookups.Load(),
		DiscardedStagingBytes:      m.parked.bytes.Load(),
		ValueSizes:                 sizes(&c.valueSizes),
		Tasks:                      m.taskStats(),
		Tier:                       m.tierStats(),
		FileCacheHits:              m.tier.fileHits.Load(),
		FileCacheHitBytes:          m.tier.fileBytes.Load(),
	}
	now := m.clock.Now()
	m.keepers(func(k *keeper) {
		n := k.space.Numbers()
		keys, inFlight := int64(n.Objects), int64(n.Writes)
		s.Keys += keys
		s.InFlightWrites += inFlight
		s.Tasks.UnderWay += int64(n.Works[object.SlotReplication])
		s.MemCacheNums += max(int64(n.InMemory)-inFlight, 0)
		s.SoftPinnedKeys += int64(k.space.Order.PinnedLen(now))
		t := TenantStat{Tenant: k.name, Keys: keys, InFlightWrites: inFlight, Rejected: k.acct.Rejected(), EvictedBytes: k.acct.EvictedBytes()}
		for i := range k.space.Shards() {
			sh := &k.space.Shards()[i]
			t.Hits += sh.Hits.Load()
			t.HitBytes += sh.HitBytes.Load()
			t.Lookups += sh.Lookups.Load()
			s.FileCacheNums += sh.Files.Load()
			s.Tier.FileBytes += sh.FileBytes.Load()
		}
		s.MemCacheHits += t.Hits
		s.MemCacheHitBytes += t.HitBytes
		s.TotalGets += t.Lookups
		if t != (TenantStat{Tenant: k.name}) {
			s.Tenants = append(s.Tenants, t)
		}
	})
	s.ValidGets = s.MemCacheHits + s.FileCacheHits
	cl := m.clients.Counts()
	s.ActiveClients = int64(cl.Remounted)
	s.Clients = ClientStat{
		Active: cl.Active, Suspected: cl.Suspected, Remounted: cl.Remounted,
		SuspectedTotal: cl.SuspectedTotal, RecoveredTotal: cl.RecoveredTotal, OfflineTotal: cl.OfflineTotal,
		HeldExpiries: cl.HeldTotal, MasterStalls: cl.StallTotal,
	}
	s.Segments = segmentStats(m.pool.Views())
	if far := m.pool.Far(); far != nil {
		s.Segments = append(s.Segments, SegmentStat{Name: far.Info.Name, Allocated: far.Used(), Capacity: far.Capacity()})
	}
	s.NoF = m.nofStats()
	return s
}

func segmentStats(views []segment.View) []SegmentStat {
	var stats []SegmentStat
	at := make(map[string]int, len(views))
	for i := range views {
		v := &views[i]
		n, ok := at[v.Info.Name]
		if !ok {
			n = len(stats)
			at[v.Info.Name] = n
			stats = append(stats, SegmentStat{Name: v.Info.Name})
		}
		stats[n].Allocated += v.Used
		stats[n].Capacity += v.Capacity
	}
	return stats
}
