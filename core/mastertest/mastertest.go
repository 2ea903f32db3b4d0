// Package mastertest makes masters for tests: with a clock that the test moves, seeded
// randomness, and a check of every invariant when the test ends.
package mastertest

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/core/transfer/transfertest"
)

// Clock is a core.Clock that stands still until it is advanced.
type Clock struct {
	now    atomic.Int64
	timers transfertest.Clock
}

// NewClock returns a clock that shows one hour.
func NewClock() *Clock {
	c := new(Clock)
	c.now.Store(int64(time.Hour))
	return c
}

// Now returns the time in nanoseconds.
func (c *Clock) Now() int64 { return c.now.Load() }

// Set moves the clock by d without anything else happening.
func (c *Clock) Set(d time.Duration) {
	c.now.Add(int64(d))
	c.timers.Set(d)
}

// After is a timer that fires when the clock has been moved that far.
func (c *Clock) After(d time.Duration) (<-chan time.Time, func()) { return c.timers.After(d) }

// AwaitTimer waits until there is a timer that fires in d or less.
func (c *Clock) AwaitTimer(d time.Duration) { c.timers.AwaitTimer(d) }

// Rand is a seeded core randomness, safe for concurrent use.
type Rand struct {
	mu sync.Mutex
	r  *rand.Rand
}

// NewRand returns a source that begins at seed.
func NewRand(seed uint64) *Rand { return &Rand{r: rand.New(rand.NewPCG(seed, 0))} }

// Uint64N returns a number below n.
func (r *Rand) Uint64N(n uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.r.Uint64N(n)
}

// Master is a master under test.
type Master struct {
	*core.Master
	Clock *Clock
	// Memory is what the clients lend, if bytes are moved at all.
	Memory  *transfertest.Memory
	t       testing.TB
	pinging map[uint64]bool
}

// New makes a master from the default configuration as changed by the given functions. It
// logs to the test, and checks all invariants when the test ends.
func New(t testing.TB, change ...func(*core.Config)) *Master {
	t.Helper()
	return build(t, core.Deps{}, change...)
}

// NewCarrying is New of a master that can carry bytes itself: what clients mount is lent in Memory.
func NewCarrying(t testing.TB, change ...func(*core.Config)) *Master {
	t.Helper()
	memory := new(transfertest.Memory)
	m := build(t, core.Deps{Carrier: memory}, change...)
	m.Memory = memory
	return m
}

func build(t testing.TB, deps core.Deps, change ...func(*core.Config)) *Master {
	t.Helper()
	cfg := core.Default()
	for _, f := range change {
		f(&cfg)
	}
	clock := NewClock()
	seed := rand.Uint64()
	deps.Clock, deps.After, deps.Rand, deps.Log = clock, clock.After, NewRand(seed), hclog.NewNullLogger()
	m, err := core.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.StopTransfers()
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
		if err := m.Check(); err != nil {
			t.Errorf("invariants at the end of the test: %v", err)
		}
	})
	return &Master{Master: m, Clock: clock, t: t, pinging: make(map[uint64]bool)}
}

// Strict turns strict tenants on; use it with New.
func Strict(c *core.Config) { c.MultiTenant = true }

// NoPoolEviction keeps the pool's eviction out of a test.
func NoPoolEviction(c *core.Config) {
	c.EvictionWatermark = 1
	c.AllocationWait = 0
}

// Advance moves the clock in steps of at most a second; at each, the clients that have mounted
// something and are not silent ping, and the background work is done.
func (m *Master) Advance(d time.Duration) {
	for d > 0 {
		step := min(d, time.Second)
		m.Clock.Set(step)
		d -= step
		for n, alive := range m.pinging {
			if alive {
				m.Ping(ID(n))
			}
		}
		m.Step()
	}
}

// Revive lets client n ping again while the clock advances.
func (m *Master) Revive(n uint64) { m.pinging[n] = true }

// Silence stops client n from pinging while the clock advances; Mount starts it again.
func (m *Master) Silence(n uint64) { m.pinging[n] = false }

// ID returns a client or segment id made of n.
func ID(n uint64) segment.UUID { return segment.UUID{First: n, Second: n} }

// Mount mounts a segment of size bytes named name for client n, and remounts and pings as
// clients do.
func (m *Master) Mount(n uint64, name string, size uint64) segment.Info {
	m.t.Helper()
	info := Segment(n, name, size)
	m.MountInfo(n, info)
	return info
}

// Segment describes a segment of client n.
func Segment(n uint64, name string, size uint64) segment.Info {
	return segment.Info{ID: segment.UUID{First: n, Second: nameHash(name)}, Name: name, Base: 1 << 32, Size: size, Endpoint: name, Protocol: "tcp"}
}

// MountInfo is Mount of a segment that is described in full.
func (m *Master) MountInfo(n uint64, info segment.Info) {
	m.t.Helper()
	if code := m.MountSegment(info, ID(n)); code != errcode.OK {
		m.t.Fatalf("mounting %q: %v", info.Name, code)
	}
	if code := m.ReMountSegment([]segment.Info{info}, ID(n)); code != errcode.OK {
		m.t.Fatalf("remounting %q: %v", info.Name, code)
	}
	m.Ping(ID(n))
	m.pinging[n] = true
	if m.Memory != nil {
		m.Memory.Lend(info.Endpoint, info.Base, info.Size)
	}
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// Policies puts quotas in force, given as name, bytes, name, bytes, ...
func (m *Master) Policies(pairs ...any) {
	m.t.Helper()
	var set []tenant.Policy
	for i := 0; i < len(pairs); i += 2 {
		set = append(set, tenant.Policy{Name: pairs[i].(string), Quota: uint64(pairs[i+1].(int))})
	}
	m.ApplyPolicies(set)
}

// Config returns the configuration of a write with one replica, as changed.
func Config(change ...func(*object.ReplicateConfig)) *object.ReplicateConfig {
	c := &object.ReplicateConfig{ReplicaNum: 1}
	for _, f := range change {
		f(c)
	}
	return c
}

// Start starts a put for client 1 and returns its code.
func (m *Master) Start(tenantName, key string, size uint64, change ...func(*object.ReplicateConfig)) errcode.Code {
	_, code := m.PutStart(ID(1), tenantName, key, size, Config(change...), nil)
	return code
}

// End ends a put of client 1 and returns its code.
func (m *Master) End(tenantName, key string) errcode.Code {
	return m.PutEnd(ID(1), tenantName, &object.Meta{Key: key}, object.ReplicaAll)
}

// Put stores an object for client 1 and returns the first code that is not OK.
func (m *Master) Put(tenantName, key string, size uint64, change ...func(*object.ReplicateConfig)) errcode.Code {
	if code := m.Start(tenantName, key, size, change...); code != errcode.OK {
		return code
	}
	return m.End(tenantName, key)
}

// MustPut stores an object for client 1 or fails the test.
func (m *Master) MustPut(tenantName, key string, size uint64, change ...func(*object.ReplicateConfig)) {
	m.t.Helper()
	if code := m.Put(tenantName, key, size, change...); code != errcode.OK {
		m.t.Fatalf("putting %s/%s: %v", tenantName, key, code)
	}
	m.Clock.Set(time.Microsecond) // so that no two objects are of the same age
}

// Get looks a key up, which leases it, and returns the code.
func (m *Master) Get(tenantName, key string) errcode.Code {
	var list object.ReplicaList
	return m.GetReplicaList(tenantName, key, &list)
}

// Has reports whether a key is readable, without leasing it.
func (m *Master) Has(tenantName, key string) bool {
	ok, _ := m.ProbeKey(tenantName, key)
	return ok
}

// Charged returns what a tenant is charged, in bytes.
func (m *Master) Charged(tenantName string) uint64 {
	s, _ := m.TenantSnapshot(tenantName)
	return s.ChargedBytes
}
