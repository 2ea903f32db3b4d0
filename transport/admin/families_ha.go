package admin

import "slices"

// The values of the labels of snapshots.
var (
	snapshotSkips      = []string{"none", "disabled", "interval", "in_flight", "stopped", "promotion", "no_new_batch", "catch_up", "lease_busy", "capture_unavailable", "no_fallback", "invalid_pair", "floor_ahead"}
	snapshotOperations = []string{"schedule", "upload", "bootstrap", "replay", "publish", "gc", "prune", "rebootstrap"}
)

// skipReason says that snapshots are off.
func skipReason(_ *reading, emit func(float64, ...string)) {
	for _, reason := range snapshotSkips {
		emit(number(reason == "disabled"), reason)
	}
}

// forEach is a family that is 0 for each value of its label.
func forEach(name, help string, k kind, label string, values []string) family {
	return family{name: name, help: help, kind: k, labels: []string{label}, each: func(_ *reading, emit func(float64, ...string)) {
		for _, v := range values {
			emit(0, v)
		}
	}}
}

// haFamilies are those of masters that elect a leader. This one runs alone, without an operation log and
// without snapshots, and says of them what a released master says that does the same.
var haFamilies = slices.Concat([]family{
	{name: "ha_oplog_last_sequence_id", help: "last operation logged; there is no operation log", kind: gauge, value: none},
	{name: "ha_oplog_applied_sequence_id", help: "last operation applied; there is no operation log", kind: gauge, value: none},
	{name: "ha_oplog_standby_lag", help: "operations a standby is behind; there is no operation log", kind: gauge, value: none},
	{name: "ha_oplog_pending_entries", help: "operations waiting to be logged; there is no operation log", kind: gauge, value: none},
	{name: "ha_pending_mutation_queue_size", help: "changes waiting to be replicated; there is no operation log", kind: gauge, value: none},
	{name: "ha_standby_state", help: "state of the standby, 0 = stopped; this master runs alone", kind: gauge, value: none},
}, from014(
	family{name: "ha_snapshot_enabled", help: "1 if standby masters write snapshots", kind: gauge, value: none},
	family{name: "ha_snapshot_active", help: "1 while one is written", kind: gauge, value: none},
	family{name: "ha_snapshot_latest_present", help: "1 if there is a latest snapshot", kind: gauge, value: none},
	family{name: "ha_snapshot_fallback_present", help: "1 if there is one before it", kind: gauge, value: none},
	family{name: "ha_snapshot_latest_age_seconds", help: "age of the latest, in seconds", kind: gauge, value: none},
	family{name: "ha_snapshot_fallback_age_seconds", help: "age of the one before it, in seconds", kind: gauge, value: none},
	family{name: "ha_snapshot_count", help: "snapshots there are", kind: gauge, value: none},
	family{name: "ha_snapshot_candidate_floor", help: "batch up to which the operation log could be cut", kind: gauge, value: none},
	family{name: "ha_snapshot_floor_advances_total", help: "times the operation log was cut", kind: counter, value: none},
	family{name: "ha_snapshot_bytes", help: "size of the latest, in bytes", kind: gauge, value: none},
	family{name: "ha_snapshot_chunk_bytes", help: "size of its pieces, in bytes", kind: gauge, value: none},
	family{name: "ha_snapshot_chunk_count", help: "its pieces", kind: gauge, value: none},
	family{name: "ha_snapshot_capture_pause_us", help: "microseconds for which writing it held replay up", kind: gauge, value: none},
	family{name: "ha_snapshot_suffix_batches", help: "batches after the latest", kind: gauge, value: none},
	family{name: "ha_snapshot_catch_up_target_batch", help: "batch to be caught up with", kind: gauge, value: none},
	family{name: "ha_snapshot_catch_up_target_sequence", help: "operation to be caught up with", kind: gauge, value: none},
	family{name: "ha_snapshot_durable_batch", help: "last batch on disk that was seen", kind: gauge, value: none},
	family{name: "ha_snapshot_applied_batch", help: "last batch applied", kind: gauge, value: none},
	family{name: "ha_snapshot_latest_batch", help: "batch of the latest", kind: gauge, value: none},
	family{name: "ha_snapshot_fallback_batch", help: "batch of the one before it", kind: gauge, value: none},
	family{name: "ha_snapshot_compaction_floor", help: "batch up to which the operation log is cut", kind: gauge, value: none},
	family{name: "ha_snapshot_gc_orphan_prefixes", help: "unfinished snapshots found", kind: gauge, value: none},
	family{name: "ha_snapshot_gc_deleted_prefixes", help: "snapshots deleted", kind: gauge, value: none},
	family{name: "ha_snapshot_uncompacted_batches", help: "batches that could be cut", kind: gauge, value: none},
	family{name: "ha_snapshot_lease_lost_total", help: "times the right to write snapshots was lost", kind: counter, value: none},
	family{name: "ha_snapshot_skip_reason", help: "1 for the reason why no snapshot is written", kind: gauge, labels: []string{"reason"}, each: skipReason},
	forEach("ha_snapshot_skips_total", "times no snapshot was written, by reason", counter, "reason", snapshotSkips),
	forEach("ha_snapshot_operations_total", "steps of snapshots, by operation", counter, "operation", snapshotOperations),
	forEach("ha_snapshot_errors_total", "those that failed", counter, "operation", snapshotOperations),
	forEach("ha_snapshot_duration_us_total", "what they took, in microseconds", counter, "operation", snapshotOperations),
	family{name: "ha_writer_accepting", help: "1 while the writer of the operation log takes operations", kind: gauge, value: none},
	family{name: "ha_writer_retry_count", help: "writes of the operation log tried again", kind: counter, value: none},
	family{name: "ha_writer_retry_delay_ms", help: "milliseconds to the next try", kind: gauge, value: none},
	family{name: "ha_writer_waiting_slots", help: "places reserved at the writer", kind: gauge, value: none},
	family{name: "ha_writer_committed_queue_depth", help: "operations committed and not written", kind: gauge, value: none},
	family{name: "ha_writer_callback_queue_depth", help: "operations written whose caller has not been told", kind: gauge, value: none},
	family{name: "ha_writer_last_error", help: "result code of the last failed write", kind: gauge, value: none},
	family{name: "ha_writer_durable_batch_id", help: "last batch that is on disk", kind: gauge, value: none},
	family{name: "ha_writer_durable_sequence", help: "last operation that is on disk", kind: gauge, value: none},
	family{name: "ha_writer_stuck_first_sequence", help: "first operation of the batch being written", kind: gauge, value: none},
	family{name: "ha_writer_stuck_last_sequence", help: "last operation of the batch being written", kind: gauge, value: none},
))
