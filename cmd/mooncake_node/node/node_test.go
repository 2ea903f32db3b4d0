package node_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// syncBuffer is written by what runs while the test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// eventually waits for something that has no fixed moment.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// master is a whole master, which stop ends before the test does.
type master struct {
	rpc, http, metadata string
	stop                func()
}

// freePort returns a port that nobody listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// newMaster runs a master with a metadata store; leases are short, but long enough to read a value on a slow machine.
func newMaster(t *testing.T, args ...string) *master {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	done := make(chan int, 1)
	args = append([]string{
		"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--http_metadata_server_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0",
		"--http_metadata_server_port=0", "--enable_http_metadata_server", "--default_kv_lease_ttl=2000",
	}, args...)
	go func() { done <- app.Main(ctx, args, app.System("test"), &stdout, &stderr) }()
	m := &master{stop: sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("the master ends with %d: %s", code, stderr.String())
		}
	})}
	t.Cleanup(m.stop)
	eventually(t, "the master serves", func() bool {
		_, line, ok := strings.Cut(stdout.String(), "is serving: ")
		if ok {
			if _, err := fmt.Sscanf(line, "rpc %s http %s metadata %s", &m.rpc, &m.http, &m.metadata); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		return ok
	})
	return m
}

// again runs a master that has forgotten everything at the same addresses.
func (m *master) again(t *testing.T) *master {
	t.Helper()
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	return newMaster(t, "--rpc_port="+port(m.rpc), "--metrics_port="+port(m.http), "--http_metadata_server_port="+port(m.metadata))
}

func (m *master) store() string { return "http://" + m.metadata + "/metadata" }

// running is a node that Run serves.
type running struct {
	*node.Node
	log  *syncBuffer
	stop func() error // drains and waits
	kill func()       // ends at once
	end  func() error // waits for what Run returns
}

// config is that of a node on loopback.
func (m *master) config() node.Config {
	return node.Config{
		Version: "test", Master: m.rpc, Admin: m.http, Metadata: segment.P2P, Name: "", Bind: "127.0.0.1",
		SegmentBytes: 64 << 20, DrainTimeout: time.Minute, NameTimeout: time.Minute, HTTP: "127.0.0.1:0",
	}
}

// start runs a node and returns at once.
func start(t *testing.T, cfg node.Config) *running {
	t.Helper()
	r := &running{log: new(syncBuffer)}
	cfg.Now, cfg.Log = time.Now, hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Debug})
	if cfg.Name == "" {
		cfg.Name = fmt.Sprint("127.0.0.1:", freePort(t))
	}
	n, err := node.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Node = n
	ctx, cancel := context.WithCancel(context.Background())
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- n.Run(ctx, stop) }()
	r.end = sync.OnceValue(func() error { return <-done })
	asked := sync.OnceFunc(func() { close(stop) })
	r.stop = func() error { asked(); return r.end() }
	r.kill = func() { cancel(); r.end() }
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("log of the node:\n%s", r.log)
		}
	})
	return r
}

// lend runs a node and returns when its memory is part of the pool.
func lend(t *testing.T, cfg node.Config) *running {
	t.Helper()
	r := start(t, cfg)
	select {
	case <-r.Mounted():
	case <-time.After(30 * time.Second):
		t.Fatalf("the memory is not lent in time: %s", r.log)
	}
	return r
}

func dial(t *testing.T, m *master, metadata string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Master: m.rpc, Metadata: metadata, Tenant: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func value(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) ^ seed
	}
	return b
}

// get reads a page of the node's HTTP interface.
func (r *running) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + r.HTTPAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// metric reads one sample of the node's metrics.
func (r *running) metric(t *testing.T, sample string) string {
	t.Helper()
	_, page := r.get(t, "/metrics")
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), sample+" "); ok {
			return v
		}
	}
	t.Fatalf("no %s in\n%s", sample, page)
	return ""
}

// mustPut stores a value, wherever the master likes or on the segment named.
func mustPut(t *testing.T, c *client.Client, key string, v []byte, at ...string) {
	t.Helper()
	if err := c.Put(t.Context(), key, v, client.Prefer(at...)); err != nil {
		t.Fatal(err)
	}
}

// owners are the endpoints that a key's replicas are on.
func owners(t *testing.T, c *client.Client, key string) []string {
	t.Helper()
	s, err := c.Stat(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range s.Replicas {
		all = append(all, r.Location.Memory.Buffer.Endpoint)
	}
	return all
}

func mustHold(t *testing.T, c *client.Client, key string, want []byte) {
	t.Helper()
	got, err := c.Get(t.Context(), key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes of %d, %v", key, len(got), len(want), err)
	}
}
