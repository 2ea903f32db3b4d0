package core_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// withNoF turns NVMe-oF segments on.
func withNoF(c *core.Config) { c.NoF.Enabled = true }

func device(n uint64, name string, size uint64) core.NoFSegment {
	return core.NoFSegment{ID: mastertest.ID(n), Name: name, Size: size, Endpoint: "traddr:" + name}
}

func replicas(memory, nof uint64) mastertest.Option {
	return func(c *object.ReplicateConfig) { c.ReplicaNum, c.NoFReplicaNum = memory, nof }
}

// places returns what kinds of place hold an object.
func places(m *mastertest.Master, tenantName, key string) (kinds []uint8) {
	var list object.ReplicaList
	m.AdminReplicas(tenantName, key, &list)
	for _, r := range list.Replicas {
		kinds = append(kinds, r.Location.Index)
	}
	return kinds
}

func TestNoFIsOffByDefault(t *testing.T) {
	m := mastertest.New(t)
	m.Mount(1, "a", 64*mib)
	d := device(5, "d", 64*mib)
	for name, code := range map[string]errcode.Code{
		"mount":   m.MountNoFSegment(d, mastertest.ID(1)),
		"remount": m.ReMountNoFSegment(nil, mastertest.ID(1)),
		"unmount": m.UnmountNoFSegment(d.ID, mastertest.ID(1)),
	} {
		if code != errcode.UnavailableInMode {
			t.Errorf("%s: %v", name, code)
		}
	}
	if code := m.Start("", "k", mib, replicas(1, 1)); code != errcode.InvalidParams {
		t.Errorf("put: %v", code)
	}
	if _, code := m.NoFSegmentsByName("d"); code != errcode.SegmentNotFound || m.NoFSegments() != nil {
		t.Errorf("there are segments: %v", code)
	}
}

func TestNoFRegistry(t *testing.T) {
	m := mastertest.New(t, withNoF)
	alice, bob := mastertest.ID(1), mastertest.ID(2)
	mount := func(d core.NoFSegment, want errcode.Code) {
		t.Helper()
		if code := m.MountNoFSegment(d, alice); code != want {
			t.Errorf("mounting %s: %v, want %v", d.Name, code, want)
		}
	}
	mount(device(5, "d", 64*mib), errcode.OK)
	mount(device(5, "other", 1), errcode.OK) // the same id
	again := device(6, "d2", mib)
	again.Endpoint = "traddr:d"
	mount(again, errcode.OK) // the same endpoint
	mount(device(7, "e", 0), errcode.InvalidParams)
	if code := m.ReMountNoFSegment([]core.NoFSegment{device(7, "e", 0), device(8, "f", mib)}, bob); code != errcode.OK {
		t.Error(code)
	}
	if got, want := m.NoFSegments(), []core.NoFSegment{device(5, "d", 64*mib), device(8, "f", mib)}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if of, code := m.NoFSegmentsByName("f"); code != errcode.OK || !slices.Equal(of, []core.NoFOwner{{Segment: mastertest.ID(8), Client: bob}}) {
		t.Errorf("%v, %v", of, code)
	}
	if code := m.UnmountNoFSegment(mastertest.ID(8), alice); code != errcode.OK {
		t.Error(code)
	}
	if code := m.UnmountNoFSegment(mastertest.ID(8), alice); code != errcode.OK {
		t.Errorf("an unknown one: %v", code)
	}
	if s := m.Stats().NoF; s.CapacityBytes != 64*mib || len(s.Segments) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNoFReplicas(t *testing.T) {
	m := mastertest.New(t, withNoF, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "a", 64*mib)
	m.Policies("x", 40*mib)
	// Without a device, one of each is content with memory; any other mix is not.
	m.MustPut("x", "memory", mib, replicas(1, 1))
	if got := places(m, "x", "memory"); !slices.Equal(got, []uint8{0}) {
		t.Errorf("one of each without a device: %v", got)
	}
	for _, mix := range [][2]uint64{{0, 1}, {2, 1}, {1, 2}} {
		if code := m.Start("x", "k", mib, replicas(mix[0], mix[1])); code != errcode.NoAvailableHandle {
			t.Errorf("%v without a device: %v", mix, code)
		}
	}
	m.MountNoFSegment(device(5, "d", 8*mib), mastertest.ID(1))
	m.MustPut("x", "both", mib, replicas(1, 1))
	m.MustPut("x", "device", mib, replicas(0, 1))
	if got := places(m, "x", "both"); !slices.Equal(got, []uint8{0, 1}) {
		t.Errorf("one of each: %v", got)
	}
	if got := places(m, "x", "device"); !slices.Equal(got, []uint8{1}) {
		t.Errorf("only on a device: %v", got)
	}
	if got := m.Charged("x"); got != 2*mib {
		t.Errorf("%d bytes are charged, want those in memory: %d", got, 2*mib)
	}
	if code := m.Start("x", "same node", mib, replicas(1, 1), func(c *object.ReplicateConfig) { c.PreferAllocInSameNode = true }); code != errcode.InvalidParams {
		t.Errorf("in the same node: %v", code)
	}
	if s := m.Stats().NoF; s.AllocatedBytes != 2*mib || s.CapacityBytes != 8*mib {
		t.Errorf("%+v", s)
	}
	// The client that told of it goes, the device stays.
	m.Silence(1)
	m.Advance(40 * time.Second)
	if !m.Has("x", "device") || m.Has("x", "memory") {
		t.Error("objects on the device are gone, or those in memory are not")
	}
	m.UnmountNoFSegment(mastertest.ID(5), mastertest.ID(1))
	if m.Has("x", "device") || m.Charged("x") != 0 {
		t.Error("objects on the device are there after its unmount")
	}
}

func TestNoFInsteadOfFullMemoryCostsNothing(t *testing.T) {
	m := mastertest.New(t, withNoF, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "a", 8*mib)
	m.Policies("x", 8*mib)
	m.MountNoFSegment(device(5, "d", 64*mib), mastertest.ID(1))
	if code := m.Start("x", "k", 8*mib+1, replicas(1, 1)); code != errcode.TenantQuotaExceeded {
		t.Errorf("beyond the quota: %v", code)
	}
	m.MustPut("x", "there", 5*mib)
	m.Get("x", "there")
	m.Policies("x", 16*mib)
	m.Mount(2, "b", 2*mib) // the quota is scaled to the memory
	if code := m.Start("x", "k", 4*mib, replicas(1, 1)); code != errcode.OK {
		t.Fatal(code)
	}
	if got := m.Charged("x"); got != 5*mib {
		t.Errorf("while it is written %d MiB are charged", got/mib)
	}
	m.End("x", "k")
	if got := m.Charged("x"); got != 5*mib || !slices.Equal(places(m, "x", "k"), []uint8{1}) {
		t.Errorf("%d MiB are charged, it is on %v", got/mib, places(m, "x", "k"))
	}
}

func TestNoFEviction(t *testing.T) {
	m := mastertest.New(t, withNoF, func(c *core.Config) { c.NoF.EvictionRatio = 0.5 })
	m.Mount(1, "a", 64*mib)
	m.MountNoFSegment(device(5, "d", 16*mib), mastertest.ID(1))
	put := func(key string, change ...mastertest.Option) {
		t.Helper()
		m.MustPut("", key, mib, append(change, replicas(1, 1))...)
	}
	put("leased")
	m.Get("", "leased")
	put("hard", mastertest.HardPin)
	put("soft", mastertest.SoftPin(time.Hour))
	for i := range 11 {
		put(fmt.Sprint("k", i))
	}
	m.Step()
	if s := m.Stats().NoF; s.AllocatedBytes != 14*mib || s.AttemptedEvictions != 0 {
		t.Errorf("below the watermark: %+v", s)
	}
	put("above")
	m.Step()
	s := m.Stats().NoF
	// 15 of 16 MiB are used, 0.0375 above the watermark: 0.5375 of 15 objects, rounded up, have to give.
	if s.AllocatedBytes != 6*mib || s.EvictedKeys != 9 || s.EvictedBytes != 9*mib || s.SuccessfulEvictions != 1 || s.AttemptedEvictions != 1 {
		t.Errorf("above the watermark: %+v", s)
	}
	for _, key := range []string{"leased", "hard", "soft"} {
		if got := places(m, "", key); !slices.Equal(got, []uint8{0, 1}) {
			t.Errorf("%s is on %v", key, got)
		}
	}
	if n := m.Stats().Keys; n != 15 {
		t.Errorf("%d objects are left, want all: they are in memory", n)
	}
	// A write that finds no room has some made.
	if code := m.Start("", "large", 12*mib, replicas(0, 1)); code != errcode.NoAvailableHandle {
		t.Fatalf("12 MiB of 16, of which 6 are used: %v", code)
	}
	m.Step()
	if s := m.Stats().NoF; s.EvictedKeys <= 9 {
		t.Errorf("after the refusal: %+v", s)
	}
}

// TestNoFHeartbeat has devices that stop answering.
func TestNoFHeartbeat(t *testing.T) {
	answers := map[string]error{}
	var asked []string
	clock := mastertest.NewClock()
	cfg := core.Default()
	cfg.NoF.Enabled = true
	m, err := core.New(cfg, core.Deps{
		Clock: clock, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger(),
		ProbeNoF: func(endpoint string, timeout time.Duration) error {
			if timeout != time.Second {
				t.Errorf("probed for %v", timeout)
			}
			asked = append(asked, endpoint)
			clock.Set(3 * time.Millisecond)
			return answers[endpoint]
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	names := func() (names []string) {
		for _, d := range m.NoFSegments() {
			names = append(names, d.Name)
		}
		return names
	}
	advance := func(d time.Duration) {
		for ; d > 0; d -= 100 * time.Millisecond {
			clock.Set(100 * time.Millisecond)
			m.Step()
		}
	}
	for i, name := range []string{"d", "e", "f"} {
		m.MountNoFSegment(device(uint64(i), name, mib), mastertest.ID(1))
	}
	answers["traddr:f"] = core.ErrNotProbed
	m.Step()
	advance(9 * time.Second)
	if len(asked) != 0 {
		t.Errorf("asked before the interval: %v", asked)
	}
	advance(11 * time.Second)
	if got := []string{"traddr:d", "traddr:e", "traddr:f"}; len(asked) < 3 || !slices.Equal(asked[:3], got) {
		t.Errorf("asked %v", asked)
	}
	answers["traddr:d"] = errors.New("no")
	answers["traddr:e"] = os.ErrDeadlineExceeded
	advance(15 * time.Second)
	answers["traddr:e"] = nil // it is back in time
	advance(30 * time.Second)
	if got := names(); !slices.Equal(got, []string{"e", "f"}) {
		t.Errorf("left: %v", got)
	}
	s := m.Stats().NoF
	if s.UnmountedByProbe != 1 || s.ProbeFailures < 3 || s.ProbeTimeouts < 1 || s.ProbeSuccesses < 2 {
		t.Errorf("%+v", s)
	}
	if h := s.ProbeLatencyMs; h.Count != s.ProbeSuccesses+s.ProbeFailures || h.Counts[1] != 0 || h.Counts[2] != h.Count || h.Bounds[2] != 5 {
		t.Errorf("latencies of 3 ms: %+v", h)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}
