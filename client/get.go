package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// ErrNotInMemory is returned for a value that lies on disks only.
var ErrNotInMemory = errors.New("the value has no replica in memory")

// Get returns the value of a key. It fails with errcode.ObjectNotFound when there is none and with
// errcode.ReplicaIsNotReady while it is being written. Of several replicas the next one is read when one
// can't be.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	at, size, err := c.locate(ctx, key)
	if err != nil {
		return nil, err
	}
	value := make([]byte, size)
	return value, c.read(ctx, key, at, value)
}

// GetTo writes the value of a key to w, of which few bytes are in memory at a time, and returns how many
// were written. Errors are those of Get.
func (c *Client) GetTo(ctx context.Context, key string, w io.Writer) (uint64, error) {
	at, size, err := c.locate(ctx, key)
	if err != nil {
		return 0, err
	}
	piece := make([]byte, min(size, streamPiece))
	for done := uint64(0); done < size; {
		n := min(size-done, streamPiece)
		if err := c.read(ctx, key, at, piece[:n]); err != nil {
			return done, err
		}
		if _, err := w.Write(piece[:n]); err != nil {
			return done, err
		}
		for i := range at {
			at[i].Address += n
		}
		done += n
	}
	return size, nil
}

// read fills dst from the first of several places that can be read.
func (c *Client) read(ctx context.Context, key string, at []segment.Place, dst []byte) error {
	var errs []error
	for _, p := range at {
		err := c.carrier.Read(ctx, p, dst)
		if err == nil {
			return nil
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("get %q: %w", key, errors.Join(errs...))
}

// Stat is what the master knows about a key.
type Stat struct {
	Size     uint64 // bytes; 0 if no replica is known that has a size
	Replicas []object.ReplicaDescriptor
}

// Stat says where the value of a key lies. It is protected from eviction for a while afterwards, as by Get,
// whose errors these are.
func (c *Client) Stat(ctx context.Context, key string) (Stat, error) {
	var list errcode.Result[object.ReplicaList]
	if err := call(ctx, c, wire.GetReplicaList, &wire.GetReplicaListRequest{Key: key, TenantID: c.cfg.Tenant}, &list); err != nil {
		return Stat{}, err
	}
	if err := refused("get", key, list.Code); err != nil {
		return Stat{}, err
	}
	s := Stat{Replicas: list.Value.Replicas}
	for i := range s.Replicas {
		switch l := &s.Replicas[i].Location; l.Index {
		case object.LocationMemory:
			s.Size = l.Memory.Buffer.Size
		case object.LocationLocalDisk:
			s.Size = l.LocalDisk.ObjectSize
		case object.LocationDisk:
			s.Size = l.Disk.ObjectSize
		}
	}
	return s, nil
}

// locate returns the places in memory that a value can be read from, and its size.
func (c *Client) locate(ctx context.Context, key string) ([]segment.Place, uint64, error) {
	s, err := c.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	at := places(s.Replicas)
	if len(at) == 0 {
		return nil, 0, fmt.Errorf("get %q: %w", key, ErrNotInMemory)
	}
	return at, s.Size, nil
}

// Exists reports whether a key has a value that can be read.
func (c *Client) Exists(ctx context.Context, key string) (bool, error) {
	var got errcode.Result[bool]
	if err := call(ctx, c, wire.ExistKey, &wire.ExistKeyRequest{Key: key, TenantID: c.cfg.Tenant}, &got); err != nil {
		return false, err
	}
	return got.Value, refused("exist", key, got.Code)
}

// Remove removes a key; one that was read a short while ago only if force is set, else it fails with
// errcode.ObjectHasLease.
func (c *Client) Remove(ctx context.Context, key string, force bool) error {
	var got errcode.Result[errcode.Void]
	if err := call(ctx, c, wire.Remove, &wire.RemoveRequest{Key: key, Force: force, TenantID: c.cfg.Tenant}, &got); err != nil {
		return err
	}
	return refused("remove", key, got.Code)
}
