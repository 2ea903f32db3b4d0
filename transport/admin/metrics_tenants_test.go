package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// samplesOf returns the lines of a family.
func samplesOf(text, family string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, family+"{") {
			out = append(out, strings.TrimPrefix(line, family))
		}
	}
	return out
}

func scrape(t *testing.T, s *Server, family string, want ...string) {
	t.Helper()
	text := ask(t, s.Handler(), "GET /metrics", "").body
	if got := samplesOf(text, family); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", family, got, want)
	}
}

// crowd is five tenants; the one called other is like any.
func crowd() *fake {
	f := &fake{service: Serving(), strict: true}
	for i, name := range []string{"a", "b", "c", "d", "other"} {
		f.tenants = append(f.tenants, tenant.Snapshot{
			TenantID: name, RequestedQuotaBytes: 100, EffectiveQuotaBytes: 50, ChargedBytes: uint64(10 * i), OverQuota: i > 1, HasExplicitPolicy: true,
		})
		f.stats.Tenants = append(f.stats.Tenants, core.TenantStat{Tenant: name, Keys: int64(i + 1), Rejected: uint64(100 * i), Hits: 5, Lookups: 7})
	}
	return f
}

// With room for all there is no rest.
func TestAllTenantsListed(t *testing.T) {
	for _, most := range []int{0, 5, 6} {
		f := crowd()
		f.most = most
		s, _ := newTestServer(t, f)
		scrape(t, s, "mooncake_tenant_quota_charged_bytes", `{tenant_id="a"} 0`, `{tenant_id="b"} 10`, `{tenant_id="c"} 20`, `{tenant_id="d"} 30`, `{tenant_id="other"} 40`)
	}
}

// Those with the most bytes are listed, by name; what the others have stands in one row, in every family.
func TestRestOfTenants(t *testing.T) {
	f := crowd()
	f.most = 2
	s, _ := newTestServer(t, f)
	scrape(t, s, "mooncake_tenant_quota_charged_bytes", `{tenant_id="d"} 30`, `{tenant_id="other"} 40`, `{tenant_id="_other"} 30`)
	scrape(t, s, "mooncake_tenant_quota_requested_bytes", `{tenant_id="d"} 100`, `{tenant_id="other"} 100`, `{tenant_id="_other"} 300`)
	scrape(t, s, "mooncake_tenant_quota_over_quota", `{tenant_id="d"} 1`, `{tenant_id="other"} 1`, `{tenant_id="_other"} 1`)
	scrape(t, s, "mooncake_tenant_quota_explicit_policy", `{tenant_id="d"} 1`, `{tenant_id="other"} 1`, `{tenant_id="_other"} 3`)
	scrape(t, s, "mooncake_tenant_keys", `{tenant_id="d"} 4`, `{tenant_id="other"} 5`, `{tenant_id="_other"} 6`)
	scrape(t, s, "mooncake_tenant_quota_reject_total", `{tenant_id="d",reason="quota_exceeded"} 300`, `{tenant_id="other",reason="quota_exceeded"} 400`, `{tenant_id="_other",reason="quota_exceeded"} 300`)
	scrape(t, s, "mooncake_tenant_hits_total", `{tenant_id="d"} 5`, `{tenant_id="other"} 5`, `{tenant_id="_other"} 15`)
	if tenant.Valid(restLabel) {
		t.Errorf("a tenant could be called %s", restLabel)
	}
}

// The counters of the rest never fall, whoever joins or leaves it, and count everything once.
func TestRestCountersOnlyGrow(t *testing.T) {
	f := crowd()
	f.most = 2
	s, _ := newTestServer(t, f)
	const family, reason = "mooncake_tenant_quota_reject_total", `,reason="quota_exceeded"} `
	rest := func(n int) string { return `{tenant_id="_other"` + reason + fmt.Sprint(n) }
	scrape(t, s, family, `{tenant_id="d"`+reason+"300", `{tenant_id="other"`+reason+"400", rest(300))
	f.tenants[0].ChargedBytes = 1000 // a comes, d leaves with 7 more
	f.stats.Tenants[3].Rejected += 7
	scrape(t, s, family, `{tenant_id="other"`+reason+"400", rest(307))
	f.stats.Tenants[0].Rejected, f.stats.Tenants[3].Rejected = 3, 310
	scrape(t, s, family, `{tenant_id="a"`+reason+"3", `{tenant_id="other"`+reason+"400", rest(310))
	f.tenants[0].ChargedBytes, f.stats.Tenants[0].Rejected = 0, 4 // and back
	scrape(t, s, family, `{tenant_id="d"`+reason+"310", `{tenant_id="other"`+reason+"400", rest(311))
	f.stats.Tenants[1].Rejected = 2 // b was removed and has come back
	scrape(t, s, family, `{tenant_id="d"`+reason+"310", `{tenant_id="other"`+reason+"400", rest(313))
	f.tenants, f.stats.Tenants = f.tenants[:1], nil // nobody is left out any more: the sum stays
	scrape(t, s, family, rest(313))
	scrape(t, s, "mooncake_tenant_quota_charged_bytes", `{tenant_id="a"} 0`)
}

// The page of very many tenants is as large as that of as many as are listed.
func TestPageOfManyTenants(t *testing.T) {
	f := &fake{service: Serving(), strict: true, most: 100}
	for i := range 20000 {
		f.tenants = append(f.tenants, tenant.Snapshot{TenantID: fmt.Sprintf("t%05d", i), RequestedQuotaBytes: 1, ChargedBytes: uint64(i), HasExplicitPolicy: true})
	}
	text := metricsText(t, f)
	if n := strings.Count(text, "tenant_id="); n != 6*101 {
		t.Errorf("%d samples of tenants, want %d", n, 6*101)
	}
	if want := `mooncake_tenant_quota_charged_bytes{tenant_id="_other"} 197995050`; !strings.Contains(text, "\n"+want+"\n") {
		t.Errorf("no %s", want)
	}
}
