package tenant

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPreviewIsWhatHappens compares a preview with what applying the same set then does.
func TestPreviewIsWhatHappens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := NewBook()
	capacity := func() uint64 { return 1000 }
	draw := func() (set []Policy) {
		for i := range 12 {
			if r.IntN(3) > 0 {
				set = append(set, Policy{Name: fmt.Sprintf("t%02d", i), Quota: 1 + r.Uint64N(200)})
			}
		}
		r.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
		return set
	}
	for range 300 {
		set := draw()
		before, p := b.Snapshots(), Preview{}
		var err error
		if p, err = b.Preview(set, capacity); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(b.Snapshots()) != fmt.Sprint(before) {
			t.Fatal("the preview changed something")
		}
		if err := b.ApplyPolicies(set); err != nil {
			t.Fatal(err)
		}
		b.Recompute(capacity)
		was := map[string]Snapshot{}
		for _, s := range before {
			was[s.TenantID] = s
		}
		last, sum := "", uint64(0)
		seen := map[string]bool{}
		for _, o := range p.Tenants {
			is, _ := b.Snapshot(o.TenantID)
			old := was[o.TenantID]
			if o.TenantID <= last || o.RequestedBefore != old.RequestedQuotaBytes || o.EffectiveBefore != old.EffectiveQuotaBytes || o.ChargedBytes != old.ChargedBytes ||
				o.RequestedAfter != is.RequestedQuotaBytes || o.EffectiveAfter != is.EffectiveQuotaBytes || (o.OverBy() > 0) != is.OverQuota || o.OverBefore() != old.OverQuota {
				t.Fatalf("%+v, was %+v, is %+v", o, old, is)
			}
			last, seen[o.TenantID] = o.TenantID, true
			sum += o.RequestedAfter
		}
		for _, s := range b.Snapshots() {
			if !seen[s.TenantID] {
				t.Fatalf("%s is missing", s.TenantID)
			}
		}
		if totals := b.Totals(); p.CapacityBytes != totals.CapacityBytes || p.RequestedAfter != totals.RequestedBytes || sum != p.RequestedAfter {
			t.Fatalf("%+v, then %+v", p, totals)
		}
		for _, s := range b.Snapshots() {
			if r.IntN(2) == 0 {
				b.Lookup(s.TenantID).TryCharge(r.Uint64N(100))
			}
		}
	}
	if _, err := b.Preview([]Policy{{Name: "a", Quota: 1}, {Name: "a", Quota: 2}}, capacity); !errors.Is(err, ErrDuplicateName) {
		t.Errorf("%v", err)
	}
}
