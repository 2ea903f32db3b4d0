package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// side is one of the two masters that a trace runs against.
type side struct {
	name string
	p    *process
	conn *rpc.Client // speaks as 0.3.14
	old  *rpc.Client // speaks as 0.3.13
	web  *http.Client

	created map[int]segment.UUID    // the task that an operation created
	names   map[segment.UUID]string // what to call it
	taken   map[string]taskPayload  // tasks by key, for rules about time
	job     string                  // the last drain job
	policy  string                  // path of its policy document, empty without tenants
}

// errGone is what a call answers when the master is not there any more.
var errGone = errors.New("the master does not answer")

// bring starts a master, ours or the reference, with flags and a policy of its own.
func (e *environment) bring(ctx context.Context, name, reference string, config *traceConfig) (*side, error) {
	s := &side{
		name: name, created: map[int]segment.UUID{}, names: map[segment.UUID]string{}, taken: map[string]taskPayload{},
		web: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}},
	}
	flags := append([]string(nil), config.flags...)
	if config.policy != "" {
		s.policy = filepath.Join(e.dir, fmt.Sprintf("%s-%08x.yaml", name, rand.Uint32()))
		if err := os.WriteFile(s.policy, []byte(config.policy), 0o644); err != nil {
			return nil, err
		}
		flags = append(flags, "--enable_multi_tenants=true", "--tenant_quota_connector_uri="+s.policy)
	}
	var err error
	if reference == "" {
		s.p, err = e.start(ctx, append(flags, config.ours...)...)
	} else {
		s.p, err = startReference(ctx, reference, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !await(20*time.Second, func() bool {
		status, _, err := s.fetch("GET", "/api/v1/tenant_quotas", "")
		return err == nil && status != 503
	}) {
		s.end()
		return nil, fmt.Errorf("%s: not ready after 20 s: %s", name, s.p.tail())
	}
	if s.conn, err = rpc.Dial(ctx, s.p.rpc); err == nil {
		s.old, err = rpc.Dial(ctx, s.p.rpc, rpc.As(wire.R0313))
	}
	if err != nil {
		s.end()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// end closes the connections and kills the master.
func (s *side) end() {
	for _, c := range []*rpc.Client{s.conn, s.old} {
		if c != nil {
			c.Close()
		}
	}
	s.web.CloseIdleConnections()
	s.p.kill()
	if s.policy != "" {
		os.Remove(s.policy)
	}
}

// fetch makes one HTTP request.
func (s *side) fetch(method, path, body string) (status int, text string, err error) {
	req, err := http.NewRequest(method, s.p.http+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := s.web.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// startReference runs a C++ master out of an installed package and waits until it serves.
func startReference(ctx context.Context, path string, flags []string) (*process, error) {
	var last error
	for range 5 { // somebody may take a port before the master does
		p, err := tryReference(ctx, path, flags)
		if err == nil {
			return p, nil
		}
		last = err
	}
	return nil, last
}

func tryReference(ctx context.Context, path string, flags []string) (*process, error) {
	rpcPort, httpPort := freePort(), freePort()
	args := append([]string{
		"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", fmt.Sprint("--rpc_port=", rpcPort), fmt.Sprint("--metrics_port=", httpPort),
		"--enable_metric_reporting=false",
	}, flags...)
	p := &process{
		cmd: exec.CommandContext(ctx, path, args...), done: make(chan struct{}),
		rpc: fmt.Sprint("127.0.0.1:", rpcPort), http: fmt.Sprint("http://127.0.0.1:", httpPort),
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = referenceEnvironment(path)
	p.cmd.Stdout, p.cmd.Stderr = writerFunc(p.note), writerFunc(p.note)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its state says how it ended
	}()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.done:
			return nil, fmt.Errorf("%s ended before it served: %s", path, p.tail())
		default:
		}
		if listening(p.rpc) && listening(strings.TrimPrefix(p.http, "http://")) {
			return p, nil
		}
	}
	p.kill()
	return nil, fmt.Errorf("%s does not serve after 20 s: %s", path, p.tail())
}

// referenceEnvironment is ours without variables that mean something to the C++ master, and
// with the folders of the libraries it needs.
func referenceEnvironment(path string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MC_") && !strings.HasPrefix(v, "MOONCAKE_") && !strings.HasPrefix(v, "LD_LIBRARY_PATH=") {
			env = append(env, v)
		}
	}
	packages := filepath.Dir(filepath.Dir(path))
	folders := []string{filepath.Join(packages, "mooncake"), filepath.Join(packages, "nvidia", "cu13", "lib")}
	if libs, err := filepath.Glob(filepath.Join(packages, "mooncake_transfer_engine*.libs")); err == nil {
		folders = append(folders, libs...)
	}
	// The package lies in RELEASE/lib/python3.11/site-packages, the stand-in for the driver in RELEASE/driver.
	folders = append(folders, filepath.Join(packages, "..", "..", "..", "driver"))
	return append(env, "LD_LIBRARY_PATH="+strings.Join(folders, ":"), "GLOG_logtostderr=1", "GLOG_minloglevel=2", "GLOG_v=0")
}

func listening(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// freePort returns a port nobody listens on, from below the range of the system's own choice.
func freePort() int {
	for {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			l.Close()
			return port
		}
	}
}

// findReference returns the C++ master of a release installed by conformance/install.sh.
func findReference(release string) (string, error) {
	folder := os.Getenv("MOONCAKE_CLIENTS")
	if folder == "" {
		folder = filepath.Join(".cache", "clients")
	}
	found, err := filepath.Glob(filepath.Join(folder, release, "lib", "python3*", "site-packages", "mooncake", "mooncake_master"))
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, fmt.Errorf("no master of release %s in %s: run conformance/install.sh", release, folder))
	}
	return filepath.Abs(found[0])
}
