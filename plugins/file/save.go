package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// How a save goes, and why nothing somebody else wrote is lost:
//
//  1. The new document is written to a file of ours beside the old one, with its mode and
//     owner, and synced. A write lease on it makes everybody who opens it wait.
//  2. The two files swap names in one step. From now on everybody who opens the policy waits
//     for us; whoever was writing into the old file still has it, under our name.
//  3. What came out is looked at: is it, byte for byte, what the edit was based on, and has
//     nobody got it open for writing? A read lease tells the second. Then it is removed, the
//     write lease is given up, and readers go on with the new document.
//  4. Otherwise somebody was faster. Our file, still unseen by anybody, is filled with what came
//     out and becomes the policy: those who wait read their own version. The save ends in a
//     conflict, and the master does its change again on what is there. Swapping back instead
//     would for a moment show an old version to somebody who has just saved a newer one.
//  5. Only when a writer does not end, or there are no leases, the names are swapped back, and
//     the same look is taken at what comes out, until the newest version is in place.
//
// The process may be killed between any two steps: the name of our file says what is being
// done, so that the next process finishes the work (recover.go).
//
// Where the file system can't swap (EINVAL), the file is compared once more and replaced by a
// plain rename: a write in the microseconds between is lost. Where it has no leases, what came
// out is looked at a second time after 50 ms instead.

const (
	// busyStep and busySteps bound how long a save waits for a writer to finish.
	busyStep  = 5 * time.Millisecond
	busySteps = 200
	// gap is the time between an open and its effect on leases that we allow for.
	gap = 3 * time.Millisecond
	// unleased is how long we wait before the second look where there are no leases.
	unleased = 50 * time.Millisecond
	// rounds bounds how often names are swapped back and forth.
	rounds = 16
)

// Save implements sdk.Connector: a link is followed, the file it leads to is replaced.
func (c *Connector) Save(ctx context.Context, document []byte, expected string) (string, error) {
	path, _, _ := c.config()
	if len(document) > sdk.MaxDocument {
		return "", &sdk.Unavailable{Kind: sdk.Invalid, Reason: fmt.Sprintf("the document has %d bytes, at most %d can be kept", len(document), sdk.MaxDocument)}
	}
	c.io.Lock()
	defer c.io.Unlock()
	t, err := follow(path)
	if err != nil {
		return "", unavailable(path, err)
	}
	s := &save{c: c, target: t.target(), document: document}
	unlock, err := lockFolder(ctx, filepath.Dir(s.target))
	if err != nil {
		return "", s.failed("locking the folder", err)
	}
	defer unlock()
	old, err := read(ctx, s.target, settleSave, func(f content) bool { return f.same && f.writers != somebody })
	var why *sdk.Unavailable
	if errors.As(err, &why) {
		if why.Kind != sdk.Absent {
			return "", err
		}
		if expected != "" {
			return "", fmt.Errorf("%w: the file is gone", sdk.ErrConflict)
		}
		return s.create()
	}
	if revision(old.content) != expected {
		return "", fmt.Errorf("%w: %.12s, not %.12s", sdk.ErrConflict, revision(old.content), expected)
	}
	return s.replace(old)
}

// save is one attempt.
type save struct {
	c        *Connector
	target   string // absolute, no link
	document []byte
	ours     string   // name of our file, which holds something else after a swap
	file     *os.File // our file, whatever its name
	leased   bool     // file has a write lease
}

// failed makes an error of the file system the contract's.
func (s *save) failed(doing string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %s: %v", sdk.ErrReadOnly, doing, err)
	}
	return &sdk.Unavailable{Kind: sdk.Unreachable, Reason: fmt.Sprintf("saving '%s': %s: %v", s.target, doing, err)}
}

// prepare writes our file completely and durably. A name that says it is complete is given
// last.
func (s *save) prepare(old *content) error {
	f, err := os.CreateTemp(filepath.Dir(s.target), draftPattern(s.target))
	if err != nil {
		return s.failed("making a temporary file", err)
	}
	s.file, s.ours = f, f.Name()
	if _, err := f.Write(s.document); err != nil {
		return s.failed("writing", err)
	}
	mode, before := fs.FileMode(0o644), "-"
	if old != nil {
		mode, before = old.info.Mode().Perm(), revision(old.content)
		s.leased = leaseForWriting(f)
		s.keepOwner(old.info)
	}
	if err := f.Chmod(mode); err != nil {
		return s.failed("setting the mode", err)
	}
	if err := f.Sync(); err != nil {
		return s.failed("syncing", err)
	}
	complete := completeName(f.Name(), s.target, before, revision(s.document))
	if err := os.Rename(s.ours, complete); err != nil {
		return s.failed("renaming the temporary file", err)
	}
	s.ours = complete
	return nil
}

// keepOwner gives our file the owner and group of the old one. Without the right to, it stays
// ours: the content matters more.
func (s *save) keepOwner(old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := s.file.Stat()
	if err != nil {
		return
	}
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid == was.Uid && is.Gid == was.Gid {
		return
	}
	if err := s.file.Chown(int(was.Uid), int(was.Gid)); err != nil {
		s.c.logger.Warn("the saved policy file has another owner than before", "file", s.target, "error", err)
	}
}

// discard closes our file and removes its name.
func (s *save) discard() {
	s.close()
	if s.ours != "" {
		_ = os.Remove(s.ours) // after a success nothing has this name any more
	}
}

// create puts the document where no file is.
func (s *save) create() (string, error) {
	defer s.discard()
	if err := s.prepare(nil); err != nil {
		return "", err
	}
	err := renameNew(s.ours, s.target)
	if unsupported(err) {
		err = os.Link(s.ours, s.target)
	}
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w: the file is back", sdk.ErrConflict)
	}
	if err != nil {
		return "", s.failed("creating", err)
	}
	return s.done()
}

// replace puts the document in the place of a file that was read as old.
func (s *save) replace(old content) (string, error) {
	swapped := false
	defer func() {
		if swapped {
			s.close() // what has the name of ours now is not ours to remove
		} else {
			s.discard()
		}
	}()
	if err := s.prepare(&old); err != nil {
		return "", err
	}
	err := exchange(s.ours, s.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: the file is gone", sdk.ErrConflict)
	case unsupported(err):
		return s.rename(old)
	case err != nil:
		return "", s.failed("swapping files", err)
	}
	// From here on the name of our file holds what came out.
	swapped = true
	state, now := s.examine(old.content)
	if state == untouched {
		if err := os.Remove(s.ours); err != nil {
			s.c.logger.Warn("the former policy file stays behind", "file", s.ours, "error", err)
		}
		return s.done()
	}
	if state == touched && s.leased {
		err = s.giveWay(now)
	} else {
		err = s.restore(now)
	}
	if err != nil {
		return "", s.failed("restoring what another writer saved", err)
	}
	return "", fmt.Errorf("%w: somebody wrote to the file meanwhile", sdk.ErrConflict)
}

// rename replaces without a swap, for file systems that have none.
func (s *save) rename(old content) (string, error) {
	now, err := os.ReadFile(s.target)
	if err != nil || !bytes.Equal(now, old.content) {
		return "", fmt.Errorf("%w: somebody wrote to the file meanwhile", sdk.ErrConflict)
	}
	if err := os.Rename(s.ours, s.target); err != nil {
		return "", s.failed("renaming", err)
	}
	return s.done()
}

// done makes the new name durable. A folder that can't be synced is only worth a warning: the
// document is in force and on disk.
func (s *save) done() (string, error) {
	s.close()
	if err := syncFolder(filepath.Dir(s.target)); err != nil {
		s.c.logger.Warn("the folder of the policy file can't be synced", "file", s.target, "error", err)
	}
	return revision(s.document), nil
}

// giveWay makes our file, which nobody could open yet, say what came out, and removes that.
func (s *save) giveWay(now []byte) error {
	info, err := os.Lstat(s.ours)
	if err != nil {
		return err
	}
	inPlace, err := s.file.Stat()
	if err != nil {
		return err
	}
	marked := restoringName(s.ours, s.target, inPlace)
	if err := os.Rename(s.ours, marked); err != nil {
		return err
	}
	s.ours = marked
	if err := refill(s.file, now); err != nil {
		return err
	}
	s.keepOwner(info)
	if err := s.file.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	s.close()
	if err := os.Remove(s.ours); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(s.target))
}

// restore puts the newest version into place by swapping. On entry the policy's name holds our file, or
// what somebody put over it, and the name of ours a newer version with content now (nil when it
// can't be read). Each round swaps them and looks at what comes out: if it is the older one and
// nobody wrote to it, it can go; else it is the newest now.
func (s *save) restore(now []byte) error {
	olderContent := s.document
	if s.leased && now != nil {
		// Those who wait for our file shall read what is going to be there.
		if err := refill(s.file, now); err != nil {
			s.c.logger.Warn("refilling the temporary file", "error", err)
		} else {
			olderContent = now
		}
	}
	older, err := s.file.Stat()
	if err != nil {
		return err
	}
	newerContent := now
	for range rounds {
		newer, err := os.Lstat(s.ours)
		if err != nil {
			return err
		}
		err = exchange(s.ours, s.target)
		if errors.Is(err, fs.ErrNotExist) {
			if err := renameNew(s.ours, s.target); err != nil {
				return err
			}
			s.close()
			return syncFolder(filepath.Dir(s.target))
		}
		if err != nil {
			return err
		}
		s.close()
		out, err := os.Lstat(s.ours)
		if err != nil {
			return err
		}
		var outContent []byte
		if os.SameFile(out, older) {
			state, content := s.examine(olderContent)
			if state == untouched {
				if err := os.Remove(s.ours); err != nil {
					return err
				}
				return syncFolder(filepath.Dir(s.target))
			}
			outContent = content // somebody had opened it as the policy and wrote into it
		} else if content, err := os.ReadFile(s.ours); err == nil {
			outContent = content // somebody had renamed it over the older one
		}
		older, olderContent, newerContent = newer, newerContent, outContent
	}
	aside := s.target + ".conflict-" + revision(newerContent)[:8]
	s.c.logger.Error("too many writers at once: one version of the policy file is kept aside", "file", aside)
	return os.Rename(s.ours, aside)
}

// close closes our file, which gives up its lease. Before that nobody gets past opening it;
// after that nobody but others can have it open for writing.
func (s *save) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// state is what became of a file that nobody should be writing to.
type state int

const (
	untouched state = iota // content as expected, no writer
	touched                // another content, no writer
	busy                   // a writer that does not end, or not readable
)

// examine looks at the file under the name of ours. It waits for a writer to end, and returns
// the content as well, nil when it can't be read.
func (s *save) examine(expected []byte) (state, []byte) {
	f, err := os.Open(s.ours)
	if err != nil {
		return busy, nil
	}
	defer f.Close()
	var now []byte
	for range busySteps {
		lease := leaseForReading(f)
		if errors.Is(lease, syscall.EAGAIN) {
			time.Sleep(busyStep)
			continue
		}
		if lease == nil {
			time.Sleep(gap)
		} else {
			time.Sleep(unleased)
		}
		if now, err = os.ReadFile(s.ours); err != nil {
			return busy, nil
		}
		if lease == nil {
			holds := leaseHolds(f)
			endLease(f)
			if !holds {
				continue // a writer is waiting for us
			}
		}
		if bytes.Equal(now, expected) {
			return untouched, now
		}
		return touched, now
	}
	if now, err = os.ReadFile(s.ours); err != nil {
		return busy, nil
	}
	return busy, now
}

// refill replaces the content of a file through its descriptor.
func refill(f *os.File, content []byte) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return f.Sync()
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func unsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP)
}
