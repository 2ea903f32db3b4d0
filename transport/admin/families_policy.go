package admin

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/policy"
)

// ofConnector is a number about the source of the policy, printed where there is one.
func ofConnector(name, help string, k kind, value func(*ConnectorStatus) float64) family {
	return family{name: "mooncake_tenant_quota_connector_" + name, help: help, kind: k, absent: noConnector, each: func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			emit(value(r.connector))
		}
	}}
}

// ofPolicy is a number about the policy as a whole, printed where there is a source of one, with
// the connector's type.
func ofPolicy(name, help string, value func(*ConnectorStatus) float64) family {
	return family{name: "mooncake_tenant_quota_policy_" + name, help: help, kind: gauge, labels: []string{"type"}, absent: noConnector, each: func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			emit(value(r.connector), r.connector.Type)
		}
	}}
}

// byReason emits counts by reason, in order.
func byReason(counts map[string]uint64, emit func(float64, ...string)) {
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		emit(float64(counts[reason]), reason)
	}
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

// oversubscription is by how much the quotas of the policy exceed the memory there is.
func oversubscription(r *reading) float64 {
	switch {
	case r.totals.CapacityBytes > 0:
		return float64(r.totals.RequestedBytes) / float64(r.totals.CapacityBytes)
	case r.totals.RequestedBytes > 0:
		return math.Inf(1)
	default:
		return 0
	}
}

// policyFamilies are about the policy and its source.
var policyFamilies = []family{
	{name: "mooncake_tenant_quota_connector_state", help: "1 for the state the policy's connector is in", kind: gauge, labels: []string{"type", "state"}, absent: noConnector, each: func(r *reading, emit func(float64, ...string)) {
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
	ofConnector("last_success_timestamp_seconds", "when a policy was last taken over, seconds since 1970, 0 = never", gauge, func(c *ConnectorStatus) float64 { return seconds(c.LastSuccess) }),
	ofConnector("overwritten_saves_total", "changes made here that an editor then overwrote", counter, func(c *ConnectorStatus) float64 { return float64(c.OverwrittenSaves) }),
	{name: "mooncake_tenant_quota_connector_reload_failures_total", help: "policies not taken over, by reason", kind: counter, labels: []string{"reason"}, absent: noConnector, each: func(r *reading, emit func(float64, ...string)) {
		if r.connector != nil {
			byReason(r.connector.ReloadFailures, emit)
		}
	}},
}
