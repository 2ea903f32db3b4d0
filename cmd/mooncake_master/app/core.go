package app

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport/wire"
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
	k.CXL = core.CXLConfig{Enabled: c.CXL.Enabled, Path: c.CXL.Path, Size: c.CXL.Size}
	k.EnableDiskEviction = c.Storage.DiskEviction
	k.DiskQuotaBytes = c.Storage.QuotaBytes
	k.WeightImportIdle = c.Weights.ImportIdleTimeout
	k.GlobalEviction = c.Behaviour == Behaviour0313
	k.Release0313 = c.Behaviour == Behaviour0313
	k.Tasks = core.TaskConfig{
		MaxFinished: count(c.Tasks.MaxFinished), MaxPending: count(c.Tasks.MaxPending), MaxProcessing: count(c.Tasks.MaxProcessing),
		PendingTimeout: c.Tasks.PendingTimeout, ProcessingTimeout: c.Tasks.ProcessingTimeout, MaxRetries: uint32(count(c.Tasks.MaxRetries)),
	}
	k.Transfer = c.transfer()
	k.Offload = core.OffloadConfig{
		Enabled: c.Offload.Enabled, OnEvict: c.Offload.OnEvict, ForceEvict: c.Offload.ForceEvict,
		QueueLimit: count(c.Offload.QueueLimit), CapRatio: c.Offload.CapRatio,
	}
	k.Promotion = core.PromotionConfig{
		OnHit: c.Promotion.OnHit, Admission: count(c.Promotion.Threshold),
		QueueLimit: count(c.Promotion.QueueLimit), MaxPerHeartbeat: count(c.Promotion.PerHeartbeat),
	}
	k.DynamicReplication = core.DynamicReplicationConfig{
		Mode: c.DynamicReplication.Mode, HeatWindow: c.DynamicReplication.Window,
		AdmissionQPS: c.DynamicReplication.Threshold, MaxReplicas: count(c.DynamicReplication.MaxReplicas),
	}
	k.NoF = core.NoFConfig{
		Enabled: c.NoF.Enabled, EvictionRatio: c.NoF.EvictionRatio, EvictionWatermark: c.NoF.HighWatermark,
		HeartbeatInterval: c.NoF.HeartbeatInterval, ProbeTimeout: c.NoF.ProbeTimeout, FailuresThreshold: count(c.NoF.FailuresThreshold),
	}
	k.Disk = core.DiskConfig{Root: c.Storage.RootDir, ClusterID: c.ClusterID}
	return k
}

// count is a number of things; as many as there can be where it is larger.
func count(n uint64) int { return int(min(n, math.MaxInt32)) }

// fileBytes is the room in the file system that clients share; 0 where there is none, or no limit.
func (c *Config) fileBytes() uint64 {
	if c.Storage.RootDir == "" || c.Storage.FileSegmentSize == math.MaxInt64 {
		return 0
	}
	return uint64(max(c.Storage.FileSegmentSize, 0))
}

// release is the release whose behaviour was chosen.
func (c *Config) release() wire.Release {
	if c.Behaviour == Behaviour0313 {
		return wire.R0313
	}
	return wire.R0314
}
