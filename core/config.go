package core

import (
	"errors"
	"fmt"
	"time"
)

// QuotaExceeded says what a write that does not fit into its tenant's quota does.
type QuotaExceeded string

// The ways to treat a write over quota.
const (
	// EvictOwn gives up the tenant's own oldest objects if that makes the write fit.
	EvictOwn QuotaExceeded = "evict"
	// Reject refuses at once.
	Reject QuotaExceeded = "reject"
)

// Config is what a Master is built from. It cannot change while the master runs.
type Config struct {
	// MultiTenant turns on strict tenants: writes must name a tenant with a policy and are
	// charged against its quota. Off, every call acts on the tenant "default" without limits.
	MultiTenant   bool
	QuotaExceeded QuotaExceeded

	LeaseTTL           time.Duration // protection that a lookup grants
	SoftPinTTL         time.Duration // of a soft pin whose writer names none
	MaxSoftPinTTL      time.Duration // longest that a writer may ask for
	AllowEvictSoftPins bool

	EvictionRatio      float64 // further share of objects given up per pass, [0,1]
	EvictionWatermark  float64 // share of the pool's bytes in use above which it evicts, [0,1]
	TenantWatermark    float64 // the same for each tenant's effective quota; 0 = off
	ClientActiveTTL    time.Duration
	ClientSuspicionTTL time.Duration // zero drops silent clients without suspecting them first
	PutDiscardTimeout  time.Duration // after which another writer may take over an unfinished write
	PutReleaseTimeout  time.Duration // after which an unfinished write and its buffers are given up
	AllocationWait     time.Duration // how long a write into full memory may wait for eviction; 0 = not
	RegexTimeout       time.Duration // per call
	AllocationStrategy string        // random, free_ratio_first, local_first, cxl, ssd_free_ratio_first
	ShardsPerTenant    int           // power of two; 0 = 64 for a single tenant, 16 with many; where tenants are very many each has fewer
	EnableDiskEviction bool
	DiskQuotaBytes     uint64
	GlobalEviction     bool    // the pool gives up the oldest objects whoever owns them, as 0.3.13 does; else the same share of every tenant's
	Release0313        bool    // answer as 0.3.13 where 0.3.14 answers differently and nothing else here decides
	BreakerMinClients  int     // from how many clients on a mass expiry is held back once
	BreakerShare       float64 // which share of them makes it a mass expiry

	Tasks              TaskConfig
	Transfer           TransferConfig
	Offload            OffloadConfig
	Promotion          PromotionConfig
	DynamicReplication DynamicReplicationConfig
	NoF                NoFConfig
	CXL                CXLConfig
	Disk               DiskConfig
	WeightImportIdle   time.Duration // after which an import of weights that nobody writes to is given up
}

// Default returns the configuration of a master started without flags, release 0.3.14.
func Default() Config {
	c := Config{
		QuotaExceeded:      EvictOwn,
		LeaseTTL:           10 * time.Second,
		SoftPinTTL:         30 * time.Minute,
		MaxSoftPinTTL:      7 * 24 * time.Hour,
		AllowEvictSoftPins: true,
		EvictionRatio:      0.05,
		EvictionWatermark:  0.90,
		TenantWatermark:    0.90,
		ClientActiveTTL:    10 * time.Second,
		ClientSuspicionTTL: 20 * time.Second,
		PutDiscardTimeout:  30 * time.Second,
		PutReleaseTimeout:  600 * time.Second,
		AllocationWait:     100 * time.Millisecond,
		RegexTimeout:       time.Second,
		AllocationStrategy: "random",
		EnableDiskEviction: true,
		BreakerMinClients:  4,
		BreakerShare:       0.5,
	}
	c.defaultFar()
	return c
}

// Validate says what is wrong with the configuration, naming fields.
func (c *Config) Validate() error {
	var errs []error
	ratio := func(name string, v float64) {
		if !(v >= 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s is %v, must be between 0 and 1", name, v))
		}
	}
	ratio("EvictionRatio", c.EvictionRatio)
	ratio("EvictionWatermark", c.EvictionWatermark)
	ratio("TenantWatermark", c.TenantWatermark)
	if c.PutReleaseTimeout <= c.PutDiscardTimeout {
		errs = append(errs, fmt.Errorf("PutReleaseTimeout %v must be longer than PutDiscardTimeout %v", c.PutReleaseTimeout, c.PutDiscardTimeout))
	}
	if c.SoftPinTTL > c.MaxSoftPinTTL {
		errs = append(errs, fmt.Errorf("SoftPinTTL %v must not be longer than MaxSoftPinTTL %v", c.SoftPinTTL, c.MaxSoftPinTTL))
	}
	if c.ClientActiveTTL <= 0 || c.ClientSuspicionTTL < 0 {
		errs = append(errs, fmt.Errorf("ClientActiveTTL %v must be positive and ClientSuspicionTTL %v not negative", c.ClientActiveTTL, c.ClientSuspicionTTL))
	}
	if c.QuotaExceeded != EvictOwn && c.QuotaExceeded != Reject {
		errs = append(errs, fmt.Errorf("QuotaExceeded is %q, must be %q or %q", c.QuotaExceeded, EvictOwn, Reject))
	}
	if n := c.ShardsPerTenant; n < 0 || n&(n-1) != 0 {
		errs = append(errs, fmt.Errorf("ShardsPerTenant is %d, must be a power of two", n))
	}
	errs = append(errs, c.validateFar())
	return errors.Join(errs...)
}
