// Package verbstest gives tests RDMA devices that are software, as conformance/verbs.sh provides them.
package verbstest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// Main runs the tests of a package with software devices of its own: ports go down, and others run at the same time.
// The library has read its environment by now, so the program starts once more. Without devices the tests just run.
func Main(m *testing.M, name string) {
	dir := os.Getenv("SOFTVERBS_DIR")
	if dir != "" && os.Getenv("SOFTVERBS_OWN") != dir {
		own, err := os.MkdirTemp(dir, name+"-")
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
