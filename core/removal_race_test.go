package core_test

import (
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// TestRemovalOfAPolicyRacesWithWrites shows that either the write is refused or the removal is:
// nobody is charged without a policy (reports A6).
func TestRemovalOfAPolicyRacesWithWrites(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict)
	m.Mount(1, "seg", 64*mib)
	var refused, removed int
	for round := range 1000 {
		m.Policies("t", mib, "other", mib)
		var write, removal errcode.Code
		calls := []func(){
			func() { _, write = m.PutStart(mastertest.ID(1), "t", "k", 1000, mastertest.Config(), nil) },
			func() {
				if removal = m.BeginRemoval("t"); removal == errcode.OK {
					m.Policies("other", mib)
				}
			},
		}
		var wg sync.WaitGroup
		wg.Go(calls[round%2]) // whichever starts first is likely to win
		wg.Go(calls[1-round%2])
		wg.Wait()
		switch {
		case write == errcode.OK && removal == errcode.TenantNotEmpty:
			refused++
			if code := m.PutEnd(mastertest.ID(1), "t", &object.Meta{Key: "k"}, object.ReplicaAll); code != errcode.OK {
				t.Fatal(code)
			}
			m.Remove("t", "k", true)
		case write == errcode.TenantNotRegistered && removal == errcode.OK:
			removed++
			if s, known := m.TenantSnapshot("t"); known {
				t.Fatalf("after the removal: %+v", s)
			}
		default:
			t.Fatalf("write %v, removal %v", write, removal)
		}
	}
	if refused == 0 || removed == 0 {
		t.Errorf("%d removals refused, %d writes: this run shows nothing", refused, removed)
	}
}

func TestConfigIsValidated(t *testing.T) {
	ok := core.Default()
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*core.Config){
		"negative ratio":         func(c *core.Config) { c.EvictionRatio = -0.1 },
		"ratio above one":        func(c *core.Config) { c.EvictionRatio = 1.1 },
		"watermark above one":    func(c *core.Config) { c.EvictionWatermark = 2 },
		"tenant watermark":       func(c *core.Config) { c.TenantWatermark = -1 },
		"release before discard": func(c *core.Config) { c.PutReleaseTimeout = c.PutDiscardTimeout },
		"soft pin too long":      func(c *core.Config) { c.SoftPinTTL = c.MaxSoftPinTTL + 1 },
		"no client TTL":          func(c *core.Config) { c.ClientActiveTTL = 0 },
		"negative suspicion":     func(c *core.Config) { c.ClientSuspicionTTL = -1 },
		"unknown mode":           func(c *core.Config) { c.QuotaExceeded = "maybe" },
		"shards":                 func(c *core.Config) { c.ShardsPerTenant = 12 },
	} {
		c := core.Default()
		spoil(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	nan := core.Default()
	nan.EvictionRatio /= 0 * nan.EvictionRatio
	if err := nan.Validate(); err == nil {
		t.Error("infinity is accepted")
	}
	c := core.Default()
	c.AllocationStrategy = "guess"
	if _, err := core.New(c, core.Deps{Clock: mastertest.NewClock()}); err == nil {
		t.Error("an unknown strategy is accepted")
	}
}
