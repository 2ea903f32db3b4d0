package core_test

import (
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

// TestWatermarkWaitsForClientsThatComeBack: after a start the quotas are scaled to the little
// memory that has been mounted again; what a tenant writes then is not to be evicted for that.
func TestWatermarkWaitsForClientsThatComeBack(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict, mastertest.NoPoolEviction)
	m.Policies("a", 64*mib)
	m.Mount(1, "one", 10*mib) // of many
	for range 8 {
		m.Ping(mastertest.ID(2)) // knows its segments, and has not told them yet
		m.Step()
	}
	for _, key := range []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"} {
		m.MustPut("a", key, mib)
	}
	m.MustPut("a", "small", mib/2) // 9.5 of 10 MiB, above the watermark
	m.Ping(mastertest.ID(2))
	m.Step()
	if got := m.Charged("a"); got != 9*mib+mib/2 {
		t.Fatalf("%d bytes are left while a client is coming back", got)
	}
	m.Mount(2, "two", 100*mib)
	m.Advance(2 * time.Second)
	if got := m.Charged("a"); got != 9*mib+mib/2 {
		t.Fatalf("%d bytes are left though the quota is whole again", got)
	}
}

func TestWatermarkWaitsOneTTLAtMost(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict)
	m.Policies("a", 10*mib)
	m.Mount(1, "one", 64*mib)
	for _, key := range []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"} {
		m.MustPut("a", key, mib)
	}
	for range 11 {
		m.Ping(mastertest.ID(7)) // never remounts
		m.Advance(time.Second)
	}
	if got := m.Charged("a"); got != 8*mib {
		t.Fatalf("%d bytes are left after a TTL", got)
	}
}
