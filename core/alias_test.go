package core_test

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// frame hands out strings that lie in one buffer, as decoded requests do, and overwrites it.
type frame struct{ b []byte }

func newFrame() *frame { return &frame{make([]byte, 0, 4096)} }

func (f *frame) text(s string) string {
	at := len(f.b)
	f.b = append(f.b, s...)
	return unsafe.String(unsafe.SliceData(f.b[at:]), len(s))
}

// reuse makes the buffer look as if the next request lay there.
func (f *frame) reuse() {
	for i := range f.b {
		f.b[i] = '#'
	}
	f.b = f.b[:0]
}

// TestNothingIsKeptOfTheFrame calls everything that stores strings with strings of a buffer
// that is overwritten afterwards.
func TestNothingIsKeptOfTheFrame(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict, func(c *core.Config) { c.AllocationStrategy = "local_first" })
	m.Policies("tenant", 64*mib)
	f := newFrame()
	info := mastertest.Segment(1, "segment", 16*mib)
	info.Name, info.Endpoint, info.Protocol, info.HostID = f.text("segment"), f.text("host:1"), f.text("tcp"), f.text("host")
	if code := m.MountSegment(info, mastertest.ID(1)); code != errcode.OK {
		t.Fatal(code)
	}
	f.reuse()
	start := func(key, group string, size uint64, call func(tenantName, key string, cfg *object.ReplicateConfig) errcode.Code) {
		t.Helper()
		cfg := mastertest.Config()
		cfg.HostID = f.text("host")
		cfg.PreferredSegments = []string{f.text("segment")}
		if group != "" {
			cfg.GroupIDs = &[]string{f.text(group)}
		}
		if code := call(f.text("tenant"), f.text(key), cfg); code != errcode.OK {
			t.Fatalf("%s: %v", key, code)
		}
		f.reuse()
		if code := m.PutEnd(mastertest.ID(1), f.text("tenant"), &object.Meta{Key: f.text(key)}, object.ReplicaAll); code != errcode.OK {
			t.Fatalf("%s: %v", key, code)
		}
		f.reuse()
	}
	put := func(tenantName, key string, cfg *object.ReplicateConfig) errcode.Code {
		_, code := m.PutStart(mastertest.ID(1), tenantName, key, 1000, cfg, nil)
		return code
	}
	batch := func(tenantName, key string, cfg *object.ReplicateConfig) errcode.Code {
		return m.BatchPutStart(mastertest.ID(1), tenantName, []string{key}, []uint64{1000}, cfg, nil)[0].Code
	}
	upsert := func(tenantName, key string, cfg *object.ReplicateConfig) errcode.Code {
		_, code := m.UpsertStart(mastertest.ID(1), tenantName, key, 2000, cfg, nil)
		return code
	}
	start("first", "", 1000, put)
	start("second", "group", 1000, batch)
	start("second", "group", 2000, upsert)
	start("third", "group", 2000, upsert)

	keys := m.AllKeys("tenant")
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"first", "second", "third"}) {
		t.Errorf("keys %q", keys)
	}
	for _, key := range keys {
		var list object.ReplicaList
		if code := m.AdminReplicas("tenant", key, &list); code != errcode.OK {
			t.Fatalf("%s: %v", key, code)
		}
		if b := list.Replicas[0].Location.Memory.Buffer; b.Endpoint != "host:1" || b.Protocol != "tcp" {
			t.Errorf("%s lies at %+v", key, b)
		}
	}
	// The group is still known by its name: a read of one member leases the other.
	if code := m.Get("tenant", "second"); code != errcode.OK {
		t.Fatal(code)
	}
	if code := m.Remove("tenant", "third", false); code != errcode.ObjectHasLease {
		t.Errorf("member of a leased group: %v", code)
	}
	for _, s := range m.TenantSnapshots() {
		if s.TenantID != "tenant" {
			t.Errorf("tenant %q", s.TenantID)
		}
	}
	if v := m.SegmentViews()[0]; v.Info.Name != "segment" || v.Info.HostID != "host" {
		t.Errorf("segment %+v", v.Info)
	}
	if used, _, code := m.QuerySegment("segment"); code != errcode.OK || used == 0 {
		t.Errorf("segment by name: %d %v", used, code)
	}
}

// TestHeatKeepsNothingOfTheFrame reads two objects in turn, each time with the name in a buffer that is
// overwritten afterwards: both become hot.
func TestHeatKeepsNothingOfTheFrame(t *testing.T) {
	m := hotMaster(t, 2)
	f := newFrame()
	for _, key := range []string{"hot", "late"} {
		m.MustPut("t", key, 1000, mastertest.Prefer("a"))
	}
	for range 12 {
		for _, key := range []string{"hot", "late"} {
			var list object.ReplicaList
			if code := m.GetReplicaList(f.text("t"), f.text(key), &list); code != errcode.OK {
				t.Fatal(code)
			}
			f.reuse()
		}
	}
	var keys []string
	for _, w := range asked(t, m) {
		keys = append(keys, w.key)
	}
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"hot", "late"}) {
		t.Errorf("copies are wanted of %q", keys)
	}
}
