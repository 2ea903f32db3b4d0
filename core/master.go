package core

import (
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/client"
	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/core/weight"
)

// Clock tells the time in nanoseconds since a fixed instant before the master started. It
// never goes back and is never zero.
type Clock interface{ Now() int64 }

// Deps is what a master needs from outside.
type Deps struct {
	Clock Clock
	Rand  segment.Rand // safe for concurrent use
	Log   hclog.Logger
	// SegmentExpired, when set, is told of each segment unmounted because its client has
	// gone offline. It is called without locks and must not block.
	SegmentExpired func(segment.Info)
	// Yield lets others have the processor. It is called without locks, about every 50 µs of
	// work that can take long. The default is runtime.Gosched.
	Yield func()
	// Wall tells the time of day in milliseconds since the epoch, for what clients are told. The
	// default is the clock's.
	Wall func() int64
	// Events, when set, is told where objects can be read.
	Events Events
	// Carrier, when set, moves bytes between segments for the tasks that the master carries out itself. Without it
	// clients carry out all of them. After is the timer of Clock; the default is the real one.
	Carrier transfer.Carrier
	After   transfer.Timer
	// ProbeNoF looks whether an NVMe-oF segment is there. It is called without locks, by one
	// goroutine. Without it segments are taken to be there until they are unmounted.
	ProbeNoF Prober
}

// Master is the whole state of one master.
type Master struct {
	cfg   Config
	clock Clock
	log   hclog.Logger
	told  func(segment.Info)
	yield func()
	wall  func() int64

	events     Events // nil if nobody wants to know
	weights    *weight.Store
	weightsDue atomic.Int64
	rand       segment.Rand

	book      *tenant.Book
	pool      *segment.Pool
	clients   *client.Registry
	tasks     *task.Queue
	transfers *transfers
	tier      tiers
	dynamic   *dynamic // nil when dynamic replication is off
	single    *keeper  // the only tenant when strict tenants are off

	started    int64 // on the clock
	localFirst bool
	watchReads bool         // a read may set something off, see hit
	keySeed    maphash.Seed // spreads keys over the segments of one host

	poolMark, tenantMark evict.Watermark
	pass                 poolPass
	wakePool             chan struct{}
	wakeTenants          chan struct{}
	wakeDrains           chan struct{}

	mounting  sync.Mutex // mounts, unmounts and expiry of clients happen one at a time
	parked    parkingLot
	graceful  gracefulTimers
	drains    drains
	nof       devices
	probe     Prober
	replicaID atomic.Uint64
	counters  counters
}

// unlimited is the quota of the one tenant when strict tenants are off.
const unlimited = tenant.MaxBytes

// New builds a master. It starts nothing; Run does the background work.
func New(cfg Config, deps Deps) (*Master, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("invalid configuration: %w", err)
	}
	if cfg.ShardsPerTenant == 0 {
		cfg.ShardsPerTenant = 64
		if cfg.MultiTenant {
			cfg.ShardsPerTenant = 16
		}
	}
	if cfg.CXL.Enabled {
		cfg.AllocationStrategy = segment.StrategyCXL.String()
	}
	strategy, err := segment.ParseStrategy(cfg.AllocationStrategy)
	if err != nil {
		return nil, err
	}
	m := &Master{
		cfg:         cfg,
		clock:       deps.Clock,
		log:         deps.Log,
		told:        deps.SegmentExpired,
		yield:       deps.Yield,
		wall:        deps.Wall,
		rand:        deps.Rand,
		book:        tenant.NewBook(),
		pool:        segment.NewPool(strategy, deps.Rand),
		poolMark:    evict.Watermark{High: cfg.EvictionWatermark, Ratio: cfg.EvictionRatio},
		tenantMark:  evict.Watermark{High: cfg.TenantWatermark, Ratio: cfg.EvictionRatio},
		started:     deps.Clock.Now(),
		localFirst:  strategy == segment.StrategyLocalFirst,
		keySeed:     maphash.MakeSeed(),
		tasks:       newTaskQueue(&cfg.Tasks),
		dynamic:     newDynamic(&cfg.DynamicReplication),
		wakePool:    make(chan struct{}, 1),
		wakeTenants: make(chan struct{}, 1),
		wakeDrains:  make(chan struct{}, 1),
		clients: client.NewRegistry(
			client.TTLs{Active: cfg.ClientActiveTTL.Nanoseconds(), Suspicion: cfg.ClientSuspicionTTL.Nanoseconds()},
			client.Breaker{MinClients: cfg.BreakerMinClients, Share: cfg.BreakerShare},
			sweepPeriod.Nanoseconds()),
	}
	if cfg.CXL.Enabled {
		m.pool.ShareFar(cfg.CXL.Path, cfg.CXL.Size)
	}
	m.pool.RankByDisk(m.diskFree)
	m.transfers = newTransfers(&cfg.Transfer, &deps, m.newID())
	m.nof.pool = segment.NewPool(strategy, deps.Rand)
	m.nof.mark = evict.Watermark{High: cfg.NoF.EvictionWatermark, Ratio: cfg.NoF.EvictionRatio}
	m.probe = deps.ProbeNoF
	if m.yield == nil {
		m.yield = runtime.Gosched
	}
	m.tier.init(&cfg)
	m.watchReads = cfg.Promotion.OnHit || cfg.DynamicReplication.Mode != ReplicationOff
	m.events = deps.Events
	m.weights = weight.New(weightObjects{m}, cfg.WeightImportIdle)
	m.weightsDue.Store(m.started + weight.Period.Nanoseconds())
	if m.wall == nil {
		m.wall = func() int64 { return m.clock.Now() / 1e6 }
	}
	if !cfg.MultiTenant {
		if m.single, err = m.limitless(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Config returns what the master was built from.
func (m *Master) Config() Config { return m.cfg }

// MultiTenant reports whether strict tenants are on.
func (m *Master) MultiTenant() bool { return m.cfg.MultiTenant }

// recompute fits the effective quotas to the memory that is mounted now.
func (m *Master) recompute() {
	if m.cfg.MultiTenant {
		m.book.Recompute(m.pool.CapacityBytes)
	}
}

// newID returns a random identity.
func (m *Master) newID() segment.UUID {
	return segment.UUID{First: m.rand.Uint64N(math.MaxUint64) + 1, Second: m.rand.Uint64N(math.MaxUint64)}
}

// wake asks a background loop to run soon; it never blocks.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
