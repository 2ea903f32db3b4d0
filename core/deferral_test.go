package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
)

func onEvict(c *core.Config) { c.Offload.Enabled, c.Offload.OnEvict = true, true }

// toWrite returns the keys that client 1 is to write to its disk.
func toWrite(m *mastertest.Master) (keys []string) {
	items, _ := m.OffloadHeartbeat(mastertest.ID(1), true)
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

// tenths fills tenant "a", which may have 1000 bytes, with ten objects.
func tenths(t *testing.T, change ...func(*core.Config)) *mastertest.Master {
	t.Helper()
	m := withDisk(t, append([]func(*core.Config){onEvict, mastertest.Strict, func(c *core.Config) { c.TenantWatermark = 0 }}, change...)...)
	m.Policies("a", 1000)
	for i := range 10 {
		m.MustPut("a", fmt.Sprint("k", i), 100)
	}
	return m
}

// A write over the quota is refused until what it would replace is on a disk, and loses nothing.
func TestQuotaWaitsForTheDisk(t *testing.T) {
	m := tenths(t)
	expect(t, "put", m.Start("a", "new", 250), errcode.TenantQuotaExceeded)
	expect(t, "charged", m.Charged("a"), uint64(1000))
	expect(t, "to be written", fmt.Sprint(toWrite(m)), "[k0 k1 k2]")
	for range 5 { // what is on its way is waited for: nothing more is asked for
		expect(t, "put", m.Start("a", "new", 250), errcode.TenantQuotaExceeded)
	}
	expect(t, "to be written", fmt.Sprint(toWrite(m)), "[]")
	report(m, 1, "a", "k0", 100)
	report(m, 1, "a", "k1", 100)
	expect(t, "put with two of three on disk", m.Start("a", "new", 250), errcode.TenantQuotaExceeded)
	expect(t, "nothing was evicted in vain", where(m, "a", "k0"), "memory local")
	report(m, 1, "a", "k2", 100)
	expect(t, "put", m.Put("a", "new", 250), errcode.OK)
	expect(t, "charged", m.Charged("a"), uint64(950))
	for i, want := range []string{"local", "local", "local", "memory"} {
		expect(t, fmt.Sprint("k", i), where(m, "a", fmt.Sprint("k", i)), want)
	}
}

func TestQuotaIsNotHeldUpByAClientThatCant(t *testing.T) {
	m := tenths(t)
	expect(t, "put", m.Start("a", "new", 100), errcode.TenantQuotaExceeded)
	toWrite(m)
	report(m, 1, "a", "k0", -1)
	expect(t, "not on disk", where(m, "a", "k0"), "memory")
	expect(t, "put", m.Start("a", "new", 100), errcode.TenantQuotaExceeded)
	if got := toWrite(m); len(got) != 1 {
		t.Errorf("one is to be written instead, asked for: %v", got)
	}
}

func TestForceEvictDoesNotWaitForAQueueThatIsFull(t *testing.T) {
	m := tenths(t, func(c *core.Config) { c.Offload.ForceEvict, c.Offload.QueueLimit, c.Offload.CapRatio = true, 2, 1 })
	expect(t, "put", m.Put("a", "new", 300), errcode.OK)
	expect(t, "charged", m.Charged("a"), uint64(1000))
	expect(t, "to be written", fmt.Sprint(toWrite(m)), "[k0 k1]")
	expect(t, "what waits for the disk", where(m, "a", "k0"), "memory")
	expect(t, "what had to go", where(m, "a", "k2"), "-704")
}

func TestTenantsWatermarkOffloadsWhatItNeeds(t *testing.T) {
	m := tenths(t, func(c *core.Config) { c.TenantWatermark, c.EvictionRatio = 0.85, 0.05 })
	m.Advance(time.Second) // 1000 charged, 800 wanted
	expect(t, "to be written", fmt.Sprint(toWrite(m)), "[k0 k1]")
	expect(t, "charged", m.Charged("a"), uint64(1000))
	report(m, 1, "a", "k0", 100)
	report(m, 1, "a", "k1", 100)
	m.Advance(time.Second)
	expect(t, "charged", m.Charged("a"), uint64(800))
	expect(t, "bytes evicted", m.Stats().Tenants[0].EvictedBytes, uint64(200))
	for i, want := range []string{"local", "local", "memory"} {
		expect(t, fmt.Sprint("k", i), where(m, "a", fmt.Sprint("k", i)), want)
	}
}

// With two replicas one goes at once, the other when it is on a disk.
func TestSpareReplicaGoesAtOnce(t *testing.T) {
	m := withDisk(t, onEvict, mastertest.Strict, func(c *core.Config) { c.TenantWatermark = 0 })
	m.Mount(2, "s2", 64<<20)
	m.Policies("a", 1000)
	m.MustPut("a", "k0", 300, mastertest.Replicas(2))
	m.MustPut("a", "k1", 300)
	expect(t, "put", m.Put("a", "new", 300), errcode.OK)
	expect(t, "charged", m.Charged("a"), uint64(900))
	expect(t, "the one that stays", where(m, "a", "k0"), "memory")
}

// A copy on disk of another size is of another value: memory is not given up for it.
func TestDiskCopyOfAnotherSizeIsNotReliedOn(t *testing.T) {
	m := tenths(t)
	report(m, 1, "a", "k0", 7)
	expect(t, "put", m.Start("a", "new", 100), errcode.TenantQuotaExceeded)
	expect(t, "k0", where(m, "a", "k0"), "memory local")
}
