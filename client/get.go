package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// ErrReplaced is returned when a value was removed or replaced while it was read.
var ErrReplaced = errors.New("the value was removed or replaced while it was read")

// Get returns the value of a key. It fails with errcode.ObjectNotFound when there is none, with
// errcode.ReplicaIsNotReady while it is being written, with errcode.TransferFail when no replica can be read, with
// errcode.ChecksumMismatch when none is what was written, and with errcode.LeaseExpired or ErrReplaced when the master
// did not protect it for as long as that took, several times.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	var value []byte
	_, err := c.get(ctx, key, nil, func(size uint64) ([]byte, error) {
		if uint64(len(value)) != size {
			value = make([]byte, size)
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// GetInto reads the value of a key into dst and returns its size. A value that is larger fails with
// errcode.BufferOverflow, other errors are those of Get. After an error dst may hold anything.
func (c *Client) GetInto(ctx context.Context, key string, dst []byte) (int, error) {
	size, err := c.get(ctx, key, nil, fits(key, dst))
	return int(size), err
}

// fits gives the value of a key the beginning of dst.
func fits(key string, dst []byte) func(uint64) ([]byte, error) {
	return func(size uint64) ([]byte, error) {
		if size > uint64(len(dst)) {
			return nil, fmt.Errorf("get %q: %w: %d bytes don't fit into %d", key, errcode.BufferOverflow, size, len(dst))
		}
		return dst[:size], nil
	}
}

// GetRange reads part of the value of a key, from an offset in bytes on, into dst. It returns how many bytes were read: fewer than
// dst takes, and io.EOF, if the value ends before. Parts are not compared with checksums. Other errors are those of
// Get.
func (c *Client) GetRange(ctx context.Context, key string, offset uint64, dst []byte) (int, error) {
	var n int
	err := c.reading(ctx, key, nil, func(l *lease) (bool, error) {
		n = int(min(l.f.size-min(offset, l.f.size), uint64(len(dst))))
		return false, c.readAny(ctx, l, offset, dst[:n], false)
	})
	if err != nil {
		return 0, err
	}
	if n < len(dst) {
		return n, io.EOF
	}
	return n, nil
}

// readTries bounds how often a value is looked up that changes while it is read.
const readTries = 4

// get reads a whole value into what into gives for its size, and returns that. f is what is known already, or nil.
func (c *Client) get(ctx context.Context, key string, f *found, into func(size uint64) ([]byte, error)) (uint64, error) {
	var size uint64
	err := c.reading(ctx, key, f, func(l *lease) (bool, error) {
		dst, err := into(l.f.size)
		if err != nil {
			return false, final{err}
		}
		size = l.f.size
		return c.verifies(l.f), c.readAny(ctx, l, 0, dst, true)
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// final is an error after which a read isn't tried again.
type final struct{ error }

// Unwrap returns the error itself.
func (f final) Unwrap() error { return f.error }

// reading runs read for what a key is found to have, until what it has read is the value: when the lease has expired
// meanwhile, or no replica could be read and there are others by now, the key is looked up again. read reports whether it
// knows that it has read the value, lease or not. f is what is known already, or nil.
func (c *Client) reading(ctx context.Context, key string, f *found, read func(*lease) (bool, error)) error {
	var before *found // where nothing could be read
	var failed error
	for range readTries {
		if f == nil || !f.fresh() {
			var err error
			if f, err = c.find(ctx, key); err != nil {
				return err
			}
		}
		if before != nil && f.same(before) {
			return failed
		}
		l := c.hold(ctx, key, f)
		known, err := read(l)
		if err == nil && known {
			l.end()
			return nil
		}
		lost := l.confirm()
		l.end()
		var last final
		switch {
		case errors.As(err, &last):
			return last.error
		case err == nil && lost == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("get %q: %w", key, ctx.Err())
		case lost == nil:
			before, failed = f, err
		default:
			before, failed = nil, lost
		}
		f = nil
	}
	return failed
}

// streamPiece is how much of a value that is streamed moves at a time, in bytes. Two pieces are in memory: one comes
// while the other goes.
const streamPiece = 4 << 20

// GetTo writes the value of a key to w, of which few bytes are in memory at a time, and returns how many
// were written. Errors are those of Get. A value that has a checksum is compared with it before its end is written; w gets
// what it has from the start only, so it must not be used after an error.
func (c *Client) GetTo(ctx context.Context, key string, w io.Writer) (uint64, error) {
	var done uint64
	err := c.reading(ctx, key, nil, func(l *lease) (bool, error) {
		err := c.stream(ctx, l, w, &done)
		if err != nil && done > 0 {
			err = final{err}
		}
		return true, err
	})
	return done, err
}

// stream writes what was found to w. done is how much of it, in bytes.
func (c *Client) stream(ctx context.Context, l *lease, w io.Writer, done *uint64) error {
	f := l.f
	var pieces [2][]byte
	for i := range pieces {
		b, release, err := c.carrier.Buffer(int(min(f.size, streamPiece)))
		if err != nil {
			return final{fmt.Errorf("get %q: %w", l.key, err)}
		}
		defer release()
		pieces[i] = b
	}
	ctx, cancel := context.WithCancel(ctx)
	var reading chan error // nil when nothing is being read
	defer func() {
		cancel()
		if reading != nil {
			<-reading
		}
	}()
	read := func(at uint64, piece []byte) {
		n := min(f.size-at, streamPiece)
		ended := make(chan error, 1)
		go func() { ended <- c.readAny(ctx, l, at, piece[:n], n == f.size) }()
		reading = ended
	}
	read(0, pieces[0])
	var sum transfer.Checksum
	for i := 0; ; i++ {
		err := <-reading
		reading = nil
		piece := pieces[i%2][:min(f.size-*done, streamPiece)]
		next := *done + uint64(len(piece))
		if err == nil && next == f.size {
			err = l.confirm()
		} else if err == nil {
			err = l.check()
		}
		if err != nil {
			return err
		}
		if next < f.size {
			read(next, pieces[(i+1)%2])
		}
		if c.verifies(f) {
			sum = sum.Update(piece)
			if next == f.size {
				err = mismatch(*f.checksum, sum)
			}
			if err != nil {
				return final{fmt.Errorf("get %q: %w", l.key, err)}
			}
		}
		n, err := w.Write(piece)
		*done += uint64(n)
		switch {
		case err != nil:
			return final{err}
		case n < len(piece):
			return final{io.ErrShortWrite}
		case *done == f.size:
			return nil
		}
	}
}
