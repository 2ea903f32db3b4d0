package admin

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core"
)

// tierFamilies are about disks of clients, promotion, the shared file system and NVMe-oF.
var tierFamilies = slices.Concat([]family{
	{name: "master_allocated_file_size_bytes", help: "sizes of the replicas in files and on clients' disks, in bytes", kind: gauge, value: none},
	{name: "master_total_file_capacity_bytes", help: "room on clients' disks, or that of the shared file system where one is set and limited, in bytes", kind: gauge, value: func(r *reading) float64 { return float64(r.fileBytes) }},
	{name: "master_nof_allocated_bytes", help: "NVMe-oF space handed out, in bytes", kind: gauge, value: none},
	{name: "master_total_nof_capacity_bytes", help: "NVMe-oF space, in bytes", kind: gauge, value: none},
	{name: "master_promotion_in_flight", help: "promotions under way", kind: gauge, value: none},
	{name: "master_promotion_admitted_total", help: "promotions admitted", kind: counter, value: none},
	{name: "master_promotion_completed_total", help: "promotions completed", kind: counter, value: none},
	{name: "master_promotion_completed_bytes_total", help: "bytes promoted", kind: counter, value: none},
	{name: "master_promotion_expired_total", help: "promotions that nobody ended in time", kind: counter, value: none},
	{name: "master_promotion_failed_total", help: "promotions that failed", kind: counter, value: none},
	{name: "master_promotion_cancelled_total", help: "promotions whose object had gone", kind: counter, value: none},
	{name: "master_promotion_rejected_frequency_total", help: "promotions not begun because the object is not read often enough", kind: counter, value: none},
	{name: "master_promotion_rejected_watermark_total", help: "promotions not begun because memory is full", kind: counter, value: none},
	{name: "master_promotion_rejected_cap_total", help: "promotions not begun because too many are under way", kind: counter, value: none},
	{name: "master_promotion_candidate_recorded_total", help: "refused promotions remembered to be tried again", kind: counter, value: none},
	{name: "master_promotion_candidate_admitted_total", help: "those admitted later", kind: counter, value: none},
	{name: "master_promotion_candidate_admission_rejected_total", help: "those refused again", kind: counter, value: none},
	{name: "master_promotion_candidate_expired_evaluated_total", help: "those forgotten after they were tried", kind: counter, value: none},
	{name: "master_promotion_candidate_expired_unevaluated_total", help: "those forgotten before they were tried", kind: counter, value: none},
	{name: "master_promotion_candidate_dropped_limit_total", help: "refused promotions not remembered, because too many are", kind: counter, value: none},
	// Memory is all that is evicted by the pool's passes but what NVMe-oF segments give up.
	whenUsed(counted("master_attempted_evictions_mem", "eviction passes over memory", func(s *core.Stats) uint64 { return s.AttemptedEvictions })),
	whenUsed(counted("master_successful_evictions_mem", "those that freed something", func(s *core.Stats) uint64 { return s.SuccessfulEvictions })),
	whenUsed(counted("master_evicted_key_count_mem", "objects evicted from memory", func(s *core.Stats) uint64 { return s.EvictedKeys })),
	whenUsed(counted("master_evicted_size_bytes_mem", "their sizes, in bytes", func(s *core.Stats) uint64 { return s.EvictedBytes })),
}, from014(
	family{name: "master_nof_heartbeat_probe_latency_ms", help: "times that probes of NVMe-oF segments took, in milliseconds", kind: histogram, buckets: func(*reading) core.Histogram {
		return nothing(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
	}},
	family{name: "master_dfs_allocated_bytes", help: "space of the distributed file system handed out, in bytes; there is none", kind: gauge, value: none},
	family{name: "master_dfs_total_capacity_bytes", help: "space of the distributed file system, in bytes; there is none", kind: gauge, value: none},
	family{name: "master_dfs_file_count", help: "files in the distributed file system; there is none", kind: gauge, value: none},
))

// taskFamilies are about copies, moves and the tasks of clients.
var taskFamilies []family

// The values of the labels of weights, in the order of their numbers.
var (
	weightAvailability = []string{"importing", "ready", "degraded", "deleting", "deleted"}
	weightResidency    = []string{"absent", "hot", "cold", "mixed", "unknown"}
)

// weightFamilies are about revisions of model weights.
var weightFamilies = from014(
	forEach("master_weight_revisions", "revisions of weights, by availability", gauge, "availability", weightAvailability),
	forEach("master_weight_revision_residency", "revisions of weights, by where they lie", gauge, "residency", weightResidency),
	family{name: "master_weight_active_leases", help: "leases of revisions of weights", kind: gauge, value: none},
	family{name: "master_weight_pending_operations", help: "moves of weights that have not ended", kind: gauge, value: none},
	family{name: "master_weight_oldest_operation_age_ms", help: "how long ago the oldest of them began, in milliseconds", kind: gauge, value: none},
	family{name: "master_weight_reconciliation_failures_total", help: "failed rounds of bringing revisions of weights up to date", kind: counter, value: none},
)
