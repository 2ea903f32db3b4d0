package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
)

var update = flag.Bool("update", false, "write the golden outputs anew")

// TestMain lets the test binary be the stock connectors' process, and the command itself for
// the tests that need a process.
func TestMain(m *testing.M) {
	if served(os.Args) || os.Getenv("MOONCAKECTL_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// result is what a command line did.
type result struct {
	code           int
	stdout, stderr string
}

// ctl runs a command line in process, with a clock that stands still.
func ctl(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return ctlEnv(t, nil, stdin, args...)
}

func ctlEnv(t *testing.T, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	return ctlContext(t.Context(), env, strings.NewReader(stdin), args...)
}

func ctlContext(ctx context.Context, env map[string]string, stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, surroundings{
		stdin: stdin, stdout: &stdout, stderr: &stderr,
		env: func(key string) string { return env[key] },
		now: time.Now,
	})
	return result{code, stdout.String(), stderr.String()}
}

func (r result) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("status %d, want %d\nstdout %q\nmust hold %q\nstderr %q\nmust hold %q", r.code, code, r.stdout, stdout, r.stderr, stderr)
	}
}

// decode reads the standard output as JSON of exactly this shape.
func decode[T any](t *testing.T, r result) (v T) {
	t.Helper()
	if r.code != exitOK {
		t.Fatalf("status %d: %s", r.code, r.stderr)
	}
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, r.stdout)
	}
	return v
}

// varying are the parts of an output that no two runs have in common.
var varying = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<sha256>"},
	{regexp.MustCompile(`\b[0-9a-f]{17}\.\.\.`), "<sha256>..."},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
	{regexp.MustCompile(`/tmp/\S*/00\d/`), "<folder>/"},
}

// golden compares an output with a file of testdata.
func golden(t *testing.T, name string, r result) {
	t.Helper()
	text := fmt.Sprintf("status %d\n--- stdout\n%s--- stderr\n%s", r.code, r.stdout, r.stderr)
	for _, v := range varying {
		text = v.is.ReplaceAllString(text, v.as)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, text, want)
	}
}

// syncBuffer is written by a master while the test reads it.
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

// master runs a whole master in process and returns where its clients and its operators go.
func master(t *testing.T, args ...string) (rpc, admin string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	done := make(chan int, 1)
	args = append([]string{"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0"}, args...)
	go func() { done <- app.Main(ctx, args, app.System("test"), &stdout, &stderr) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("the master ends with %d: %s", code, stderr.String())
		}
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, line, ok := strings.Cut(stdout.String(), "is serving: "); ok {
			if _, err := fmt.Sscanf(line, "rpc %s http %s", &rpc, &admin); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return rpc, admin
		}
		if time.Now().After(end) {
			t.Fatalf("the master does not serve: %s", stderr.String())
		}
		select {
		case code := <-done:
			done <- code
			t.Fatalf("the master ends with %d: %s", code, stderr.String())
		default:
		}
	}
}

// tenantMaster is a master whose policy is a file.
func tenantMaster(t *testing.T, text string, args ...string) (rpc, admin, file string) {
	t.Helper()
	file = write(t, "tenants.yaml", text)
	rpc, admin = master(t, append([]string{"--enable_multi_tenants", "--tenant_quota_connector_uri=" + file}, args...)...)
	return rpc, admin, file
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits for something that has no fixed moment.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// standby is a master that is not active.
func standby(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		fmt.Fprint(w, `{"status":"ok","role":"standby","ha_state":"standby","service_ready":false,"leader_address":"10.0.0.7:50051","view_version":3}`)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `{"success":false,"error_code":-1011,"error_message":"service plane is not active"}`)
}
