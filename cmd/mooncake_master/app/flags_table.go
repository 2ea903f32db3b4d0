package app

import "time"

// table is every flag of releases 0.3.13 and 0.3.14, with the defaults of 0.3.14, and our own
// rpc_max_frame_bytes, tenant_quota_exceeded and tenant_quota_connector_dir.
var table = []Flag{
	{
		Name: "config_path", Kind: String, Default: "", Group: GroupGeneral, Key: "-",
		Help: "YAML (.yaml, .yml) or JSON (.json) file with settings; a flag whose value is not the default wins over the file",
		bind: func(c *Config) any { return &c.ConfigPath },
	},
	{
		Name: "cluster_id", Kind: String, Default: "mooncake_cluster", Group: GroupGeneral,
		Help: "name of this cluster, part of the keys and paths it keeps elsewhere (policy source, election, snapshots)",
		bind: func(c *Config) any { return &c.ClusterID },
	},
	{
		Name: "pod_name", Kind: String, Default: "", Group: GroupGeneral, Effect: Waiting,
		Feature: "high availability",
		Help:    "name of the pod this master runs in; POD_NAME of the environment is the fallback",
		bind:    func(c *Config) any { return &c.HA.PodName },
	},
	{
		Name: "pod_namespace", Kind: String, Default: "", Group: GroupGeneral, Effect: Waiting,
		Feature: "high availability",
		Help:    "namespace of that pod; POD_NAMESPACE of the environment is the fallback",
		bind:    func(c *Config) any { return &c.HA.PodNamespace },
	},

	{
		Name: "rpc_port", Kind: Int32, Default: "0", Group: GroupRPC,
		Help: "TCP port of the RPC listener; when not given, --port counts. Given as 0 without --port: any free port, printed at start",
		bind: func(c *Config) any { return &c.RPC.Port },
	},
	{
		Name: "port", Kind: Int32, Default: "50051", Group: GroupRPC, Key: "-",
		Help: "older name of --rpc_port, used while that is 0; 0 means any free port",
		bind: func(c *Config) any { return &c.RPC.OldPort },
	},
	{
		Name: "rpc_address", Kind: String, Default: "0.0.0.0", Group: GroupRPC,
		Help: "address the RPC listener binds to",
		bind: func(c *Config) any { return &c.RPC.Host },
	},
	{
		Name: "rpc_interface", Kind: String, Default: "", Group: GroupRPC,
		Help: "network interface whose IPv4 address replaces --rpc_address",
		bind: func(c *Config) any { return &c.RPC.Interface },
	},
	{
		Name: "rpc_conn_timeout_seconds", Kind: Int32, Default: "0", Group: GroupRPC, unit: time.Second,
		Help: "seconds without a request after which a connection is closed, 0 = never",
		bind: func(c *Config) any { return &c.RPC.IdleTimeout },
	},
	{
		Name: "rpc_enable_tcp_no_delay", Kind: Bool, Default: "true", Group: GroupRPC,
		Help: "send small replies at once instead of collecting them (TCP_NODELAY)",
		bind: func(c *Config) any { return &c.RPC.NoDelay },
	},
	{
		Name: "rpc_max_frame_bytes", Kind: Uint64, Default: "268435456", Group: GroupRPC,
		Help: "largest request body accepted, in bytes; a connection that announces more is closed before anything is allocated",
		bind: func(c *Config) any { return &c.RPC.MaxFrameBytes },
	},
	{
		Name: "rpc_thread_num", Kind: Int32, Default: "0", Group: GroupRPC, Effect: Neutral,
		Feature: "the Go runtime schedules connections over all CPUs; GOMAXPROCS limits them",
		Help:    "threads of the RPC listener",
	},
	{
		Name: "handler_worker_thread_num", Kind: Int32, Default: "0", Group: GroupRPC, Effect: Neutral,
		Feature: "the Go runtime schedules requests over all CPUs; GOMAXPROCS limits them",
		Help:    "threads that run requests",
	},
	{
		Name: "max_threads", Kind: Int32, Default: "16", Group: GroupRPC, Effect: Neutral, Key: "-",
		Feature: "as --rpc_thread_num",
		Help:    "older name of --rpc_thread_num",
	},

	{
		Name: "metrics_port", Kind: Int32, Default: "9003", Group: GroupAdmin,
		Help: "port of the admin and metrics HTTP server, 0 = any free port, printed at start",
		bind: func(c *Config) any { return &c.Admin.Port },
	},
	{
		Name: "metrics_host", Kind: String, Default: "0.0.0.0", Group: GroupAdmin,
		Help: "address that server binds to; :: for all addresses of both families",
		bind: func(c *Config) any { return &c.Admin.Host },
	},
	{
		Name: "enable_metric_reporting", Kind: Bool, Default: "true", Group: GroupAdmin,
		Help: "write a line with the main numbers to the log every 10 seconds",
		bind: func(c *Config) any { return &c.Admin.Report },
	},

	{
		Name: "enable_http_metadata_server", Kind: Bool, Default: "false", Group: GroupMetadata,
		Help: "serve the key-value store in which transfer engines find each other",
		bind: func(c *Config) any { return &c.Metadata.Enabled },
	},
	{
		Name: "http_metadata_server_port", Kind: Int32, Default: "8080", Group: GroupMetadata,
		Help: "port of that server, 0 = any free port, printed at start",
		bind: func(c *Config) any { return &c.Metadata.Port },
	},
	{
		Name: "http_metadata_server_host", Kind: String, Default: "0.0.0.0", Group: GroupMetadata,
		Help: "address that server binds to",
		bind: func(c *Config) any { return &c.Metadata.Host },
	},
	{
		Name: "enable_metadata_cleanup_on_timeout", Kind: Bool, Default: "false", Group: GroupMetadata,
		Help: "when a client expires, delete what its segments left in the metadata server: this process's own, or the one that MOONCAKE_TE_META_DATA_SERVER or the file MOONCAKE_CONFIG_PATH names",
		bind: func(c *Config) any { return &c.Metadata.CleanupOnTimeout },
	},

	{
		Name: "default_kv_lease_ttl", Kind: Duration, Default: "10000", Group: GroupObjects,
		Help: "how long a read protects an object from eviction and removal: milliseconds, or a number with ms, s, m or h",
		bind: func(c *Config) any { return &c.Objects.LeaseTTL },
	},
	{
		Name: "default_kv_soft_pin_ttl", Kind: Duration, Default: "1800000", Group: GroupObjects,
		Help: "how long a soft pin lasts when the writer names no time",
		bind: func(c *Config) any { return &c.Objects.SoftPinTTL },
	},
	{
		Name: "max_kv_soft_pin_ttl", Kind: Duration, Default: "604800000", Group: GroupObjects,
		Help: "longest soft pin a client may ask for",
		bind: func(c *Config) any { return &c.Objects.MaxSoftPinTTL },
	},
	{
		Name: "put_start_discard_timeout_sec", Kind: Uint64, Default: "30", Group: GroupObjects, unit: time.Second,
		Help: "seconds after which an unfinished write may be displaced by another one to the same key",
		bind: func(c *Config) any { return &c.Objects.PutStartDiscard },
	},
	{
		Name: "put_start_release_timeout_sec", Kind: Uint64, Default: "600", Group: GroupObjects, unit: time.Second,
		Help: "seconds after which the memory of a displaced or abandoned write is given back; more than the discard timeout",
		bind: func(c *Config) any { return &c.Objects.PutStartRelease },
	},

	{
		Name: "eviction_ratio", Kind: Double, Default: "0.05", Group: GroupEviction,
		Help: "share of the memory freed by one eviction pass, 0 to 1",
		bind: func(c *Config) any { return &c.Eviction.Ratio },
	},
	{
		Name: "eviction_high_watermark_ratio", Kind: Double, Default: "0.90", Group: GroupEviction,
		Help: "share of the memory in use above which eviction starts, 0 to 1",
		bind: func(c *Config) any { return &c.Eviction.HighWatermark },
	},
	{
		Name: "tenant_eviction_high_watermark_ratio", Kind: Double, Default: "0.90", Group: GroupEviction,
		Help: "share of a tenant's effective quota above which its own oldest objects are evicted in the background, 0 = never",
		bind: func(c *Config) any { return &c.Eviction.TenantHighWatermark },
	},
	{
		Name: "allow_evict_soft_pinned_objects", Kind: Bool, Default: "true", Group: GroupEviction,
		Help: "evict soft-pinned objects too when nothing else is left",
		bind: func(c *Config) any { return &c.Eviction.AllowSoftPinned },
	},

	{
		Name: "client_active_ttl_sec", Kind: Int64, Default: "10", Group: GroupClients, unit: time.Second,
		Help: "seconds without a ping after which a client counts as suspected: its objects are not read and nothing is placed on it",
		bind: func(c *Config) any { return &c.Clients.ActiveTTL },
	},
	{
		Name: "client_suspicion_ttl_sec", Kind: Int64, Default: "20", Group: GroupClients, unit: time.Second,
		Help: "further seconds after which a suspected client's segments and objects are dropped",
		bind: func(c *Config) any { return &c.Clients.SuspicionTTL },
	},
	{
		Name: "client_ttl", Kind: Int64, Default: "10", Group: GroupClients, Key: "client_live_ttl_sec", unit: time.Second,
		Help: "older name of --client_active_ttl_sec, which wins where both are given",
		bind: func(c *Config) any { return &c.Clients.OldTTL },
	},

	{
		Name: "enable_multi_tenants", Kind: Bool, Default: "false", Group: GroupTenants,
		Help: "keep each tenant's objects apart and admit writes against its quota; off, everybody is tenant \"default\"",
		bind: func(c *Config) any { return &c.Tenants.Enabled },
	},
	{
		Name: "tenant_quota_connector_type", Kind: String, Default: "file", Group: GroupTenants,
		Help: "where the quota policy comes from: file, or the name of a connector program in --tenant_quota_connector_dir; etcd is not part of this build yet",
		bind: func(c *Config) any { return &c.Tenants.ConnectorType },
	},
	{
		Name: "tenant_quota_connector_uri", Kind: String, Default: "", Group: GroupTenants,
		Help: "the policy's place in the terms of the connector: a path for file; needed with --enable_multi_tenants",
		bind: func(c *Config) any { return &c.Tenants.ConnectorURI },
	},
	{
		Name: "tenant_quota_connector_dir", Kind: String, Default: "", Group: GroupTenants,
		Help: "folder with connector programs, each called mooncake-connector-TYPE",
		bind: func(c *Config) any { return &c.Tenants.ConnectorDir },
	},
	{
		Name: "tenant_quota_exceeded", Kind: String, Default: "evict", Group: GroupTenants,
		Help: "what a write over the quota does: evict the tenant's own oldest free objects if that makes room, or reject it at once",
		bind: func(c *Config) any { return &c.Tenants.Exceeded },
	},

	{
		Name: "allocation_strategy", Kind: String, Default: "random", Group: GroupPlacement,
		Help: "how segments are chosen for new replicas: random, free_ratio_first, local_first; cxl and ssd_free_ratio_first count as random in this build",
		bind: func(c *Config) any { return &c.Placement.Strategy },
	},
	{
		Name: "memory_allocator", Kind: String, Default: "offset", Group: GroupPlacement,
		Help: "how a segment's memory is divided: offset; cachelib is accepted and means offset",
		bind: func(c *Config) any { return &c.Placement.Allocator },
	},
	{
		Name: "enable_disk_eviction", Kind: Bool, Default: "true", Group: GroupPlacement,
		Help: "told to clients: delete old files when their disk space runs out",
		bind: func(c *Config) any { return &c.Storage.DiskEviction },
	},
	{
		Name: "quota_bytes", Kind: Uint64, Default: "0", Group: GroupPlacement,
		Help: "told to clients: bytes of disk space they may use, 0 = 90 % of the disk",
		bind: func(c *Config) any { return &c.Storage.QuotaBytes },
	},
	{
		Name: "root_fs_dir", Kind: String, Default: "", Group: GroupPlacement, Effect: Waiting,
		Feature: "replicas in a shared file system",
		Help:    "folder of a shared file system that keeps a copy of every object",
		bind:    func(c *Config) any { return &c.Storage.RootDir },
	},
	{
		Name: "global_file_segment_size", Kind: Int64, Default: "9223372036854775807", Group: GroupPlacement, Effect: Waiting,
		Feature: "replicas in a shared file system",
		Help:    "bytes of that file system to be used, the largest number = no limit",
		bind:    func(c *Config) any { return &c.Storage.FileSegmentSize },
	},

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
		Name: "max_total_finished_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks, Effect: Waiting,
		Feature: "copy, move and drain tasks",
		Help:    "finished tasks that are remembered",
		bind:    func(c *Config) any { return &c.Tasks.MaxFinished },
	},
	{
		Name: "max_total_pending_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks, Effect: Waiting,
		Feature: "copy, move and drain tasks",
		Help:    "tasks that may wait",
		bind:    func(c *Config) any { return &c.Tasks.MaxPending },
	},
	{
		Name: "max_total_processing_tasks", Kind: Uint32, Default: "10000", Group: GroupTasks, Effect: Waiting,
		Feature: "copy, move and drain tasks",
		Help:    "tasks that may run at the same time",
		bind:    func(c *Config) any { return &c.Tasks.MaxProcessing },
	},
	{
		Name: "pending_task_timeout_sec", Kind: Uint64, Default: "300", Group: GroupTasks, Effect: Waiting, unit: time.Second,
		Feature: "copy, move and drain tasks",
		Help:    "seconds a task may wait, 0 = for ever",
		bind:    func(c *Config) any { return &c.Tasks.PendingTimeout },
	},
	{
		Name: "processing_task_timeout_sec", Kind: Uint64, Default: "300", Group: GroupTasks, Effect: Waiting, unit: time.Second,
		Feature: "copy, move and drain tasks",
		Help:    "seconds a task may run, 0 = for ever",
		bind:    func(c *Config) any { return &c.Tasks.ProcessingTimeout },
	},
	{
		Name: "max_retry_attempts", Kind: Uint32, Default: "10", Group: GroupTasks, Effect: Waiting,
		Feature: "copy, move and drain tasks",
		Help:    "attempts a client makes at one task",
		bind:    func(c *Config) any { return &c.Tasks.MaxRetries },
	},

	{
		Name: "enable_offload", Kind: Bool, Default: "false", Group: GroupOffload, Effect: Waiting,
		Feature: "the local-disk tier",
		Help:    "let clients keep objects on their own disks",
		bind:    func(c *Config) any { return &c.Offload.Enabled },
	},
	{
		Name: "offload_on_evict", Kind: Bool, Default: "false", Group: GroupOffload, Effect: Waiting,
		Feature: "the local-disk tier",
		Help:    "write an object to disk when it is evicted, not when it is written",
		bind:    func(c *Config) any { return &c.Offload.OnEvict },
	},
	{
		Name: "offload_force_evict", Kind: Bool, Default: "false", Group: GroupOffload, Effect: Waiting,
		Feature: "the local-disk tier",
		Help:    "evict even what could not be written to disk",
		bind:    func(c *Config) any { return &c.Offload.ForceEvict },
	},
	{
		Name: "offloading_queue_limit", Kind: Uint64, Default: "50000", Group: GroupOffload, Effect: Waiting,
		Feature: "the local-disk tier",
		Help:    "objects that may wait to be written to one client's disk, 1 to 100000000",
		bind:    func(c *Config) any { return &c.Offload.QueueLimit },
	},
	{
		Name: "offload_cap_ratio", Kind: Double, Default: "0.5", Group: GroupOffload, Effect: Waiting,
		Feature: "the local-disk tier",
		Help:    "share of that queue one eviction pass may fill, 0 to 1",
		bind:    func(c *Config) any { return &c.Offload.CapRatio },
	},
	{
		Name: "promotion_on_hit", Kind: Bool, Default: "false", Group: GroupOffload, Effect: Waiting,
		Feature: "promotion from disk to memory",
		Help:    "bring an object back to memory when it is read from disk",
		bind:    func(c *Config) any { return &c.Promotion.OnHit },
	},
	{
		Name: "promotion_admission_threshold", Kind: Uint32, Default: "2", Group: GroupOffload, Effect: Waiting,
		Feature: "promotion from disk to memory",
		Help:    "reads it takes, 1 to 255",
		bind:    func(c *Config) any { return &c.Promotion.Threshold },
	},
	{
		Name: "promotion_queue_limit", Kind: Uint32, Default: "50000", Group: GroupOffload, Effect: Waiting,
		Feature: "promotion from disk to memory",
		Help:    "promotions under way at the same time",
		bind:    func(c *Config) any { return &c.Promotion.QueueLimit },
	},
	{
		Name: "promotion_max_per_heartbeat", Kind: Uint32, Default: "1", Group: GroupOffload, Effect: Waiting,
		Feature: "promotion from disk to memory",
		Help:    "promotions handed to a client at once, at least 1",
		bind:    func(c *Config) any { return &c.Promotion.PerHeartbeat },
	},
	{
		Name: "dynamic_replication_mode", Kind: String, Default: "off", Group: GroupOffload, Effect: Waiting,
		Feature: "dynamic replication",
		Help:    "copies of objects that are read often: off, observe, enforce",
		bind:    func(c *Config) any { return &c.DynamicReplication.Mode },
	},
	{
		Name: "dynamic_replication_heat_window_seconds", Kind: Uint32, Default: "10", Group: GroupOffload, Effect: Waiting, unit: time.Second,
		Feature: "dynamic replication",
		Help:    "seconds over which reads are counted, at least 1",
		bind:    func(c *Config) any { return &c.DynamicReplication.Window },
	},
	{
		Name: "dynamic_replication_admission_qps_threshold", Kind: Double, Default: "0.8", Group: GroupOffload, Effect: Waiting,
		Feature: "dynamic replication",
		Help:    "reads per second that make an object hot, more than 0",
		bind:    func(c *Config) any { return &c.DynamicReplication.Threshold },
	},
	{
		Name: "dynamic_replication_max_memory_replicas", Kind: Uint64, Default: "2", Group: GroupOffload, Effect: Waiting,
		Feature: "dynamic replication",
		Help:    "most memory replicas of one object, at least 1",
		bind:    func(c *Config) any { return &c.DynamicReplication.MaxReplicas },
	},

	{
		Name: "enable_kv_events", Kind: Bool, Default: "false", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "publish what is stored and removed",
		bind:    func(c *Config) any { return &c.KVEvents.Enabled },
	},
	{
		Name: "kv_events_bind_endpoint", Kind: String, Default: "", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "where the publisher listens",
		bind:    func(c *Config) any { return &c.KVEvents.Endpoint },
	},
	{
		Name: "kv_events_backend_id", Kind: String, Default: "", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "name of this master in the events",
		bind:    func(c *Config) any { return &c.KVEvents.BackendID },
	},
	{
		Name: "kv_events_queue_capacity", Kind: Uint32, Default: "65536", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "events that may wait, 0 = no limit",
		bind:    func(c *Config) any { return &c.KVEvents.QueueCapacity },
	},
	{
		Name: "kv_events_emit_legacy_compat", Kind: Bool, Default: "true", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "write the older field names too",
		bind:    func(c *Config) any { return &c.KVEvents.Legacy },
	},
	{
		Name: "kv_events_emit_object_key", Kind: Bool, Default: "true", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "write the object's key",
		bind:    func(c *Config) any { return &c.KVEvents.ObjectKey },
	},
	{
		Name: "kv_events_model_name", Kind: String, Default: "", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of model_name in the events",
		bind:    func(c *Config) any { return &c.KVEvents.ModelName },
	},
	{
		Name: "kv_events_tenant_id", Kind: String, Default: "default", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of tenant_id in the events",
		bind:    func(c *Config) any { return &c.KVEvents.TenantID },
	},
	{
		Name: "kv_events_additional_salt", Kind: String, Default: "", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of additional_salt in the events",
		bind:    func(c *Config) any { return &c.KVEvents.Salt },
	},
	{
		Name: "kv_events_lora_name", Kind: String, Default: "", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of lora_name in the events",
		bind:    func(c *Config) any { return &c.KVEvents.LoRA },
	},
	{
		Name: "kv_events_block_size", Kind: Uint32, Default: "0", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of block_size in the events",
		bind:    func(c *Config) any { return &c.KVEvents.BlockSize },
	},
	{
		Name: "kv_events_dp_rank", Kind: Uint32, Default: "0", Group: GroupEvents, Effect: Waiting,
		Feature: "KV events",
		Help:    "value of dp_rank in the events",
		bind:    func(c *Config) any { return &c.KVEvents.DPRank },
	},

	{
		Name: "nof_eviction_ratio", Kind: Double, Default: "0.05", Group: GroupNoF, Effect: Waiting,
		Feature: "NVMe-oF segments",
		Help:    "as --eviction_ratio for NVMe-oF space",
		bind:    func(c *Config) any { return &c.NoF.EvictionRatio },
	},
	{
		Name: "nof_eviction_high_watermark_ratio", Kind: Double, Default: "0.90", Group: GroupNoF, Effect: Waiting,
		Feature: "NVMe-oF segments",
		Help:    "as --eviction_high_watermark_ratio for NVMe-oF space",
		bind:    func(c *Config) any { return &c.NoF.HighWatermark },
	},
	{
		Name: "nof_heartbeat_interval_sec", Kind: Int64, Default: "10", Group: GroupNoF, Effect: Waiting, unit: time.Second,
		Feature: "NVMe-oF segments",
		Help:    "seconds between two probes of a segment",
		bind:    func(c *Config) any { return &c.NoF.HeartbeatInterval },
	},
	{
		Name: "nof_heartbeat_probe_timeout_ms", Kind: Uint32, Default: "1000", Group: GroupNoF, Effect: Waiting, unit: time.Millisecond,
		Feature: "NVMe-oF segments",
		Help:    "milliseconds a probe may take",
		bind:    func(c *Config) any { return &c.NoF.ProbeTimeout },
	},
	{
		Name: "nof_heartbeat_failures_threshold", Kind: Uint32, Default: "3", Group: GroupNoF, Effect: Waiting,
		Feature: "NVMe-oF segments",
		Help:    "failed probes after which a segment is dropped",
		bind:    func(c *Config) any { return &c.NoF.FailuresThreshold },
	},

	{
		Name: "enable_cxl", Kind: Bool, Default: "false", Group: GroupCXL, Effect: Waiting,
		Feature: "CXL memory",
		Help:    "use CXL memory",
		bind:    func(c *Config) any { return &c.CXL.Enabled },
	},
	{
		Name: "cxl_path", Kind: String, Default: "/dev/dax0.0", Group: GroupCXL, Effect: Waiting,
		Feature: "CXL memory",
		Help:    "device of that memory",
		bind:    func(c *Config) any { return &c.CXL.Path },
	},
	{
		Name: "cxl_size", Kind: Uint64, Default: "8589934592", Group: GroupCXL, Effect: Waiting,
		Feature: "CXL memory",
		Help:    "bytes of it",
		bind:    func(c *Config) any { return &c.CXL.Size },
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
		Name: "weight_import_idle_timeout_ms", Kind: Uint64, Default: "300000", Group: GroupWeights, Effect: Waiting, unit: time.Millisecond,
		Feature: "weight management",
		Help:    "milliseconds without progress after which an import of weights is given up",
		bind:    func(c *Config) any { return &c.Weights.ImportIdleTimeout },
	},
	{
		Name: "weight_management_oplog_capability_confirmed", Kind: Bool, Default: "false", Group: GroupWeights, Effect: Waiting,
		Feature: "weight management",
		Help:    "every master of the cluster understands weights in the operation log",
		bind:    func(c *Config) any { return &c.Weights.OplogConfirmed },
	},

	{
		Name: "log_dir", Kind: String, Default: "", Group: GroupLog, Key: "-",
		Help: "write the log to a file in this folder instead of to standard error",
		bind: func(c *Config) any { return &c.Log.Dir },
	},
	{
		Name: "minloglevel", Kind: Int32, Default: "0", Group: GroupLog, Key: "-",
		Help: "lowest severity logged: 0 info, 1 warning, 2 error",
		bind: func(c *Config) any { return &c.Log.MinLevel },
	},
	{
		Name: "v", Kind: Int32, Default: "0", Group: GroupLog, Key: "-",
		Help: "1 logs debug messages too, 2 and more traces",
		bind: func(c *Config) any { return &c.Log.Verbosity },
	},
	{
		Name: "logtostderr", Kind: Bool, Default: "false", Group: GroupLog, Key: "-",
		Help: "write to standard error even with --log_dir",
		bind: func(c *Config) any { return &c.Log.ToStderr },
	},
	{
		Name: "alsologtostderr", Kind: Bool, Default: "false", Group: GroupLog, Key: "-",
		Help: "write to standard error as well as to --log_dir",
		bind: func(c *Config) any { return &c.Log.AlsoStderr },
	},
	{
		Name: "alsologtoemail", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "mail addresses for log messages",
	},
	{
		Name: "colorlogtostderr", Kind: Bool, Default: "false", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "colours on a terminal",
	},
	{
		Name: "drop_log_memory", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "page cache of log files",
	},
	{
		Name: "log_backtrace_at", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "source line whose messages come with a stack",
	},
	{
		Name: "log_link", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "more places for links to the log file",
	},
	{
		Name: "log_prefix", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "time and severity before each message",
	},
	{
		Name: "logbuflevel", Kind: Int32, Default: "0", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity up to which messages are buffered",
	},
	{
		Name: "logbufsecs", Kind: Int32, Default: "30", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "seconds messages are buffered",
	},
	{
		Name: "logemaillevel", Kind: Int32, Default: "999", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity from which messages are mailed",
	},
	{
		Name: "logfile_mode", Kind: Int32, Default: "436", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "permissions of log files",
	},
	{
		Name: "logmailer", Kind: String, Default: "/bin/mail", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "program that sends mail",
	},
	{
		Name: "max_log_size", Kind: Int32, Default: "1800", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "megabytes of one log file",
	},
	{
		Name: "stderrthreshold", Kind: Int32, Default: "2", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity from which messages go to standard error too",
	},
	{
		Name: "stop_logging_if_full_disk", Kind: Bool, Default: "false", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "stop logging when the disk is full",
	},
	{
		Name: "symbolize_stacktrace", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "names in stack traces",
	},
	{
		Name: "vmodule", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "verbosity per source file",
	},

	{
		Name: "flagfile", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "files with one flag per line, separated by commas",
	},
	{
		Name: "fromenv", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "flags to take from FLAGS_NAME of the environment, separated by commas; each must be there",
	},
	{
		Name: "tryfromenv", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "the same for those that are there",
	},
	{
		Name: "undefok", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "names that are no error though no such flag exists, separated by commas",
	},
	{
		Name: "help", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print all flags and exit",
	},
	{
		Name: "helpfull", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "the same",
	},
	{
		Name: "helppackage", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "the same",
	},
	{
		Name: "helpshort", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print the flags that have an effect in this build and exit",
	},
	{
		Name: "helpon", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "print the flags of the sections whose name contains this and exit",
	},
	{
		Name: "helpmatch", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "print the flags whose name or section contains this and exit",
	},
	{
		Name: "helpxml", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print all flags as XML and exit",
	},
	{
		Name: "version", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print the version and exit",
	},
	{
		Name: "tab_completion_word", Kind: String, Default: "", Group: GroupBuiltin, Effect: Neutral, Key: "-",
		Feature: "no completion by the shell",
		Help:    "completion by the shell",
	},
	{
		Name: "tab_completion_columns", Kind: Int32, Default: "80", Group: GroupBuiltin, Effect: Neutral, Key: "-",
		Feature: "no completion by the shell",
		Help:    "completion by the shell",
	},
}
