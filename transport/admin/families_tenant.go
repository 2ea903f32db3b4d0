package admin

import (
	"cmp"
	"slices"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// restLabel stands for all tenants that have no metrics of their own. No tenant can have the name: the
// first byte of one is never an underscore.
const restLabel = "_other"

// tenantRow is what the page says about a tenant, or about all those that it does not name.
type tenantRow struct {
	name                          string
	known                         bool // has a policy or a charge, or stands for some that have
	requested, effective, charged float64
	closed, over, explicit        float64 // 1 or 0; of the rest, how many
	stat                          core.TenantStat
}

// restCounters adds up what was counted for tenants while they were among the rest, so that its counters never
// fall when a tenant begins or ceases to be printed by itself.
type restCounters struct {
	seen map[string]core.TenantStat
	sum  core.TenantStat
}

// growth is by how much a counter has grown; one that is smaller than before began anew.
func growth(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// tenantRows chooses the tenants that are printed: the most that have the most bytes charged, by name where
// those are equal, sorted by name; 0 is all. The others are summed up in a last row, which is there once it was needed.
// snapshots are sorted by name.
func tenantRows(snapshots []tenant.Snapshot, stats []core.TenantStat, most int, rest *restCounters) []tenantRow {
	rows := make([]tenantRow, 0, len(snapshots)+1)
	at := make(map[string]int, len(stats))
	for i := range stats {
		at[stats[i].Tenant] = i
	}
	for i := range snapshots {
		s := &snapshots[i]
		row := tenantRow{
			name: s.TenantID, known: true, requested: float64(s.RequestedQuotaBytes), effective: float64(s.EffectiveQuotaBytes), charged: float64(s.ChargedBytes),
			closed: number(s.AdmissionClosed), over: number(s.OverQuota), explicit: number(s.HasExplicitPolicy),
		}
		if j, ok := at[s.TenantID]; ok {
			row.stat = stats[j]
			at[s.TenantID] = -1
		}
		rows = append(rows, row)
	}
	for i := range stats {
		if at[stats[i].Tenant] >= 0 {
			rows = append(rows, tenantRow{name: stats[i].Tenant, stat: stats[i]})
		}
	}
	if most <= 0 || len(rows) <= most {
		most = len(rows)
	} else {
		slices.SortFunc(rows, func(a, b tenantRow) int {
			return cmp.Or(cmp.Compare(b.charged, a.charged), cmp.Compare(a.name, b.name))
		})
	}
	last := rest.add(rows, most)
	rows = rows[:most:most]
	slices.SortFunc(rows, func(a, b tenantRow) int { return cmp.Compare(a.name, b.name) })
	if last.name != "" {
		rows = append(rows, last)
	}
	return rows
}

// add sums up the rows from listed on and returns the row of the rest, without a name if there has never been one.
func (c *restCounters) add(rows []tenantRow, listed int) tenantRow {
	var row tenantRow
	seen := make(map[string]core.TenantStat, len(c.seen))
	for i := range rows {
		t := &rows[i]
		if i >= listed {
			before := c.seen[t.name]
			c.sum.Rejected += growth(t.stat.Rejected, before.Rejected)
			c.sum.EvictedBytes += growth(t.stat.EvictedBytes, before.EvictedBytes)
			c.sum.Lookups += growth(t.stat.Lookups, before.Lookups)
			c.sum.Hits += growth(t.stat.Hits, before.Hits)
			c.sum.HitBytes += growth(t.stat.HitBytes, before.HitBytes)
			row.name, row.known = restLabel, row.known || t.known
			row.requested += t.requested
			row.effective += t.effective
			row.charged += t.charged
			row.closed += t.closed
			row.over += t.over
			row.explicit += t.explicit
			row.stat.Keys += t.stat.Keys
			row.stat.InFlightWrites += t.stat.InFlightWrites
		}
		if t.stat != (core.TenantStat{Tenant: t.stat.Tenant}) {
			seen[t.name] = t.stat
		}
	}
	if c.seen = seen; c.sum != (core.TenantStat{}) {
		row.name = restLabel
	}
	row.stat.Rejected, row.stat.EvictedBytes = c.sum.Rejected, c.sum.EvictedBytes
	row.stat.Lookups, row.stat.Hits, row.stat.HitBytes = c.sum.Lookups, c.sum.Hits, c.sum.HitBytes
	return row
}

// ofQuota is a gauge of every tenant with a policy or a charge.
func ofQuota(name, help string, value func(*tenantRow) float64) family {
	return family{name: "mooncake_tenant_quota_" + name, help: help, kind: gauge, labels: []string{"tenant_id"}, absent: notStrict, each: func(r *reading, emit func(float64, ...string)) {
		for i := range r.tenants {
			if t := &r.tenants[i]; t.known && r.strict {
				emit(value(t), t.name)
			}
		}
	}}
}

// ofTenant is a number of every tenant for which it is not 0; more are the values of further labels.
func ofTenant(name, help string, k kind, value func(*core.TenantStat) float64, more ...[2]string) family {
	f := family{name: name, help: help, kind: k, labels: []string{"tenant_id"}, absent: "for tenants for which it is 0"}
	var values []string
	for _, l := range more {
		f.labels, values = append(f.labels, l[0]), append(values, l[1])
	}
	f.each = func(r *reading, emit func(float64, ...string)) {
		for i := range r.tenants {
			t := &r.tenants[i]
			if v := value(&t.stat); v != 0 {
				emit(v, append([]string{t.name}, values...)...)
			}
		}
	}
	return f
}

// ofTenants is a number over all tenants, printed only where tenants are strict.
func ofTenants(name, help string, value func(*reading) float64) family {
	return family{name: "mooncake_tenant_quota_" + name, help: help, kind: gauge, absent: notStrict, each: func(r *reading, emit func(float64, ...string)) {
		if r.strict {
			emit(value(r))
		}
	}}
}

var tenantFamilies = []family{
	ofQuota("requested_bytes", "quota of the policy, in bytes", func(t *tenantRow) float64 { return t.requested }),
	ofQuota("effective_bytes", "quota after fitting all into the memory there is, in bytes", func(t *tenantRow) float64 { return t.effective }),
	ofQuota("charged_bytes", "bytes charged to the tenant", func(t *tenantRow) float64 { return t.charged }),
	ofQuota("admission_closed", "1 if all writes of the tenant are refused", func(t *tenantRow) float64 { return t.closed }),
	ofQuota("over_quota", "1 if more is charged than the quota in effect", func(t *tenantRow) float64 { return t.over }),
	ofQuota("explicit_policy", "1 if the policy names the tenant", func(t *tenantRow) float64 { return t.explicit }),
	ofTenants("allocatable_capacity_bytes", "memory the quotas are fitted into, in bytes", func(r *reading) float64 { return float64(r.totals.CapacityBytes) }),
	ofTenants("requested_bytes_sum", "sum of the quotas of the policy, in bytes", func(r *reading) float64 { return float64(r.totals.RequestedBytes) }),
	ofTenants("effective_bytes_sum", "sum of the quotas in effect, in bytes", func(r *reading) float64 { return float64(r.totals.EffectiveBytes) }),
	ofTenants("oversubscription_ratio", "quotas of the policy over memory; above 1 they can not all be had", oversubscription),
	ofTenant("mooncake_tenant_quota_reject_total", "writes of a tenant refused", counter, func(t *core.TenantStat) float64 { return float64(t.Rejected) }, [2]string{"reason", "quota_exceeded"}),
	ofTenant("mooncake_tenant_evict_bytes_total", "bytes of a tenant evicted to keep within its own quota", counter, func(t *core.TenantStat) float64 { return float64(t.EvictedBytes) }),
	ofTenant("mooncake_tenant_keys", "objects of a tenant", gauge, func(t *core.TenantStat) float64 { return float64(t.Keys) }),
	ofTenant("mooncake_tenant_writes_in_flight", "writes of a tenant begun and not ended", gauge, func(t *core.TenantStat) float64 { return float64(t.InFlightWrites) }),
	ofTenant("mooncake_tenant_lookups_total", "lookups of a tenant's objects", counter, func(t *core.TenantStat) float64 { return float64(t.Lookups) }),
	ofTenant("mooncake_tenant_hits_total", "those that found a readable object", counter, func(t *core.TenantStat) float64 { return float64(t.Hits) }),
	ofTenant("mooncake_tenant_hit_bytes_total", "sizes of the objects so found, in bytes", counter, func(t *core.TenantStat) float64 { return float64(t.HitBytes) }),
}
