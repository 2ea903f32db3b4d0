package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// asMaster makes the test binary a master.
const asMaster = "be-a-master"

// TestMain lets the test binary be the executables that the test starts: the connector, when a
// master started it, and the master.
func TestMain(m *testing.M) {
	if os.Getenv(sdk.CookieKey) != "" {
		main()
	}
	// A master starts its own executable again, as the guard of its connector.
	if code, ok := app.Connector(os.Args[1:], os.Stderr); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == asMaster {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := app.Main(ctx, os.Args[2:], app.System("test"), os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// store is a server that keeps one document with an ETag, or is out of order.
type store struct {
	mu      sync.Mutex
	content string
	version int
	down    bool
}

func (s *store) set(content string, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if content != s.content {
		s.content = content
		s.version++
	}
	s.down = down
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	etag := fmt.Sprintf(`"%d"`, s.version)
	switch {
	case s.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Method == http.MethodPut && r.Header.Get("If-Match") != etag:
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		content, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.content = string(content)
		s.version++
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, s.version))
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", etag)
		_, _ = w.Write([]byte(s.content))
	}
}

// master is a master process with the http connector.
type master struct {
	http   string
	stderr *bytes.Buffer // to be read after the process has ended
	cmd    *exec.Cmd
}

func startMaster(t *testing.T, uri string) *master {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mooncake-connector-http"), binary, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &master{stderr: &bytes.Buffer{}}
	m.cmd = exec.Command(self, asMaster, "--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0",
		"--enable_multi_tenants=true", "--tenant_quota_connector_type=http", "--tenant_quota_connector_dir="+dir, "--tenant_quota_connector_uri="+uri)
	m.cmd.Stderr = m.stderr
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slow := time.AfterFunc(30*time.Second, func() { _ = m.cmd.Process.Kill() })
	defer slow.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, after, ok := strings.Cut(lines.Text(), " http "); ok {
			m.http = strings.Fields(after)[0]
			return m
		}
	}
	_ = m.cmd.Wait()
	t.Fatalf("it does not serve: %s", m.stderr)
	return nil
}

func (m *master) request(t *testing.T, method, path, body string) (int, string) {
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

// until waits for a state of the connector and a text in the quotas.
func (m *master) until(t *testing.T, state, quotas string) {
	t.Helper()
	var status struct{ Data struct{ State string } }
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, text := m.request(t, http.MethodGet, "/api/v1/tenant_quota_connector", "")
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, now := m.request(t, http.MethodGet, "/api/v1/tenant_quotas", "")
		if status.Data.State == state && strings.Contains(now, quotas) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("want %s and %s, it is %s and %s", state, quotas, text, now)
		}
	}
}

// TestThroughAMaster: a document, a change of it, a server that is down, and a change made at
// the master, with processes as they are in production.
func TestThroughAMaster(t *testing.T) {
	policy := func(quota string) string {
		return "version: 1\ntenants:\n  - name: a # ours\n    quota: " + quota + "\n"
	}
	s := &store{}
	s.set(policy("1KB"), false)
	server := httptest.NewServer(s)
	defer server.Close()
	m := startMaster(t, server.URL)
	ended := false
	defer func() {
		if !ended {
			_ = m.cmd.Process.Kill()
			_ = m.cmd.Wait()
		}
	}()
	m.until(t, "ready", `"requested_quota_bytes":1024`)
	s.set(policy("2KB"), true)
	m.until(t, "degraded", `"requested_quota_bytes":1024`)
	if code, text := m.request(t, http.MethodPut, "/api/v1/tenant_quotas?tenant_id=a", `{"requested_quota_bytes":4096}`); code != http.StatusInternalServerError {
		t.Errorf("a change while the source is down: %d %s", code, text)
	}
	s.set(policy("2KB"), false)
	m.until(t, "ready", `"requested_quota_bytes":2048`)
	if code, text := m.request(t, http.MethodPut, "/api/v1/tenant_quotas?tenant_id=a", `{"requested_quota_bytes":4096}`); code != http.StatusOK {
		t.Errorf("a change: %d %s", code, text)
	}
	m.until(t, "ready", `"requested_quota_bytes":4096`)
	s.mu.Lock()
	if want := policy("4096"); s.content != want {
		t.Errorf("the source holds %q, want %q", s.content, want)
	}
	s.mu.Unlock()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := m.cmd.Wait()
	ended = true
	if err != nil {
		t.Errorf("the master ends with %v: %s", err, m.stderr)
	}
}
