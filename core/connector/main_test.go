package connector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/plugins/file"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// printed runs before main, as any package's initialisation might.
var _ = func() int {
	if len(os.Args) == 4 && os.Args[3] == "noisy" {
		fmt.Println("printed by init")
	}
	return 0
}()

// TestMain is three programs: the tests; the connectors that the tests start, by the same
// arguments a master gives; and a host to be killed. After the tests nothing may be left:
// no child process, no goroutine, no descriptor, no folder of sockets.
func TestMain(m *testing.M) {
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "connector" && args[1] == "serve" && args[2] == "file":
		sdk.Serve(file.New(sdk.Logger()))
	case len(args) == 3 && args[2] == "noisy":
		fmt.Println("printed by main")
		os.Stdout.WriteString("written by main\n")
		go func() {
			for range 100 {
				fmt.Println("printed later")
				time.Sleep(time.Millisecond)
			}
		}()
		sdk.Serve(file.New(sdk.Logger()))
	case len(args) == 2 && args[0] == "host":
		hostUntilKilled(Spec{Type: "file", URI: args[1], Stock: []string{"file"}})
	case len(args) == 3 && args[0] == "host":
		hostUntilKilled(Spec{Type: "parent", URI: args[1], Dir: args[2]})
	case len(args) == 2 && args[0] == "person":
		personUntilKilled(args[1])
	case len(args) == 1 && args[0] == "guard":
		Guard(os.Stdin)
		os.Exit(0)
	case len(args) == 0 && strings.HasPrefix(filepath.Base(os.Args[0]), "mooncake-connector-"):
		serveAs(strings.TrimPrefix(filepath.Base(os.Args[0]), "mooncake-connector-"))
	}
	tmp, err := os.MkdirTemp("", "c")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		panic(err)
	}
	before := descriptors()
	code := m.Run()
	for deadline := 250; code == 0; deadline-- {
		left := leftover(tmp, before)
		if left == "" {
			break
		}
		if deadline == 0 {
			fmt.Println(left)
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(tmp)
	os.Exit(code)
}

func leftover(tmp string, descriptorsBefore int) string {
	if kids := children(os.Getpid()); len(kids) > 0 {
		return fmt.Sprintf("left over: child processes %v", kids)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, socketPrefix+"*")); len(left) > 0 {
		return fmt.Sprintf("left over: %v", left)
	}
	if now := descriptors(); now > descriptorsBefore {
		return fmt.Sprintf("left over: %d descriptors", now-descriptorsBefore)
	}
	if runtime.NumGoroutine() > 1 {
		stacks := make([]byte, 1<<20)
		return fmt.Sprintf("left over: goroutines:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return ""
}

// descriptors counts files, pipes and sockets.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:") || to[0] == '/' && to != "/dev/null") {
			n++
		}
	}
	return n
}

// children lists the processes whose parent is pid.
func children(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var kids []int
	for _, e := range entries {
		kid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// After the name in parentheses: state, parent.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			kids = append(kids, kid)
		}
	}
	return kids
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// stopped reports whether no thread of a process runs after a SIGSTOP, which takes a moment.
func stopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range stats {
		stat, _ := os.ReadFile(name)
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) == 0 || fields[0] != "T" {
			return false
		}
	}
	return err == nil && len(stats) > 0
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

type random struct{}

func (random) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// hostUntilKilled starts a connector on a file, prints its process id, and waits.
func hostUntilKilled(spec Spec) {
	c, err := Start(context.Background(), spec,
		Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger(), Guard: OwnCommand("guard")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for c.pid() == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(c.pid())
	time.Sleep(time.Minute)
	os.Exit(1)
}

// personUntilKilled runs an executable as a person does, prints its process id, and waits.
func personUntilKilled(path string) {
	o, err := Open(context.Background(), path, Spec{},
		Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger(), Guard: OwnCommand("guard")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(o.About().PID)
	time.Sleep(time.Minute)
	os.Exit(1)
}

// pid is the process that is running, 0 for none.
func (c *Connector) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return 0
	}
	return int(c.current.proc.pid.Load())
}

// logged is a log to look into.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func deps(log *logged) Deps {
	return Deps{
		Clock: wall{}, Rand: random{},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: log}),
		Timing: Timing{Retry: 20 * time.Millisecond, RetryReady: 50 * time.Millisecond},
	}
}

// started starts the file connector on a path; it ends with the test.
func started(t *testing.T, path string, log *logged) *Connector {
	t.Helper()
	c, err := Start(t.Context(), Spec{Type: "file", URI: path, Stock: []string{"file"}}, deps(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to signal: %d", pid)
	}
	if err := syscall.Kill(pid, signal); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var _ policy.Clock = wall{}
