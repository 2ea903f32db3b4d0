package admin

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core"
)

// tierFamilies are about disks of clients, promotion, the shared file system and NVMe-oF.
var tierFamilies = slices.Concat([]family{
	measured("master_allocated_file_size_bytes", "sizes of the replicas in files and on clients' disks, in bytes", func(s *core.Stats) int64 { return s.Tier.FileBytes }),
	{name: "master_total_file_capacity_bytes", help: "room on clients' disks, or that of the shared file system where one is set and limited, in bytes", kind: gauge, value: fileCapacity},
	measured("master_nof_allocated_bytes", "NVMe-oF space handed out, in bytes", func(s *core.Stats) uint64 { return s.NoF.AllocatedBytes }),
	measured("master_total_nof_capacity_bytes", "NVMe-oF space, in bytes", func(s *core.Stats) uint64 { return s.NoF.CapacityBytes }),
	measured("master_promotion_in_flight", "promotions under way", func(s *core.Stats) int64 { return s.Tier.Promotions.InFlight }),
	counted("master_promotion_admitted_total", "promotions admitted", func(s *core.Stats) uint64 { return s.Tier.Promotions.Admitted }),
	counted("master_promotion_completed_total", "promotions completed", func(s *core.Stats) uint64 { return s.Tier.Promotions.Completed }),
	counted("master_promotion_completed_bytes_total", "bytes promoted", func(s *core.Stats) uint64 { return s.Tier.Promotions.CompletedBytes }),
	counted("master_promotion_expired_total", "promotions that nobody ended in time", func(s *core.Stats) uint64 { return s.Tier.Promotions.Expired }),
	counted("master_promotion_failed_total", "promotions that failed", func(s *core.Stats) uint64 { return s.Tier.Promotions.Failed }),
	counted("master_promotion_cancelled_total", "promotions whose object had gone", func(s *core.Stats) uint64 { return s.Tier.Promotions.Canceled }),
	counted("master_promotion_rejected_frequency_total", "promotions not begun because the object is not read often enough", func(s *core.Stats) uint64 { return s.Tier.Promotions.Rare }),
	counted("master_promotion_rejected_watermark_total", "promotions not begun because memory is full", func(s *core.Stats) uint64 { return s.Tier.Promotions.MemoryFull }),
	counted("master_promotion_rejected_cap_total", "promotions not begun because too many are under way", func(s *core.Stats) uint64 { return s.Tier.Promotions.TooMany }),
	counted("master_promotion_candidate_recorded_total", "refused promotions remembered to be tried again", func(s *core.Stats) uint64 { return s.Tier.Promotions.Recorded }),
	counted("master_promotion_candidate_admitted_total", "those admitted later", func(s *core.Stats) uint64 { return s.Tier.Promotions.Retried }),
	counted("master_promotion_candidate_admission_rejected_total", "those refused again", func(s *core.Stats) uint64 { return s.Tier.Promotions.RetryRefused }),
	counted("master_promotion_candidate_expired_evaluated_total", "those forgotten after they were tried", func(s *core.Stats) uint64 { return s.Tier.Promotions.Given }),
	counted("master_promotion_candidate_expired_unevaluated_total", "those forgotten before they were tried", func(s *core.Stats) uint64 { return s.Tier.Promotions.GivenUntried }),
	counted("master_promotion_candidate_dropped_limit_total", "refused promotions not remembered, because too many are", func(s *core.Stats) uint64 { return s.Tier.Promotions.Dropped }),
	whenUsed(counted("master_attempted_evictions_mem", "eviction passes over memory", func(s *core.Stats) uint64 { return s.AttemptedEvictions })),
	whenUsed(counted("master_successful_evictions_mem", "those that freed something", func(s *core.Stats) uint64 { return s.SuccessfulEvictions })),
	whenUsed(counted("master_evicted_key_count_mem", "objects evicted from memory", func(s *core.Stats) uint64 { return s.EvictedKeys })),
	whenUsed(counted("master_evicted_size_bytes_mem", "their sizes, in bytes", func(s *core.Stats) uint64 { return s.EvictedBytes })),
	whenUsed(counted("master_attempted_evictions_nof", "eviction passes over NVMe-oF space", func(s *core.Stats) uint64 { return s.NoF.AttemptedEvictions })),
	whenUsed(counted("master_successful_evictions_nof", "those that freed something", func(s *core.Stats) uint64 { return s.NoF.SuccessfulEvictions })),
	whenUsed(counted("master_evicted_key_count_nof", "objects evicted from NVMe-oF space", func(s *core.Stats) uint64 { return s.NoF.EvictedKeys })),
	whenUsed(counted("master_evicted_size_bytes_nof", "their sizes, in bytes", func(s *core.Stats) uint64 { return s.NoF.EvictedBytes })),
	whenUsed(counted("master_nof_heartbeat_success_total", "probes of NVMe-oF segments that succeeded", func(s *core.Stats) uint64 { return s.NoF.ProbeSuccesses })),
	whenUsed(counted("master_nof_heartbeat_failure_total", "those that failed", func(s *core.Stats) uint64 { return s.NoF.ProbeFailures })),
	whenUsed(counted("master_nof_heartbeat_timeout_total", "those that took too long", func(s *core.Stats) uint64 { return s.NoF.ProbeTimeouts })),
	whenUsed(counted("master_nof_segments_unmounted_by_heartbeat_total", "NVMe-oF segments dropped because of that", func(s *core.Stats) uint64 { return s.NoF.UnmountedByProbe })),
	ofNoF("nof_segment_allocated_bytes", "space of an NVMe-oF segment handed out, in bytes", func(s *core.SegmentStat) uint64 { return s.Allocated }),
	ofNoF("nof_segment_total_capacity_bytes", "space of an NVMe-oF segment, in bytes", func(s *core.SegmentStat) uint64 { return s.Capacity }),
}, from014(
	whenUsed(counted("master_promotion_execution_gave_up_total", "promotions given up because their client failed again and again", func(s *core.Stats) uint64 { return s.Tier.Promotions.GaveUp })),
	ofOffload("enqueued", "objects that a client was asked to write to its disk", func(s *core.OffloadStat) uint64 { return s.Enqueued }),
	ofOffload("enqueue_rejected", "objects it was not asked to write because too many waited", func(s *core.OffloadStat) uint64 { return s.Rejected }),
	ofOffload("completed", "objects it has written", func(s *core.OffloadStat) uint64 { return s.Completed }),
	ofOffload("failed", "objects it could not write", func(s *core.OffloadStat) uint64 { return s.Failed }),
	ofOffload("cancelled", "objects it need not write any more", func(s *core.OffloadStat) uint64 { return s.Canceled }),
	family{name: "master_nof_heartbeat_probe_latency_ms", help: "times that probes of NVMe-oF segments took, in milliseconds", kind: histogram, buckets: func(r *reading) core.Histogram {
		if h := r.stats.NoF.ProbeLatencyMs; h.Bounds != nil {
			return h
		}
		return nothing(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
	}},
	family{name: "master_dfs_allocated_bytes", help: "space of the distributed file system handed out, in bytes; there is none", kind: gauge, value: none},
	family{name: "master_dfs_total_capacity_bytes", help: "space of the distributed file system, in bytes; there is none", kind: gauge, value: none},
	family{name: "master_dfs_file_count", help: "files in the distributed file system; there is none", kind: gauge, value: none},
))

// ofNoF is a gauge of every NVMe-oF segment.
func ofNoF(name, help string, get func(*core.SegmentStat) uint64) family {
	return family{name: name, help: help, kind: gauge, labels: []string{"segment"}, absent: "for segments that are not mounted", each: func(r *reading, emit func(float64, ...string)) {
		for i := range r.stats.NoF.Segments {
			s := &r.stats.NoF.Segments[i]
			emit(float64(get(s)), s.Name)
		}
	}}
}

// ofOffload is a counter of every client with a disk for which it is not 0.
func ofOffload(name, help string, get func(*core.OffloadStat) uint64) family {
	return family{name: "master_offload_" + name + "_total", help: help, kind: counter, labels: []string{"client_id"}, absent: "for clients for which it is 0", each: func(r *reading, emit func(float64, ...string)) {
		for i := range r.stats.Tier.Offloads {
			if s := &r.stats.Tier.Offloads[i]; get(s) > 0 {
				emit(float64(get(s)), s.Client)
			}
		}
	}}
}

// fileCapacity is the room in the file system that clients share, or on the disks that they have reported.
func fileCapacity(r *reading) float64 {
	if r.fileBytes > 0 {
		return float64(r.fileBytes)
	}
	return float64(r.stats.Tier.CapacityBytes)
}

// taskFamilies are about copies, moves and the tasks of clients.
var taskFamilies = []family{
	measured("mooncake_tasks_pending", "tasks that wait for their client", func(s *core.Stats) int { return s.Tasks.Queue.Pending }),
	measured("mooncake_tasks_processing", "tasks under way, at clients or at this master", func(s *core.Stats) int { return s.Tasks.Queue.Processing }),
	measured("mooncake_tasks_finished", "finished tasks that are remembered", func(s *core.Stats) int { return s.Tasks.Queue.Finished }),
	measured("mooncake_replications_in_flight", "copies and moves begun and not ended", func(s *core.Stats) int64 { return s.Tasks.UnderWay }),
	counted("mooncake_replications_copied_total", "copies that ended well", func(s *core.Stats) uint64 { return s.Tasks.Copied }),
	counted("mooncake_replications_moved_total", "moves that ended well", func(s *core.Stats) uint64 { return s.Tasks.Moved }),
	counted("mooncake_replications_failed_total", "copies and moves taken back, lost or timed out", func(s *core.Stats) uint64 { return s.Tasks.Failed }),
	counted("mooncake_dynamic_replication_hot_total", "times an object was read often enough to be copied", func(s *core.Stats) uint64 { return s.Tasks.Dynamic.Hot }),
	counted("mooncake_dynamic_replication_proposed_total", "copies of such objects that were asked for", func(s *core.Stats) uint64 { return s.Tasks.Dynamic.Proposed }),
	counted("mooncake_dynamic_replication_completed_total", "those that ended well", func(s *core.Stats) uint64 { return s.Tasks.Dynamic.Completed }),
	counted("mooncake_dynamic_replication_failed_total", "those begun that did not", func(s *core.Stats) uint64 { return s.Tasks.Dynamic.Failed }),
	counted("mooncake_dynamic_replication_expired_total", "those that nobody began in time", func(s *core.Stats) uint64 { return s.Tasks.Dynamic.Expired }),
	measured("mooncake_transfers_in_flight", "tasks that this master carries out itself", func(s *core.Stats) int { return s.Tasks.Transfers.UnderWay }),
	counted("mooncake_transfers_done_total", "those that ended well", func(s *core.Stats) uint64 { return s.Tasks.Transfers.Done }),
	{name: "mooncake_transfers_failed_total", help: "those that failed, by cause", kind: counter, labels: []string{"cause"}, absent: "for causes for which it is 0", each: func(r *reading, emit func(float64, ...string)) {
		for _, f := range r.stats.Tasks.Transfers.Failed {
			if f.Count > 0 {
				emit(float64(f.Count), f.Cause)
			}
		}
	}},
	counted("mooncake_transfers_read_bytes_total", "bytes read from sources for them", func(s *core.Stats) uint64 { return s.Tasks.Transfers.Read }),
	counted("mooncake_transfers_written_bytes_total", "bytes written to their targets", func(s *core.Stats) uint64 { return s.Tasks.Transfers.Written }),
	{name: "mooncake_transfers_bandwidth_wait_seconds_total", help: "time they have waited because of `--transfer_bandwidth`, of all together", kind: counter, value: func(r *reading) float64 { return r.stats.Tasks.Transfers.BandwidthSec }},
	measured("mooncake_transfers_buffer_bytes", "memory of their buffers, in bytes", func(s *core.Stats) int { return s.Tasks.Transfers.BufferBytes }),
	measured("mooncake_transfers_stuck", "buffers that wait for reads or writes which were given up and have not returned", func(s *core.Stats) int { return s.Tasks.Transfers.Stuck }),
}

// The values of the labels of weights, in the order of their numbers.
var (
	weightAvailability = [...]string{"importing", "ready", "degraded", "deleting", "deleted"}
	weightResidency    = [...]string{"unknown", "hot", "cold", "mixed", "absent"}
)

// weightFamilies are about revisions of model weights.
var weightFamilies = from014(
	family{name: "master_weight_revisions", help: "revisions of weights, by availability", kind: gauge, labels: []string{"availability"}, each: func(r *reading, emit func(float64, ...string)) {
		for i, n := range r.stats.Weights.ByAvailability {
			emit(float64(n), weightAvailability[i])
		}
	}},
	family{name: "master_weight_revision_residency", help: "revisions of weights, by where they lie", kind: gauge, labels: []string{"residency"}, each: func(r *reading, emit func(float64, ...string)) {
		for i, n := range r.stats.Weights.ByResidency {
			emit(float64(n), weightResidency[i])
		}
	}},
	measured("master_weight_active_leases", "leases of revisions of weights", func(s *core.Stats) int { return s.Weights.ActiveLeases }),
	measured("master_weight_pending_operations", "moves of weights that have not ended", func(s *core.Stats) int { return s.Weights.PendingJobs }),
	measured("master_weight_oldest_operation_age_ms", "how long ago the oldest of them began, in milliseconds", func(s *core.Stats) uint64 { return s.Weights.OldestJobAgeMs }),
	counted("master_weight_reconciliation_failures_total", "failed rounds of bringing revisions of weights up to date", func(s *core.Stats) uint64 { return s.Weights.Failures }),
)
