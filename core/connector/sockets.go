package connector

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	socketPrefix = "mooncake-connector-"
	lockName     = "lock"
	// pathMost is the longest folder that leaves room for a socket's name within the system's
	// limit of some hundred bytes.
	pathMost = 40
	// fresh is the age under which a folder without a lock may just be in the making.
	fresh = time.Minute
)

// sockets is the folder in which the processes of one Connector put their sockets. A lock in
// it is held as long as we live, so that the next master knows which folders of masters that
// were killed it can remove.
type sockets struct {
	folder string
	lock   *os.File
}

func newSockets(now time.Time) (*sockets, error) {
	parent := os.TempDir()
	if len(parent) > pathMost {
		parent = "/tmp"
	}
	sweep(parent, now)
	folder, err := os.MkdirTemp(parent, socketPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the connector's socket: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	s := &sockets{folder: folder, lock: lock}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("locking the folder for the connector's socket: %w", err)
	}
	return s, nil
}

func (s *sockets) remove() {
	_ = os.RemoveAll(s.folder)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// sweep removes what masters left that were killed. Whatever is not certainly that stays.
func sweep(parent string, now time.Time) {
	folders, err := filepath.Glob(filepath.Join(parent, socketPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < fresh && !exists(filepath.Join(folder, lockName)) {
			continue
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Geteuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(folder)
		}
		_ = lock.Close()
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
