package app

import "time"

// farFlags are about other machines and other media: standby masters, snapshots, tasks, disks,
// events, NVMe-oF, CXL, weights.
var farFlags = []Flag{
	{
		Name: "enable_ha", Kind: Bool, Default: "false", Group: GroupHA, Effect: Waiting,
		Feature: "high availability",
		Help:    "run as one of several masters that elect a leader",
		bind:    func(c *Config) any { return &c.HA.Enabled },
	},
	{
		Name: "ha_backend_type", Kind: String, Default: "etcd", Group: GroupHA, Effect: Waiting,
		Feature: "high availability",
		Help:    "where masters elect their leader: etcd, redis, k8s",
		bind:    func(c *Config) any { return &c.HA.Backend },
	},
	{
		Name: "ha_backend_connstring", Kind: String, Default: "", Group: GroupHA, Effect: Waiting,
		Feature: "high availability",
		Help:    "how to reach that backend; wins over --etcd_endpoints",
		bind:    func(c *Config) any { return &c.HA.Connection },
	},
	{
		Name: "etcd_endpoints", Kind: String, Default: "", Group: GroupHA, Effect: Waiting,
		Feature: "high availability",
		Help:    "etcd endpoints, separated by ; or ,",
		bind:    func(c *Config) any { return &c.HA.EtcdEndpoints },
	},
	{
		Name: "ha_leader_lease_ttl_sec", Kind: Int64, Default: "5", Group: GroupHA, Effect: Waiting, unit: time.Second,
		Feature: "high availability",
		Help:    "seconds a leader's lease lasts without renewal, 2 to 60",
		bind:    func(c *Config) any { return &c.HA.LeaseTTL },
	},
	{
		Name: "enable_oplog", Kind: Bool, Default: "false", Group: GroupHA, Effect: Waiting,
		Feature: "the operation log",
		Help:    "replicate metadata to standby masters through a log of operations",
		bind:    func(c *Config) any { return &c.Oplog.Enabled },
	},
	{
		Name: "oplog_poll_interval_ms", Kind: Int32, Default: "1000", Group: GroupHA, Effect: Waiting, unit: time.Millisecond,
		Feature: "the operation log",
		Help:    "milliseconds between two looks of a standby at the log",
		bind:    func(c *Config) any { return &c.Oplog.PollInterval },
	},
	{
		Name: "oplog_batch_max_entries", Kind: Uint32, Default: "1024", Group: GroupHA, Effect: Waiting,
		Feature: "the operation log",
		Help:    "most operations that may wait to be logged",
		bind:    func(c *Config) any { return &c.Oplog.BatchMaxEntries },
	},
	{
		Name: "batch_oplog_retry_timeout_sec", Kind: Uint32, Default: "180", Group: GroupHA, Effect: Waiting, unit: time.Second,
		Feature: "the operation log",
		Help:    "seconds a standby retries a log that can't be read",
		bind:    func(c *Config) any { return &c.Oplog.RetryTimeout },
	},

	{
		Name: "enable_oplog_snapshot", Kind: Bool, Default: "false", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots",
		Help:    "let standby masters write snapshots of the operation log",
		bind:    func(c *Config) any { return &c.Snapshot.OplogEnabled },
	},
	{
		Name: "snapshot_interval_seconds", Kind: Uint64, Default: "600", Group: GroupSnapshot, Effect: Waiting, unit: time.Second,
		Feature: "snapshots",
		Help:    "seconds between snapshots",
		bind:    func(c *Config) any { return &c.Snapshot.Interval },
	},
	{
		Name: "snapshot_object_store_type", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots",
		Help:    "where snapshots are kept: local, s3",
		bind:    func(c *Config) any { return &c.Snapshot.ObjectStore },
	},
	{
		Name: "snapshot_chunk_object_count", Kind: Uint64, Default: "1000000", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots",
		Help:    "objects per piece of a snapshot",
		bind:    func(c *Config) any { return &c.Snapshot.ChunkObjects },
	},
	{
		Name: "enable_snapshot", Kind: Bool, Default: "false", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "write snapshots regularly",
		bind:    func(c *Config) any { return &c.Snapshot.Enabled },
	},
	{
		Name: "enable_snapshot_restore", Kind: Bool, Default: "false", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "start from the newest snapshot",
		bind:    func(c *Config) any { return &c.Snapshot.Restore },
	},
	{
		Name: "snapshot_backup_dir", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "folder for snapshots whose upload failed",
	},
	{
		Name: "snapshot_child_timeout_seconds", Kind: Uint64, Default: "300", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "seconds one snapshot may take",
	},
	{
		Name: "snapshot_retention_count", Kind: Uint32, Default: "2", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "snapshots kept",
		bind:    func(c *Config) any { return &c.Snapshot.Retention },
	},
	{
		Name: "snapshot_catalog_store_type", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting, Key: "snapshot_catalog_store_type snapshot_catalog_backend_type",
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "where the list of snapshots is kept: embedded, redis",
	},
	{
		Name: "snapshot_catalog_store_connstring", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting, Key: "snapshot_catalog_store_connstring snapshot_catalog_backend_connstring",
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "how to reach that list",
	},
	{
		Name: "snapshot_catalog_backend_type", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting, Key: "-",
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "older name of --snapshot_catalog_store_type",
	},
	{
		Name: "snapshot_catalog_backend_connstring", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting, Key: "-",
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "older name of --snapshot_catalog_store_connstring",
	},
	{
		Name: "snapshot_payload_store_type", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "older name of --snapshot_object_store_type",
	},
	{
		Name: "snapshot_payload_backend_type", Kind: String, Default: "", Group: GroupSnapshot, Effect: Waiting,
		Feature: "snapshots as in 0.3.13, which 0.3.14 removed",
		Help:    "older name of --snapshot_object_store_type",
	},

	{
		Name: "max_total_finished_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks,
		Help: "finished tasks that are remembered",
		bind: func(c *Config) any { return &c.Tasks.MaxFinished },
	},
	{
		Name: "max_total_pending_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks,
		Help: "tasks that may wait",
		bind: func(c *Config) any { return &c.Tasks.MaxPending },
	},
	{
		Name: "max_total_processing_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks,
		Help: "tasks that may run at the same time",
		bind: func(c *Config) any { return &c.Tasks.MaxProcessing },
	},
	{
		Name: "pending_task_timeout_sec", Kind: Uint64, Default: "300", Group: GroupTasks, unit: time.Second,
		Help: "seconds a task may wait, 0 = for ever",
		bind: func(c *Config) any { return &c.Tasks.PendingTimeout },
	},
	{
		Name: "processing_task_timeout_sec", Kind: Uint64, Default: "300", Group: GroupTasks, unit: time.Second,
		Help: "seconds a task may run, 0 = for ever",
		bind: func(c *Config) any { return &c.Tasks.ProcessingTimeout },
	},
	{
		Name: "max_retry_attempts", Kind: Uint32, Default: "10", Group: GroupTasks,
		Help: "attempts a client makes at one task",
		bind: func(c *Config) any { return &c.Tasks.MaxRetries },
	},

	{
		Name: "enable_offload", Kind: Bool, Default: "false", Group: GroupOffload,
		Help: "let clients keep objects on their own disks (the local-disk tier)",
		bind: func(c *Config) any { return &c.Offload.Enabled },
	},
	{
		Name: "offload_on_evict", Kind: Bool, Default: "false", Group: GroupOffload,
		Help: "write an object to disk when it is evicted, not when it is written; needs --enable_offload",
		bind: func(c *Config) any { return &c.Offload.OnEvict },
	},
	{
		Name: "offload_force_evict", Kind: Bool, Default: "false", Group: GroupOffload,
		Help: "evict even what could not be written to disk; needs --offload_on_evict",
		bind: func(c *Config) any { return &c.Offload.ForceEvict },
	},
	{
		Name: "offloading_queue_limit", Kind: Uint64, Default: "50000", Group: GroupOffload,
		Help: "objects that may wait to be written to one client's disk, 1 to 100000000",
		bind: func(c *Config) any { return &c.Offload.QueueLimit },
	},
	{
		Name: "offload_cap_ratio", Kind: Double, Default: "0.5", Group: GroupOffload,
		Help: "share of that queue one eviction pass may fill, 0 to 1",
		bind: func(c *Config) any { return &c.Offload.CapRatio },
	},
	{
		Name: "promotion_on_hit", Kind: Bool, Default: "false", Group: GroupOffload,
		Help: "bring an object back to memory when it is read from disk; needs --enable_offload",
		bind: func(c *Config) any { return &c.Promotion.OnHit },
	},
	{
		Name: "promotion_admission_threshold", Kind: Uint32, Default: "2", Group: GroupOffload,
		Help: "reads it takes, 1 to 255",
		bind: func(c *Config) any { return &c.Promotion.Threshold },
	},
	{
		Name: "promotion_queue_limit", Kind: Uint32, Default: "50000", Group: GroupOffload,
		Help: "promotions under way at the same time",
		bind: func(c *Config) any { return &c.Promotion.QueueLimit },
	},
	{
		Name: "promotion_max_per_heartbeat", Kind: Uint32, Default: "1", Group: GroupOffload,
		Help: "promotions handed to a client at once, at least 1",
		bind: func(c *Config) any { return &c.Promotion.PerHeartbeat },
	},
	{
		Name: "dynamic_replication_mode", Kind: String, Default: "off", Group: GroupOffload,
		Help: "copies of objects that are read often: off, observe, enforce",
		bind: func(c *Config) any { return &c.DynamicReplication.Mode },
	},
	{
		Name: "dynamic_replication_heat_window_seconds", Kind: Uint32, Default: "10", Group: GroupOffload, unit: time.Second,
		Help: "seconds over which reads are counted, at least 1",
		bind: func(c *Config) any { return &c.DynamicReplication.Window },
	},
	{
		Name: "dynamic_replication_admission_qps_threshold", Kind: Double, Default: "0.8", Group: GroupOffload,
		Help: "reads per second that make an object hot, more than 0",
		bind: func(c *Config) any { return &c.DynamicReplication.Threshold },
	},
	{
		Name: "dynamic_replication_max_memory_replicas", Kind: Uint64, Default: "2", Group: GroupOffload,
		Help: "most memory replicas of one object, at least 1",
		bind: func(c *Config) any { return &c.DynamicReplication.MaxReplicas },
	},

	{
		Name: "enable_kv_events", Kind: Bool, Default: "false", Group: GroupEvents,
		Help: "publish where objects can be read, see docs/kv-events.md",
		bind: func(c *Config) any { return &c.KVEvents.Enabled },
	},
	{
		Name: "kv_events_bind_endpoint", Kind: String, Default: "", Group: GroupEvents,
		Help: "where the publisher listens: tcp://address:port, with * for all addresses, or ipc://path; without one nothing is published",
		bind: func(c *Config) any { return &c.KVEvents.Endpoint },
	},
	{
		Name: "kv_events_backend_id", Kind: String, Default: "", Group: GroupEvents,
		Help: "name of this master in the events; without one nothing is published",
		bind: func(c *Config) any { return &c.KVEvents.BackendID },
	},
	{
		Name: "kv_events_queue_capacity", Kind: Uint32, Default: "65536", Group: GroupEvents,
		Help: "events that may wait, 0 = no limit; the oldest is dropped when it is full",
		bind: func(c *Config) any { return &c.KVEvents.QueueCapacity },
	},
	{
		Name: "kv_events_emit_legacy_compat", Kind: Bool, Default: "true", Group: GroupEvents,
		Help: "write the older field names too",
		bind: func(c *Config) any { return &c.KVEvents.Legacy },
	},
	{
		Name: "kv_events_emit_object_key", Kind: Bool, Default: "true", Group: GroupEvents,
		Help: "write the object's key; without it only whole tenants are told of",
		bind: func(c *Config) any { return &c.KVEvents.ObjectKey },
	},
	{
		Name: "kv_events_model_name", Kind: String, Default: "", Group: GroupEvents,
		Help: "value of model_name in the events",
		bind: func(c *Config) any { return &c.KVEvents.ModelName },
	},
	{
		Name: "kv_events_tenant_id", Kind: String, Default: "default", Group: GroupEvents, Effect: Neutral,
		Feature: "events carry the tenant of their object",
		Help:    "value of tenant_id in the events",
		bind:    func(c *Config) any { return &c.KVEvents.TenantID },
	},
	{
		Name: "kv_events_additional_salt", Kind: String, Default: "", Group: GroupEvents,
		Help: "value of additional_salt in the events",
		bind: func(c *Config) any { return &c.KVEvents.Salt },
	},
	{
		Name: "kv_events_lora_name", Kind: String, Default: "", Group: GroupEvents,
		Help: "value of lora_name in the events",
		bind: func(c *Config) any { return &c.KVEvents.LoRA },
	},
	{
		Name: "kv_events_block_size", Kind: Uint32, Default: "0", Group: GroupEvents,
		Help: "value of block_size in the events",
		bind: func(c *Config) any { return &c.KVEvents.BlockSize },
	},
	{
		Name: "kv_events_dp_rank", Kind: Uint32, Default: "0", Group: GroupEvents,
		Help: "value of dp_rank in the events",
		bind: func(c *Config) any { return &c.KVEvents.DPRank },
	},

	{
		Name: "enable_nof", Kind: Bool, Default: "false", Group: GroupNoF,
		Help: "take NVMe-oF segments and place replicas on them; the original has a build for that",
		bind: func(c *Config) any { return &c.NoF.Enabled },
	},
	{
		Name: "nof_eviction_ratio", Kind: Double, Default: "0.05", Group: GroupNoF,
		Help: "as --eviction_ratio for NVMe-oF space",
		bind: func(c *Config) any { return &c.NoF.EvictionRatio },
	},
	{
		Name: "nof_eviction_high_watermark_ratio", Kind: Double, Default: "0.90", Group: GroupNoF,
		Help: "as --eviction_high_watermark_ratio for NVMe-oF space",
		bind: func(c *Config) any { return &c.NoF.HighWatermark },
	},
	{
		Name: "nof_heartbeat_interval_sec", Kind: Int64, Default: "10", Group: GroupNoF, unit: time.Second,
		Help: "seconds between two probes of a segment",
		bind: func(c *Config) any { return &c.NoF.HeartbeatInterval },
	},
	{
		Name: "nof_heartbeat_probe_timeout_ms", Kind: Uint32, Default: "1000", Group: GroupNoF, unit: time.Millisecond,
		Help: "milliseconds a probe may take",
		bind: func(c *Config) any { return &c.NoF.ProbeTimeout },
	},
	{
		Name: "nof_heartbeat_failures_threshold", Kind: Uint32, Default: "3", Group: GroupNoF,
		Help: "failed probes after which a segment is dropped",
		bind: func(c *Config) any { return &c.NoF.FailuresThreshold },
	},

	{
		Name: "enable_cxl", Kind: Bool, Default: "false", Group: GroupCXL,
		Help: "hand out CXL memory to segments of protocol cxl, and place every object on the first segment that its writer prefers",
		bind: func(c *Config) any { return &c.CXL.Enabled },
	},
	{
		Name: "cxl_path", Kind: String, Default: "/dev/dax0.0", Group: GroupCXL,
		Help: "device of that memory; the master only names it",
		bind: func(c *Config) any { return &c.CXL.Path },
	},
	{
		Name: "cxl_size", Kind: Uint64, Default: "8589934592", Group: GroupCXL,
		Help: "bytes of it",
		bind: func(c *Config) any { return &c.CXL.Size },
	},
	{
		Name: "use_mmap_arena_allocator", Kind: Bool, Default: "false", Group: GroupCXL, Effect: Neutral,
		Feature: "the Go runtime manages this process's memory",
		Help:    "arena for buffers, removed in 0.3.14",
	},
	{
		Name: "mmap_arena_pool_size", Kind: Uint64, Default: "8589934592", Group: GroupCXL, Effect: Neutral,
		Feature: "the Go runtime manages this process's memory",
		Help:    "bytes of that arena, removed in 0.3.14",
	},

	{
		Name: "weight_import_idle_timeout_ms", Kind: Uint64, Default: "300000", Group: GroupWeights, unit: time.Millisecond,
		Help: "milliseconds without a write after which an import of weights is given up; looked at every 30 s",
		bind: func(c *Config) any { return &c.Weights.ImportIdleTimeout },
	},
	{
		Name: "weight_management_oplog_capability_confirmed", Kind: Bool, Default: "false", Group: GroupWeights, Effect: Waiting,
		Feature: "the operation log",
		Help:    "every master of the cluster understands weights in the operation log",
		bind:    func(c *Config) any { return &c.Weights.OplogConfirmed },
	},
}
