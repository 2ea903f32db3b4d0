package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// The answers to the start and to the end of a write.
type (
	started = errcode.Result[[]object.ReplicaDescriptor]
	ended   = errcode.Result[errcode.Void]
)

// verb is a kind of write: its calls, for one key and for many.
type verb struct {
	name   string
	start  func(context.Context, *Client, *wire.PutStartRequest, *started) error
	end    func(context.Context, *Client, *wire.PutEndRequest, *ended) error
	revoke func(ctx context.Context, c *Client, key string, kind object.ReplicaType, got *ended) error

	startMany  func(context.Context, *Client, *wire.BatchPutStartRequest, *[]started) error
	endMany    func(context.Context, *Client, *wire.BatchPutEndRequest, *[]ended) error
	revokeMany func(ctx context.Context, c *Client, keys []string, got *[]ended) error
}

// The writes. A start is made once only: the master refuses the second one of a write. Ends and revocations may be
// repeated. The calls for one key serve the files of both.
var (
	put = &verb{
		name: "put",
		start: func(ctx context.Context, c *Client, q *wire.PutStartRequest, got *started) error {
			return call(ctx, c, once, wire.PutStart, q, got)
		},
		end: func(ctx context.Context, c *Client, q *wire.PutEndRequest, got *ended) error {
			return call(ctx, c, again, wire.PutEnd, q, got)
		},
		revoke: func(ctx context.Context, c *Client, key string, kind object.ReplicaType, got *ended) error {
			return call(ctx, c, again, wire.PutRevoke, &wire.PutRevokeRequest{ClientID: c.id, Key: key, ReplicaType: kind, TenantID: c.cfg.Tenant}, got)
		},
		startMany: func(ctx context.Context, c *Client, q *wire.BatchPutStartRequest, got *[]started) error {
			return call(ctx, c, once, wire.BatchPutStart, q, got)
		},
		endMany: func(ctx context.Context, c *Client, q *wire.BatchPutEndRequest, got *[]ended) error {
			return call(ctx, c, again, wire.BatchPutEnd, q, got)
		},
		revokeMany: func(ctx context.Context, c *Client, keys []string, got *[]ended) error {
			return call(ctx, c, again, wire.BatchPutRevoke, &wire.BatchPutRevokeRequest{ClientID: c.id, Keys: keys, ReplicaType: object.ReplicaAll, TenantID: c.cfg.Tenant}, got)
		},
	}
	upsert = &verb{
		name: "upsert",
		start: func(ctx context.Context, c *Client, q *wire.PutStartRequest, got *started) error {
			u := wire.UpsertStartRequest(*q)
			return call(ctx, c, once, wire.UpsertStart, &u, got)
		},
		end: func(ctx context.Context, c *Client, q *wire.PutEndRequest, got *ended) error {
			u := wire.UpsertEndRequest(*q)
			return call(ctx, c, again, wire.UpsertEnd, &u, got)
		},
		revoke: func(ctx context.Context, c *Client, key string, kind object.ReplicaType, got *ended) error {
			return call(ctx, c, again, wire.UpsertRevoke, &wire.UpsertRevokeRequest{ClientID: c.id, Key: key, ReplicaType: kind, TenantID: c.cfg.Tenant}, got)
		},
		startMany: func(ctx context.Context, c *Client, q *wire.BatchPutStartRequest, got *[]started) error {
			u := wire.BatchUpsertStartRequest(*q)
			return call(ctx, c, once, wire.BatchUpsertStart, &u, got)
		},
		endMany: func(ctx context.Context, c *Client, q *wire.BatchPutEndRequest, got *[]ended) error {
			return call(ctx, c, again, wire.BatchUpsertEnd, &wire.BatchUpsertEndRequest{ClientID: q.ClientID, ObjectMetas: q.ObjectMetas, TenantID: q.TenantID}, got)
		},
		revokeMany: func(ctx context.Context, c *Client, keys []string, got *[]ended) error {
			return call(ctx, c, again, wire.BatchUpsertRevoke, &wire.BatchUpsertRevokeRequest{ClientID: c.id, Keys: keys, TenantID: c.cfg.Tenant}, got)
		},
	}
)

// enter and leave count the writes of a key that are under way.
func (c *Client) enter(key string) {
	c.mu.Lock()
	c.writing[key]++
	c.mu.Unlock()
}

func (c *Client) leave(key string) {
	c.mu.Lock()
	if c.writing[key]--; c.writing[key] == 0 {
		delete(c.writing, key)
	}
	c.mu.Unlock()
}

// alone reports whether no other write of the keys is under way.
func (c *Client) alone(keys ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if c.writing[key] > 1 {
			return false
		}
	}
	return true
}

// detached makes a call that goes on when the context of its caller ends. Then undo is run if it has succeeded. So a
// write that nobody waits for any more does not stay begun. Until then the write of the keys counts as under way.
func detached[T any](ctx context.Context, c *Client, keys []string, start func(context.Context) (T, error), undo func(context.Context, T)) (T, error) {
	if ctx.Done() == nil {
		return start(ctx)
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	given := make(chan bool, 1) // whether the caller has taken the outcome
	on := context.WithoutCancel(ctx)
	running := c.detach(func() {
		value, err := start(on)
		done <- outcome{value, err}
		if <-given {
			return
		}
		defer c.undo(-1)
		if err == nil {
			undo(on, value)
		}
		for _, key := range keys {
			c.leave(key)
		}
	})
	if !running {
		return *new(T), ErrClosed
	}
	select {
	case o := <-done:
		given <- true
		return o.value, o.err
	case <-ctx.Done():
		for _, key := range keys { // its caller leaves them
			c.enter(key)
		}
		c.undo(1)
		given <- false
		return *new(T), ctx.Err()
	}
}

// start begins a write of one key and returns where to write it.
func (c *Client) start(ctx context.Context, verb *verb, key string, size uint64, config *object.ReplicateConfig) ([]object.ReplicaDescriptor, error) {
	begin := func(ctx context.Context) (got started, err error) {
		q := wire.PutStartRequest{ClientID: c.id, Key: key, SliceLength: size, Config: *config, TenantID: c.cfg.Tenant}
		if err = verb.start(ctx, c, &q, &got); !errors.Is(err, errcode.RPCFail) || !c.alone(key) {
			return got, err
		}
		// Whether it has begun isn't known. When it hasn't, or not any more, it may begin again.
		var revoked ended
		if verb.revoke(ctx, c, key, object.ReplicaAll, &revoked) != nil {
			return got, err
		}
		got = started{}
		err = verb.start(ctx, c, &q, &got)
		return got, err
	}
	got, err := detached(ctx, c, []string{key}, begin, func(ctx context.Context, got started) {
		if got.Code == errcode.OK {
			_ = c.revoke(ctx, verb, key, context.Canceled)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", verb.name, key, err)
	}
	return got.Value, refused(verb.name, key, got.Code)
}

// end ends a write.
func (c *Client) end(ctx context.Context, verb *verb, meta object.Meta, kind object.ReplicaType) error {
	var got ended
	if err := verb.end(ctx, c, &wire.PutEndRequest{ClientID: c.id, ObjectMeta: meta, ReplicaType: kind, TenantID: c.cfg.Tenant}, &got); err != nil {
		return err
	}
	if got.Code != errcode.OK {
		return fmt.Errorf("its end: %w", got.Code)
	}
	return nil
}

// revokeTimeout bounds the revocation of a write whose context may have ended.
const revokeTimeout = 5 * time.Second

// revoke takes a write back that failed because of cause, which it returns.
func (c *Client) revoke(ctx context.Context, verb *verb, key string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	cause = fmt.Errorf("%s %q: %w", verb.name, key, cause)
	var got ended
	if err := verb.revoke(ctx, c, key, object.ReplicaAll, &got); err != nil {
		return fmt.Errorf("%w (and it could not be revoked: %w)", cause, err)
	}
	return revoked(cause, got.Code)
}

// revoked adds to the cause of a revocation what the master said to that, unless there is nothing left of the write.
func revoked(cause error, code errcode.Code) error {
	switch code {
	case errcode.OK, errcode.ObjectNotFound, errcode.InvalidWrite, errcode.IllegalClient:
		return cause
	}
	return fmt.Errorf("%w (and it could not be revoked: %w)", cause, code)
}
