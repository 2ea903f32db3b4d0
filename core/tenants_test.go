package core

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

func TestManyTenantsHaveFewShardsEach(t *testing.T) {
	for _, c := range []struct {
		strict               bool
		each, tenants, wants int
	}{
		{true, 16, 0, 16},
		{true, 16, 1, 16},
		{true, 16, 16, 16},
		{true, 16, 17, 8},
		{true, 16, 64, 4},
		{true, 16, 10_000, 4},
		{true, 2, 10_000, 2},
		{false, 64, 1, 64},
	} {
		m := &Master{cfg: Config{MultiTenant: c.strict, ShardsPerTenant: c.each}, book: tenant.NewBook()}
		set := make([]tenant.Policy, c.tenants)
		for i := range set {
			set[i] = tenant.Policy{Name: string(rune(0x1000 + i)), Quota: 1}
		}
		if err := m.book.ApplyPolicies(set); err != nil {
			t.Fatal(err)
		}
		if got := m.shards(); got != c.wants {
			t.Errorf("%+v: %d shards", c, got)
		}
	}
}
