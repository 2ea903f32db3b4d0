package rpc

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// portable is which way of serving connections the tests are about.
var portable bool

// TestMain runs all tests twice where there are event loops: with them, and with a goroutine
// per connection. Neither may leave descriptors or goroutines behind.
func TestMain(m *testing.M) {
	flag.Parse()
	if given("test.fuzz") != "" {
		os.Exit(m.Run()) // the fuzzing engine keeps goroutines of its own
	}
	code := checked(m)
	if runtime.GOOS == "linux" && code == 0 && given("test.bench") == "" && given("test.list") == "" {
		portable = true
		fmt.Println("once more with a goroutine per connection")
		code = checked(m)
	}
	os.Exit(code)
}

func given(name string) string { return flag.Lookup(name).Value.String() }

// checked runs the tests and looks for what they have left.
func checked(m *testing.M) int {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close() // and the runtime has its own descriptors
	}
	files, goroutines := descriptors(), runtime.NumGoroutine()
	code := m.Run()
	for range 100 {
		// What was closed may take a moment.
		if descriptors() <= files && runtime.NumGoroutine() <= goroutines {
			return code
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	fmt.Printf("%d descriptors before the tests and %d after, %d goroutines and %d:\n%s\n", files, descriptors(),
		goroutines, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	return 1
}

// descriptors is how many sockets and pollers the process has open, or 0 where that is not
// known.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range open {
		to, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil && (strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "anon_inode:")) {
			n++
		}
	}
	return n
}
