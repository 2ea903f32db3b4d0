package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

func diskOn(c *core.Config) { c.Offload.Enabled = true }

// withDisk is a master whose client 1 lends 64 MiB and has a disk.
func withDisk(t *testing.T, change ...func(*core.Config)) *mastertest.Master {
	t.Helper()
	m := mastertest.New(t, append([]func(*core.Config){diskOn, mastertest.NoPoolEviction}, change...)...)
	m.Mount(1, "s", 64<<20)
	if code := m.MountLocalDisk(mastertest.ID(1), true); code != errcode.OK {
		t.Fatal(code)
	}
	return m
}

func report(m *mastertest.Master, client uint64, tenantName, key string, size int64) errcode.Code {
	return m.NotifyOffload(mastertest.ID(client), []core.DiskReport{{Tenant: tenantName, Key: key, Size: size, Endpoint: fmt.Sprint("disk", client)}})
}

// where says what an administrator sees of a key: the kinds of its replicas, or the code.
func where(m *mastertest.Master, tenantName, key string) string {
	var list object.ReplicaList
	if code := m.AdminReplicas(tenantName, key, &list); code != errcode.OK {
		return fmt.Sprint(int(code))
	}
	return kindsOf(list.Replicas)
}

func kindsOf(all []object.ReplicaDescriptor) string {
	var words []string
	for _, r := range all {
		words = append(words, [...]string{"memory", "nof", "disk", "local"}[r.Location.Index])
	}
	return strings.Join(words, " ")
}

func upsert(m *mastertest.Master, key string, size uint64) (string, errcode.Code) {
	out, code := m.UpsertStart(mastertest.ID(1), "default", key, size, mastertest.Config(), nil)
	return kindsOf(out), code
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestUpsertInPlaceDropsWhatIsOutdatedOnDisk(t *testing.T) {
	m := withDisk(t)
	m.MustPut("default", "k", 8)
	m.OffloadHeartbeat(mastertest.ID(1), true)
	report(m, 1, "default", "k", 8)
	expect(t, "offloaded", where(m, "default", "k"), "memory local")

	got, code := upsert(m, "k", 8)
	expect(t, "upsert", fmt.Sprint(got, " ", code == errcode.OK), "memory local true")
	expect(t, "while it is written", where(m, "default", "k"), "-703")
	expect(t, "end", m.End("default", "k"), errcode.OK)
	expect(t, "afterwards", where(m, "default", "k"), "memory")
	if items, _ := m.OffloadHeartbeat(mastertest.ID(1), true); len(items) != 1 {
		t.Errorf("the new value is to be written to disk, asked for: %v", items)
	}
	expect(t, "report of the new value", report(m, 1, "default", "k", 8), errcode.OK)
	expect(t, "offloaded again", where(m, "default", "k"), "memory local")

	upsert(m, "k", 8)
	expect(t, "revoke", m.PutRevoke(mastertest.ID(1), "default", "k", object.ReplicaAll), errcode.OK)
	expect(t, "a revoked upsert in place leaves nothing", where(m, "default", "k"), "-704")
}

func TestUpsertOfADiskOnlyObjectGetsMemory(t *testing.T) {
	m := withDisk(t)
	report(m, 1, "default", "k", 8)
	got, code := upsert(m, "k", 8)
	expect(t, "upsert of the same size", fmt.Sprint(got, " ", code == errcode.OK), "memory true")
	m.End("default", "k")
	expect(t, "afterwards", where(m, "default", "k"), "memory")
}

func TestUpsertOfALeasedObjectOnDiskIsRefused(t *testing.T) {
	m := withDisk(t)
	m.MustPut("default", "k", 8)
	m.OffloadHeartbeat(mastertest.ID(1), true)
	report(m, 1, "default", "k", 8)
	m.Get("default", "k")
	for _, size := range []uint64{8, 16} {
		_, code := upsert(m, "k", size)
		expect(t, fmt.Sprint("upsert of ", size, " bytes"), code, errcode.ObjectHasLease)
	}
	expect(t, "the old value", where(m, "default", "k"), "memory local")
}

func TestRefusedUpsertLeavesTheOffloadInLine(t *testing.T) {
	m := withDisk(t)
	m.MustPut("default", "k", 8)
	_, code := upsert(m, "k", 65<<20)
	expect(t, "upsert", code, errcode.NoAvailableHandle)
	if items, _ := m.OffloadHeartbeat(mastertest.ID(1), true); len(items) != 1 || items[0].Size != 8 {
		t.Errorf("the old value is still to be written, asked for: %v", items)
	}
}

func TestDiskOfASilentClient(t *testing.T) {
	m := withDisk(t)
	m.Mount(2, "s2", 8<<20)
	m.MountLocalDisk(mastertest.ID(2), true)
	report(m, 1, "default", "k", 8)
	m.Silence(1)
	m.Advance(12 * time.Second)
	expect(t, "of a silent client", where(m, "default", "k"), "-703")
	_, code := m.OffloadHeartbeat(mastertest.ID(1), true)
	expect(t, "it is not asked to write", code, errcode.UnavailableInStatus)
	expect(t, "its reports count", report(m, 1, "default", "late", 8), errcode.OK)
	expect(t, "but can't be read", where(m, "default", "late"), "-703")
	// Another client that has the same object is not turned away: the silent one may never come back.
	expect(t, "another's report", report(m, 2, "default", "k", 8), errcode.OK)
	expect(t, "read from the other", where(m, "default", "k"), "local")

	expect(t, "mounting the disk is a sign of life", m.MountLocalDisk(mastertest.ID(1), true), errcode.OK)
	expect(t, "back", where(m, "default", "late"), "local")
	m.Silence(1)
	m.Advance(40 * time.Second)
	expect(t, "gone", where(m, "default", "late"), "-704")
	expect(t, "not gone", where(m, "default", "k"), "local")
	_, code = m.PollRemoveAll(mastertest.ID(1))
	expect(t, "the disk is forgotten", code, errcode.SegmentNotFound)
}

func TestWipeIsAskedForAs0313Has(t *testing.T) {
	for _, old := range []bool{false, true} {
		m := withDisk(t, func(c *core.Config) { c.Release0313 = old })
		m.MustPut("default", "k", 8)
		m.RemoveAll("", true)
		report(m, 1, "default", "late", 8) // before the client hears of it
		wipe, _ := m.PollRemoveAll(mastertest.ID(1))
		expect(t, "to be wiped", wipe, old)
		want := "local"
		if old {
			want = "-704"
		}
		expect(t, "what was written before the wipe", where(m, "default", "late"), want)
		again, _ := m.PollRemoveAll(mastertest.ID(1))
		expect(t, "once", again, false)
		expect(t, "after it", report(m, 1, "default", "new", 8), errcode.OK)
		expect(t, "after it", where(m, "default", "new"), "local")
	}
}

func shared(c *core.Config) { c.Disk.Root, c.Disk.ClusterID = "/fs", "cl" }

// path returns where the write of a key is to put its file.
func path(m *mastertest.Master, tenantName, key string) string {
	out, _ := m.PutStart(mastertest.ID(1), tenantName, key, 8, mastertest.Config(), nil)
	if len(out) != 2 || out[1].Location.Disk == nil {
		return "none"
	}
	return out[1].Location.Disk.FilePath
}

// The files of the default tenant are those that the C++ master of release 0.3.14 names.
func TestPathsInTheSharedFileSystem(t *testing.T) {
	m := mastertest.New(t, shared, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "s", 64<<20)
	m.Policies("default", 1<<20, "a", 1<<20, "b", 1<<20)
	expect(t, "folder", m.SharedFolder(), "/fs/cl")
	for key, want := range map[string]string{
		"k": "n/m/k", "key-1": "o/o/key-1", "a/b\\c:d*e?f\"g<h>i|j": "i/o/a_b_c_d_e_f_g_h_i_j", "\x00nul": "e/l/_nul",
		"ü": "o/d/ü", "a/../b": "n/l/a_.._b", "a very long key that goes on and on": "o/b/a very long key that goes on and on",
	} {
		expect(t, key, path(m, "default", key), "/fs/cl/"+want)
	}
	if p := path(m, "default", "."); !strings.HasSuffix(p, "/_") {
		t.Errorf("a key that is no file name has the path %s", p)
	}
	a, b := path(m, "a", "k"), path(m, "b", "k")
	if a == b || a == "/fs/cl/n/m/k" || !strings.Contains(a, "a@k@") {
		t.Errorf("the same key of two tenants lies at %s and %s", a, b)
	}
}

func TestReplicaInTheSharedFileSystem(t *testing.T) {
	m := mastertest.New(t, shared, mastertest.Strict, mastertest.NoPoolEviction)
	m.Mount(1, "s", 64<<20)
	m.Policies("a", 1<<20)
	end := func(key string, kind object.ReplicaType) errcode.Code {
		return m.PutEnd(mastertest.ID(1), "a", &object.Meta{Key: key}, kind)
	}
	m.Start("a", "k", 100)
	expect(t, "charged while it is written", m.Charged("a"), uint64(100))
	end("k", object.ReplicaAll)
	expect(t, "without the file", where(m, "a", "k"), "memory")
	expect(t, "remove", m.Remove("a", "k", true), errcode.ReplicaIsNotReady)
	end("k", object.ReplicaDisk)
	expect(t, "with the file", where(m, "a", "k"), "memory disk")
	expect(t, "charged", m.Charged("a"), uint64(100))
	m.BatchReplicaClear("a", []string{"k"}, mastertest.ID(1), "s")
	expect(t, "only the file", where(m, "a", "k"), "disk")
	expect(t, "charged for the file", m.Charged("a"), uint64(0))
	expect(t, "evict", m.EvictDiskReplica(mastertest.ID(9), "a", "k", object.ReplicaDisk), errcode.OK)
	expect(t, "nothing left", where(m, "a", "k"), "-704")

	// The file first, then the memory is given up.
	m.Start("a", "f", 100)
	end("f", object.ReplicaDisk)
	expect(t, "only the file is there", where(m, "a", "f"), "disk")
	expect(t, "revoke of the file", m.PutRevoke(mastertest.ID(1), "a", "f", object.ReplicaDisk), errcode.InvalidWrite)
	expect(t, "revoke", m.PutRevoke(mastertest.ID(1), "a", "f", object.ReplicaAll), errcode.OK)
	expect(t, "charged after revoke", m.Charged("a"), uint64(0))
	expect(t, "the file stays", where(m, "a", "f"), "disk")

	// A file that nobody ends is given up.
	m.Start("a", "u", 100)
	end("u", object.ReplicaAll)
	m.Advance(601 * time.Second)
	expect(t, "remove", m.Remove("a", "u", true), errcode.OK)
}
