package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

const mega = 1 << 20

// wanted is a copy that the master asks for.
type wanted struct {
	task        segment.UUID
	client      uint64
	key, source string
	target      string
	token       core.Proposal
}

// hotMaster is a master that copies what is read three times within three seconds, with segments of 16
// MiB: "a" of client 1, "b" of client 2 and so on.
func hotMaster(t *testing.T, segments int, change ...func(*core.Config)) *mastertest.Master {
	m := mastertest.New(t, append([]func(*core.Config){mastertest.Strict, mastertest.NoPoolEviction, func(c *core.Config) {
		c.TenantWatermark = 0
		c.DynamicReplication.Mode = core.ReplicationEnforce
		c.DynamicReplication.HeatWindow = 3 * time.Second
	}}, change...)...)
	for n := range uint64(segments) {
		m.Mount(n+1, string(rune('a'+n)), 16*mega)
	}
	m.Policies("t", 1<<30)
	return m
}

// reads reads a key so many times.
func reads(t *testing.T, m *mastertest.Master, key string, times int) {
	t.Helper()
	for range times {
		if code := m.Get("t", key); code != errcode.OK {
			t.Fatalf("reading %s: %v", key, code)
		}
	}
}

// asked does the background work and returns what clients 1 to 9 are asked to copy.
func asked(t *testing.T, m *mastertest.Master) []wanted {
	t.Helper()
	m.Step()
	var all []wanted
	for n := range uint64(9) {
		list, _ := m.FetchTasks(mastertest.ID(n+1), 1000)
		for _, a := range list {
			var p task.CopyPayload
			if err := json.Unmarshal([]byte(a.Payload), &p); err != nil || a.Type != task.Copy || p.TenantID != "t" || len(p.Targets) != 1 {
				t.Fatalf("task %+v: %v", a, err)
			}
			all = append(all, wanted{a.ID, n + 1, p.Key, p.Source, p.Targets[0], core.Proposal{Lease: segment.UUID{First: p.LeaseHigh, Second: p.LeaseLow}, Epoch: p.Epoch}})
		}
	}
	return all
}

// one is asked where it is exactly one.
func one(t *testing.T, m *mastertest.Master) wanted {
	t.Helper()
	all := asked(t, m)
	if len(all) != 1 {
		t.Fatalf("%d copies are asked for, want 1: %+v", len(all), all)
	}
	if w := all[0]; w.token.Lease.IsZero() || w.token.Epoch == 0 {
		t.Fatalf("%+v has no token", w)
	}
	return all[0]
}

func (w wanted) start(m *mastertest.Master) errcode.Code {
	_, code := m.DynamicCopyStart(mastertest.ID(w.client), "t", w.key, w.source, []string{w.target}, w.token)
	return code
}

func (w wanted) end(m *mastertest.Master) errcode.Code {
	return m.DynamicCopyEnd(mastertest.ID(w.client), "t", w.key, w.token)
}

func wantCode(t *testing.T, what string, got, want errcode.Code) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestHeatIsCountedInWindows(t *testing.T) {
	m := hotMaster(t, 2)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 2)
	m.Advance(3 * time.Second)
	reads(t, m, "k", 2) // of another window
	if got := asked(t, m); got != nil {
		t.Errorf("asked for %+v", got)
	}
	m.Advance(3*time.Second - time.Millisecond)
	reads(t, m, "k", 1) // the last moment of it
	w := one(t, m)
	if w.key != "k" || w.client != 1 || w.source != "a" || w.target != "b" {
		t.Errorf("asked for %+v", w)
	}
	reads(t, m, "k", 10)
	if got := asked(t, m); got != nil {
		t.Errorf("asked again: %+v", got)
	}
	if got := m.Stats().Tasks.Dynamic; got.Hot != 1 || got.Proposed != 1 || got.Reserved != 1 || got.KeysSeen != 1 {
		t.Errorf("counted %+v", got)
	}
}

// What is hot when it is looked at has to be still.
func TestHeatOfAWindowThatIsOver(t *testing.T) {
	m := hotMaster(t, 2)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 3)
	m.Clock.Set(3 * time.Second)
	if got := asked(t, m); got != nil {
		t.Errorf("asked for %+v", got)
	}
}

func TestHeatThreshold(t *testing.T) {
	for _, c := range []struct {
		qps    float64
		window time.Duration
		want   int
	}{{0.8, 10 * time.Second, 8}, {0.01, time.Second, 1}, {1, 3 * time.Second, 3}, {1.1, 3 * time.Second, 4}} {
		m := hotMaster(t, 2, func(cfg *core.Config) {
			cfg.DynamicReplication.AdmissionQPS, cfg.DynamicReplication.HeatWindow = c.qps, c.window
		})
		m.MustPut("t", "k", mega, mastertest.Prefer("a"))
		reads(t, m, "k", c.want-1)
		if got := asked(t, m); got != nil {
			t.Errorf("%+v: %d reads are too many", c, c.want-1)
		}
		reads(t, m, "k", 1)
		one(t, m)
	}
}

// Neither questions without a lease nor batches of questions count; each key of a batch of reads does.
func TestWhatIsARead(t *testing.T) {
	m := hotMaster(t, 2)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	m.MustPut("t", "l", mega, mastertest.Prefer("a"))
	var list object.ReplicaList
	for range 5 {
		_, _ = m.ExistKey("t", "k")
		_, _ = m.ProbeKey("t", "k")
		m.AdminReplicas("t", "k", &list)
		_, _ = m.GetReplicaListByRegex("t", "k")
		m.BatchExistKey("t", []string{"k"}, nil)
	}
	if got := asked(t, m); got != nil {
		t.Errorf("asked for %+v", got)
	}
	for range 3 {
		m.BatchGetReplicaList("t", []string{"l", "none"}, nil)
	}
	if w := one(t, m); w.key != "l" {
		t.Errorf("asked for %+v", w)
	}
}

func TestCooldown(t *testing.T) {
	m := hotMaster(t, 2)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 3)
	w := one(t, m)
	wantCode(t, "start", w.start(m), errcode.OK)
	wantCode(t, "revoke", m.DynamicCopyRevoke(mastertest.ID(1), "t", "k", w.token), errcode.OK)
	m.Advance(26 * time.Second)
	reads(t, m, "k", 3)
	if got := asked(t, m); got != nil {
		t.Errorf("asked for %+v after 26 s", got)
	}
	m.Advance(4 * time.Second)
	reads(t, m, "k", 3)
	if again := one(t, m); again.token == w.token {
		t.Errorf("the token is the same: %+v", again)
	}
	if got, want := m.Stats().Tasks.Dynamic, (core.DynamicStat{Hot: 3, Proposed: 2, Begun: 1, Failed: 1, Reserved: 1, KeysSeen: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// While anything else goes on with an object no copy is asked for.
func TestNothingIsAskedForWhatIsBusy(t *testing.T) {
	m := hotMaster(t, 3)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 3)
	if _, code := m.CopyStart(mastertest.ID(1), "t", "k", "a", []string{"b"}); code != errcode.OK {
		t.Fatal(code)
	}
	if got := asked(t, m); got != nil {
		t.Errorf("while it is copied: %+v", got)
	}
	wantCode(t, "revoke", m.CopyRevoke(mastertest.ID(1), "t", "k"), errcode.OK)

	m.MustPut("t", "l", mega, mastertest.Prefer("a"))
	reads(t, m, "l", 3)
	if _, code := m.UpsertStart(mastertest.ID(1), "t", "l", 2*mega, mastertest.Config(), nil); code != errcode.OK {
		t.Fatal(code)
	}
	if got := asked(t, m); got != nil {
		t.Errorf("while it is written: %+v", got)
	}

	m.MustPut("t", "n", mega, mastertest.Prefer("a"))
	reads(t, m, "n", 3)
	m.Policies("other", 1<<20)
	if got := asked(t, m); got != nil {
		t.Errorf("of a tenant without policy: %+v", got)
	}
}

// Proposals of dynamic_replication_test: where a copy goes.
func TestChoice(t *testing.T) {
	mount := func(m *mastertest.Master, n uint64, name, host string, size uint64) {
		info := mastertest.Segment(n, name, size)
		info.HostID = host
		m.MountInfo(n, info)
	}
	for _, c := range []struct {
		name    string
		prepare func(m *mastertest.Master)
		want    string // the target, "" for none
	}{
		{"the only other", func(m *mastertest.Master) { mount(m, 2, "b", "", 16*mega) }, "b"},
		{"none", func(*mastertest.Master) {}, ""},
		{"the emptier", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 16*mega)
			mount(m, 3, "c", "", 16*mega)
			m.MustPut("t", "x", mega, mastertest.Prefer("b"))
		}, "c"},
		{"another host, though fuller", func(m *mastertest.Master) {
			mount(m, 2, "b", "h1", 16*mega)
			mount(m, 3, "c", "h2", 16*mega)
			m.MustPut("t", "x", 8*mega, mastertest.Prefer("c"))
		}, "c"},
		{"the emptier of other hosts", func(m *mastertest.Master) {
			mount(m, 2, "b", "h2", 16*mega)
			mount(m, 3, "c", "h3", 16*mega)
			m.MustPut("t", "x", mega, mastertest.Prefer("c"))
		}, "b"},
		{"by share, not by bytes", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 64*mega)
			mount(m, 3, "c", "", 16*mega)
			m.MustPut("t", "x", 4*mega, mastertest.Prefer("b"))
			m.MustPut("t", "y", 2*mega, mastertest.Prefer("c"))
		}, "b"},
		{"no more than 85 % afterwards", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 20*mega)
			m.MustPut("t", "x", 16*mega, mastertest.Prefer("b"))
		}, ""},
		{"just below 85 % afterwards", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 20*mega)
			m.MustPut("t", "x", 16*mega-1, mastertest.Prefer("b"))
		}, "b"},
		{"not one that is unmounted gracefully", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 16*mega)
			wantCode(t, "graceful unmount", m.GracefulUnmountSegment(mastertest.Segment(2, "b", 0).ID, mastertest.ID(2), 1<<40), errcode.OK)
		}, ""},
		{"not a silent client's", func(m *mastertest.Master) {
			mount(m, 2, "b", "", 16*mega)
			m.Silence(2)
			m.Advance(12 * time.Second)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := hotMaster(t, 0)
			mount(m, 1, "a", "h1", 16*mega)
			c.prepare(m)
			m.MustPut("t", "k", mega, mastertest.Prefer("a"))
			reads(t, m, "k", 3)
			got := ""
			for _, w := range asked(t, m) {
				got += w.target
			}
			if got != c.want {
				t.Errorf("goes to %q, want %q", got, c.want)
			}
		})
	}
}

// What only a hash can decide comes out the same every time, and not the same for every key.
func TestChoiceIsStable(t *testing.T) {
	choices := func(change func(*mastertest.Master)) map[string]string {
		m := hotMaster(t, 6, func(c *core.Config) { c.DynamicReplication.MaxReplicas = 4 })
		change(m)
		got := map[string]string{}
		for i := range 100 {
			key := fmt.Sprint("key", i)
			m.MustPut("t", key, 1, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
			reads(t, m, key, 3)
			w := one(t, m)
			got[key] = w.source + w.target
		}
		return got
	}
	first := choices(func(*mastertest.Master) {})
	kinds := map[string]int{}
	for _, c := range first {
		kinds[c]++
	}
	if len(kinds) != 8 {
		t.Errorf("of the eight pairs of two sources and four targets these occur: %v", kinds)
	}
	second := choices(func(m *mastertest.Master) { m.Advance(time.Hour) })
	for key, c := range first {
		if second[key] != c {
			t.Errorf("%s goes from and to %s, then %s", key, c, second[key])
		}
	}
}

func TestOverwrittenProposals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *mastertest.Master, w wanted) errcode.Code
		want   errcode.Code
		then   errcode.Code // the same once more
	}{
		{"removed and written anew", func(m *mastertest.Master, w wanted) errcode.Code {
			m.Remove("t", "k", true)
			return m.Put("t", "k", mega, mastertest.Prefer("a"))
		}, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"replaced by another size", func(m *mastertest.Master, w wanted) errcode.Code {
			_, code := m.UpsertStart(mastertest.ID(1), "t", "k", 2*mega, mastertest.Config(mastertest.Prefer("a")), nil)
			return max(code, m.End("t", "k"))
		}, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"written in place", func(m *mastertest.Master, w wanted) errcode.Code {
			m.Advance(11 * time.Second) // the lease of the reads
			_, code := m.UpsertStart(mastertest.ID(1), "t", "k", mega, mastertest.Config(), nil)
			return max(code, m.End("t", "k"))
		}, errcode.InvalidVersion, errcode.InvalidVersion},
		{"moved away", func(m *mastertest.Master, w wanted) errcode.Code {
			_, code := m.MoveStart(mastertest.ID(1), "t", "k", "a", "c")
			return max(code, m.MoveEnd(mastertest.ID(1), "t", "k"))
		}, errcode.ReplicaNotFound, errcode.UnavailableInStatus},
		{"moved to the target", func(m *mastertest.Master, w wanted) errcode.Code {
			_, code := m.MoveStart(mastertest.ID(1), "t", "k", "a", w.target)
			return max(code, m.MoveEnd(mastertest.ID(1), "t", "k"))
		}, errcode.ObjectAlreadyExists, errcode.UnavailableInStatus},
		{"target unmounted", func(m *mastertest.Master, w wanted) errcode.Code {
			return m.UnmountSegment(mastertest.Segment(2, "b", 0).ID, mastertest.ID(2))
		}, errcode.SegmentNotFound, errcode.UnavailableInStatus},
		{"target unmounted gracefully", func(m *mastertest.Master, w wanted) errcode.Code {
			return m.GracefulUnmountSegment(mastertest.Segment(2, "b", 0).ID, mastertest.ID(2), 1<<40)
		}, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"quota cut", func(m *mastertest.Master, w wanted) errcode.Code {
			m.Policies("t", mega)
			return errcode.OK
		}, errcode.TenantQuotaExceeded, errcode.UnavailableInStatus},
		{"too late", func(m *mastertest.Master, w wanted) errcode.Code {
			m.Clock.Set(30 * time.Second)
			return errcode.OK
		}, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"in time", func(m *mastertest.Master, w wanted) errcode.Code {
			m.Clock.Set(30*time.Second - 1)
			return errcode.OK
		}, errcode.OK, errcode.ObjectHasReplicationTask},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := hotMaster(t, 2)
			m.MustPut("t", "k", mega, mastertest.Prefer("a"))
			reads(t, m, "k", 3)
			w := one(t, m)
			m.Mount(3, "c", 16*mega)
			wantCode(t, c.name, c.change(m, w), errcode.OK)
			charged := m.Charged("t")
			wantCode(t, "start", w.start(m), c.want)
			if c.want != errcode.OK && m.Charged("t") != charged {
				t.Errorf("%d bytes are charged, before it was %d", m.Charged("t"), charged)
			}
			wantCode(t, "start again", w.start(m), c.then)
		})
	}
}

// A proposal that nobody follows: the task fails if nobody has fetched it, and others may copy.
func TestExpiredProposals(t *testing.T) {
	m := hotMaster(t, 2)
	for _, key := range []string{"k", "l"} {
		m.MustPut("t", key, mega, mastertest.Prefer("a"))
		reads(t, m, key, 3)
	}
	m.Step()
	list, _ := m.FetchTasks(mastertest.ID(1), 1)
	if len(list) != 1 {
		t.Fatalf("fetched %+v", list)
	}
	m.Advance(29 * time.Second)
	if _, code := m.CopyStart(mastertest.ID(1), "t", "l", "a", []string{"b"}); code != errcode.ObjectHasReplicationTask {
		t.Errorf("copying what is reserved: %v", code)
	}
	m.Advance(time.Second)
	if got := m.Stats().Tasks; got.Queue.Failed != 1 || got.Queue.Processing != 1 || got.Queue.Pending != 0 || got.Dynamic.Expired != 2 || got.Dynamic.Reserved != 0 {
		t.Errorf("counted %+v", got)
	}
	if v, _ := m.QueryTask(list[0].ID); v.Status != task.Processing {
		t.Errorf("the fetched task is %+v", v)
	}
	if _, code := m.CopyStart(mastertest.ID(1), "t", "l", "a", []string{"b"}); code != errcode.OK {
		t.Errorf("copying what was reserved: %v", code)
	}
}

// B 5.6.3: an object that lost a replica because room was needed is left alone for a minute.
func TestStrippedObjectsRest(t *testing.T) {
	m := hotMaster(t, 3, func(c *core.Config) { c.DynamicReplication.MaxReplicas = 3 })
	m.Policies("t", 4*mega)
	m.MustPut("t", "k", mega, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
	if _, code := m.CopyStart(mastertest.ID(1), "t", "k", "a", nil); code != errcode.OK { // a is in use
		t.Fatal(code)
	}
	wantCode(t, "a write that needs room", m.Put("t", "x", 3*mega, mastertest.Prefer("c")), errcode.OK)
	if got := m.Charged("t"); got != 4*mega {
		t.Fatalf("%d bytes are charged, want those of two replicas", got)
	}
	wantCode(t, "end of the copy", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.OK)
	m.Advance(59 * time.Second)
	reads(t, m, "k", 3)
	if got := asked(t, m); got != nil {
		t.Errorf("asked for %+v", got)
	}
	m.Advance(3 * time.Second)
	reads(t, m, "k", 3)
	one(t, m)
}

// So many are considered at a time, and no more are asked for than tasks may wait.
func TestProposalsInBatches(t *testing.T) {
	m := hotMaster(t, 2, func(c *core.Config) { c.Tasks.MaxPending = 100 })
	for i := range 150 {
		key := fmt.Sprint("key", i)
		m.MustPut("t", key, 1, mastertest.Prefer("a"))
		reads(t, m, key, 3)
	}
	var pending []int
	for range 4 {
		m.Step()
		pending = append(pending, m.Stats().Tasks.Queue.Pending)
	}
	if want := []int{64, 100, 100, 100}; !slices.Equal(pending, want) {
		t.Errorf("tasks after each step: %v, want %v", pending, want)
	}
	if got := m.Stats().Tasks.Dynamic; got.Proposed != 100 || got.Reserved != 100 || got.Waiting != 0 {
		t.Errorf("counted %+v", got)
	}
}

// A copy that the master wanted and that is not ended is undone like any other.
func TestProposedCopyTimesOut(t *testing.T) {
	m := hotMaster(t, 2)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	reads(t, m, "k", 3)
	w := one(t, m)
	wantCode(t, "start", w.start(m), errcode.OK)
	if got := m.Charged("t"); got != 2*mega {
		t.Errorf("%d bytes are charged while it is copied", got)
	}
	m.Advance(601 * time.Second)
	if got := m.Charged("t"); got != mega {
		t.Errorf("%d bytes are charged at the end", got)
	}
	wantCode(t, "end", w.end(m), errcode.ObjectNoReplicationTask)
	if got := m.Stats().Tasks.Dynamic; got.Begun != 1 || got.Failed != 1 || got.Completed != 0 {
		t.Errorf("counted %+v", got)
	}
}
