package client

import (
	"context"
	"os"
	"path/filepath"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// file is the copy of a value in the folder that clients share. It is written beside its place and then renamed, so
// that nobody reads half of one. That it fails does not fail the write of the value, which is in memory.
type file struct {
	path    string
	foreign bool // not in the folder that this client shares
	open    *os.File
	failed  bool
}

// write writes a piece at an offset.
func (f *file) write(offset uint64, piece []byte) {
	if f.foreign || f.failed {
		return
	}
	if f.open == nil {
		folder := filepath.Dir(f.path)
		err := os.MkdirAll(folder, 0o777)
		if err == nil {
			f.open, err = os.CreateTemp(folder, filepath.Base(f.path)+".*.part")
		}
		if err != nil {
			f.failed = true
			return
		}
	}
	if _, err := f.open.WriteAt(piece, int64(offset)); err != nil {
		f.discard()
	}
}

// finish puts the file in its place and reports whether it is there.
func (f *file) finish() bool {
	if f.open == nil {
		return false
	}
	part := f.open.Name()
	// Others read it, as what the released clients write.
	err := f.open.Chmod(0o644)
	if closed := f.open.Close(); err == nil {
		err = closed
	}
	f.open = nil
	if err == nil {
		err = os.Rename(part, f.path)
	}
	if err != nil {
		os.Remove(part)
		return false
	}
	return true
}

// discard removes what was written.
func (f *file) discard() {
	f.failed = true
	if f.open != nil {
		f.open.Close()
		os.Remove(f.open.Name())
		f.open = nil
	}
}

// endFile tells the master what has become of the file of a value whose write has ended.
func (c *Client) endFile(ctx context.Context, verb *verb, key string, to *targets) {
	if to.file.finish() {
		if c.end(ctx, verb, object.Meta{Key: key}, object.ReplicaDisk) == nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	var got errcode.Result[errcode.Void]
	_ = verb.revoke(ctx, c, key, object.ReplicaDisk, &got) // else the master waits for it in vain, and gives it up
}
