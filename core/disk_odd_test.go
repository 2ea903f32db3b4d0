package core_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// What one call may ask for is limited: an object's replicas are counted in 16 bits.
func TestTooManyTargets(t *testing.T) {
	m := mastertest.New(t, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "a", mega)
	m.Mount(2, "b", mega)
	m.Policies("t", mega)
	m.MustPut("t", "k", 10, mastertest.Prefer("a"))
	targets := slices.Repeat([]string{"b"}, 1<<16)
	if _, code := m.CopyStart(mastertest.ID(1), "t", "k", "a", targets); code != errcode.InvalidParams || m.Charged("t") != 10 {
		t.Errorf("%v, %d bytes are charged; want InvalidParams, 10", code, m.Charged("t"))
	}
	if _, code := m.CreateCopyTask("t", "k", targets[:1025]); code != errcode.InvalidParams {
		t.Error("task:", code)
	}
	if plan, code := m.CopyStart(mastertest.ID(1), "t", "k", "a", targets[:1024]); code != errcode.OK || len(plan.Targets) != 1024 {
		t.Errorf("%v, %d targets", code, len(plan.Targets))
	}
	wantCode(t, "end", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.OK)
}

// Sizes that no client reports, and a hundred thousand of one key.
func TestOddReports(t *testing.T) {
	m := withDisk(t)
	m.MustPut("t", "k", 1000)
	for _, size := range []int64{math.MaxInt64, math.MinInt64, 0, -2} {
		for _, key := range []string{"", "none", fmt.Sprint(size)} {
			wantCode(t, "report", report(m, 1, "t", key, size), errcode.OK)
			wantCode(t, "again", report(m, 1, "t", key, size), errcode.OK)
		}
	}
	for _, want := range []struct {
		key  string
		code errcode.Code
	}{{"", errcode.OK}, {"none", errcode.OK}, {"0", errcode.ObjectNotFound}, {"-2", errcode.ObjectNotFound}} {
		wantCode(t, want.key, m.Get("t", want.key), want.code)
	}
	id := mastertest.ID(1)
	wantCode(t, "prefetch", m.RegisterPrefetch(id, "t", "none"), errcode.OK)
	for _, size := range []uint64{0, 1 << 63, math.MaxUint64} {
		if _, code := m.StartPromotion(id, "t", "none", size, nil); code != errcode.InvalidParams {
			t.Errorf("promotion of %d bytes: %v", size, code)
		}
	}
	if _, code := m.StartPromotion(id, "t", "none", math.MaxInt64, nil); code != errcode.NoAvailableHandle {
		t.Error("there is room for it:", code)
	}
	wantCode(t, "failure", m.FailPromotion(id, "t", "none"), errcode.OK)

	// A replica of no bytes of an object that has some can't be brought back.
	wantCode(t, "report of nothing", report(m, 1, "t", "k", 0), errcode.OK)
	m.BatchReplicaClear("t", []string{"k"}, id, "s")
	wantCode(t, "prefetch of nothing", m.RegisterPrefetch(id, "t", "k"), errcode.OK)
	if _, code := m.StartPromotion(id, "t", "k", 0, nil); code != errcode.InvalidParams {
		t.Error("promotion of nothing:", code)
	}

	many := make([]core.DiskReport, 100_000)
	for i := range many {
		many[i] = core.DiskReport{Tenant: "t", Key: "many", Size: 1, Endpoint: fmt.Sprint(i)}
	}
	wantCode(t, "many reports", m.NotifyOffload(id, many), errcode.OK)
	var list object.ReplicaList
	m.AdminReplicas("t", "many", &list)
	if len(list.Replicas) != 1 || list.Replicas[0].Location.LocalDisk.Endpoint != "0" {
		t.Errorf("replicas %+v", list.Replicas)
	}
}

// Devices of any place and size, which their client may state as it likes.
func TestOddDevices(t *testing.T) {
	m := mastertest.New(t, withNoF, mastertest.NoPoolEviction)
	m.Mount(1, "a", mega)
	for i, d := range []core.NoFSegment{
		{Base: math.MaxUint64, Size: math.MaxUint64, Endpoint: "1"},
		{Base: 1 << 63, Size: 1 << 63, Endpoint: "2"},
		{Size: 1, Endpoint: ""},
	} {
		d.ID, d.Name = mastertest.ID(uint64(10+i)), fmt.Sprint("d", i)
		wantCode(t, "mount", m.MountNoFSegment(d, mastertest.ID(1)), errcode.OK)
	}
	for i, c := range []struct {
		size, nof uint64
		want      errcode.Code
	}{
		{1, 1 << 63, errcode.NoAvailableHandle}, {1, 3, errcode.OK}, {1 << 40, 2, errcode.OK}, {1, 0, errcode.InvalidParams}, {0, 1, errcode.InvalidParams},
	} {
		wantCode(t, fmt.Sprint(c), m.Put("t", fmt.Sprint(i), c.size, replicas(0, c.nof)), c.want)
	}
	m.Advance(10 * time.Second)
	for n := range uint64(3) {
		wantCode(t, "unmount", m.UnmountNoFSegment(mastertest.ID(10+n), mastertest.ID(1)), errcode.OK)
	}
	if m.Has("t", "1") || m.Stats().NoF.AllocatedBytes != 0 {
		t.Errorf("%+v", m.Stats().NoF)
	}
}
