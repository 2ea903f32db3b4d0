package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// Put stores a value under a key that has none. It fails with errcode.ObjectAlreadyExists otherwise, with
// errcode.NoAvailableHandle when there is no room, errcode.TenantQuotaExceeded when the tenant has none left, and
// errcode.TransferFail when the value could not be written. What fails is taken back, unless an owner of memory hangs that
// may still write what it was sent (segment.ErrUnsettled): the master then gives the write up after its
// --put_start_discard_timeout_sec. After the error of a context the value may be there all the same.
func (c *Client) Put(ctx context.Context, key string, value []byte, options ...Option) error {
	return c.store(ctx, put, key, uint64(len(value)), options, c.bytes(value))
}

// Upsert stores a value under a key, whether or not it has one. Errors are those of Put without
// ObjectAlreadyExists; after one the key may have lost the value it had.
func (c *Client) Upsert(ctx context.Context, key string, value []byte, options ...Option) error {
	return c.store(ctx, upsert, key, uint64(len(value)), options, c.bytes(value))
}

// PutFrom is Put of size bytes from a reader, of which few are in memory at a time. It fails with
// io.ErrUnexpectedEOF when there are fewer, and reads no further when there are more.
func (c *Client) PutFrom(ctx context.Context, key string, size uint64, from io.Reader, options ...Option) error {
	return c.store(ctx, put, key, size, options, c.pieces(size, from))
}

// UpsertFrom is Upsert of size bytes from a reader, as PutFrom is Put.
func (c *Client) UpsertFrom(ctx context.Context, key string, size uint64, from io.Reader, options ...Option) error {
	return c.store(ctx, upsert, key, size, options, c.pieces(size, from))
}

// content brings a value to where it is kept, piece after piece, and returns its checksum if it is asked for.
type content func(ctx context.Context, to *targets, summed bool) (transfer.Checksum, error)

// bytes is a value in memory.
func (c *Client) bytes(value []byte) content {
	return func(ctx context.Context, to *targets, summed bool) (sum transfer.Checksum, err error) {
		if summed {
			sum = transfer.Sum(value)
		}
		return sum, to.write(ctx, 0, value)
	}
}

// pieces is a value of size bytes from a reader. One piece is read while the one before is written.
func (c *Client) pieces(size uint64, from io.Reader) content {
	return func(ctx context.Context, to *targets, summed bool) (sum transfer.Checksum, err error) {
		var room [2][]byte
		for i := range room {
			b, release, err := c.carrier.Buffer(int(min(size, streamPiece)))
			if err != nil {
				return 0, err
			}
			defer release()
			room[i] = b
		}
		ctx, cancel := context.WithCancel(ctx)
		var writing chan error // nil when nothing is being written
		defer func() {
			cancel()
			if writing != nil {
				<-writing
			}
		}()
		for done, i := uint64(0), 0; done < size; i++ {
			piece := room[i%2][:min(size-done, streamPiece)]
			if n, err := io.ReadFull(from, piece); err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return 0, fmt.Errorf("reading the value, %d of %d bytes: %w", done+uint64(n), size, err)
			}
			if summed {
				sum = sum.Update(piece)
			}
			if writing != nil {
				err := <-writing
				writing = nil
				if err != nil {
					return 0, err
				}
			}
			at, ended := done, make(chan error, 1)
			go func() { ended <- to.write(ctx, at, piece) }()
			writing = ended
			done += uint64(len(piece))
		}
		err = <-writing
		writing = nil
		return sum, err
	}
}

// store is one write from its start to its end. What fails in between is revoked.
func (c *Client) store(ctx context.Context, verb *verb, key string, size uint64, options []Option, value content) error {
	if err := storable(verb, key, size); err != nil {
		return err
	}
	kept := c.kept(options, 1)
	c.enter(key)
	defer c.leave(key)
	replicas, err := c.start(ctx, verb, key, size, &kept.ReplicateConfig)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.WriteTimeout)
	defer cancel()
	var sum transfer.Checksum
	meta := object.Meta{Key: key}
	to, err := c.targets(replicas)
	if err == nil {
		sum, err = value(limited, to, kept.Checksum)
	}
	if kept.Checksum {
		meta.Checksum = (*uint64)(&sum)
	}
	if err == nil {
		err = c.end(limited, verb, meta, object.ReplicaAll)
	}
	if err != nil {
		to.discard()
		err = c.blame(ctx, limited, err)
		if to.unsettled.Load() {
			return fmt.Errorf("%s %q: %w", verb.name, key, left(err))
		}
		return c.revoke(ctx, verb, key, err)
	}
	if to.file != nil {
		c.endFile(ctx, verb, key, to)
	}
	return nil
}

// storable refuses what no master takes.
func storable(verb *verb, key string, size uint64) error {
	switch {
	case key == "":
		return fmt.Errorf("%s: %w: the key is empty", verb.name, errcode.InvalidParams)
	case size == 0:
		return fmt.Errorf("%s %q: %w: a value has at least one byte", verb.name, key, errcode.InvalidParams)
	}
	return nil
}

// blame says whether a write failed because its time was over.
func (c *Client) blame(ctx, limited context.Context, err error) error {
	if ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("%w: it took longer than the %v of Config.WriteTimeout", errcode.TransferFail, c.cfg.WriteTimeout)
	}
	return err
}

// targets are where a value is written to.
type targets struct {
	carrier transfer.Carrier
	places  []segment.Place
	file    *file // nil without
	// unsettled is set when something may still be written to one of the places after a write to it has failed. Such
	// a write isn't revoked: the master, told of nothing, gives it up and keeps the memory for a while, which it would
	// give to another value at once if it were.
	unsettled atomic.Bool
}

// left is the error of a write that isn't revoked.
func left(err error) error {
	if !errors.Is(err, segment.ErrUnsettled) {
		err = fmt.Errorf("%w; %w", err, segment.ErrUnsettled)
	}
	return fmt.Errorf("%w, so it is left to the master to give it up (--put_start_discard_timeout_sec)", err)
}

// targets are the replicas of an answer to the start of a write.
func (c *Client) targets(replicas []object.ReplicaDescriptor) (*targets, error) {
	to := &targets{carrier: c.carrier}
	for i := range replicas {
		switch l := &replicas[i].Location; l.Index {
		case object.LocationMemory:
			to.places = append(to.places, segment.Place{Owner: l.Memory.Buffer.Endpoint, Address: l.Memory.Buffer.Address})
		case object.LocationDisk:
			to.file = &file{path: l.Disk.FilePath, foreign: !c.shares(l.Disk.FilePath)}
		default:
			return to, fmt.Errorf("%w: it was given a replica that is neither in memory nor in a shared file system", errcode.NotSupported)
		}
	}
	if len(to.places) == 0 {
		return to, fmt.Errorf("%w: it was given no replica in memory", errcode.InvalidReplica)
	}
	return to, nil
}

// write writes a piece at an offset to all places, at the same time if there are several.
func (t *targets) write(ctx context.Context, offset uint64, piece []byte) error {
	if t.file != nil {
		t.file.write(offset, piece)
	}
	return each(len(t.places), len(t.places), func(i int) error {
		err := t.carrier.Write(ctx, segment.Place{Owner: t.places[i].Owner, Address: t.places[i].Address + offset}, piece)
		if errors.Is(err, segment.ErrUnsettled) {
			t.unsettled.Store(true)
		}
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errcode.TransferFail, err)
		}
		return err
	})
}

// discard forgets what was written to a file.
func (t *targets) discard() {
	if t.file != nil {
		t.file.discard()
	}
}
