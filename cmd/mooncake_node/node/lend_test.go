package node_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestLend puts to and gets from a node, found through either kind of metadata, told to speak either version.
func TestLend(t *testing.T) {
	for _, store := range []bool{false, true} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprint("store=", store, " version=", version), func(t *testing.T) {
				t.Parallel()
				m := newMaster(t)
				cfg := m.config()
				cfg.DataVersion = version
				if store {
					cfg.Metadata = m.store()
				}
				r := lend(t, cfg)
				c := dial(t, m, cfg.Metadata)
				for _, size := range []int{1, 4096, 5<<20 + 1} {
					key, v := fmt.Sprint("k", size), value(size, byte(version))
					mustPut(t, c, key, v)
					mustHold(t, c, key, v)
					if got := owners(t, c, key); len(got) != 1 || got[0] != r.Endpoint() {
						t.Errorf("%s is at %v, want %s", key, got, r.Endpoint())
					}
				}
				if store && r.Endpoint() != r.Name() {
					t.Errorf("with a store the endpoint is %s, the name %s", r.Endpoint(), r.Name())
				}
				if err := r.stop(); err != nil {
					t.Error(err)
				}
				if _, err := c.Get(t.Context(), "k1"); err == nil {
					t.Error("what was on a node that has left can still be read")
				}
			})
		}
	}
}

// TestSeveralSegments lends more than one segment may have.
func TestSeveralSegments(t *testing.T) {
	m := newMaster(t)
	cfg := m.config()
	cfg.SegmentBytes, cfg.MaxSegment = 50<<20, 16<<20
	r := lend(t, cfg)
	c := dial(t, m, segment.P2P)
	for i := range 9 { // 5 MB each: three fit into 16 MB, none into what is left of them
		v := value(5<<20, byte(i))
		mustPut(t, c, fmt.Sprint(i), v)
		mustHold(t, c, fmt.Sprint(i), v)
	}
	if got := r.metric(t, "mooncake_node_lent_bytes"); got != "52428800" {
		t.Errorf("%s bytes are lent", got)
	}
	if err := c.Put(t.Context(), "big", value(17<<20, 0)); err == nil {
		t.Error("a value is larger than every segment and was stored")
	}
}

func TestHealthAndMetrics(t *testing.T) {
	m := newMaster(t)
	cfg := m.config()
	cfg.DrainTimeout = 0
	r := lend(t, cfg)
	eventually(t, "it is healthy", func() bool { status, _ := r.get(t, "/health"); return status == 200 })
	if _, body := r.get(t, "/health"); !strings.Contains(body, `"status":"ok"`) || !strings.Contains(body, `"endpoint":"`+r.Endpoint()+`"`) {
		t.Error(body)
	}
	for sample, want := range map[string]string{
		"mooncake_node_lent_bytes":       "67108864",
		"mooncake_node_master_connected": "1",
		"mooncake_node_leaving":          "0",
		`mooncake_node_info{version="test",segment="` + r.Name() + `",protocol="tcp"}`: "1",
		`mooncake_node_tasks_total{kind="move",outcome="success"}`:                     "0",
	} {
		if got := r.metric(t, sample); got != want {
			t.Errorf("%s is %s, want %s", sample, got, want)
		}
	}
	if status, _ := r.get(t, "/nope"); status != 404 {
		t.Errorf("an unknown page: %d", status)
	}
	m.stop()
	eventually(t, "it is not healthy without a master", func() bool {
		status, body := r.get(t, "/health")
		return status == 503 && strings.Contains(body, "master away")
	})
	if got := r.metric(t, "mooncake_node_pings_failed_total"); got == "0" {
		t.Error("no failed ping is counted")
	}
}

// TestRestartedMaster forgets everything, its metadata store, too: the node is found again.
func TestRestartedMaster(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(fmt.Sprint("store=", store), func(t *testing.T) {
			t.Parallel()
			m := newMaster(t)
			cfg := m.config()
			if store {
				cfg.Metadata = m.store()
			}
			r := lend(t, cfg)
			mustPut(t, dial(t, m, cfg.Metadata), "before", value(1000, 1))
			m.stop()
			m = m.again(t)
			c := dial(t, m, cfg.Metadata)
			eventually(t, "the memory is mounted again", func() bool {
				return c.Put(t.Context(), "after", value(1<<20, 2)) == nil
			})
			mustHold(t, c, "after", value(1<<20, 2))
			if there, err := c.Exists(t.Context(), "before"); there || err != nil {
				t.Errorf("a master that has begun anew knows an object: %v, %v", there, err)
			}
			if got := r.metric(t, "mooncake_node_remounts_total"); got != "1" {
				t.Errorf("%s remounts", got)
			}
		})
	}
}

// TestMetadataAway loses the store, which is not the master's: those who know the node go on.
func TestMetadataAway(t *testing.T) {
	store, m := newMaster(t), newMaster(t)
	cfg := m.config()
	cfg.Metadata = store.store()
	lend(t, cfg)
	c := dial(t, m, cfg.Metadata)
	mustPut(t, c, "a", value(1000, 1))
	store.stop()
	mustPut(t, c, "b", value(1000, 2))
	mustHold(t, c, "a", value(1000, 1))
	mustHold(t, c, "b", value(1000, 2))
}

// TestPatience starts the node before its master and its metadata store.
func TestPatience(t *testing.T) {
	m := newMaster(t)
	m.stop()
	cfg := m.config()
	cfg.Metadata = m.store()
	r := start(t, cfg)
	eventually(t, "the log says what it waits for", func() bool {
		return strings.Contains(r.log.String(), "the master does not answer yet") && strings.Contains(r.log.String(), m.rpc)
	})
	if status, body := r.get(t, "/health"); status != 503 || !strings.Contains(body, "joining") {
		t.Errorf("%d %s", status, body)
	}
	m = m.again(t)
	<-r.Mounted()
	c := dial(t, m, cfg.Metadata)
	mustPut(t, c, "k", value(1000, 1))
	mustHold(t, c, "k", value(1000, 1))

	away := m.config() // and one whose master never comes
	away.Master = fmt.Sprint("127.0.0.1:", freePort(t))
	w := start(t, away)
	eventually(t, "the log says so", func() bool { return strings.Contains(w.log.String(), "the master does not answer yet") })
	if err := w.stop(); err != nil {
		t.Errorf("asked to stop while it waits: %v", err)
	}
}

// TestNameTaken by a node that lives, in the metadata store and at the master, and by one that was killed.
func TestNameTaken(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		m := newMaster(t)
		cfg := m.config()
		cfg.Metadata = m.store()
		r := lend(t, cfg)
		cfg.Name = r.Name()
		second := start(t, cfg)
		if err := second.wait(); err == nil || !strings.Contains(err.Error(), "taken") || !strings.Contains(err.Error(), r.Name()) {
			t.Errorf("%v", err)
		}
		c := dial(t, m, cfg.Metadata)
		mustPut(t, c, "k", value(1000, 1)) // the first one has not been harmed
		mustHold(t, c, "k", value(1000, 1))
	})
	t.Run("master", func(t *testing.T) {
		t.Parallel()
		m := newMaster(t)
		cfg := m.config()
		r := lend(t, cfg)
		cfg.Name, cfg.NameTimeout = r.Name(), time.Millisecond
		second := start(t, cfg)
		if err := second.wait(); err == nil || !strings.Contains(err.Error(), "taken") || !strings.Contains(err.Error(), r.Name()) {
			t.Errorf("%v", err)
		}
		// It waits for one that goes.
		cfg.NameTimeout = time.Minute
		third := start(t, cfg)
		eventually(t, "it waits for the name", func() bool { return strings.Contains(third.log.String(), "still has a segment of this name") })
		r.kill()
		<-third.Mounted()
	})
}

// wait waits until the node ends by itself.
func (r *running) wait() error {
	done := make(chan error, 1)
	go func() { done <- r.end() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("it does not end")
	}
}

// TestVersion meets a master of another version.
func TestVersion(t *testing.T) {
	s, err := rpc.NewServer(rpc.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	rpc.Handle(s, wire.ServiceReady, func(_ *rpc.Call, _ *wire.ServiceReadyRequest, a *errcode.Result[string]) error {
		a.Value = "3.0.0"
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Shutdown(t.Context()); <-served }()
	m := &master{rpc: l.Addr().String(), http: "127.0.0.1:1"}
	if err := start(t, m.config()).wait(); err == nil || !strings.Contains(err.Error(), `"3.0.0"`) || !strings.Contains(err.Error(), "2.0.0") {
		t.Errorf("%v", err)
	}
}

func TestBadConfigurations(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := &master{rpc: "127.0.0.1:1", http: "127.0.0.1:2"}
	for name, c := range map[string]struct {
		change func(*node.Config)
		want   string
	}{
		"master":   {func(c *node.Config) { c.Master = "host" }, `"host"`},
		"admin":    {func(c *node.Config) { c.Admin = "host:x" }, `"host:x"`},
		"metadata": {func(c *node.Config) { c.Metadata = "ftp://x" }, `"ftp://x"`},
		"name":     {func(c *node.Config) { c.Name = "a b:1" }, `"a b:1"`},
		"nothing":  {func(c *node.Config) { c.SegmentBytes = 0 }, "at least one byte"},
		"memory":   {func(c *node.Config) { c.SegmentBytes, c.MaxSegment = 1<<60, 1<<60 }, "no memory to lend"},
		"http":     {func(c *node.Config) { c.HTTP = taken.Addr().String() }, "address already in use"},
	} {
		cfg := m.config()
		cfg.Now, cfg.Name = time.Now, "127.0.0.1:1"
		c.change(&cfg)
		if _, err := node.New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestNothingIsLeft of nodes that have come and gone.
func TestNothingIsLeft(t *testing.T) {
	m := newMaster(t)
	round := func() {
		r := lend(t, m.config())
		c, err := client.Dial(t.Context(), client.Config{Master: m.rpc, Metadata: segment.P2P, Tenant: "default"})
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, c, r.Name(), value(1000, 1))
		c.Close()
		r.get(t, "/metrics")
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	round() // what is made once is there
	before := runtime.NumGoroutine()
	for range 5 {
		round()
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// TestNothingIsLeftOfDiscardedNodes, not even of their metadata.
func TestNothingIsLeftOfDiscardedNodes(t *testing.T) {
	m := &master{rpc: "127.0.0.1:1", http: "127.0.0.1:2"}
	before := runtime.NumGoroutine()
	for range 3 {
		cfg := m.config()
		cfg.Now, cfg.Metadata = time.Now, "etcd://127.0.0.1:1"
		n, err := node.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Discard(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}
