package core_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// far is a master that does to its one object "k", of farUnit bytes, what reaches beyond memory or what the
// master itself wants. Client 1 lends "a", where the object is, client 2 lends "b". Client 9 writes, 8 is
// another.
type far struct {
	*mastertest.Master
	t     *testing.T
	copy  wanted       // the copy that the master has asked for
	asked segment.UUID // the task of the move that the master has asked for
	moved task.MovePayload
}

const (
	farUnit  = 1000
	farQuota = 1_000_000
)

func newFar(t *testing.T, change func(*core.Config)) *far {
	f := &far{t: t, Master: mastertest.New(t, mastertest.Strict, func(c *core.Config) {
		c.EvictionWatermark, c.EvictionRatio, c.AllocationWait = 0.5, 1, 0
		c.BreakerMinClients = 100
	}, change)}
	f.Mount(1, "a", 256<<10)
	f.Mount(2, "b", 8<<20)
	f.policies(farQuota)
	return f
}

// policies gives the tenant a quota, or none.
func (f *far) policies(quota int) {
	pairs := []any{"f", 7 << 20}
	if quota > 0 {
		pairs = append(pairs, "t", quota)
	}
	f.Policies(pairs...)
}

func (f *far) ok(what string, code errcode.Code) {
	f.t.Helper()
	if code != errcode.OK {
		f.t.Fatalf("%s: %v", what, code)
	}
}

func (f *far) start(upsert bool, client uint64, units uint64, change ...mastertest.Option) errcode.Code {
	call := f.PutStart
	if upsert {
		call = f.UpsertStart
	}
	_, code := call(mastertest.ID(client), "t", "k", units*farUnit, mastertest.Config(append(change, on("a"))...), nil)
	return code
}

func (f *far) end(client uint64, kind object.ReplicaType) errcode.Code {
	return f.PutEnd(mastertest.ID(client), "t", &object.Meta{Key: "k"}, kind)
}

func (f *far) revoke(client uint64, kind object.ReplicaType) errcode.Code {
	return f.PutRevoke(mastertest.ID(client), "t", "k", kind)
}

// stored leaves the object complete, wherever it is.
func (f *far) stored(change ...mastertest.Option) {
	f.ok("put", f.start(false, 9, 1, change...))
	f.ok("end", f.end(9, object.ReplicaAll))
	if f.Config().Disk.Root != "" {
		f.ok("end of the file", f.end(9, object.ReplicaDisk))
	}
	f.Advance(time.Second)
}

// proposed has the master ask for a copy from a to b; what was read is not leased any more.
func (f *far) proposed() {
	f.stored()
	reads(f.t, f.Master, "k", 3)
	f.copy = one(f.t, f.Master)
	f.Advance(11 * time.Second)
}

// draining has the master ask for the move from a to b.
func (f *far) draining() {
	f.stored()
	_, code := f.CreateDrainJob(drain.Request{Segments: []string{"a"}, Concurrency: 1})
	f.ok("drain", code)
	f.Advance(time.Second)
	list, _ := f.FetchTasks(mastertest.ID(1), 10)
	if len(list) != 1 || list[0].Type != task.Move {
		f.t.Fatalf("asked for %+v", list)
	}
	f.asked = list[0].ID
	if err := json.Unmarshal([]byte(list[0].Payload), &f.moved); err != nil {
		f.t.Fatal(err)
	}
}

func (f *far) move() errcode.Code {
	_, code := f.MoveStart(mastertest.ID(1), "t", f.moved.Key, f.moved.Source, f.moved.Target)
	return code
}

// moveOver ends the move and its task, as the client that was asked does.
func (f *far) moveOver(call func(segment.UUID, string, string) errcode.Code) errcode.Code {
	code, status := call(mastertest.ID(1), "t", "k"), task.Success
	if code != errcode.OK {
		status = task.Failed
	}
	f.MarkTaskToComplete(mastertest.ID(1), task.Completion{ID: f.asked, Status: status})
	return code
}

// first returns what b answers if a is OK.
func first(a errcode.Code, b func() errcode.Code) errcode.Code {
	if a != errcode.OK {
		return a
	}
	return b()
}

// farInterruptions come in between; each returns what its call answers.
var farInterruptions = []struct {
	name string
	do   func(*far, farOperation) any
}{
	{"nothing", func(*far, farOperation) any { return errcode.OK }},
	{"end", func(f *far, op farOperation) any { return op.end(f) }},
	{"revoke", func(f *far, op farOperation) any { return op.revoke(f) }},
	{"end by another", func(f *far, op farOperation) any { return op.stranger(f) }},
	{"discard timeout", func(f *far, _ farOperation) any { f.Advance(31 * time.Second); return 0 }},
	{"release timeout", func(f *far, _ farOperation) any { f.Advance(602 * time.Second); return 0 }},
	{"client suspected", func(f *far, _ farOperation) any { f.Silence(1); f.Advance(12 * time.Second); return 0 }},
	{"client offline", func(f *far, _ farOperation) any { f.Silence(1); f.Advance(33 * time.Second); return 0 }},
	{"target offline", func(f *far, _ farOperation) any { f.Silence(2); f.Advance(33 * time.Second); return 0 }},
	{"source unmounted", func(f *far, _ farOperation) any { return f.unmount(1, "a") }},
	{"the far end gone", func(f *far, op farOperation) any { return op.gone(f) }},
	{"graceful deadline", func(f *far, _ farOperation) any {
		code := f.GracefulUnmountSegment(mastertest.Segment(1, "a", 0).ID, mastertest.ID(1), 5000)
		f.Advance(6 * time.Second)
		return code
	}},
	{"remove", func(f *far, _ farOperation) any { return f.Remove("t", "k", false) }},
	{"remove by force", func(f *far, _ farOperation) any { return f.Remove("t", "k", true) }},
	{"removal of all", func(f *far, _ farOperation) any { return f.RemoveAll("t", true) }},
	{"removal by pattern", func(f *far, _ farOperation) any { n, _ := f.RemoveByRegex("t", "^k$", true); return n }},
	{"clearing", func(f *far, _ farOperation) any { return f.clear("") }},
	{"clearing of source", func(f *far, _ farOperation) any { return f.clear("a") }},
	{"pool eviction", func(f *far, _ farOperation) any {
		f.Advance(2 * time.Second)
		f.MustPut("f", "filler", 5<<20, mastertest.HardPin, on("b"))
		f.PutEnd(mastertest.ID(1), "f", &object.Meta{Key: "filler"}, object.ReplicaDisk)
		if f.Config().NoF.Enabled {
			f.MustPut("f", "on the device", 960<<10, mastertest.HardPin, replicas(0, 1))
		}
		f.Step()
		f.Remove("f", "on the device", true)
		return f.Remove("f", "filler", true)
	}},
	{"quota eviction", func(f *far, _ farOperation) any {
		f.Advance(2 * time.Second)
		code := f.Start("t", "q", farQuota-f.Charged("t")+farUnit, on("b"))
		f.PutRevoke(mastertest.ID(1), "t", "q", object.ReplicaAll)
		return code
	}},
	{"watermark", func(f *far, _ farOperation) any {
		f.Advance(2 * time.Second)
		f.policies(1)
		f.Step()
		f.policies(farQuota)
		return 0
	}},
	{"upsert by another", func(f *far, _ farOperation) any { return f.start(true, 8, 3) }},
	{"policy removed", func(f *far, _ farOperation) any { f.policies(0); return 0 }},
	{"quota lowered", func(f *far, _ farOperation) any { f.policies(1); return 0 }},
}

func (f *far) clear(segmentName string) int {
	cleared, _ := f.BatchReplicaClear("t", []string{"k"}, mastertest.ID(9), segmentName)
	return len(cleared)
}

// state says what is charged, how much more memory than that is in use, if any, and how much of the device, in units.
func (f *far) state() string {
	f.t.Helper()
	if err := f.Check(); err != nil {
		f.t.Error(err)
	}
	charged, used, onDevice := f.Charged("t"), f.Stats().AllocatedBytes, f.Stats().NoF.AllocatedBytes
	if charged%farUnit+used%farUnit+onDevice%farUnit != 0 {
		f.t.Errorf("%d bytes are charged, %d and %d in use", charged, used, onDevice)
	}
	ledger, _, _ := f.LedgerOf("t", "k")
	if held := used - uint64(f.Stats().DiscardedStagingBytes) + ledger.Replaced(); !f.Config().NoF.Enabled && held != charged {
		f.t.Errorf("%d bytes are charged, those of all replicas and of what is replaced are %d", charged, held)
	}
	s := fmt.Sprint(charged / farUnit)
	if more := int(used/farUnit) - int(charged/farUnit); more != 0 {
		s += fmt.Sprintf("%+d", more)
	}
	if f.Config().NoF.Enabled {
		s += fmt.Sprintf(",%d", onDevice/farUnit)
	}
	return s
}

// over fails the test if anything still goes on.
func (f *far) over() {
	f.t.Helper()
	f.Advance(2 * time.Second)
	s := f.Stats()
	if s.NoF.AllocatedBytes != 0 || s.Tasks.Dynamic.Reserved != 0 || s.Tasks.Queue.Pending+s.Tasks.Queue.Processing != 0 {
		f.t.Errorf("at the end %d bytes of the device are in use, and tasks are %+v", s.NoF.AllocatedBytes, s.Tasks)
	}
	for _, job := range f.DrainJobs() {
		if !job.Status.Final() || job.Active != 0 {
			f.t.Errorf("at the end a drain job is %+v", job)
		}
	}
}

func number(answer any) string {
	if code, ok := answer.(errcode.Code); ok {
		return fmt.Sprint(int(code))
	}
	return fmt.Sprint(answer)
}

// farExpected reads the table: by operation and interruption, what there is to be afterwards.
func farExpected(t *testing.T) map[string]string {
	table, err := os.ReadFile("../testdata/interruptions/far.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, op := map[string]string{}, ""
	for line := range strings.Lines(string(table)) {
		line = strings.TrimSpace(line)
		name, cells, row := strings.Cut(line, "|")
		switch {
		case line == "" || line[0] == '#':
		case row:
			all[op+", "+strings.TrimSpace(name)] = strings.Join(strings.Fields(cells), " ")
		default:
			op = line
		}
	}
	if want := len(farOperations) * len(farInterruptions); len(all) != want {
		t.Errorf("the table has %d rows, want %d", len(all), want)
	}
	return all
}

// TestEveryInterruptionFromAfar walks what the master itself wants and what lies elsewhere than in memory,
// each with every interruption while it is under way, and then ends it both ways. What each call answers,
// what is charged and what is in use then is written down in a table. At last everything times out and
// is removed, and nothing is charged or in use.
func TestEveryInterruptionFromAfar(t *testing.T) {
	want := farExpected(t)
	for _, op := range farOperations {
		for _, in := range farInterruptions {
			name := op.name + ", " + in.name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var cells []string
				for _, over := range []func(*far) errcode.Code{op.end, op.revoke} {
					f := newFar(t, op.change)
					op.begin(f)
					answer := number(in.do(f, op))
					if cells == nil {
						cells = append(cells, answer+":"+f.state(), "|")
					}
					cells = append(cells, number(over(f))+":"+f.state())
					f.policies(farQuota)
					f.Drain(t)
					f.over()
				}
				if got := strings.Join(cells, " "); got != want[name] {
					t.Errorf("got %s, want %s", got, want[name])
				}
			})
		}
	}
}
