package file

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestMain fails when goroutines or descriptors are left over.
func TestMain(m *testing.M) {
	before := descriptors()
	code := m.Run()
	for deadline := 100; code == 0 && (runtime.NumGoroutine() > 1 || descriptors() > before); deadline-- {
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over: %d descriptors more, goroutines:\n%s\n", descriptors()-before, stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(code)
}

// descriptors counts those that are files, pipes or sockets; the runtime's own come and go.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to[0] == '/' && to != "/dev/null" {
			n++
		}
	}
	return n
}
