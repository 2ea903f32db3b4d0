//go:build !linux

package rdma

import "unsafe"

// nodeAt returns the NUMA node of the page at an address, -1 if it can't be told.
func nodeAt(unsafe.Pointer) int { return -1 }

// wishLargePages asks for large pages, where they make sense.
func wishLargePages([]byte) {}
