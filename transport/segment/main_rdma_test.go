//go:build rdma

package segment

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestMain gives the tests of this package software devices of their own: ports go down, and others run at the same time.
// The library has read its environment by now, so the program starts once more.
func TestMain(m *testing.M) {
	dir := os.Getenv("SOFTVERBS_DIR")
	if dir != "" && os.Getenv("SOFTVERBS_OWN") != dir {
		own, err := os.MkdirTemp(dir, "segment-")
		if err == nil {
			os.Setenv("SOFTVERBS_DIR", own)
			os.Setenv("SOFTVERBS_OWN", own)
			err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
