package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// ErrNotInMemory is returned for a value that lies only where this client can't read it: on the disk of another
// client, on a device, or in a shared file system that Config.SharedFolder doesn't name.
var ErrNotInMemory = errors.New("the value has no replica that this client can read")

// source is one replica that can be read.
type source struct {
	id   uint64
	at   segment.Place // in memory, unless file is set
	file string
}

// found is what a lookup has found.
type found struct {
	sources  []source
	size     uint64
	checksum *uint64
	ttl      time.Duration // how long the master protects what was found
	until    time.Time     // when that ends at the earliest; it counts from when the master was asked
}

// fresh reports whether there is time left to read something.
func (f *found) fresh() bool { return f.ttl == 0 || time.Until(f.until) > f.ttl/2 }

// same reports whether two lookups have found the same replicas, in any order.
func (f *found) same(other *found) bool {
	if len(f.sources) != len(other.sources) {
		return false
	}
	for _, s := range other.sources {
		if !slices.Contains(f.sources, s) {
			return false
		}
	}
	return true
}

// find looks a key up.
func (c *Client) find(ctx context.Context, key string) (*found, error) {
	asked := time.Now()
	var list errcode.Result[object.ReplicaList]
	if err := call(ctx, c, again, wire.GetReplicaList, &wire.GetReplicaListRequest{Key: key, TenantID: c.cfg.Tenant}, &list); err != nil {
		return nil, fmt.Errorf("get %q: %w", key, err)
	}
	return c.understand(key, asked, &list)
}

// understand makes of the answer to a lookup what can be read.
func (c *Client) understand(key string, asked time.Time, list *errcode.Result[object.ReplicaList]) (*found, error) {
	if list.Code != errcode.OK {
		return nil, refused("get", key, list.Code)
	}
	ttl := time.Duration(min(list.Value.LeaseTTLMs, uint64(maxLease/time.Millisecond))) * time.Millisecond
	f := &found{checksum: list.Value.Checksum, ttl: ttl, until: asked.Add(ttl)}
	var files []source
	sizes := make(map[uint64]bool)
	for i := range list.Value.Replicas {
		r := &list.Value.Replicas[i]
		if r.Status != object.ReplicaComplete {
			continue
		}
		switch l := &r.Location; l.Index {
		case object.LocationMemory:
			f.size = l.Memory.Buffer.Size
			f.sources = append(f.sources, source{id: r.ID, at: segment.Place{Owner: l.Memory.Buffer.Endpoint, Address: l.Memory.Buffer.Address}})
		case object.LocationDisk:
			if !c.shares(l.Disk.FilePath) {
				continue
			}
			f.size = l.Disk.ObjectSize
			files = append(files, source{id: r.ID, file: l.Disk.FilePath})
		default:
			continue
		}
		sizes[f.size] = true
	}
	f.sources = append(f.sources, files...) // memory is faster
	switch len(sizes) {
	case 0:
		return nil, fmt.Errorf("get %q: %w", key, ErrNotInMemory)
	case 1:
		if f.size > maxSize {
			return nil, fmt.Errorf("get %q: it is said to have %d bytes, which no memory holds: %w", key, f.size, errcode.InvalidReplica)
		}
		return f, nil
	}
	return nil, fmt.Errorf("get %q: its replicas differ in size: %w", key, errcode.InvalidReplica)
}

// maxSize is as much memory as a process can have, in bytes.
const maxSize = 1 << 47

// maxLease is more than any lease.
const maxLease = 365 * 24 * time.Hour

// shares reports whether a file lies in the folder that clients share.
func (c *Client) shares(file string) bool {
	folder := c.cfg.SharedFolder
	if folder == "" {
		return false
	}
	inside, err := filepath.Rel(folder, file)
	return err == nil && inside != "." && inside != ".." && !strings.HasPrefix(inside, ".."+string(filepath.Separator))
}

// readFrom fills dst with what a replica has from an offset on.
func (c *Client) readFrom(ctx context.Context, s source, offset uint64, dst []byte) error {
	if s.file == "" {
		return c.carrier.Read(ctx, segment.Place{Owner: s.at.Owner, Address: s.at.Address + offset}, dst)
	}
	f, err := os.Open(s.file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(dst, int64(offset))
	return err
}

// readAny fills dst from the first replica that can be read. whole says that dst is for the whole value, which is then
// compared with its checksum if it has one.
func (c *Client) readAny(ctx context.Context, l *lease, offset uint64, dst []byte, whole bool) error {
	var errs []error
	for _, s := range l.f.sources {
		if !l.use(s) {
			errs = append(errs, ErrReplaced)
			continue
		}
		err := c.readFrom(ctx, s, offset, dst)
		if err == nil && whole && c.verifies(l.f) {
			err = mismatch(*l.f.checksum, transfer.Sum(dst))
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("get %q: %w", l.key, ctx.Err())
		}
		if !errors.Is(err, errcode.ChecksumMismatch) {
			err = fmt.Errorf("%w: %w", errcode.TransferFail, err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("get %q: %w", l.key, errors.Join(errs...))
}

// verifies reports whether a value that was read is compared with its checksum.
func (c *Client) verifies(f *found) bool { return f.checksum != nil && !c.cfg.SkipVerification }

// mismatch compares checksums.
func mismatch(want uint64, got transfer.Checksum) error {
	if uint64(got) == want {
		return nil
	}
	return fmt.Errorf("%w: %#x was read, %#x was written", errcode.ChecksumMismatch, uint64(got), want)
}
