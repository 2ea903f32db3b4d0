package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

const mib = 1 << 20

func TestStreamOfThreeQuotasKeepsTheNewest(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict)
	m.Mount(1, "seg", 64*mib)
	m.Policies("a", 10*mib, "b", 10*mib)
	m.MustPut("b", "other", mib)
	for i := range 30 {
		m.MustPut("a", fmt.Sprint("k", i), mib)
	}
	for i := range 30 {
		if got, want := m.Has("a", fmt.Sprint("k", i)), i >= 20; got != want {
			t.Errorf("k%d readable: %v, want %v", i, got, want)
		}
	}
	if !m.Has("b", "other") || m.Charged("a") != 10*mib {
		t.Errorf("other tenant's object readable: %v; charged %d", m.Has("b", "other"), m.Charged("a"))
	}
}

func TestLeasedTenantIsRefusedAndLosesNothing(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict)
	m.Mount(1, "seg", 64*mib)
	m.Policies("a", 10*mib)
	for i := range 10 {
		m.MustPut("a", fmt.Sprint("k", i), mib)
		if code := m.Get("a", fmt.Sprint("k", i)); code != errcode.OK {
			t.Fatal(code)
		}
	}
	if code := m.Start("a", "more", mib); code != errcode.TenantQuotaExceeded {
		t.Fatalf("got %v", code)
	}
	for i := range 10 {
		if !m.Has("a", fmt.Sprint("k", i)) {
			t.Errorf("k%d lost", i)
		}
	}
	m.Advance(11 * time.Second) // the leases end, and the watermark works
	if got := m.Charged("a"); got != 8*mib {
		t.Errorf("after the watermark pass %d MiB are charged, want 8", got/mib)
	}
}

func TestRejectMode(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict, func(c *core.Config) { c.QuotaExceeded = core.Reject })
	m.Mount(1, "seg", 64*mib)
	m.Policies("a", 10*mib)
	var codes []errcode.Code
	for i := range 12 {
		codes = append(codes, m.Put("a", fmt.Sprint("k", i), mib))
	}
	if codes[9] != errcode.OK || codes[10] != errcode.TenantQuotaExceeded || codes[11] != errcode.TenantQuotaExceeded {
		t.Fatalf("codes %v", codes)
	}
}
