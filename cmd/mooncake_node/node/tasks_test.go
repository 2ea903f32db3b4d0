package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// ask makes a call of the master that must not be refused.
func ask[Q, V any](t *testing.T, m *master, row *wire.RPC[Q, errcode.Result[V]], q Q) V {
	t.Helper()
	c, err := rpc.Dial(t.Context(), m.rpc)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var a errcode.Result[V]
	if err := rpc.Invoke(t.Context(), c, row, &q, &a); err != nil || a.Code != errcode.OK {
		t.Fatalf("%s: %v, %v", row.Name(), a.Code, err)
	}
	return a.Value
}

// ended waits for a task.
func ended(t *testing.T, m *master, id core.UUID) (v wire.TaskView) {
	t.Helper()
	eventually(t, "the task has ended", func() bool {
		v = ask(t, m, wire.QueryTask, wire.QueryTaskRequest{TaskID: id})
		return v.Status.Final()
	})
	return v
}

func TestCopyAndMove(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(fmt.Sprint("store=", store), func(t *testing.T) {
			t.Parallel()
			m := newMaster(t)
			cfg := m.config()
			if store {
				cfg.Metadata = m.store()
			}
			a, b := lend(t, cfg), lend(t, cfg)
			c, v := dial(t, m, cfg.Metadata), value(9<<20+7, 3)
			mustPut(t, c, "k", v, a.Name())

			id := ask(t, m, wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "k", TenantID: "default", Targets: []string{b.Name()}})
			if got := ended(t, m, id); got.Status != task.Success || got.Message != "Task completed successfully" {
				t.Fatalf("%+v", got)
			}
			if got := owners(t, c, "k"); len(got) != 2 || !slices.Contains(got, b.Endpoint()) {
				t.Fatalf("after a copy it is at %v", got)
			}
			if got := a.metric(t, "mooncake_node_task_written_bytes_total"); got != fmt.Sprint(len(v)) {
				t.Errorf("%s bytes are counted", got)
			}
			// A copy to where it is succeeds and writes nothing; a move to there drops the source.
			id = ask(t, m, wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "k", TenantID: "default", Targets: []string{b.Name()}})
			if got := ended(t, m, id); got.Status != task.Success {
				t.Fatalf("%+v", got)
			}
			id = ask(t, m, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "k", TenantID: "default", Source: a.Name(), Target: b.Name()})
			if got := ended(t, m, id); got.Status != task.Success {
				t.Fatalf("%+v", got)
			}
			if got := owners(t, c, "k"); len(got) != 1 || got[0] != b.Endpoint() {
				t.Fatalf("after a move to where it is already it is at %v", got)
			}
			mustHold(t, c, "k", v)
			// And back, by the other node.
			id = ask(t, m, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "k", TenantID: "default", Source: b.Name(), Target: a.Name()})
			if got := ended(t, m, id); got.Status != task.Success {
				t.Fatalf("%+v", got)
			}
			if got := owners(t, c, "k"); len(got) != 1 || got[0] != a.Endpoint() {
				t.Fatalf("after a move it is at %v", got)
			}
			mustHold(t, c, "k", v)
			if got := b.metric(t, `mooncake_node_tasks_total{kind="move",outcome="success"}`); got != "1" {
				t.Errorf("%s moves are counted", got)
			}
		})
	}
}

// TestManyTasks are more than are carried out at a time.
func TestManyTasks(t *testing.T) {
	m := newMaster(t)
	cfg := m.config()
	cfg.Tasks = 2
	a, b := lend(t, cfg), lend(t, cfg)
	c := dial(t, m, segment.P2P)
	var ids []core.UUID
	for i := range 20 {
		mustPut(t, c, fmt.Sprint(i), value(100_000+i, byte(i)), a.Name())
		ids = append(ids, ask(t, m, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: fmt.Sprint(i), TenantID: "default", Source: a.Name(), Target: b.Name()}))
	}
	for i, id := range ids {
		if got := ended(t, m, id); got.Status != task.Success {
			t.Fatalf("%+v", got)
		}
		mustHold(t, c, fmt.Sprint(i), value(100_000+i, byte(i)))
		if got := owners(t, c, fmt.Sprint(i)); len(got) != 1 || got[0] != b.Endpoint() {
			t.Errorf("%d is at %v", i, got)
		}
	}
}

// TestTargetGone fails a copy and takes everything back.
func TestTargetGone(t *testing.T) {
	m := newMaster(t)
	a := lend(t, m.config())
	c := dial(t, m, segment.P2P)
	mustPut(t, c, "k", value(1<<20, 1))
	// A segment whose owner nobody can reach.
	ghost := core.Info{ID: core.UUID{First: 7, Second: 7}, Name: "ghost", Base: 1 << 32, Size: 16 << 20, Endpoint: fmt.Sprint("127.0.0.1:", freePort(t)), Protocol: "tcp"}
	ask(t, m, wire.MountSegment, wire.MountSegmentRequest{Segment: ghost, ClientID: ghost.ID})
	id := ask(t, m, wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "k", TenantID: "default", Targets: []string{"ghost"}})
	got := ended(t, m, id)
	if got.Status != task.Failed || !strings.Contains(got.Message, ghost.Endpoint) {
		t.Errorf("%+v", got)
	}
	if at := owners(t, c, "k"); len(at) != 1 || at[0] != a.Endpoint() {
		t.Errorf("after a failed copy it is at %v", at)
	}
	mustHold(t, c, "k", value(1<<20, 1))
	if got := a.metric(t, `mooncake_node_tasks_total{kind="copy",outcome="failure"}`); got != "1" {
		t.Errorf("%s failures are counted", got)
	}
	// The object can be copied again: the first copy has been revoked.
	b := lend(t, m.config())
	id = ask(t, m, wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "k", TenantID: "default", Targets: []string{b.Name()}})
	if got := ended(t, m, id); got.Status != task.Success {
		t.Errorf("%+v", got)
	}
}

// TestDrain leaves with everything moved to the node that stays.
func TestDrain(t *testing.T) {
	m := newMaster(t)
	cfg := m.config()
	cfg.SegmentBytes, cfg.MaxSegment = 64<<20, 32<<20 // two segments of one name
	a := lend(t, cfg)
	c := dial(t, m, segment.P2P)
	for i := range 30 {
		mustPut(t, c, fmt.Sprint(i), value(1<<20+i, byte(i)))
	}
	b := lend(t, m.config())
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		mustHold(t, c, fmt.Sprint(i), value(1<<20+i, byte(i)))
		if got := owners(t, c, fmt.Sprint(i)); len(got) != 1 || got[0] != b.Endpoint() {
			t.Errorf("%d is at %v", i, got)
		}
	}
	if !strings.Contains(a.log.String(), "everything has been moved: objects=30") {
		t.Error("the log does not say that 30 objects were moved")
	}
	if _, text := b.get(t, "/health"); !strings.Contains(text, `"ok"`) {
		t.Error(text)
	}
	if names := page(t, "http://"+m.http+"/get_all_segments"); strings.TrimSpace(names) != b.Name() {
		t.Errorf("the master has the segments %q", names)
	}
}

// page reads a page of the master.
func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 4096)
	n, _ := resp.Body.Read(b)
	return string(b[:n])
}

// TestDrainsThatCanNotBe end all the same, and the log says what is lost.
func TestDrainsThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, m *master, a *running, c *client.Client)
		timeout time.Duration
		want    string
	}{
		"nowhere to go": {func(*testing.T, *master, *running, *client.Client) {}, time.Minute, "there is no other segment"},
		"pinned": {func(t *testing.T, m *master, a *running, c *client.Client) {
			if err := c.Put(t.Context(), "pinned", value(1000, 1), client.HardPin); err != nil {
				t.Fatal(err)
			}
			lend(t, m.config())
		}, 2 * time.Second, "it took longer than 2s"},
		"no master":  {func(_ *testing.T, m *master, _ *running, _ *client.Client) { m.stop() }, 2 * time.Second, "the drain did not come to its end"},
		"not wanted": {func(*testing.T, *master, *running, *client.Client) {}, 0, "leaving without a drain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMaster(t)
			cfg := m.config()
			cfg.DrainTimeout = c.timeout
			a := lend(t, cfg)
			cl := dial(t, m, segment.P2P)
			mustPut(t, cl, "k", value(1000, 1))
			c.prepare(t, m, a, cl)
			if err := a.stop(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(a.log.String(), c.want) {
				t.Errorf("the log does not say %q:\n%s", c.want, a.log)
			}
		})
	}
	t.Run("no admin interface", func(t *testing.T) {
		t.Parallel()
		m := newMaster(t)
		cfg := m.config()
		cfg.Admin = fmt.Sprint("127.0.0.1:", freePort(t))
		a := lend(t, cfg)
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(a.log.String(), "admin interface, which a drain needs") {
			t.Errorf("%s", a.log)
		}
	})
}

// TestDrainBegunByAnother is followed to its end.
func TestDrainBegunByAnother(t *testing.T) {
	m := newMaster(t)
	a := lend(t, m.config())
	c := dial(t, m, segment.P2P)
	mustPut(t, c, "k", value(1<<20, 1))
	b := lend(t, m.config())
	resp, err := http.Post("http://"+m.http+"/api/v1/drain_jobs", "application/json", strings.NewReader(`{"segments":["`+a.Name()+`"]}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	mustHold(t, c, "k", value(1<<20, 1))
	if got := owners(t, c, "k"); got[0] != b.Endpoint() {
		t.Errorf("it is at %v", got)
	}
}

// TestSecondWord leaves at once while a drain goes on.
func TestSecondWord(t *testing.T) {
	m := newMaster(t)
	a := lend(t, m.config())
	c := dial(t, m, segment.P2P)
	if err := c.Put(t.Context(), "pinned", value(1000, 1), client.HardPin); err != nil {
		t.Fatal(err)
	}
	lend(t, m.config())
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	eventually(t, "it is leaving", func() bool { return a.metric(t, "mooncake_node_leaving") == "1" })
	a.kill()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if names := page(t, "http://"+m.http+"/get_all_segments"); strings.Contains(names, a.Name()) {
		t.Errorf("the master still has %q", names)
	}
}
