package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// plain is a family with one value and no label, printed always.
type plain struct {
	name, help string
	kind       prometheus.ValueType
	value      func(*reading) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// callFamily is a group of counters of the released masters and the calls that make it up.
type callFamily struct {
	name  string // between "master_" and "_requests_total"
	batch bool   // has partial successes and items too
	calls []string
	// perItem lists batch calls that count here as so many single ones.
	perItem []string
}

var callFamilies = []callFamily{
	{name: "exist_key", calls: []string{"ExistKey"}},
	{name: "put_start", calls: []string{"PutStart", "UpsertStart"}},
	{name: "put_end", calls: []string{"PutEnd", "UpsertEnd"}},
	{name: "put_revoke", calls: []string{"PutRevoke", "UpsertRevoke"}},
	{name: "get_replica_list", calls: []string{"GetReplicaList"}},
	{name: "get_replica_list_by_regex", calls: []string{"GetReplicaListByRegex"}},
	{name: "remove", calls: []string{"Remove"}, perItem: []string{"BatchRemove"}},
	{name: "remove_by_regex", calls: []string{"RemoveByRegex"}},
	{name: "remove_all", calls: []string{"RemoveAll"}},
	{name: "mount_segment", calls: []string{"MountSegment"}},
	{name: "unmount_segment", calls: []string{"UnmountSegment"}},
	{name: "remount_segment", calls: []string{"ReMountSegment"}},
	{name: "ping", calls: []string{"Ping"}},
	{name: "copy_start", calls: []string{"CopyStart"}},
	{name: "copy_end", calls: []string{"CopyEnd"}},
	{name: "copy_revoke", calls: []string{"CopyRevoke"}},
	{name: "move_start", calls: []string{"MoveStart"}},
	{name: "move_end", calls: []string{"MoveEnd"}},
	{name: "move_revoke", calls: []string{"MoveRevoke"}},
	{name: "evict_disk_replica", calls: []string{"EvictDiskReplica"}, perItem: []string{"BatchEvictDiskReplica"}},
	{name: "create_copy_task", calls: []string{"CreateCopyTask"}},
	{name: "create_move_task", calls: []string{"CreateMoveTask"}},
	{name: "update_task", calls: []string{"MarkTaskToComplete"}},
	{name: "query_task", calls: []string{"QueryTask"}},
	{name: "fetch_tasks", calls: []string{"FetchTasks"}},
	{name: "batch_exist_key", batch: true, calls: []string{"BatchExistKey"}},
	{name: "batch_query_ip", batch: true, calls: []string{"BatchQueryIp"}},
	{name: "batch_replica_clear", batch: true, calls: []string{"BatchReplicaClear"}},
	{name: "batch_get_replica_list", batch: true, calls: []string{"BatchGetReplicaList"}},
	{name: "batch_put_start", batch: true, calls: []string{"BatchPutStart", "BatchUpsertStart"}},
	{name: "batch_put_end", batch: true, calls: []string{"BatchPutEnd", "BatchUpsertEnd"}},
	{name: "batch_put_revoke", batch: true, calls: []string{"BatchPutRevoke", "BatchUpsertRevoke"}},
}

// sum adds the counters of the family's calls up.
func (f *callFamily) sum(calls map[string]rpc.Counters) rpc.Counters {
	var total rpc.Counters
	for _, name := range f.calls {
		c := calls[name]
		total.Requests += c.Requests
		total.Failures += c.Failures
		total.PartialSuccesses += c.PartialSuccesses
		total.Items += c.Items
		total.FailedItems += c.FailedItems
	}
	for _, name := range f.perItem {
		total.Requests += calls[name].Items
		total.Failures += calls[name].FailedItems
	}
	return total
}

func (f *callFamily) plain() []plain {
	field := func(suffix, what string, get func(rpc.Counters) uint64) plain {
		return plain{
			"master_" + f.name + "_" + suffix, f.name + ": " + what, counter,
			func(r *reading) float64 { return float64(get(f.sum(r.calls))) },
		}
	}
	out := []plain{
		field("requests_total", "requests handled", func(c rpc.Counters) uint64 { return c.Requests }),
		field("failures_total", "requests that failed as a whole", func(c rpc.Counters) uint64 { return c.Failures }),
	}
	if f.batch {
		out = append(out,
			field("partial_successes_total", "requests that failed in part", func(c rpc.Counters) uint64 { return c.PartialSuccesses }),
			field("items_total", "items in all requests", func(c rpc.Counters) uint64 { return c.Items }),
			field("failed_items_total", "items that failed", func(c rpc.Counters) uint64 { return c.FailedItems }))
	}
	return out
}

// allPlain returns every family without labels.
func allPlain() []plain {
	out := append([]plain(nil), statePlain...)
	for i := range callFamilies {
		out = append(out, callFamilies[i].plain()...)
	}
	for _, z := range zeroFamilies {
		out = append(out, plain{z.name, z.help, z.kind, func(*reading) float64 { return 0 }})
	}
	return out
}

var statePlain = []plain{
	{"master_allocated_bytes", "memory of all segments handed out, in bytes", gauge, func(r *reading) float64 { return float64(r.stats.AllocatedBytes) }},
	{"master_total_capacity_bytes", "memory of all segments, in bytes", gauge, func(r *reading) float64 { return float64(r.stats.CapacityBytes) }},
	{"master_key_count", "objects", gauge, func(r *reading) float64 { return float64(r.stats.Keys) }},
	{"master_soft_pin_key_count", "objects with a soft pin", gauge, func(r *reading) float64 { return float64(r.stats.SoftPinnedKeys) }},
	{"master_active_clients", "clients whose segments are mounted", gauge, func(r *reading) float64 { return float64(r.stats.ActiveClients) }},
	{"master_client_liveness_active_clients", "clients heard of within the active TTL", gauge, func(r *reading) float64 { return float64(r.stats.Clients.Active) }},
	{"master_client_liveness_suspected_clients", "clients silent for longer, whose data is kept but not used", gauge, func(r *reading) float64 { return float64(r.stats.Clients.Suspected) }},
	{"master_client_liveness_suspected_transitions_total", "times a client fell silent", counter, func(r *reading) float64 { return float64(r.stats.Clients.SuspectedTotal) }},
	{"master_client_liveness_recoveries_total", "times a silent client came back in time", counter, func(r *reading) float64 { return float64(r.stats.Clients.RecoveredTotal) }},
	{"master_client_liveness_offline_transitions_total", "times a client was given up and its data dropped", counter, func(r *reading) float64 { return float64(r.stats.Clients.OfflineTotal) }},
	{"mooncake_client_expiries_held_total", "expiries put off because many clients seemed to expire at once", counter, func(r *reading) float64 { return float64(r.stats.Clients.HeldExpiries) }},
	{"mooncake_master_stalls_total", "times this process was held up so long that silence did not count against clients", counter, func(r *reading) float64 { return float64(r.stats.Clients.MasterStalls) }},

	{"mem_cache_hit_nums_", "lookups answered with a memory replica", counter, func(r *reading) float64 { return float64(r.stats.MemCacheHits) }},
	{"file_cache_hit_nums_", "lookups answered with a file replica", counter, func(r *reading) float64 { return float64(r.stats.FileCacheHits) }},
	{"mem_cache_hit_bytes_total", "sizes of the objects so found in memory, in bytes", counter, func(r *reading) float64 { return float64(r.stats.MemCacheHitBytes) }},
	{"file_cache_hit_bytes_total", "sizes of the objects so found in files, in bytes", counter, func(r *reading) float64 { return float64(r.stats.FileCacheHitBytes) }},
	{"mem_cache_nums_", "objects with a memory replica", gauge, func(r *reading) float64 { return float64(r.stats.MemCacheNums) }},
	{"file_cache_nums_", "objects with a file replica", gauge, func(r *reading) float64 { return float64(r.stats.FileCacheNums) }},
	{"valid_get_nums_", "lookups that found a readable object", counter, func(r *reading) float64 { return float64(r.stats.ValidGets) }},
	{"total_get_nums_", "lookups", counter, func(r *reading) float64 { return float64(r.stats.TotalGets) }},

	{"master_successful_evictions_total", "eviction passes that freed something", counter, func(r *reading) float64 { return float64(r.stats.SuccessfulEvictions) }},
	{"master_attempted_evictions_total", "eviction passes", counter, func(r *reading) float64 { return float64(r.stats.AttemptedEvictions) }},
	{"master_evicted_key_count", "objects evicted", counter, func(r *reading) float64 { return float64(r.stats.EvictedKeys) }},
	{"master_evicted_size_bytes", "their sizes, in bytes", counter, func(r *reading) float64 { return float64(r.stats.EvictedBytes) }},

	{"master_put_start_object_already_exists_total", "writes refused because the object exists, single and in batches", counter, func(r *reading) float64 { return float64(r.stats.PutStartAlreadyExists) }},
	{"master_put_start_alloc_failures_total", "writes refused for want of memory", counter, func(r *reading) float64 { return float64(r.stats.PutStartAllocFailures) }},
	{"master_put_start_partial_allocations_total", "writes that got fewer replicas than they asked for", counter, func(r *reading) float64 { return float64(r.stats.PutStartPartialAllocations) }},
	{"master_put_start_discard_cnt", "replicas put aside until their writer can not touch them any more", counter, func(r *reading) float64 { return float64(r.stats.PutStartDiscards) }},
	{"master_put_start_release_cnt", "replicas so put aside and given back since", counter, func(r *reading) float64 { return float64(r.stats.PutStartReleases) }},
	{"master_put_start_discarded_staging_size", "memory so put aside, in bytes", gauge, func(r *reading) float64 { return float64(r.stats.DiscardedStagingBytes) }},
	{"mooncake_writes_in_flight", "writes begun and not ended", gauge, func(r *reading) float64 { return float64(r.stats.InFlightWrites) }},
	{"mooncake_ledger_errors_total", "times the books of a tenant did not add up; more than 0 is a defect of this program", counter, func(r *reading) float64 { return float64(r.stats.LedgerErrors) }},

	{"mooncake_rpc_connections", "open RPC connections", gauge, func(r *reading) float64 { return float64(r.listener.Open) }},
	{"mooncake_rpc_connections_total", "RPC connections accepted", counter, func(r *reading) float64 { return float64(r.listener.Accepted) }},
	{"mooncake_rpc_read_bytes_total", "bytes of requests", counter, func(r *reading) float64 { return float64(r.listener.BytesRead) }},
	{"mooncake_rpc_written_bytes_total", "bytes of replies", counter, func(r *reading) float64 { return float64(r.listener.BytesWritten) }},
	{"mooncake_rpc_panics_total", "requests that ended in a panic of this program", counter, func(r *reading) float64 { return float64(r.listener.Panics) }},

	{"mooncake_process_rss_bytes", "resident memory of this process, in bytes", gauge, func(r *reading) float64 { return r.process.rss }},
	{"mooncake_process_rss_peak_bytes", "most of it so far", gauge, func(r *reading) float64 { return r.process.peak }},
	{"mooncake_process_rss_anon_bytes", "its anonymous part", gauge, func(r *reading) float64 { return r.process.anon }},
	{"mooncake_process_rss_file_bytes", "its part backed by files", gauge, func(r *reading) float64 { return r.process.file }},
	{"mooncake_process_rss_shmem_bytes", "its shared part", gauge, func(r *reading) float64 { return r.process.shmem }},
	{"mooncake_process_vsize_bytes", "address space of this process, in bytes", gauge, func(r *reading) float64 { return r.process.vsize }},
	{"mooncake_process_swap_bytes", "swapped memory of this process, in bytes", gauge, func(r *reading) float64 { return r.process.swap }},
}

// zeroFamilies are printed as 0 because dashboards name them: they count what this build has
// none of, so 0 is the truth.
var zeroFamilies = []struct {
	name, help string
	kind       prometheus.ValueType
}{
	{"master_nof_allocated_bytes", "NVMe-oF space handed out; there are no NVMe-oF segments", gauge},
	{"master_total_nof_capacity_bytes", "NVMe-oF space; there are no NVMe-oF segments", gauge},
	{"master_allocated_file_size_bytes", "file space handed out; there are no file replicas", gauge},
	{"master_total_file_capacity_bytes", "file space; there are no file replicas", gauge},
	{"master_client_liveness_offline_clients", "clients given up and not yet cleaned up; both happen at once", gauge},
	{"master_client_offboarding_queue_depth", "clients waiting to be cleaned up; that happens at once", gauge},
	{"master_promotion_in_flight", "promotions under way; there is no promotion", gauge},
	{"master_promotion_admitted_total", "promotions admitted; there is no promotion", counter},
	{"master_promotion_completed_total", "promotions completed; there is no promotion", counter},
	{"master_promotion_completed_bytes_total", "bytes promoted; there is no promotion", counter},
	{"master_promotion_expired_total", "promotions expired; there is no promotion", counter},
	{"master_promotion_failed_total", "promotions failed; there is no promotion", counter},
	{"master_promotion_cancelled_total", "promotions cancelled; there is no promotion", counter},
	{"master_promotion_rejected_frequency_total", "promotions refused for rare reads; there is no promotion", counter},
	{"master_promotion_rejected_watermark_total", "promotions refused for full memory; there is no promotion", counter},
	{"master_promotion_rejected_cap_total", "promotions refused for too many under way; there is no promotion", counter},
	{"master_promotion_candidate_recorded_total", "candidates recorded; there is no promotion", counter},
	{"master_promotion_candidate_admitted_total", "candidates admitted; there is no promotion", counter},
	{"master_promotion_candidate_admission_rejected_total", "candidates refused; there is no promotion", counter},
	{"master_promotion_candidate_expired_evaluated_total", "candidates expired after a look; there is no promotion", counter},
	{"master_promotion_candidate_expired_unevaluated_total", "candidates expired without a look; there is no promotion", counter},
	{"master_promotion_candidate_dropped_limit_total", "candidates dropped; there is no promotion", counter},
	{"ha_oplog_last_sequence_id", "last operation logged; there is no operation log", gauge},
	{"ha_oplog_applied_sequence_id", "last operation applied; there is no operation log", gauge},
	{"ha_oplog_standby_lag", "operations a standby is behind; there is no operation log", gauge},
	{"ha_oplog_pending_entries", "operations waiting to be logged; there is no operation log", gauge},
	{"ha_pending_mutation_queue_size", "changes waiting to be replicated; there is no operation log", gauge},
	{"ha_standby_state", "state of the standby, 0 = stopped; this master runs alone", gauge},
}
