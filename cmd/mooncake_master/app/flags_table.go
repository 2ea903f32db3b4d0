package app

import (
	"slices"
	"time"
)

// table is every flag of releases 0.3.13 and 0.3.14, with the defaults of 0.3.14, and our own
// embedded_node, rpc_max_frame_bytes, release_behaviour, metrics_max_tenants, enable_nof, tenant_quota_exceeded, tenant_quota_connector_dir
// and policyFlags.
var table = slices.Concat(servingFlags, embeddedFlags, policyFlags, farFlags, transferFlags, processFlags)

// servingFlags are about what every master does: listeners, objects, clients, tenants, placement.
var servingFlags = []Flag{
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
		Name: "release_behaviour", Kind: String, Default: "0.3.14", Group: GroupGeneral,
		Help: "release to behave as where 0.3.13 and 0.3.14 differ. 0.3.13: silent clients are dropped without being suspected, no watermark of tenants, soft pins of at most 24 hours (these three unless their own flags are given), the pool gives up the oldest objects whatever their tenant, result codes and metrics as in 0.3.13. Writes over a quota are left to --tenant_quota_exceeded",
		bind: func(c *Config) any { return &c.Behaviour },
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
		Name: "metrics_max_tenants", Kind: Uint32, Default: "1000", Group: GroupAdmin,
		Help: "tenants with metrics of their own, those with the most bytes charged; all others are summed up as tenant_id=\"_other\". 0 = no limit",
		bind: func(c *Config) any { return &c.Admin.MaxTenants },
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
		Help: "where the quota policy comes from: file, etcd, or the name of a connector program in --tenant_quota_connector_dir",
		bind: func(c *Config) any { return &c.Tenants.ConnectorType },
	},
	{
		Name: "tenant_quota_connector_uri", Kind: String, Default: "", Group: GroupTenants,
		Help: "the policy's place in the terms of the connector: a path for file, endpoints for etcd, which must be those of the election and the operation log; needed with --enable_multi_tenants",
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
		Help: "how segments are chosen for new replicas: random; free_ratio_first; local_first; cxl: the first that is preferred; ssd_free_ratio_first: by the owners' disks",
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
		Name: "root_fs_dir", Kind: String, Default: "", Group: GroupPlacement,
		Help: "folder of a file system that all clients share; they keep a copy of every object there",
		bind: func(c *Config) any { return &c.Storage.RootDir },
	},
	{
		Name: "global_file_segment_size", Kind: Int64, Default: "9223372036854775807", Group: GroupPlacement,
		Help: "bytes of that file system, for master_total_file_capacity_bytes; the largest number = no limit",
		bind: func(c *Config) any { return &c.Storage.FileSegmentSize },
	},
}
