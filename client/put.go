package client

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Option says how a value is to be kept.
type Option func(*object.ReplicateConfig)

// Replicas asks for n copies, on different segments; the default is one.
func Replicas(n uint64) Option { return func(c *object.ReplicateConfig) { c.ReplicaNum = n } }

// Prefer names the segments to try first.
func Prefer(segments ...string) Option {
	return func(c *object.ReplicateConfig) { c.PreferredSegments = segments }
}

// HardPin keeps the value from ever being evicted.
func HardPin(c *object.ReplicateConfig) { c.WithHardPin = true }

// SoftPin keeps the value from being evicted before others for ttl.
func SoftPin(ttl time.Duration) Option {
	return func(c *object.ReplicateConfig) {
		ms := uint64(ttl.Milliseconds())
		c.SoftPinAction, c.SoftPinTTLMs = object.SoftPinEnable, &ms
	}
}

// Put stores a value under a key that has none. It fails with errcode.ObjectAlreadyExists otherwise.
func (c *Client) Put(ctx context.Context, key string, value []byte, options ...Option) error {
	return c.write(ctx, c.putStart(ctx), key, uint64(len(value)), options, func(at []segment.Place) error { return c.fill(ctx, at, value) })
}

// Upsert stores a value under a key, whether or not it has one.
func (c *Client) Upsert(ctx context.Context, key string, value []byte, options ...Option) error {
	start := func(q *wire.PutStartRequest, a *started) error {
		u := wire.UpsertStartRequest(*q)
		return call(ctx, c, wire.UpsertStart, &u, a)
	}
	return c.write(ctx, start, key, uint64(len(value)), options, func(at []segment.Place) error { return c.fill(ctx, at, value) })
}

// PutFrom is Put of size bytes from a reader, of which few are in memory at a time.
func (c *Client) PutFrom(ctx context.Context, key string, size uint64, from io.Reader, options ...Option) error {
	return c.write(ctx, c.putStart(ctx), key, size, options, func(at []segment.Place) error {
		piece := make([]byte, min(size, streamPiece))
		for done := uint64(0); done < size; {
			n := min(size-done, streamPiece)
			if _, err := io.ReadFull(from, piece[:n]); err != nil {
				return fmt.Errorf("the value ends after %d of %d bytes: %w", done, size, err)
			}
			if err := c.fill(ctx, at, piece[:n]); err != nil {
				return err
			}
			for i := range at {
				at[i].Address += n
			}
			done += n
		}
		return nil
	})
}

// streamPiece is how much of a value that is streamed is in memory at a time, in bytes.
const streamPiece = 4 << 20

// fill writes the same bytes to several places.
func (c *Client) fill(ctx context.Context, at []segment.Place, value []byte) error {
	for _, p := range at {
		if err := c.carrier.Write(ctx, p, value); err != nil {
			return err
		}
	}
	return nil
}

// started is the answer to the start of a write.
type started = errcode.Result[[]object.ReplicaDescriptor]

func (c *Client) putStart(ctx context.Context) func(*wire.PutStartRequest, *started) error {
	return func(q *wire.PutStartRequest, a *started) error { return call(ctx, c, wire.PutStart, q, a) }
}

// write is one write from its start to its end. What fails in between is revoked.
func (c *Client) write(ctx context.Context, start func(*wire.PutStartRequest, *started) error, key string, size uint64, options []Option, fill func([]segment.Place) error) error {
	cfg := object.ReplicateConfig{ReplicaNum: 1}
	for _, o := range options {
		o(&cfg)
	}
	var got started
	err := start(&wire.PutStartRequest{ClientID: c.id, Key: key, SliceLength: size, Config: cfg, TenantID: c.cfg.Tenant}, &got)
	if err == nil {
		err = refused("put", key, got.Code)
	}
	if err != nil {
		return err
	}
	if err := fill(places(got.Value)); err != nil {
		return c.revoke(ctx, key, err)
	}
	var ended errcode.Result[errcode.Void]
	err = call(ctx, c, wire.PutEnd, &wire.PutEndRequest{
		ClientID: c.id, ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: c.cfg.Tenant,
	}, &ended)
	if err != nil {
		return err
	}
	return refused("end of put", key, ended.Code)
}

// revokeTimeout bounds the revocation of a write whose context may have ended.
const revokeTimeout = 5 * time.Second

// revoke takes a write back that failed because of cause, which it returns.
func (c *Client) revoke(ctx context.Context, key string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	var got errcode.Result[errcode.Void]
	err := call(ctx, c, wire.PutRevoke, &wire.PutRevokeRequest{ClientID: c.id, Key: key, ReplicaType: object.ReplicaAll, TenantID: c.cfg.Tenant}, &got)
	if err == nil {
		err = got.Code.Err()
	}
	if err != nil {
		return fmt.Errorf("put %q: %w (and it could not be revoked: %w)", key, cause, err)
	}
	return fmt.Errorf("put %q: %w", key, cause)
}

// places are the replicas in memory.
func places(replicas []object.ReplicaDescriptor) []segment.Place {
	var at []segment.Place
	for i := range replicas {
		if l := &replicas[i].Location; l.Index == object.LocationMemory {
			at = append(at, segment.Place{Owner: l.Memory.Buffer.Endpoint, Address: l.Memory.Buffer.Address})
		}
	}
	return at
}
