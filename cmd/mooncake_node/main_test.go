package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// asProgram makes the test binary one of the programs that the tests run as processes.
const asProgram = "MOONCAKE_NODE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "node":
		main()
	case "master":
		os.Exit(app.Main(context.Background(), os.Args[1:], app.System("test"), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is one program that runs.
type process struct {
	cmd    *exec.Cmd
	lines  chan string // of stdout
	stderr *bytes.Buffer
	wait   func() error
}

// spawn starts a program. What is left of it at the end of the test is killed.
func spawn(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 16), stderr: new(bytes.Buffer)}
	p.cmd.Env = append(os.Environ(), asProgram+"="+program)
	p.cmd.Stderr = p.stderr // read after wait only
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	p.wait = sync.OnceValue(func() error { <-read; return p.cmd.Wait() })
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.wait()
		if t.Failed() {
			t.Logf("%s: %s", program, p.stderr)
		}
	})
	return p
}

// serving waits for the line that says so and returns what it says.
func (p *process) serving(t *testing.T) string {
	t.Helper()
	for end := time.After(60 * time.Second); ; {
		select {
		case line, ok := <-p.lines:
			if _, rest, found := strings.Cut(line, "is serving: "); found {
				return rest
			}
			if !ok {
				t.Fatalf("it ends: %v: %s", p.wait(), p.stderr)
			}
		case <-end:
			t.Fatal("it does not serve")
		}
	}
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end, which must be a good one.
func (p *process) ends(t *testing.T) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%v: %s", err, p.stderr)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// pool is a master and how nodes and clients find it and each other.
type pool struct {
	rpc, admin, store string
	master            *process
}

// newPool starts a master; a second one is made at the same addresses.
func newPool(t *testing.T, at *pool) *pool {
	t.Helper()
	if at == nil {
		at = &pool{rpc: freePort(t), admin: freePort(t), store: freePort(t)}
	}
	p := *at
	p.master = spawn(t, "master", "--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--http_metadata_server_host=127.0.0.1",
		"--enable_http_metadata_server", "--default_kv_lease_ttl=2000",
		"--client_active_ttl_sec=5", "--client_suspicion_ttl_sec=1", "--rpc_port="+p.rpc, "--metrics_port="+p.admin, "--http_metadata_server_port="+p.store)
	p.master.serving(t)
	return &p
}

func (p *pool) metadata() string { return "http://127.0.0.1:" + p.store + "/metadata" }

// node starts a node and waits until its memory is lent.
func (p *pool) node(t *testing.T, name, metadata string, args ...string) *process {
	t.Helper()
	n := spawn(t, "node", append([]string{
		"--master=127.0.0.1:" + p.rpc, "--master_admin_address=127.0.0.1:" + p.admin, "--metadata_server=" + metadata,
		"--local_hostname=" + name, "--bind_address=127.0.0.1", "--global_segment_size=32 MB",
	}, args...)...)
	if got := n.serving(t); !strings.HasPrefix(got, "segment "+name+" endpoint 127.0.0.1:") {
		t.Errorf("it says %q", got)
	}
	return n
}

func (p *pool) client(t *testing.T, metadata string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Master: "127.0.0.1:" + p.rpc, Metadata: metadata, Tenant: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustHold(t *testing.T, c *client.Client, key, want string) {
	t.Helper()
	if got, err := c.Get(t.Context(), key); err != nil || string(got) != want {
		t.Errorf("%s: %.40q, %v", key, got, err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// TestALife of nodes: values go in, one node leaves, the other is killed and comes back, and so does the master.
func TestALife(t *testing.T) {
	for _, p2p := range []bool{true, false} {
		t.Run(fmt.Sprint("p2p=", p2p), func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, nil)
			metadata := segment.P2P
			if !p2p {
				metadata = pool.metadata()
			}
			first, second := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
			a := pool.node(t, first, metadata)
			c := pool.client(t, metadata)
			text := strings.Repeat("mooncake", 100_000)
			for i := range 8 {
				if err := c.Put(t.Context(), fmt.Sprint("k", i), []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			b := pool.node(t, second, metadata)
			a.signal(t, syscall.SIGTERM)
			a.ends(t)
			for i := range 8 {
				mustHold(t, c, fmt.Sprint("k", i), text)
			}

			// The node that is left is killed. One of its name comes back, and takes values.
			b.signal(t, syscall.SIGKILL)
			b.wait()
			third := second
			if p2p {
				third = "127.0.0.1:" + freePort(t) // the master would have to wait for the other one
			}
			d := pool.node(t, third, metadata, "--drain_timeout=0", "--name_timeout=2m")
			put(t, c, "again", text)
			mustHold(t, c, "again", text)

			// The master comes back without a memory of anything.
			pool.master.signal(t, syscall.SIGKILL)
			pool.master.wait()
			newPool(t, pool)
			put(t, c, "anew", text)
			mustHold(t, c, "anew", text)
			d.signal(t, syscall.SIGTERM)
			d.ends(t)
		})
	}
}

// put puts as soon as there is room.
func put(t *testing.T, c *client.Client, key, text string) {
	t.Helper()
	eventually(t, "there is room for "+key, func() bool { return c.Put(t.Context(), key, []byte(text)) == nil })
}

// TestSecondSignal ends a drain that can't end.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	pool := newPool(t, nil)
	a := pool.node(t, "127.0.0.1:"+freePort(t), segment.P2P)
	c := pool.client(t, segment.P2P)
	if err := c.Put(t.Context(), "pinned", []byte("x"), client.HardPin); err != nil {
		t.Fatal(err)
	}
	pool.node(t, "127.0.0.1:"+freePort(t), segment.P2P)
	a.signal(t, syscall.SIGTERM)
	eventually(t, "the drain has begun", func() bool { // and new values go to the other node
		key := fmt.Sprint(time.Now().UnixNano())
		if err := c.Put(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
		s, err := c.Stat(t.Context(), "pinned")
		if err != nil {
			t.Fatal(err)
		}
		at, err := c.Stat(t.Context(), key)
		return err == nil && at.Replicas[0].Location.Memory.Buffer.Endpoint != s.Replicas[0].Location.Memory.Buffer.Endpoint
	})
	a.signal(t, syscall.SIGTERM)
	a.ends(t)
	if there, err := c.Exists(t.Context(), "pinned"); there || err != nil {
		t.Errorf("what was on a node that has left at once is still there: %v, %v", there, err)
	}
}

func TestCommandLines(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	for line, want := range map[string]string{
		"--nope":                     "-nope",
		"word":                       `the argument "word" means nothing`,
		"--global_segment_size=4GiB": "like 4GB",
		"--global_segment_size=0":    "like 4GB",
		"--global_segment_size=1152921504606846976 --max_segment_size=1152921504606846976": "--global_segment_size=1048576TB: there is no memory to lend",
		"--protocol=udp":                                    "want tcp or rdma",
		"--device_names=mlx5_0":                             "--device_names=mlx5_0",
		"--huge_pages=3MB":                                  "it must be 2MB, 1GB",
		"--protocol=rdma --device_names=none0":              "--protocol=rdma",
		"--metrics_port=70000":                              "--metrics_port=70000",
		"--metrics_host=127.0.0.1 --metrics_port=" + port:   "choose a free port, or 0 for none",
		"--metrics_host=203.0.113.7 --metrics_port=" + port: "--metrics_host=203.0.113.7",
		"--task_concurrency=0":                              "--task_concurrency=0",
		"--max_transfer_mem=1KB":                            "--max_transfer_mem=1KB: want at least 512KB",
		"--max_segment_size=1KB":                            "--max_segment_size=1KB: --global_segment_size=4GB would be more than 1024 segments",
		"--drain_timeout=soon":                              "flag -drain_timeout: parse error: a time is written 30s",
		"--drain_timeout=-1s":                               "want 0 or more",
		"--master=here":                                     `--master_server_address: "here": want host:port`,
		"--metadata_server=ftp://x":                         `--metadata_server: metadata address "ftp://x"`,
		"--local_hostname=me":                               `--local_hostname: "me": want host:port`,
		"--tcp_proto_version=3":                             "want 1 or 2",
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), nil, append(strings.Fields(line), "--v=0"), func(string) string { return "" }, &stdout, &stderr)
		if text := stderr.String(); code != 1 || !strings.HasPrefix(text, "ERROR: ") || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %q", line, code, text, want)
		}
	}
	for line, want := range map[string]string{"--help": "--global_segment_size", "--version": "mooncake_node version "} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), nil, strings.Fields(line), os.Getenv, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), want) || stderr.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q", line, code, stdout.String(), stderr.String())
		}
	}
}
