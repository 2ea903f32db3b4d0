package rdma

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// nodeAt returns the NUMA node of the page at an address, -1 if it can't be told.
func nodeAt(at unsafe.Pointer) int {
	const byAddress = 1 | 2 // MPOL_F_NODE, MPOL_F_ADDR
	var node int32
	_, _, e := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&node)), 0, 0, uintptr(at), byAddress, 0)
	if e != 0 {
		return -1
	}
	return int(node)
}

// wishLargePages asks for large pages, where they make sense. Not every system grants them.
func wishLargePages(b []byte) {
	if len(b) >= 2<<20 {
		unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
}
