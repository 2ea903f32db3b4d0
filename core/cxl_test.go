package core_test

import (
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// TestCXL does what the released 0.3.14 master was asked with --enable_cxl=true, and with only
// --allocation_strategy=cxl.
func TestCXL(t *testing.T) {
	for name, shared := range map[string]bool{"enabled": true, "strategy only": false} {
		t.Run(name, func(t *testing.T) {
			m := mastertest.New(t, func(c *core.Config) {
				c.AllocationWait = 0
				c.CXL.Enabled = shared
				if !shared {
					c.AllocationStrategy = "cxl"
				}
			})
			for i, name := range []string{"a", "b", "cx"} {
				info := mastertest.Segment(uint64(i+1), name, 64*mib)
				if name == "cx" {
					info.Protocol = "cxl"
				}
				m.MountInfo(uint64(i+1), info)
			}
			put := func(size uint64, want errcode.Code, on string, change ...mastertest.Option) {
				t.Helper()
				list, code := m.PutStart(mastertest.ID(1), "", "k", size, mastertest.Config(change...), nil)
				if code != want {
					t.Errorf("%d bytes on %q: %v, want %v", size, on, code, want)
				}
				if code != errcode.OK {
					return
				}
				b := list[0].Location.Memory.Buffer
				if len(list) != 1 || b.Endpoint != on || b.Protocol != "cxl" {
					t.Errorf("placed %+v, want on %s over cxl", list, on)
				}
				if code := m.PutRevoke(mastertest.ID(1), "", "k", object.ReplicaAll); code != errcode.OK {
					t.Error(code)
				}
			}
			large := errcode.NoAvailableHandle
			if shared {
				large = errcode.InvalidParams // beyond a slab
			}
			put(100, errcode.InvalidParams, "")
			put(100, errcode.OK, "a", on("a"))
			put(100, errcode.OK, "cx", on("cx"))
			put(100, errcode.OK, "b", on("b", "a"))
			put(100, errcode.OK, "a", on("a", "b"), mastertest.Replicas(2))
			put(100, errcode.NoAvailableHandle, "", on("zz", "a"))
			put(100, errcode.InvalidParams, "", on(""))
			put(100, errcode.OK, "b", func(c *object.ReplicateConfig) { c.PreferredSegment = "b" })
			put(65*mib, large, "", on("a"))
			s, views := m.Stats(), m.SegmentViews()
			if views[0].Info.Protocol != "tcp" {
				t.Errorf("it was mounted over %q", views[0].Info.Protocol)
			}
			capacity := uint64(192 * mib)
			if shared {
				capacity = 128*mib + 8<<30
				if last := s.Segments[len(s.Segments)-1]; last.Name != "/dev/dax0.0" || last.Capacity != 8<<30 {
					t.Errorf("%+v", s.Segments)
				}
				info := mastertest.Segment(4, "odd", 64*mib+1)
				if code := m.MountSegment(info, mastertest.ID(4)); code != errcode.InvalidParams {
					t.Errorf("a segment that is no multiple of a slab: %v", code)
				}
			}
			if s.CapacityBytes != capacity {
				t.Errorf("capacity %d, want %d", s.CapacityBytes, capacity)
			}
		})
	}
}

// TestCXLMemoryOutlivesASegment gives the memory that segments share back when one of them goes.
func TestCXLMemoryOutlivesASegment(t *testing.T) {
	m := mastertest.New(t, func(c *core.Config) {
		c.CXL.Enabled, c.CXL.Size, c.AllocationWait = true, 16*mib, 0
	})
	for i, name := range []string{"x", "y"} {
		info := segment.Info{ID: mastertest.ID(uint64(i + 1)), Name: name, Endpoint: name, Protocol: "cxl"}
		m.MountInfo(uint64(i+1), info)
	}
	m.MustPut("", "parked", 4*mib, on("x"))
	m.MustPut("", "stays", 4*mib, on("y"))
	m.MustPut("", "goes", 4*mib, on("x"))
	m.Get("", "parked")
	if _, code := m.UpsertStart(mastertest.ID(1), "", "parked", mib, mastertest.Config(on("y")), nil); code != errcode.OK {
		t.Fatal(code)
	}
	far := func() uint64 {
		s := m.Stats().Segments
		return s[len(s)-1].Allocated
	}
	if got := far(); got != 13*mib {
		t.Errorf("%d MiB are used", got/mib)
	}
	m.UnmountSegment(mastertest.ID(1), mastertest.ID(1))
	if got := far(); got != 5*mib || !m.Has("", "stays") {
		t.Errorf("%d MiB are used when a segment has gone", got/mib)
	}
}

// TestDiskRankFollowsWhatLiesThere: with ssd_free_ratio_first new objects go to the client whose disk is
// emptiest, and what has been removed from a disk does not count.
func TestDiskRankFollowsWhatLiesThere(t *testing.T) {
	m := mastertest.New(t, func(c *core.Config) {
		c.AllocationStrategy = "ssd_free_ratio_first"
		c.Offload.Enabled = true
	})
	m.Mount(1, "a", 64*mib)
	m.Mount(2, "b", 64*mib)
	for n, bytes := range map[uint64]int64{1: 100 * mib, 2: 1000 * mib} {
		if code := m.MountLocalDisk(mastertest.ID(n), true); code != errcode.OK {
			t.Fatal(code)
		}
		if code := m.ReportDiskCapacity(mastertest.ID(n), bytes); code != errcode.OK {
			t.Fatal(code)
		}
	}
	where := func() string {
		list, code := m.PutStart(mastertest.ID(1), "", "probe", 1, mastertest.Config(), nil)
		if code != errcode.OK {
			t.Fatal(code)
		}
		m.PutRevoke(mastertest.ID(1), "", "probe", object.ReplicaAll)
		return list[0].Location.Memory.Buffer.Endpoint
	}
	offload := func(n uint64, key string, size uint64) {
		t.Helper()
		m.MustPut("", key, size)
		report := core.DiskReport{Key: key, Size: int64(size), Endpoint: "disk"}
		if code := m.NotifyOffload(mastertest.ID(n), []core.DiskReport{report}); code != errcode.OK {
			t.Fatal(code)
		}
	}
	offload(1, "one", 20*mib) // 80% of 1's are free
	for range 20 {
		if got := where(); got != "b" {
			t.Fatalf("placed on %s", got)
		}
	}
	offload(2, "two", 30*mib)
	offload(2, "three", 30*mib) // 94% of 2's
	if got := where(); got != "b" {
		t.Fatalf("placed on %s", got)
	}
	m.Remove("", "one", true) // all of 1's
	for range 20 {
		if got := where(); got != "a" {
			t.Fatalf("placed on %s", got)
		}
	}
}
