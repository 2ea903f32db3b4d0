//go:build !linux

package file

import (
	"os"
	"syscall"
)

// Systems without swap and leases: saves compare and rename, see save.go.

func exchange(a, b string) error {
	return &os.LinkError{Op: "swap", Old: a, New: b, Err: syscall.ENOSYS}
}

func renameNew(from, to string) error {
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.ENOSYS}
}

func leaseForWriting(*os.File) bool { return false }

func leaseForReading(*os.File) error { return syscall.ENOSYS }

func leaseHolds(*os.File) bool { return false }

func endLease(*os.File) {}

func writersOf(*os.File) writers { return unknown }
