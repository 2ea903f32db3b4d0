package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A file of ours is called .mooncake-policy-<whose>.draft.<random> until it is complete, then
// .mooncake-policy-<whose>.save.<before>.<after>.<random>: the beginnings of the hashes of the
// policy's name, of the document replaced ("-" for none) and of the new one. After a swap that
// name may belong to the former policy. It is called .restore.<inode>.<random> while its
// content is written into the file of that inode, which is in the policy's place.
const (
	ownPrefix   = ".mooncake-policy-"
	draftPart   = ".draft."
	savePart    = ".save."
	restorePart = ".restore."
	hashLetter  = 16
)

func ownName(target string) string {
	sum := sha256.Sum256([]byte(filepath.Base(target)))
	return ownPrefix + hex.EncodeToString(sum[:4])
}

func draftPattern(target string) string { return ownName(target) + draftPart + "*" }

func completeName(draft, target, before, after string) string {
	random := draft[strings.LastIndexByte(draft, '.')+1:]
	return filepath.Join(filepath.Dir(target), ownName(target)+savePart+short(before)+"."+short(after)+"."+random)
}

func restoringName(ours, target string, inPlace fs.FileInfo) string {
	random := ours[strings.LastIndexByte(ours, '.')+1:]
	return filepath.Join(filepath.Dir(target), ownName(target)+restorePart+inode(inPlace)+"."+random)
}

func inode(info fs.FileInfo) string {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(sys.Ino), 10)
	}
	return ""
}

func short(revision string) string { return revision[:min(hashLetter, len(revision))] }

// recover finishes saves that a killed process left half done. Errors only mean that there is
// still something lying about, so they are logged.
func (c *Connector) recover(path string) {
	t, err := follow(path)
	if err != nil {
		return
	}
	target := t.target()
	folder := filepath.Dir(target)
	names, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	var left []string
	for _, entry := range names {
		if strings.HasPrefix(entry.Name(), ownName(target)+".") {
			left = append(left, filepath.Join(folder, entry.Name()))
		}
	}
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	unlock, err := lockFolder(ctx, folder)
	if err != nil {
		c.logger.Warn("temporary files of an interrupted save stay behind", "folder", folder, "error", err)
		return
	}
	defer unlock()
	for _, name := range left {
		if err := c.finish(name, target); err != nil && !os.IsNotExist(err) {
			c.logger.Warn("a temporary file of an interrupted save stays behind", "file", name, "error", err)
		}
	}
}

// finish deals with one file of ours whose process is gone.
func (c *Connector) finish(name, target string) error {
	if _, rest, restoring := strings.Cut(filepath.Base(name), restorePart); restoring {
		number, _, _ := strings.Cut(rest, ".")
		there, err := os.Lstat(target)
		if err != nil || inode(there) != number {
			return os.Remove(name) // somebody saved a newer version meanwhile
		}
		c.logger.Warn("putting back a version of the policy file that an interrupted save took out", "file", target)
		return os.Rename(name, target)
	}
	_, hashes, complete := strings.Cut(filepath.Base(name), savePart)
	parts := strings.Split(hashes, ".")
	if !complete || len(parts) != 3 {
		return os.Remove(name)
	}
	before, after := parts[0], parts[1]
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if is := short(revision(content)); is == before || is == after {
		return os.Remove(name)
	}
	// A version of somebody else came out and was not put back.
	there, err := os.ReadFile(target)
	switch {
	case os.IsNotExist(err):
		c.logger.Warn("putting back a version of the policy file that an interrupted save took out", "file", target)
		return renameNew(name, target)
	case err != nil:
		return err
	case revision(there) == revision(content):
		return os.Remove(name)
	case short(revision(there)) == after:
		if err := exchange(name, target); err != nil {
			return err
		}
		c.logger.Warn("put back a version of the policy file that an interrupted save took out", "file", target)
		if out, err := os.ReadFile(name); err == nil && short(revision(out)) == after {
			return os.Remove(name)
		}
	}
	aside := target + ".conflict-" + revision(content)[:8]
	c.logger.Error("an interrupted save left a version of the policy file that is not the current one: kept aside", "file", aside)
	return os.Rename(name, aside)
}

// lockFolder keeps other savers of our kind out of a folder. File systems without locks go
// without.
func lockFolder(ctx context.Context, folder string) (unlock func(), err error) {
	d, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() { d.Close() }, nil
		}
		select {
		case <-ctx.Done():
			d.Close()
			return nil, ctx.Err()
		case <-time.After(busyStep):
		}
	}
}
