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

// writersOf tells whether somebody has the file open for writing, as far as the system does.
func writersOf(f *os.File) writers {
	var system unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &system) == nil && remote[int64(uint32(system.Type))] {
		return unknown // others may write to it on other machines, and leases mean something else
	}
	switch leaseForReading(f) {
	case nil:
		endLease(f)
		return nobody
	case unix.EAGAIN:
		return somebody
	}
	return unknown // it is not ours, say
}

// remote are file systems whose files others may have open elsewhere.
var remote = map[int64]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true,
	unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.AFS_SUPER_MAGIC: true, unix.OCFS2_SUPER_MAGIC: true,
}
