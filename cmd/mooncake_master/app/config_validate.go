package app

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
)

// exitError is an error whose exit code is not 1.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// Validate checks each setting and all of them against each other and returns the first thing
// wrong, naming where it was set and what would be right.
func (c *Config) Validate() error {
	checks := []func() error{c.checkBehaviour, c.checkEmbedded, c.checkListeners, c.checkRatios, c.checkTimes, c.checkTenants, c.checkHA, c.checkEtcd, c.checkFar, c.checkTransfer, c.checkSnapshots}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) bad(flag, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{c.origin(flag)}, args...)...)
}

func (c *Config) checkBehaviour() error {
	if c.Behaviour != Behaviour0313 && c.Behaviour != Behaviour0314 {
		return c.bad("release_behaviour", "want %s or %s", Behaviour0314, Behaviour0313)
	}
	return nil
}

func (c *Config) checkListeners() error {
	rpcFlag := "rpc_port"
	if c.origin("port").Given() && sameText(byName["rpc_port"], c.origin("rpc_port").Text) {
		rpcFlag = "port"
	}
	for _, p := range []struct {
		flag string
		port int
	}{{rpcFlag, c.RPC.Port}, {"metrics_port", c.Admin.Port}, {"http_metadata_server_port", c.Metadata.Port}} {
		if p.port < 0 || p.port > 65535 {
			return c.bad(p.flag, "want a port from 0 to 65535")
		}
	}
	for _, h := range []struct{ flag, host string }{
		{"rpc_address", c.RPC.Host}, {"metrics_host", c.Admin.Host}, {"http_metadata_server_host", c.Metadata.Host},
	} {
		if !hostLike(h.host) {
			return c.bad(h.flag, "want an IP address or a host name")
		}
	}
	if c.RPC.IdleTimeout < 0 {
		return c.bad("rpc_conn_timeout_seconds", "want 0 (no limit) or more seconds")
	}
	if c.RPC.MaxFrameBytes < 4096 || c.RPC.MaxFrameBytes > math.MaxUint32 {
		return c.bad("rpc_max_frame_bytes", "want 4096 to %d bytes", uint32(math.MaxUint32))
	}
	return nil
}

// hostLike accepts addresses and names that could be resolved; whether they can is found out
// by binding.
func hostLike(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, _, _ := strings.Cut(host, "%"); net.ParseIP(ip) != nil {
		return true
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for _, r := range host {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
		default:
			return false
		}
	}
	return true
}

func (c *Config) checkRatios() error {
	for _, r := range []struct {
		flag string
		v    float64
	}{
		{"eviction_ratio", c.Eviction.Ratio},
		{"eviction_high_watermark_ratio", c.Eviction.HighWatermark},
		{"tenant_eviction_high_watermark_ratio", c.Eviction.TenantHighWatermark},
		{"nof_eviction_ratio", c.NoF.EvictionRatio},
		{"nof_eviction_high_watermark_ratio", c.NoF.HighWatermark},
		{"offload_cap_ratio", c.Offload.CapRatio},
	} {
		if !(r.v >= 0 && r.v <= 1) { // also true of what is not a number
			return c.bad(r.flag, "must be between 0.0 and 1.0")
		}
	}
	return nil
}

func (c *Config) checkTimes() error {
	if c.Objects.MaxSoftPinTTL < c.Objects.SoftPinTTL {
		return c.bad("max_kv_soft_pin_ttl", "must be at least the default soft pin of %s (%s)",
			c.Objects.SoftPinTTL, c.origin("default_kv_soft_pin_ttl"))
	}
	if c.Objects.PutStartRelease <= c.Objects.PutStartDiscard {
		return c.bad("put_start_release_timeout_sec", "must be larger than the discard timeout of %s (%s)",
			c.Objects.PutStartDiscard, c.origin("put_start_discard_timeout_sec"))
	}
	if c.Clients.ActiveTTL <= 0 {
		return c.bad("client_active_ttl_sec", "must be positive")
	}
	if c.Clients.SuspicionTTL <= 0 && (c.Behaviour != Behaviour0313 || c.origin("client_suspicion_ttl_sec").Given()) {
		return c.bad("client_suspicion_ttl_sec", "must be positive")
	}
	return nil
}

func (c *Config) checkTenants() error {
	if c.Tenants.Exceeded != ExceededEvict && c.Tenants.Exceeded != ExceededReject {
		return c.bad("tenant_quota_exceeded", "want %s or %s", ExceededEvict, ExceededReject)
	}
	if err := c.checkConnector(); err != nil {
		return err
	}
	if !c.Tenants.Enabled {
		return nil
	}
	switch kind := c.Tenants.ConnectorType; {
	case slices.Contains(stock, kind):
	case !connectorName(kind):
		return c.bad("tenant_quota_connector_type", "want file, etcd, or the name of a connector: letters, digits, '-' and '_'")
	case c.Tenants.ConnectorDir == "":
		return c.bad("tenant_quota_connector_type",
			"unsupported tenant quota connector type '%s', want file or etcd, or name the folder of mooncake-connector-%s with --tenant_quota_connector_dir", kind, kind)
	}
	if c.Tenants.ConnectorURI == "" {
		return c.bad("tenant_quota_connector_uri", "the tenant quota %s connector requires a non-empty uri", c.Tenants.ConnectorType)
	}
	return nil
}

// connectorName keeps a type from naming a path.
func connectorName(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return s != "" && s[0] != '-'
}

func (c *Config) checkHA() error {
	if c.HA.LeaseTTL < 2*time.Second || c.HA.LeaseTTL > 60*time.Second {
		return c.bad("ha_leader_lease_ttl_sec", "want 2 to 60 seconds")
	}
	if c.Oplog.Enabled && !c.HA.Enabled {
		return c.bad("enable_oplog", "requires --enable_ha=true")
	}
	if c.Snapshot.OplogEnabled && !(c.HA.Enabled && c.Oplog.Enabled && c.HA.Backend == "etcd") {
		return c.bad("enable_oplog_snapshot", "requires --enable_ha=true, --enable_oplog=true and --ha_backend_type=etcd")
	}
	if !c.HA.Enabled {
		return nil
	}
	if c.HA.Connection == "" && (c.HA.Backend != "etcd" || c.HA.EtcdEndpoints == "") {
		return c.bad("enable_ha", "requires --ha_backend_connstring (or --etcd_endpoints with --ha_backend_type=etcd)")
	}
	if c.Oplog.Enabled && c.HA.Backend != "etcd" {
		return c.bad("enable_oplog", "requires --ha_backend_type=etcd")
	}
	switch c.HA.Backend {
	case "etcd":
		return nil
	case "redis", "k8s":
		return &exitError{255, fmt.Sprintf("Failed to parse HA backend config: UNAVAILABLE_IN_CURRENT_MODE, backend_type=%s (%s, want etcd)", c.HA.Backend, c.origin("ha_backend_type"))}
	default:
		return &exitError{255, fmt.Sprintf("Failed to parse HA backend config: INVALID_PARAMS, backend_type=%s (%s, want etcd)", c.HA.Backend, c.origin("ha_backend_type"))}
	}
}

// checkFar is about tiers, replication and weights.
func (c *Config) checkFar() error {
	switch c.Placement.Allocator {
	case "offset", "cachelib":
	default:
		return c.bad("memory_allocator", "want offset or cachelib")
	}
	switch {
	case c.Offload.QueueLimit == 0:
		return c.bad("offloading_queue_limit", "must be greater than 0")
	case c.Offload.QueueLimit > 100_000_000:
		return c.bad("offloading_queue_limit", "must be at most 100000000")
	case c.NoF.HeartbeatInterval <= 0:
		return c.bad("nof_heartbeat_interval_sec", "must be positive")
	case c.NoF.ProbeTimeout <= 0:
		return c.bad("nof_heartbeat_probe_timeout_ms", "must be positive")
	case c.NoF.FailuresThreshold == 0:
		return c.bad("nof_heartbeat_failures_threshold", "must be positive")
	case !(c.DynamicReplication.Threshold > 0):
		return c.bad("dynamic_replication_admission_qps_threshold", "must be greater than 0")
	case c.CXL.Enabled && c.CXL.Size < 16<<20:
		return c.bad("cxl_size", "must be at least %d", 16<<20)
	case c.Weights.ImportIdleTimeout <= 0:
		return c.bad("weight_import_idle_timeout_ms", "must be positive")
	}
	switch c.DynamicReplication.Mode {
	case core.ReplicationOff, core.ReplicationObserve, core.ReplicationEnforce:
	default:
		return c.bad("dynamic_replication_mode", "want off, observe or enforce")
	}
	return nil
}

// checkSnapshots refuses values of features that are not here yet which they would refuse too,
// so that a command line that starts today still starts then.
func (c *Config) checkSnapshots() error {
	switch {
	case c.Oplog.PollInterval < 0:
		return c.bad("oplog_poll_interval_ms", "must not be negative")
	case c.Snapshot.OplogEnabled && c.Snapshot.ChunkObjects == 0:
		return c.bad("snapshot_chunk_object_count", "must be greater than 0")
	case c.Snapshot.Enabled && c.Snapshot.Retention == 0:
		return c.bad("snapshot_retention_count", "must be greater than 0")
	}
	if c.Snapshot.Enabled || c.Snapshot.Restore || c.Snapshot.OplogEnabled {
		store := c.Snapshot.ObjectStore
		for _, old := range []string{"snapshot_payload_store_type", "snapshot_payload_backend_type"} {
			if store == "" {
				store = c.origin(old).Text
			}
		}
		if store != "local" && store != "s3" {
			return c.bad("snapshot_object_store_type", "want local or s3 when snapshots are on")
		}
	}
	return nil
}

// Warnings lists what is accepted but does less than its writer may think: flags of features
// that are not part of this build, older names, and combinations in which one is not used.
func (c *Config) Warnings() []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i := range table {
		f := &table[i]
		o := c.origins[f.Name]
		if !o.Given() {
			continue
		}
		switch {
		case f.Effect == Waiting && !c.isDefault(f):
			warn("%s has no effect: this build is without %s", o, f.Feature)
		case f.Name == "max_threads" && !c.isDefault(f):
			warn("--max_threads is deprecated, use --rpc_thread_num instead; neither is needed here")
		}
	}
	for _, old := range []struct{ name, instead string }{
		{"snapshot_payload_store_type", "snapshot_object_store_type"},
		{"snapshot_payload_backend_type", "snapshot_object_store_type"},
		{"snapshot_catalog_backend_type", "snapshot_catalog_store_type"},
		{"snapshot_catalog_backend_connstring", "snapshot_catalog_store_connstring"},
	} {
		if o := c.origins[old.name]; o.Given() && o.Text != "" {
			warn("--%s is deprecated; use --%s", old.name, old.instead)
		}
	}
	switch c.Placement.Strategy {
	case StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyCXL, StrategySSDFreeRatio:
		if c.CXL.Enabled && c.origin("allocation_strategy").Given() && c.Placement.Strategy != StrategyCXL {
			warn("%s has no effect with --enable_cxl, which places by %s", c.origin("allocation_strategy"), StrategyCXL)
		}
	default:
		warn("%s is not known, random counts; want random, free_ratio_first, cxl, ssd_free_ratio_first or local_first", c.origin("allocation_strategy"))
	}
	if c.Placement.Allocator == "cachelib" {
		warn("%s is not part of this build, offset counts", c.origin("memory_allocator"))
	}
	if !c.HA.Enabled && (c.HA.Connection != "" || c.HA.EtcdEndpoints != "") {
		warn("a connection string for high availability is set but --enable_ha is off")
	}
	if c.HA.Connection != "" && c.HA.EtcdEndpoints != "" && c.HA.Connection != c.HA.EtcdEndpoints {
		warn("both --ha_backend_connstring and --etcd_endpoints are set and differ, --ha_backend_connstring=%s counts", c.HA.Connection)
	}
	if c.Promotion.OnHit && !c.Offload.Enabled {
		warn("%s has no effect without --enable_offload: promotion brings objects back from the clients' disks", c.origin("promotion_on_hit"))
	}
	if t := c.Promotion.Threshold; t < 1 || t > 255 {
		warn("%s: %d counts, want 1 to 255", c.origin("promotion_admission_threshold"), min(max(t, 1), 255))
	}
	if (c.Offload.OnEvict || c.Offload.ForceEvict) && !c.Offload.Enabled {
		warn("--offload_on_evict and --offload_force_evict have no effect without --enable_offload")
	} else if c.Offload.ForceEvict && !c.Offload.OnEvict {
		warn("--offload_force_evict has no effect without --offload_on_evict")
	}
	if !c.NoF.Enabled && slices.ContainsFunc(nofFlags, func(name string) bool { return c.origin(name).Given() }) {
		warn("flags about NVMe-oF are given but --enable_nof is off")
	}
	if !c.Tenants.Enabled && (c.Tenants.ConnectorURI != "" || c.origin("tenant_quota_exceeded").Given() || c.Tenants.ConnectorDir != "") {
		warn("tenant quota settings are given but --enable_multi_tenants is off")
	}
	if ip := net.ParseIP(c.Admin.Host); ip == nil || !ip.IsLoopback() {
		warn("the admin HTTP interface on %s has no authentication; keep its port inside a trusted network", net.JoinHostPort(c.Admin.Host, fmt.Sprint(c.Admin.Port)))
	}
	return out
}

// nofFlags are the flags of the original that say how NVMe-oF segments are treated.
var nofFlags = []string{
	"nof_eviction_ratio", "nof_eviction_high_watermark_ratio", "nof_heartbeat_interval_sec", "nof_heartbeat_probe_timeout_ms", "nof_heartbeat_failures_threshold",
}

// clamp brings values that are out of range but not refused to the nearest that make sense,
// after the warnings were made from what was written.
func (c *Config) clamp() {
	switch c.Placement.Strategy {
	case StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyCXL, StrategySSDFreeRatio:
	default:
		c.Placement.Strategy = StrategyRandom
	}
	c.Placement.Allocator = "offset"
	c.Offload.OnEvict = c.Offload.OnEvict && c.Offload.Enabled
	c.Offload.ForceEvict = c.Offload.ForceEvict && c.Offload.OnEvict
	c.Promotion.OnHit = c.Promotion.OnHit && c.Offload.Enabled
	c.Promotion.Threshold = min(max(c.Promotion.Threshold, 1), 255)
	c.Promotion.PerHeartbeat = max(c.Promotion.PerHeartbeat, 1)
	c.DynamicReplication.Window = max(c.DynamicReplication.Window, time.Second)
	c.DynamicReplication.MaxReplicas = max(c.DynamicReplication.MaxReplicas, 1)
}
