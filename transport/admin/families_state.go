package admin

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core"
)

// counted is a counter of the core.
func counted[N int | int64 | uint64](name, help string, get func(*core.Stats) N) family {
	return family{name: name, help: help, kind: counter, value: func(r *reading) float64 { return float64(get(&r.stats)) }}
}

// measured is a gauge of the core.
func measured[N int | int64 | uint64](name, help string, get func(*core.Stats) N) family {
	f := counted(name, help, get)
	f.kind = gauge
	return f
}

// ofSegments is a gauge of every segment, those of one name together.
func ofSegments(name, help string, get func(*core.SegmentStat) uint64) family {
	return family{name: name, help: help, kind: gauge, labels: []string{"segment"}, absent: "for segments that are not mounted", each: func(r *reading, emit func(float64, ...string)) {
		for i := range r.stats.Segments {
			s := &r.stats.Segments[i]
			emit(float64(get(s)), s.Name)
		}
	}}
}

// stateFamilies are about memory, objects and writes.
var stateFamilies = slices.Concat([]family{
	measured("master_allocated_bytes", "memory of all segments handed out, in bytes", func(s *core.Stats) uint64 { return s.AllocatedBytes }),
	measured("master_total_capacity_bytes", "memory of all segments, in bytes", func(s *core.Stats) uint64 { return s.CapacityBytes }),
	measured("master_key_count", "objects", func(s *core.Stats) int64 { return s.Keys }),
	measured("master_soft_pin_key_count", "objects with a soft pin", func(s *core.Stats) int64 { return s.SoftPinnedKeys }),
	counted("master_successful_evictions_total", "eviction passes that freed something", func(s *core.Stats) uint64 { return s.SuccessfulEvictions + s.NoF.SuccessfulEvictions }),
	counted("master_attempted_evictions_total", "eviction passes", func(s *core.Stats) uint64 { return s.AttemptedEvictions + s.NoF.AttemptedEvictions }),
	counted("master_evicted_key_count", "objects evicted", func(s *core.Stats) uint64 { return s.EvictedKeys + s.NoF.EvictedKeys }),
	counted("master_evicted_size_bytes", "their sizes, in bytes", func(s *core.Stats) uint64 { return s.EvictedBytes + s.NoF.EvictedBytes }),
	counted("master_put_start_alloc_failures_total", "writes refused for want of memory", func(s *core.Stats) uint64 { return s.PutStartAllocFailures }),
	counted("master_put_start_partial_allocations_total", "writes that got fewer replicas than they asked for", func(s *core.Stats) uint64 { return s.PutStartPartialAllocations }),
	counted("master_put_start_discard_cnt", "replicas put aside until their writer can not touch them any more", func(s *core.Stats) uint64 { return s.PutStartDiscards }),
	counted("master_put_start_release_cnt", "replicas so put aside and given back since", func(s *core.Stats) uint64 { return s.PutStartReleases }),
	measured("master_put_start_discarded_staging_size", "memory so put aside, in bytes", func(s *core.Stats) int64 { return s.DiscardedStagingBytes }),
	measured("mooncake_writes_in_flight", "writes begun and not ended", func(s *core.Stats) int64 { return s.InFlightWrites }),
	counted("mooncake_ledger_errors_total", "times the books of a tenant did not add up; more than 0 is a defect of this program", func(s *core.Stats) uint64 { return s.LedgerErrors }),
	ofSegments("segment_allocated_bytes", "memory of a segment handed out, in bytes", func(s *core.SegmentStat) uint64 { return s.Allocated }),
	ofSegments("segment_total_capacity_bytes", "memory of a segment, in bytes", func(s *core.SegmentStat) uint64 { return s.Capacity }),
	{name: "master_value_size_bytes", help: "sizes of the objects written, in bytes", kind: histogram, absent: untilObserved, buckets: func(r *reading) core.Histogram { return r.stats.ValueSizes }},
}, from014(
	counted("master_put_start_object_already_exists_total", "single writes refused because the object exists", func(s *core.Stats) uint64 { return s.PutStartAlreadyExists }),
	counted("master_batch_put_start_object_already_exists_total", "writes of batches refused because the object exists", func(s *core.Stats) uint64 { return s.BatchPutStartAlreadyExists }),
))

// replicaFamilies are about lookups and where objects lie.
var replicaFamilies = []family{
	counted("mem_cache_hit_nums_", "lookups answered with a memory replica", func(s *core.Stats) uint64 { return s.MemCacheHits }),
	counted("file_cache_hit_nums_", "lookups answered with a file replica", func(s *core.Stats) uint64 { return s.FileCacheHits }),
	counted("mem_cache_hit_bytes_total", "sizes of the objects so found in memory, in bytes", func(s *core.Stats) uint64 { return s.MemCacheHitBytes }),
	counted("file_cache_hit_bytes_total", "sizes of the objects so found in files, in bytes", func(s *core.Stats) uint64 { return s.FileCacheHitBytes }),
	measured("mem_cache_nums_", "objects with a memory replica", func(s *core.Stats) int64 { return s.MemCacheNums }),
	measured("file_cache_nums_", "objects with a file replica", func(s *core.Stats) int64 { return s.FileCacheNums }),
	counted("valid_get_nums_", "lookups that found a readable object", func(s *core.Stats) uint64 { return s.ValidGets }),
	counted("total_get_nums_", "lookups", func(s *core.Stats) uint64 { return s.TotalGets }),
}

// liveFamilies are about clients.
var liveFamilies = slices.Concat([]family{
	measured("master_active_clients", "clients whose segments are mounted", func(s *core.Stats) int64 { return s.ActiveClients }),
	counted("mooncake_client_expiries_held_total", "expiries put off because many clients seemed to expire at once", func(s *core.Stats) uint64 { return s.Clients.HeldExpiries }),
	counted("mooncake_master_stalls_total", "times this process was held up so long that silence did not count against clients", func(s *core.Stats) uint64 { return s.Clients.MasterStalls }),
}, from014(
	measured("master_client_liveness_active_clients", "clients heard of within the active TTL", func(s *core.Stats) int { return s.Clients.Active }),
	measured("master_client_liveness_suspected_clients", "clients silent for longer, whose data is kept but not used", func(s *core.Stats) int { return s.Clients.Suspected }),
	counted("master_client_liveness_suspected_transitions_total", "times a client fell silent", func(s *core.Stats) uint64 { return s.Clients.SuspectedTotal }),
	counted("master_client_liveness_recoveries_total", "times a silent client came back in time", func(s *core.Stats) uint64 { return s.Clients.RecoveredTotal }),
	counted("master_client_liveness_offline_transitions_total", "times a client was given up and its data dropped", func(s *core.Stats) uint64 { return s.Clients.OfflineTotal }),
	family{name: "master_client_liveness_offline_clients", help: "clients given up and not yet cleaned up; both happen at once", kind: gauge, value: none},
	family{name: "master_client_offboarding_queue_depth", help: "clients waiting to be cleaned up; that happens at once", kind: gauge, value: none},
	family{name: "master_client_offboarding_retries_total", help: "cleanups that were tried again; they can not fail", kind: counter, value: none},
	family{name: "master_client_offboarding_alerts_total", help: "cleanups that were tried again too often; they can not fail", kind: counter, value: none},
	family{name: "master_client_offboarding_duration_ms", help: "time that cleanups waited in a queue, in milliseconds; there is none", kind: histogram, buckets: func(*reading) core.Histogram {
		return nothing(1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30000)
	}},
))

// none is the value of families that other programs ask for and that count what this one has none of.
func none(*reading) float64 { return 0 }

// nothing is a histogram with these bounds in which nothing was observed.
func nothing(bounds ...float64) core.Histogram {
	return core.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds))}
}
