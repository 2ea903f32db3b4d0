package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one step.
func exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "swap", Old: a, New: b, Err: err}
	}
	return nil
}

// renameNew renames unless the new name exists.
func renameNew(from, to string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// leaseForWriting makes everybody who opens the file wait until it is closed or the system
// loses patience (45 seconds). It needs a file nobody else has open.
func leaseForWriting(f *os.File) bool { return lease(f, unix.F_WRLCK) == nil }

// leaseForReading succeeds only while nobody has the file open for writing; EAGAIN says that
// somebody has. Whoever opens it for writing then waits.
func leaseForReading(f *os.File) error { return lease(f, unix.F_RDLCK) }

// leaseHolds reports whether nobody is waiting for the end of a read lease.
func leaseHolds(f *os.File) bool {
	kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}

func endLease(f *os.File) { _ = lease(f, unix.F_UNLCK) }

func lease(f *os.File, kind int) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind)
	return err
}

// beingWritten reports whether somebody has the file open for writing, as far as the system
// tells.
func beingWritten(f *os.File) bool {
	err := leaseForReading(f)
	if err == nil {
		endLease(f)
	}
	return err == unix.EAGAIN
}
