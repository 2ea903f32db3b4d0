package admin

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mooncake-go/mooncake-master/core/policy"
)

// labelled is a family with labels, printed while there is something to say.
type labelled struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(r *reading, emit func(v float64, labels ...string))
}

// perTenant is a gauge of every tenant's account.
func perTenant(name, help string, value func(i int, r *reading) float64) labelled {
	return labelled{"mooncake_tenant_quota_" + name, help, gauge, []string{"tenant_id"}, func(r *reading, emit func(float64, ...string)) {
		for i := range r.tenants {
			emit(value(i, r), r.tenants[i].TenantID)
		}
	}}
}

// ofTenants is a number over all tenants, printed only where tenants are strict.
func ofTenants(name, help string, value func(*reading) float64) labelled {
	return labelled{"mooncake_tenant_quota_" + name, help, gauge, nil, func(r *reading, emit func(float64, ...string)) {
		if r.strict {
			emit(value(r))
		}
	}}
}

// ofConnector is a number about the source of the policy, printed where there is one.
func ofConnector(name, help string, kind prometheus.ValueType, value func(*ConnectorStatus) float64) labelled {
	return labelled{"mooncake_tenant_quota_connector_" + name, help, kind, nil, func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			emit(value(r.connector))
		}
	}}
}

// ofPolicy is a number about the policy as a whole, printed where there is a source of one, with
// the connector's type.
func ofPolicy(name, help string, value func(*ConnectorStatus) float64) labelled {
	return labelled{"mooncake_tenant_quota_policy_" + name, help, gauge, []string{"type"}, func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			emit(value(r.connector), r.connector.Type)
		}
	}}
}

// seconds is a time as metrics tell it, 0 for none.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// hashNumber is as much of a hash as a float holds, 0 for none.
func hashNumber(hash string) float64 {
	if len(hash) < 12 {
		return 0
	}
	n, err := strconv.ParseUint(hash[:12], 16, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var allLabelled = []labelled{
	{"segment_allocated_bytes", "memory of a segment handed out, in bytes", gauge, []string{"segment"}, func(r *reading, emit func(float64, ...string)) {
		for _, s := range r.stats.Segments {
			emit(float64(s.Allocated), s.Name)
		}
	}},
	{"segment_total_capacity_bytes", "memory of a segment, in bytes", gauge, []string{"segment"}, func(r *reading, emit func(float64, ...string)) {
		for _, s := range r.stats.Segments {
			emit(float64(s.Capacity), s.Name)
		}
	}},
	{"mooncake_tenant_quota_reject_total", "writes of a tenant refused", counter, []string{"tenant_id", "reason"}, func(r *reading, emit func(float64, ...string)) {
		for _, t := range r.stats.Tenants {
			if t.Rejected > 0 {
				emit(float64(t.Rejected), t.Tenant, "quota_exceeded")
			}
		}
	}},
	{"mooncake_tenant_evict_bytes_total", "bytes of a tenant evicted to keep within its own quota", counter, []string{"tenant_id"}, func(r *reading, emit func(float64, ...string)) {
		for _, t := range r.stats.Tenants {
			if t.EvictedBytes > 0 {
				emit(float64(t.EvictedBytes), t.Tenant)
			}
		}
	}},
	perTenant("requested_bytes", "quota of the policy, in bytes", func(i int, r *reading) float64 { return float64(r.tenants[i].RequestedQuotaBytes) }),
	perTenant("effective_bytes", "quota after fitting all into the memory there is, in bytes", func(i int, r *reading) float64 { return float64(r.tenants[i].EffectiveQuotaBytes) }),
	perTenant("charged_bytes", "bytes charged to the tenant", func(i int, r *reading) float64 { return float64(r.tenants[i].ChargedBytes) }),
	perTenant("admission_closed", "1 if all writes of the tenant are refused", func(i int, r *reading) float64 { return number(r.tenants[i].AdmissionClosed) }),
	perTenant("over_quota", "1 if more is charged than the quota in effect", func(i int, r *reading) float64 { return number(r.tenants[i].OverQuota) }),
	perTenant("explicit_policy", "1 if the policy names the tenant", func(i int, r *reading) float64 { return number(r.tenants[i].HasExplicitPolicy) }),
	ofTenants("allocatable_capacity_bytes", "memory the quotas are fitted into, in bytes", func(r *reading) float64 { return float64(r.totals.CapacityBytes) }),
	ofTenants("requested_bytes_sum", "sum of the quotas of the policy, in bytes", func(r *reading) float64 { return float64(r.totals.RequestedBytes) }),
	ofTenants("effective_bytes_sum", "sum of the quotas in effect, in bytes", func(r *reading) float64 { return float64(r.totals.EffectiveBytes) }),
	ofTenants("oversubscription_ratio", "quotas of the policy over memory; above 1 they can not all be had", func(r *reading) float64 {
		switch {
		case r.totals.CapacityBytes > 0:
			return float64(r.totals.RequestedBytes) / float64(r.totals.CapacityBytes)
		case r.totals.RequestedBytes > 0:
			return math.Inf(1)
		default:
			return 0
		}
	}),
	{"mooncake_tenant_quota_connector_state", "1 for the state the policy's connector is in", gauge, []string{"type", "state"}, func(r *reading, emit func(float64, ...string)) {
		if r.connector == nil {
			return
		}
		is, _, _ := strings.Cut(r.connector.State, ":") // "degraded: held" is degraded too
		for _, state := range []string{ConnectorStarting, ConnectorReady, ConnectorDegraded, policy.Stale, ConnectorStopped} {
			emit(number(is == state), r.connector.Type, state)
		}
	}},
	ofPolicy("last_reload_successful", "1 if what the source said last is in force", func(c *ConnectorStatus) float64 { return number(c.ReloadOK) }),
	ofPolicy("content_hash", "first 48 bits of the SHA-256 of the document in force, as a number", func(c *ConnectorStatus) float64 { return hashNumber(c.ContentHash) }),
	ofPolicy("in_force_timestamp_seconds", "when the policy in force came into force, seconds since 1970, 0 = none is", func(c *ConnectorStatus) float64 { return seconds(c.InForceSince) }),
	ofPolicy("tenants", "tenants that the policy in force names", func(c *ConnectorStatus) float64 { return float64(c.Tenants) }),
	ofPolicy("held", "1 while a document that removes many tenants waits to be confirmed", func(c *ConnectorStatus) float64 { return number(c.HeldRevision != "") }),
	ofPolicy("stale", "1 while a stored policy is in force that was not seen at the source since the start", func(c *ConnectorStatus) float64 { return number(c.Origin == policy.FromStore) }),
	ofPolicy("stored_timestamp_seconds", "when the policy in force was last stored for a restart, seconds since 1970, 0 = never", func(c *ConnectorStatus) float64 { return seconds(c.StoredTime) }),
	ofConnector("restarts_total", "times the connector's process was started again", counter, func(c *ConnectorStatus) float64 { return float64(c.Restarts) }),
	ofConnector("reload_successes_total", "policies taken over from the source", counter, func(c *ConnectorStatus) float64 { return float64(c.ReloadSuccesses) }),
	{"mooncake_tenant_quota_connector_reload_failures_total", "policies not taken over, by reason", counter, []string{"reason"}, func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			for reason, n := range r.connector.ReloadFailures {
				emit(float64(n), reason)
			}
		}
	}},
	ofConnector("last_success_timestamp_seconds", "when a policy was last taken over, seconds since 1970, 0 = never", gauge, func(c *ConnectorStatus) float64 { return seconds(c.LastSuccess) }),
	ofConnector("overwritten_saves_total", "changes made here that an editor then overwrote", counter, func(c *ConnectorStatus) float64 { return float64(c.OverwrittenSaves) }),
	{"mooncake_rpc_refused_frames_total", "requests that could not be served, by reason", counter, []string{"reason"}, func(r *reading, emit func(float64, ...string)) {
		for reason, n := range r.listener.Refused {
			emit(float64(n), reason)
		}
	}},
}
