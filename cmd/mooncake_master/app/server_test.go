package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestMain lets the test binary be the connector process that a master starts from itself.
func TestMain(m *testing.M) {
	if code, ok := Connector(os.Args[1:], os.Stderr); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// syncBuffer is an output that a running master writes to while the test reads it.
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

// running is a master that Main runs.
type running struct {
	rpc, http, metadata string
	stop                func() int // returns the exit status
	stderr              *syncBuffer
}

func runMaster(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	done := make(chan int, 1)
	args = append([]string{"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0"}, args...)
	go func() { done <- Main(ctx, args, System("test"), &stdout, &stderr) }()
	m := &running{stderr: &stderr}
	m.stop = sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { m.stop() })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, line, ok := strings.Cut(stdout.String(), "is serving: "); ok {
			if _, err := fmt.Sscanf(line, "rpc %s http %s", &m.rpc, &m.http); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if _, metadata, ok := strings.Cut(line, " metadata "); ok {
				m.metadata = strings.TrimSpace(metadata)
			}
			return m
		}
		select {
		case code := <-done:
			t.Fatalf("ends with %d: %s", code, stderr.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("does not serve: %s", stderr.String())
		}
	}
}

func (m *running) request(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+m.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
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

func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func dial(t *testing.T, m *running) *rpc.Client {
	t.Helper()
	c, err := rpc.Dial(t.Context(), m.rpc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func call[Q, A any](t *testing.T, c *rpc.Client, row *wire.RPC[Q, A], q Q) A {
	t.Helper()
	var a A
	if err := rpc.Invoke(t.Context(), c, row, &q, &a); err != nil {
		t.Fatalf("%s: %v", row.Name(), err)
	}
	return a
}

func TestAWholeMaster(t *testing.T) {
	path := policyFile(t, "version: 1\ntenants:\n  - name: a # the first\n    quota: 1MB\n")
	m := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path)
	c := dial(t, m)
	id := segment.UUID{First: 1, Second: 2}
	info := segment.Info{ID: id, Name: "seg", Base: 1 << 32, Size: 64 << 20, Endpoint: "seg", Protocol: "tcp"}
	if code := call(t, c, wire.MountSegment, wire.MountSegmentRequest{Segment: info, ClientID: id}).Code; code != errcode.OK {
		t.Fatal(code)
	}
	put := func(tenant string, size uint64) errcode.Code {
		key := fmt.Sprint(tenant, size)
		q := wire.PutStartRequest{ClientID: id, Key: key, SliceLength: size, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: tenant}
		if code := call(t, c, wire.PutStart, q).Code; code != errcode.OK {
			return code
		}
		return call(t, c, wire.PutEnd, wire.PutEndRequest{ClientID: id, ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: tenant}).Code
	}
	if got := put("a", 1000); got != errcode.OK {
		t.Errorf("a put within the quota: %v", got)
	}
	if got := put("a", 2<<20); got != errcode.TenantQuotaExceeded {
		t.Errorf("a put over the quota: %v", got)
	}
	if got := put("b", 1000); got != errcode.TenantNotRegistered {
		t.Errorf("a put of nobody: %v", got)
	}
	if status, body := m.request(t, http.MethodPut, "/api/v1/tenant_quotas?tenant_id=b", `{"requested_quota_bytes":4096}`); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, body)
	}
	if got := put("b", 1000); got != errcode.OK {
		t.Errorf("a put of the new tenant: %v", got)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "# the first") || !strings.Contains(string(text), "4096") {
		t.Errorf("the file reads %q, %v", text, err)
	}
	if status, body := m.request(t, http.MethodDelete, "/api/v1/tenant_quotas?tenant_id=b", ""); status != http.StatusConflict {
		t.Errorf("DELETE of a tenant with objects: %d %s", status, body)
	}
	if code := m.stop(); code != 0 {
		t.Errorf("ends with %d: %s", code, m.stderr)
	}
}

// TestStoppingAnswersWhatHasArrived stops a master under load: every request is answered or
// its connection is closed before an answer has begun.
func TestStoppingAnswersWhatHasArrived(t *testing.T) {
	m := runMaster(t)
	var sent, answered atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		c, err := net.Dial("tcp", m.rpc)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wg.Go(func() {
			frame := make([]byte, 20)
			frame[0] = 21
			frame[8], frame[9], frame[10], frame[11] = 0x56, 0xbb, 0x81, 0x7b // ServiceReady
			answer := make([]byte, 33)
			for {
				if _, err := c.Write(frame); err != nil {
					return
				}
				sent.Add(1)
				n, err := io.ReadFull(c, answer)
				if err != nil {
					if n != 0 {
						t.Errorf("%d of %d bytes of an answer", n, len(answer))
					}
					return
				}
				answered.Add(1)
			}
		})
	}
	for answered.Load() < 1000 {
		time.Sleep(time.Millisecond)
	}
	if code := m.stop(); code != 0 {
		t.Errorf("ends with %d: %s", code, m.stderr)
	}
	wg.Wait()
	if sent.Load()-answered.Load() > 8 {
		t.Errorf("%d of %d requests were answered", answered.Load(), sent.Load())
	}
}

func TestStartErrorsAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	bad := policyFile(t, "version: 1\ntenants:\n  - name: a\n    quota: 5GiB\n")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"rpc port taken", []string{fmt.Sprint("--rpc_port=", port)}, []string{fmt.Sprint("--rpc_port=", port), "in use"}},
		{"metrics port taken", []string{"--rpc_port=0", fmt.Sprint("--metrics_port=", port)}, []string{fmt.Sprint("--metrics_port=", port), "in use"}},
		{"metadata port taken", []string{"--rpc_port=0", "--metrics_port=0", "--enable_http_metadata_server", fmt.Sprint("--http_metadata_server_port=", port)}, []string{"--http_metadata_server_port", "in use"}},
		{"no policy file", []string{"--rpc_port=0", "--metrics_port=0", "--enable_multi_tenants", "--tenant_quota_connector_uri=/nowhere/t.yaml"}, []string{"--tenant_quota_connector_uri=/nowhere/t.yaml", "no such file"}},
		{"bad policy", []string{"--rpc_port=0", "--metrics_port=0", "--enable_multi_tenants", "--tenant_quota_connector_uri=" + bad}, []string{bad, "line 4", "GiB"}},
		{"no uri", []string{"--rpc_port=0", "--metrics_port=0", "--enable_multi_tenants"}, []string{"tenant_quota_connector_uri"}},
		{"no such connector", []string{"--rpc_port=0", "--metrics_port=0", "--enable_multi_tenants", "--tenant_quota_connector_type=nope", "--tenant_quota_connector_uri=x"}, []string{"--tenant_quota_connector_type=nope"}},
	} {
		var stdout, stderr syncBuffer
		args := append([]string{"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--http_metadata_server_host=127.0.0.1", "--minloglevel=3"}, c.args...)
		if code := Main(t.Context(), args, System("test"), &stdout, &stderr); code != 1 {
			t.Errorf("%s: ends with %d, want 1", c.name, code)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		last := lines[len(lines)-1]
		for _, part := range c.want {
			if !strings.Contains(last, part) {
				t.Errorf("%s: the last line is %q, must name %q", c.name, last, part)
			}
		}
		if !strings.HasPrefix(last, "ERROR: ") {
			t.Errorf("%s: the last line is %q", c.name, last)
		}
	}
}

func TestConnectorIsTheOneCommand(t *testing.T) {
	var out bytes.Buffer
	if _, ok := Connector([]string{"--rpc_port=1"}, &out); ok {
		t.Error("flags were taken for a command")
	}
	code, ok := Connector([]string{"connector", "serve", "nope"}, &out)
	if !ok || code != 1 || !strings.Contains(out.String(), "file") {
		t.Errorf("code %d, %v: %s", code, ok, out.String())
	}
}
