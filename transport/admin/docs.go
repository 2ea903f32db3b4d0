package admin

import (
	"fmt"
	"strings"
)

// sections are the headings of docs/metrics.md, each with the families below it.
func sections() []struct {
	title, text string
	families    []family
} {
	return []struct {
		title, text string
		families    []family
	}{
		{"Memory, objects and writes", "", stateFamilies},
		{"Lookups", "", replicaFamilies},
		{"Clients", "", liveFamilies},
		{"Calls", "Upserts count as puts. A batch in which everything fails, or in which nothing is, is a failure; one in which something fails a partial success. " +
			"`BatchRemove` counts as so many removals, `BatchEvictDiskReplica` as one eviction, which fails if anything in it does. " +
			"Calls that are not named here are not counted, as in the released masters.", callCounters()},
		{"Disks, promotion, NVMe-oF", "", tierFamilies},
		{"Tasks", "", taskFamilies},
		{"Weights", "", weightFamilies},
		{"Tenants", tenantsText, tenantFamilies},
		{"Policy of the tenants", "", policyFamilies},
		{"RPC listener", "", rpcFamilies},
		{"High availability", "", haFamilies},
		{"Process", "", processFamilies},
		{"Go runtime", "", runtimeFamilies},
	}
}

const tenantsText = "At most `--metrics_max_tenants` tenants (default 1000, 0 = all) have metrics of their own: those with the most bytes charged, by name where that is equal. " +
	"All others are one row with `tenant_id=\"_other\"`, which no tenant can be called, since names do not begin with an underscore; a tenant called `other` is one like any. " +
	"Gauges of that row are sums; those that are 1 or 0 for a tenant say there for how many they are 1. Its counters count what happened to tenants " +
	"while they were not listed, so that they never fall when tenants come and go. " +
	"`/api/v1/tenant_quotas` has every tenant."

// Markdown returns the page docs/metrics.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(markdownHead)
	for _, s := range sections() {
		if len(s.families) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		if s.text != "" {
			b.WriteString(s.text + "\n\n")
		}
		b.WriteString("| Family | Type | Labels | Meaning | Not printed |\n|---|---|---|---|---|\n")
		for i := range s.families {
			f := &s.families[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.name, f.kind, strings.Join(f.labels, ", "), strings.ReplaceAll(f.help, "|", `\|`), f.never())
		}
	}
	return b.String()
}

// never says when the family is not printed.
func (f *family) never() string {
	parts := make([]string, 0, 2)
	if f.absent != "" {
		parts = append(parts, f.absent)
	}
	if f.since != 0 {
		parts = append(parts, "with `--release_behaviour=0.3.13`")
	}
	return strings.Join(parts, "; ")
}

const markdownHead = `# Metrics of mooncake_master

` + "`GET /metrics` on the port of `--metrics_port`" + ` answers with these families in the Prometheus text format, version 0.0.4. This page is written by the program from the
table it prints them from; ` + "`go test ./transport/admin -run TestMetricsPage -update`" + ` renews it.

Names, types and labels are those of the released masters; families that begin with ` + "`mooncake_`" + ` and are not in theirs are our own. Gauges are read from the state
at the scrape, so that none can drift. Every number of an object's or segment's size is in bytes. ` + "`mooncake_jemalloc_*`" + ` is not here: this program does not allocate with jemalloc.

A family without an entry in the last column is always there, as 0 if there is nothing to count.
`
