package connector

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/policy"
)

func TestContract(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	var log logged
	c := started(t, path, &log)
	ctx := t.Context()
	var gone *policy.Unavailable
	if _, err := c.Load(ctx); !errors.As(err, &gone) || gone.Kind != policy.Absent || c.Status().AbsentIsEmpty {
		t.Errorf("no file: %v, %+v", err, c.Status())
	}
	rev, err := c.Save(ctx, []byte("one"), "")
	if err != nil || mustRead(t, path) != "one" {
		t.Fatalf("create: %v", err)
	}
	doc, err := c.Load(ctx)
	if err != nil || string(doc.Content) != "one" || doc.Revision != rev {
		t.Fatalf("load: %+v, %v", doc, err)
	}
	if _, err := c.Save(ctx, []byte("two"), "other"); !errors.Is(err, policy.ErrConflict) {
		t.Errorf("conflict: %v", err)
	}
	// A document at the limit passes in both directions.
	large := make([]byte, 64<<20)
	for i := range large {
		large[i] = byte(i * 7)
	}
	if rev, err = c.Save(ctx, large, rev); err != nil {
		t.Fatalf("64 MiB: %v", err)
	}
	if doc, err = c.Load(ctx); err != nil || len(doc.Content) != len(large) || doc.Revision != rev {
		t.Fatalf("64 MiB back: %d bytes, %v", len(doc.Content), err)
	}
	if _, err := c.Save(ctx, append(large, 0), rev); !errors.As(err, &gone) || gone.Kind != policy.Invalid {
		t.Errorf("more than 64 MiB: %v", err)
	}

	watch, cancel := context.WithCancel(ctx)
	events := make(chan policy.Event, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(watch, func(e policy.Event) { events <- e })
	}()
	await := func(want string) {
		t.Helper()
		limit := time.After(10 * time.Second)
		for {
			select {
			case e := <-events:
				if e.Document != nil && string(e.Document.Content) == want || e.Unavailable != nil && string(e.Unavailable.Kind) == want {
					return
				}
			case <-limit:
				t.Fatalf("no event %q", want)
			}
		}
	}
	write(t, path, "three")
	await("three")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await("absent")
	write(t, path, "four")
	await("four")
	cancel()
	<-ended
	if s := c.Status(); s.State != policy.Ready || s.Type != "file" || s.Origin != "--tenant_quota_connector_uri="+path || s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(log.String(), "connector is ready: connector=file name=file") {
		t.Errorf("log:\n%s", log.String())
	}
	c.Close()
	if s := c.Status(); s.State != policy.Stopped {
		t.Errorf("closed: %+v", s)
	}
	if _, err := c.Load(ctx); !errors.As(err, &gone) {
		t.Errorf("load after close: %v", err)
	}
}

func TestMutualTLS(t *testing.T) {
	config, trust, err := certificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(trust)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() || config.MinVersion != tls.VersionTLS12 || string(config.Certificates[0].Certificate[0]) != string(block.Bytes) {
		t.Errorf("%T %v", cert.PublicKey, config.MinVersion)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	var log logged
	c := started(t, path, &log)
	found, err := filepath.Glob(filepath.Join(c.sockets.folder, "*", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("sockets %v, %v", found, err)
	}
	strangers, _, err := certificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, certs := range map[string][]tls.Certificate{"no certificate": nil, "a stranger's": strangers.Certificates} {
		conn, err := tls.Dial("unix", found[0], &tls.Config{Certificates: certs, InsecureSkipVerify: true})
		if err == nil {
			// With TLS 1.3 the refusal comes with the first read.
			if _, err = conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				err = nil
			}
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain, err := net.Dial("unix", found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(plain)
	if len(answer) > 7 { // at most a TLS alert
		t.Errorf("without TLS: answered %q", answer)
	}
}

// TestNoise starts a connector whose author prints at every opportunity.
func TestNoise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	var log logged
	c, err := Start(t.Context(), Spec{Type: "noisy", URI: path, Stock: []string{"noisy"}}, deps(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != "one" {
		t.Errorf("%q, %v", doc.Content, err)
	}
	for _, want := range []string{"printed by init: connector=noisy", "printed by main: connector=noisy", "written by main: connector=noisy", "printed later: connector=noisy"} {
		eventually(t, want, func() bool { return strings.Contains(log.String(), want) })
	}
}

// TestRunByHand runs the connector as a person would.
func TestRunByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "connector", "serve", "file")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(string(out), `This is the tenant-quota connector "file", version `) ||
		!strings.Contains(string(out), "--tenant_quota_connector_type=file") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestKilled kills the process many times while a watcher and a caller go on.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "version 0")
	var log logged
	c := started(t, path, &log)
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(ctx, func(e policy.Event) {
			if e.Document != nil {
				events <- string(e.Document.Content)
			}
		})
	}()
	last := 0
	for i := 1; i <= 20; i++ {
		eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
		pid := c.pid()
		kill(t, pid, syscall.SIGKILL)
		text := fmt.Sprintf("version %d", i)
		write(t, path, text)
		eventually(t, "another process", func() bool { now := c.pid(); return now != 0 && now != pid })
		if alive(pid) {
			t.Fatalf("%d lives", pid)
		}
		if got := <-events; got != text {
			for got != text {
				got = <-events
			}
		}
		doc, err := c.Load(ctx)
		for errors.Is(err, policy.ErrInterrupted) {
			doc, err = c.Load(ctx)
		}
		if err != nil || string(doc.Content) != text {
			t.Fatalf("%q, %v", doc.Content, err)
		}
		last = pid
	}
	eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
	cancel()
	<-ended
	s := c.Status()
	if s.Restarts < 20 || !strings.Contains(s.LastError, "it died: signal: killed") || last == 0 {
		t.Errorf("%+v", s)
	}
	if kids := children(os.Getpid()); len(kids) != 1 {
		t.Errorf("children: %v", kids)
	}
}

func TestSilence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	var log logged
	d := deps(&log)
	d.Timing.Silence, d.Timing.Stop, d.Timing.Call = 4*time.Second, 100*time.Millisecond, 300*time.Millisecond
	c, err := Start(t.Context(), Spec{Type: "file", URI: path, Stock: []string{"file"}}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
	pid := c.pid()
	kill(t, pid, syscall.SIGSTOP)
	eventually(t, "all of its threads stand still", func() bool { return stopped(pid) })
	var gone *policy.Unavailable
	if _, err := c.Load(t.Context()); !errors.As(err, &gone) || gone.Reason != "the connector does not answer" {
		t.Errorf("load: %v", err)
	}
	if _, err := c.Save(t.Context(), []byte("two"), ""); !errors.Is(err, policy.ErrInterrupted) {
		t.Errorf("save: %v", err)
	}
	eventually(t, "another process", func() bool { now := c.pid(); return now != 0 && now != pid })
	if alive(pid) {
		t.Errorf("%d lives", pid)
	}
	if s := c.Status(); s.LastError != "it was silent for 4s" {
		t.Errorf("%+v", s)
	}
}

func TestHostKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	host := exec.Command(os.Args[0], "host", path)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("%q: %v", line, err)
	}
	kill(t, host.Process.Pid, syscall.SIGKILL)
	_ = host.Wait() // killed, as it should be
	eventually(t, "the connector is gone", func() bool { return !alive(pid) })
	// Its folder of sockets is removed by the next master.
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), socketPrefix+"*"))
	if len(left) != 1 {
		t.Errorf("folders left by the killed host: %v", left)
	}
	var log logged
	c := started(t, path, &log)
	if left, _ = filepath.Glob(filepath.Join(os.TempDir(), socketPrefix+"*")); len(left) != 1 || left[0] != c.sockets.folder {
		t.Errorf("folders: %v", left)
	}
}

// script makes a connector out of shell lines and returns its folder.
func script(t *testing.T, lines string) string {
	t.Helper()
	return content(t, "#!/bin/sh\n"+lines+"\n")
}

// content makes an executable out of anything and returns its folder.
func content(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mooncake-connector-test"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStartErrors(t *testing.T) {
	plain := t.TempDir()
	write(t, filepath.Join(plain, "mooncake-connector-test"), "no program")
	stock := []string{"file"}
	prefix := "--tenant_quota_connector_type=test --tenant_quota_connector_uri=x: tenant quota connector PROGRAM: "
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{
			"no URI",
			Spec{Type: "file", Stock: stock},
			"--tenant_quota_connector_type=file --tenant_quota_connector_uri=: tenant quota connector: it refuses its configuration: uri: tenant quota file connector requires a non-empty uri: the path of the policy file",
		},
		{
			"unknown type",
			Spec{Type: "zoo", Stock: stock},
			"--tenant_quota_connector_type=zoo: unsupported tenant quota connector type 'zoo': the master serves [file] itself; for others set --tenant_quota_connector_dir to the folder of mooncake-connector-zoo",
		},
		{"path as type", Spec{Type: "../zoo", Dir: plain}, "--tenant_quota_connector_type=../zoo: unsupported tenant quota connector type '../zoo': not a plain name"},
		{
			"no such program",
			Spec{Type: "none", Dir: plain},
			"--tenant_quota_connector_dir=" + plain + ": unsupported tenant quota connector type 'none': there is no " + plain + "/mooncake-connector-none; the folder has test",
		},
		{
			"not executable",
			Spec{Type: "test", Dir: plain},
			"--tenant_quota_connector_dir=" + plain + ": unsupported tenant quota connector type 'test': " + plain + "/mooncake-connector-test is not an executable file",
		},
		{
			"banner",
			Spec{Type: "test", URI: "x", Dir: script(t, `echo "Welcome to my connector"; sleep 5`)},
			prefix + `it did not start: Unrecognized remote plugin message: Welcome to my connector; it printed "Welcome to my connector\n": plugins must not write to stdout`,
		},
		{
			"dies with words",
			Spec{Type: "test", URI: "x", Dir: script(t, `echo first >&2; echo '{"@level":"error","@message":"no licence","path":"/x"}' >&2; exit 3`)},
			prefix + `it did not start: it ended before it printed its handshake line; its last lines: first; no licence path /x`,
		},
		{"hangs", Spec{Type: "test", URI: "x", Dir: script(t, `sleep 100`)}, prefix + "it did not start: it printed no handshake line within 1s; --tenant_quota_connector_start_timeout=3s gives it more time"},
		{
			"no interpreter",
			Spec{Type: "test", URI: "x", Dir: content(t, "#!/nonexistent/python\n")},
			prefix + "it did not start: the file is there, but not the interpreter that its first line names, or the loader it was linked for",
		},
		{
			"no program",
			Spec{Type: "test", URI: "x", Dir: content(t, "hello")},
			prefix + "it did not start: it is no program for this machine, nor a script whose first line is #! and its interpreter",
		},
		{
			"wrong protocol",
			Spec{Type: "test", URI: "x", Dir: script(t, `echo "1|7|unix|/tmp/x|grpc|"; sleep 100`)},
			prefix + "it speaks connector protocol 7, this master (version 9.9) speaks 1: install a newer version of the master, or an older one of the connector",
		},
		{
			"net/rpc",
			Spec{Type: "test", URI: "x", Dir: script(t, `echo "1|1|unix|/tmp/x|netrpc|"; sleep 100`)},
			prefix + `it did not start: unsupported plugin protocol "netrpc". Supported: [grpc]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger(), Timing: Timing{Start: time.Second}, Version: "9.9"}
			c, err := Start(t.Context(), tt.spec, d)
			if err == nil {
				c.Close()
				t.Fatal("it started")
			}
			want := strings.ReplaceAll(tt.want, "PROGRAM", tt.spec.Dir+"/mooncake-connector-test")
			if err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
			if kids := children(os.Getpid()); len(kids) > 0 {
				t.Errorf("children %v", kids)
			}
		})
	}
}

// TestProcessSurroundings looks at what a process is given, and that its children die with it.
func TestProcessSurroundings(t *testing.T) {
	t.Setenv("MASTER_SECRET", "hunter2")
	dir := script(t, `env > "$0.env"; cat > "$0.in"; sleep 1000 & echo $! > "$0.pid"; echo ready >&2; sleep 1000`)
	program := filepath.Join(dir, "mooncake-connector-test")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 1000 {
			if b, err := os.ReadFile(program + ".pid"); err == nil && len(b) > 1 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	d := Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger(), Env: []string{"ALLOWED=yes"}}
	if _, err := Start(ctx, Spec{Type: "test", Dir: dir}, d); err == nil {
		t.Fatal("it started")
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(mustRead(t, program+".pid")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child's child is gone", func() bool { return !alive(grandchild) })
	env := mustRead(t, program+".env")
	for _, want := range []string{
		"MOONCAKE_CONNECTOR_PLUGIN=policy-connector-v1", "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=",
		"PLUGIN_CLIENT_CERT=-----BEGIN CERTIFICATE-----", fmt.Sprintf("MOONCAKE_CONNECTOR_HOST_PID=%d", os.Getpid()), "ALLOWED=yes", "PATH=",
	} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s in:\n%s", want, env)
		}
	}
	if strings.Contains(env, "SECRET") || mustRead(t, program+".in") != "" {
		t.Errorf("more than it should have:\n%s", env)
	}
}

func TestPause(t *testing.T) {
	for _, draw := range []float64{0, 0.5, 0.999} {
		c := &Connector{deps: Deps{Rand: fixed(draw), Timing: Timing{}.withDefaults()}}
		if got := c.pause(1, true); got >= 100*time.Millisecond {
			t.Errorf("first restart after %s", got)
		}
		for deaths, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: 1600 * time.Millisecond, 10: 30 * time.Second, 1 << 40: 30 * time.Second} {
			if got := c.pause(deaths, false); got < most/2 || got > most {
				t.Errorf("failed start %d: %s, want up to %s", deaths, got, most)
			}
		}
		if got := c.pause(50, true); got < 250*time.Millisecond || got > 500*time.Millisecond {
			t.Errorf("dying again and again: %s", got)
		}
	}
}

type fixed float64

func (f fixed) Uint64N(n uint64) uint64 { return uint64(float64(f) * float64(n)) }

func TestParseLine(t *testing.T) {
	tests := []struct {
		text, message string
		level         hclog.Level
		args          string
	}{
		{"plain words", "plain words", hclog.Info, "[]"},
		{"panic: oh", "panic: oh", hclog.Error, "[]"},
		{`{"@level":"warn","@message":"m","@timestamp":"x","b":1,"a":"y"}`, "m", hclog.Warn, "[a y b 1]"},
		{`{"@level":"loud","@message":"m"}`, "m", hclog.Info, "[]"},
		{`{"no":"log line"`, `{"no":"log line"`, hclog.Info, "[]"},
		{strings.Repeat("x", 5000), strings.Repeat("x", 4096) + "...", hclog.Info, "[]"},
	}
	for _, tt := range tests {
		level, message, args := parseLine(tt.text)
		if level != tt.level || message != tt.message || fmt.Sprint(args) != tt.args {
			t.Errorf("%q: %v %q %v", tt.text, level, message, args)
		}
	}
}
