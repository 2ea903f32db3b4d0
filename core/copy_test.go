package core_test

import (
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// copyMaster has segments "a" of client 1, "b" of client 2 and "c" of client 3, of 16 MiB, and a tenant
// "t" that may use 64 MiB.
func copyMaster(t *testing.T, change ...func(*core.Config)) *mastertest.Master {
	m := mastertest.New(t, append([]func(*core.Config){mastertest.Strict, mastertest.NoPoolEviction}, change...)...)
	for n, name := range []string{"a", "b", "c"} {
		m.Mount(uint64(n+1), name, 16*mega)
	}
	m.Policies("t", 64*mega)
	return m
}

func unmount(t *testing.T, m *mastertest.Master, n uint64, name string) {
	t.Helper()
	wantCode(t, "unmount of "+name, m.UnmountSegment(mastertest.Segment(n, name, 0).ID, mastertest.ID(n)), errcode.OK)
}

func startCopy(m *mastertest.Master, client uint64, key, source string, targets ...string) errcode.Code {
	_, code := m.CopyStart(mastertest.ID(client), "t", key, source, targets)
	return code
}

func startMove(m *mastertest.Master, client uint64, key, source, target string) errcode.Code {
	_, code := m.MoveStart(mastertest.ID(client), "t", key, source, target)
	return code
}

func wantCharged(t *testing.T, m *mastertest.Master, when string, want uint64) {
	t.Helper()
	if got := m.Charged("t"); got != want {
		t.Errorf("%s: %d bytes are charged, want %d", when, got, want)
	}
}

func rejected(m *mastertest.Master) (n uint64) {
	for _, t := range m.Stats().Tenants {
		n += t.Rejected
	}
	return n
}

// Who may begin, and who may end; asked of the C++ master of 0.3.14. Release 0.3.13 doesn't ask.
func TestWhoMayCopy(t *testing.T) {
	for _, c := range []struct {
		name      string
		prepare   func(m *mastertest.Master)
		start     errcode.Code
		end, mark errcode.Code
	}{
		{"never seen", func(*mastertest.Master) {}, errcode.UnavailableInStatus, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"pings only", func(m *mastertest.Master) { m.Ping(mastertest.ID(7)) }, errcode.UnavailableInStatus, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
		{"remounted nothing", func(m *mastertest.Master) { m.ReMountSegment(nil, mastertest.ID(7)) }, errcode.OK, errcode.OK, errcode.TaskNotFound},
		{"has lent and taken back", func(m *mastertest.Master) {
			m.Mount(7, "g", mega)
			m.UnmountSegment(mastertest.Segment(7, "g", 0).ID, mastertest.ID(7))
		}, errcode.OK, errcode.OK, errcode.TaskNotFound},
		{"silent", func(m *mastertest.Master) {
			m.Mount(7, "g", mega)
			m.Silence(7)
			m.Advance(12 * time.Second)
		}, errcode.UnavailableInStatus, errcode.ObjectNoReplicationTask, errcode.TaskNotFound},
		{"gone", func(m *mastertest.Master) {
			m.Mount(7, "g", mega)
			m.Silence(7)
			m.Advance(32 * time.Second)
		}, errcode.UnavailableInStatus, errcode.UnavailableInStatus, errcode.UnavailableInStatus},
	} {
		for _, old := range []bool{false, true} {
			m := copyMaster(t, func(cfg *core.Config) { cfg.Release0313, cfg.BreakerMinClients = old, 100 })
			c.prepare(m)
			m.MustPut("t", "k", mega, mastertest.Prefer("a"))
			start, end, mark := c.start, c.end, c.mark
			if old {
				start, end, mark = errcode.OK, errcode.OK, errcode.TaskNotFound
			}
			wantCode(t, c.name+": CopyStart", startCopy(m, 7, "k", "a", "b"), start)
			wantCode(t, c.name+": CopyEnd", m.CopyEnd(mastertest.ID(7), "t", "k"), end)
			wantCode(t, c.name+": MarkTaskToComplete", m.MarkTaskToComplete(mastertest.ID(7), task.Completion{Status: task.Success}), mark)
			if start != errcode.OK { // it comes first
				wantCode(t, c.name+": CopyStart of nothing", startCopy(m, 7, "none", "x", "y"), start)
				wantCode(t, c.name+": MoveStart to itself", startMove(m, 7, "none", "x", "x"), start)
			}
		}
	}
}

// A client that falls silent in between may end what it began; so may others when its segments are
// silent.
func TestEndsWhileClientsAreSilent(t *testing.T) {
	m := copyMaster(t, func(c *core.Config) { c.BreakerMinClients = 100 })
	for _, key := range []string{"k", "l", "n"} {
		m.MustPut("t", key, mega, mastertest.Prefer("a"))
	}
	m.MustPut("t", "o", mega, mastertest.Prefer("b"))
	wantCode(t, "copy by 2", startCopy(m, 2, "k", "a", "c"), errcode.OK)
	wantCode(t, "copy to b", startCopy(m, 1, "l", "a", "b"), errcode.OK)
	wantCode(t, "move to b", startMove(m, 1, "n", "a", "b"), errcode.OK)
	wantCode(t, "move from b", startMove(m, 1, "o", "b", "c"), errcode.OK)
	m.MustPut("t", "p", mega, mastertest.Prefer("b"))
	m.MustPut("t", "q", mega, mastertest.Prefer("a"))
	m.Silence(2)
	m.Advance(12 * time.Second)
	wantCode(t, "copy to b then", startCopy(m, 1, "q", "a", "b"), errcode.UnavailableInStatus)
	wantCode(t, "copy of nothing to b", startCopy(m, 1, "none", "a", "b"), errcode.UnavailableInStatus)
	wantCode(t, "copy from b", startCopy(m, 1, "p", "b", "a"), errcode.UnavailableInStatus)
	wantCode(t, "end by 2", m.CopyEnd(mastertest.ID(2), "t", "k"), errcode.OK)
	wantCode(t, "end of the copy to b", m.CopyEnd(mastertest.ID(1), "t", "l"), errcode.OK)
	wantCode(t, "end of the move to b", m.MoveEnd(mastertest.ID(1), "t", "n"), errcode.OK)
	wantCode(t, "end of the move from b", m.MoveEnd(mastertest.ID(1), "t", "o"), errcode.OK)
	wantCode(t, "reading what lies on b", m.Get("t", "n"), errcode.ReplicaIsNotReady)
	wantCode(t, "reading what lies on c", m.Get("t", "o"), errcode.OK)
	wantCharged(t, m, "then", 8*mega) // k and l twice
	m.Revive(2)
	m.Advance(time.Second)
	wantCode(t, "reading what lies on b", m.Get("t", "n"), errcode.OK)
}

// A target that is lost is refunded as soon as that is seen, and not made again by a segment that is
// mounted later under the same id.
func TestTargetLostDuringACopy(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	wantCode(t, "copy", startCopy(m, 1, "k", "a", "b", "c"), errcode.OK)
	wantCharged(t, m, "copying", 3*mega)
	unmount(t, m, 3, "c")
	wantCharged(t, m, "c is gone", 2*mega)
	m.Mount(3, "c", 16*mega)
	wantCode(t, "end", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.ReplicaIsGone)
	wantCharged(t, m, "at the end", 2*mega)
	wantCode(t, "copy", startCopy(m, 1, "k", "b", "c"), errcode.OK)
	unmount(t, m, 3, "c")
	wantCode(t, "revoke", m.CopyRevoke(mastertest.ID(1), "t", "k"), errcode.OK)
	wantCharged(t, m, "when revoked", 2*mega)
}

// The original would drop the only replica that is left here.
func TestMoveToAReplicaThatIsLostMeanwhile(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", mega, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
	plan, code := m.MoveStart(mastertest.ID(1), "t", "k", "a", "b")
	if code != errcode.OK || plan.Target != nil || plan.Source.Location.Memory.Buffer.Endpoint != "a" {
		t.Fatalf("begins as %+v (%v)", plan, code)
	}
	wantCharged(t, m, "moving", 2*mega)
	unmount(t, m, 2, "b")
	wantCode(t, "end", m.MoveEnd(mastertest.ID(1), "t", "k"), errcode.ReplicaIsGone)
	wantCharged(t, m, "at the end", mega)
	if !m.Has("t", "k") {
		t.Error("the object is gone")
	}
}

// A target that is named twice is copied to twice, as the original does.
func TestSameTargetTwice(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	plan, code := m.CopyStart(mastertest.ID(1), "t", "k", "a", []string{"b", "a", "b"})
	if code != errcode.OK || len(plan.Targets) != 2 {
		t.Fatalf("to %+v (%v)", plan.Targets, code)
	}
	wantCharged(t, m, "copying", 3*mega)
	wantCode(t, "end", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.OK)
	wantCharged(t, m, "at the end", 3*mega)
}

// What a failing start has taken is given back: of three targets the last is full.
func TestFailedStartChangesNothing(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", 4*mega, mastertest.Prefer("a"))
	m.MustPut("t", "x", 13*mega, mastertest.Prefer("c"))
	wantCode(t, "copy", startCopy(m, 1, "k", "a", "b", "c"), errcode.NoAvailableHandle)
	wantCharged(t, m, "then", 17*mega)
	if used, _, _ := m.QuerySegment("b"); used != 0 {
		t.Errorf("%d bytes are used on b", used)
	}
	if got := rejected(m); got != 0 {
		t.Errorf("%d are counted as refused for quota", got)
	}
	m.Policies("t", 20*mega)
	wantCode(t, "copy over quota", startCopy(m, 1, "k", "a", "b"), errcode.TenantQuotaExceeded)
	wantCode(t, "move over quota", startMove(m, 1, "k", "a", "b"), errcode.TenantQuotaExceeded)
	wantCharged(t, m, "then", 17*mega)
	if got := rejected(m); got != 2 {
		t.Errorf("%d are counted as refused for quota, want 2", got)
	}
	wantCode(t, "end", m.CopyEnd(mastertest.ID(1), "t", "k"), errcode.ObjectNoReplicationTask)
}

func TestTasksOfWhatCantBeRead(t *testing.T) {
	m := copyMaster(t, func(c *core.Config) { c.BreakerMinClients = 100 })
	create := func(key string, targets ...string) errcode.Code {
		_, code := m.CreateCopyTask("t", key, targets)
		return code
	}
	move := func(key, source, target string) errcode.Code {
		_, code := m.CreateMoveTask("t", key, source, target)
		return code
	}
	wantCode(t, "a write", m.Start("t", "w", mega, mastertest.Prefer("a")), errcode.OK)
	wantCode(t, "copy of what is written", create("w", "b"), errcode.UnavailableInStatus)
	wantCode(t, "copy of what is written to nowhere", create("w", "x"), errcode.InvalidParams)
	wantCode(t, "move of what is written", move("w", "a", "b"), errcode.UnavailableInStatus)
	wantCode(t, "move of what is written from elsewhere", move("w", "b", "c"), errcode.InvalidParams)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	wantCode(t, "copy to b", startCopy(m, 1, "k", "a", "b"), errcode.OK)
	wantCode(t, "move of what is being made", move("k", "b", "c"), errcode.UnavailableInStatus)
	wantCode(t, "move to what is being made", move("k", "a", "b"), errcode.OK)
	m.MustPut("t", "l", mega, mastertest.Prefer("b"))
	m.Silence(2)
	m.Advance(12 * time.Second)
	wantCode(t, "copy from a silent client", create("l", "a"), errcode.UnavailableInStatus)
	wantCode(t, "move from a silent client", move("l", "b", "a"), errcode.UnavailableInStatus)
	wantCode(t, "copy to a silent client", create("k", "b"), errcode.UnavailableInStatus)
	wantCode(t, "move to a silent client", move("k", "a", "b"), errcode.UnavailableInStatus)
	if got := m.Stats().Tasks; got.Queue.Pending != 1 || got.UnderWay != 1 {
		t.Errorf("counted %+v", got)
	}
}

// Release 0.3.13 looks the object up first.
func TestMoveTaskToItself(t *testing.T) {
	for _, old := range []bool{false, true} {
		m := copyMaster(t, func(c *core.Config) { c.Release0313 = old })
		want := errcode.InvalidParams
		if old {
			want = errcode.ObjectNotFound
		}
		_, code := m.CreateMoveTask("t", "none", "a", "a")
		wantCode(t, "of nothing", code, want)
		m.MustPut("t", "k", mega, mastertest.Prefer("a"))
		_, code = m.CreateMoveTask("t", "k", "a", "a")
		wantCode(t, "of an object", code, errcode.InvalidParams)
	}
}

// The source is any of those that can be read, and all come up.
func TestSourceOfACopyTask(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", mega, mastertest.Replicas(2), mastertest.Prefer("a", "b"))
	for range 100 {
		if _, code := m.CreateCopyTask("t", "k", []string{"c"}); code != errcode.OK {
			t.Fatal(code)
		}
	}
	var by [2]int
	for i := range by {
		list, _ := m.FetchTasks(mastertest.ID(uint64(i+1)), 1000)
		by[i] = len(list)
	}
	if by[0]+by[1] != 100 || by[0] < 20 || by[1] < 20 {
		t.Errorf("clients 1 and 2 were asked %v times", by)
	}
}

func TestReplicationCounts(t *testing.T) {
	m := copyMaster(t)
	m.MustPut("t", "k", mega, mastertest.Prefer("a"))
	startCopy(m, 1, "k", "a", "b")
	m.CopyEnd(mastertest.ID(1), "t", "k")
	startMove(m, 1, "k", "a", "c")
	m.MoveEnd(mastertest.ID(1), "t", "k")
	startMove(m, 1, "k", "c", "a")
	m.MoveRevoke(mastertest.ID(1), "t", "k")
	startCopy(m, 1, "k", "b", "a")
	unmount(t, m, 2, "b")
	m.CopyEnd(mastertest.ID(1), "t", "k")
	startCopy(m, 1, "k", "c", "a")
	m.Advance(601 * time.Second)
	startCopy(m, 1, "k", "c", "a")
	if got := m.Stats().Tasks; got.Copied != 1 || got.Moved != 1 || got.Failed != 3 || got.UnderWay != 1 {
		t.Errorf("counted %+v", got)
	}
	unmount(t, m, 3, "c")
	unmount(t, m, 1, "a")
	if got := m.Stats().Tasks; got.Failed != 4 || got.UnderWay != 0 {
		t.Errorf("with the object gone counted %+v", got)
	}
	wantCharged(t, m, "at the end", 0)
}
