package app

import (
	"math/rand/v2"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
)

// monotonic is the core's clock: nanoseconds since shortly before the process started.
type monotonic struct{ base time.Time }

func (c monotonic) Now() int64 { return int64(time.Since(c.base)) + int64(time.Second) }

// process is the randomness of the process.
type process struct{}

func (process) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

func tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// core returns the part of the configuration that is the core's.
func (c *Config) core() core.Config {
	k := core.Default()
	k.MultiTenant = c.Tenants.Enabled
	k.QuotaExceeded = core.QuotaExceeded(c.Tenants.Exceeded)
	k.LeaseTTL = c.Objects.LeaseTTL
	k.SoftPinTTL = c.Objects.SoftPinTTL
	k.MaxSoftPinTTL = c.Objects.MaxSoftPinTTL
	k.PutDiscardTimeout = c.Objects.PutStartDiscard
	k.PutReleaseTimeout = c.Objects.PutStartRelease
	k.AllowEvictSoftPins = c.Eviction.AllowSoftPinned
	k.EvictionRatio = c.Eviction.Ratio
	k.EvictionWatermark = c.Eviction.HighWatermark
	k.TenantWatermark = c.Eviction.TenantHighWatermark
	k.ClientActiveTTL = c.Clients.ActiveTTL
	k.ClientSuspicionTTL = c.Clients.SuspicionTTL
	k.AllocationStrategy = c.Placement.Strategy
	k.EnableDiskEviction = c.Storage.DiskEviction
	k.DiskQuotaBytes = c.Storage.QuotaBytes
	return k
}
