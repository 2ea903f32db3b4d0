package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Item is a value to be put under a key.
type Item struct {
	Key   string
	Value []byte
}

// PutBatch is Put of many values, for which the master is asked once before and once after. It returns one error for each,
// in their order, nil for those that are there; errors.Join makes one of them. Options are those of all.
func (c *Client) PutBatch(ctx context.Context, items []Item, options ...Option) []error {
	return c.storeMany(ctx, put, items, options)
}

// UpsertBatch is Upsert of many values, as PutBatch is Put.
func (c *Client) UpsertBatch(ctx context.Context, items []Item, options ...Option) []error {
	return c.storeMany(ctx, upsert, items, options)
}

// GetBatch is Get of many keys, for which the master is asked once. It returns a value and an error for each, in their
// order; a value is nil when its error is not.
func (c *Client) GetBatch(ctx context.Context, keys []string) ([][]byte, []error) {
	values := make([][]byte, len(keys))
	_, errs := c.getMany(ctx, keys, func(i int) func(uint64) ([]byte, error) {
		return func(size uint64) ([]byte, error) {
			if uint64(len(values[i])) != size {
				values[i] = make([]byte, size)
			}
			return values[i], nil
		}
	})
	for i, err := range errs {
		if err != nil {
			values[i] = nil
		}
	}
	return values, errs
}

// GetBatchInto is GetInto of many keys, into as many places, for which the master is asked once. It returns a size and
// an error for each.
func (c *Client) GetBatchInto(ctx context.Context, keys []string, dst [][]byte) ([]int, []error) {
	if len(dst) != len(keys) {
		return make([]int, len(keys)), fill(len(keys), fmt.Errorf("%w: %d places for %d keys", errcode.InvalidParams, len(dst), len(keys)))
	}
	return c.getMany(ctx, keys, func(i int) func(uint64) ([]byte, error) { return fits(keys[i], dst[i]) })
}

// fill returns n times the same error.
func fill(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// answers checks that the master has answered for each of n keys.
func answers[T any](got []T, n int, err error) error {
	if err == nil && len(got) != n {
		err = fmt.Errorf("%w: the master answered for %d of %d keys", errcode.RPCFail, len(got), n)
	}
	return err
}

// getMany reads many values into what into gives for them.
func (c *Client) getMany(ctx context.Context, keys []string, into func(int) func(uint64) ([]byte, error)) ([]int, []error) {
	sizes, errs := make([]int, len(keys)), make([]error, len(keys))
	if len(keys) == 0 {
		return sizes, errs
	}
	asked := time.Now()
	var lists []errcode.Result[object.ReplicaList]
	err := call(ctx, c, again, wire.BatchGetReplicaList, &wire.BatchGetReplicaListRequest{Keys: keys, TenantID: c.cfg.Tenant}, &lists)
	if err = answers(lists, len(keys), err); err != nil {
		return sizes, fill(len(keys), fmt.Errorf("get: %w", err))
	}
	_ = each(len(keys), c.cfg.Parallel, func(i int) error {
		f, err := c.understand(keys[i], asked, &lists[i])
		if err == nil {
			var size uint64
			size, err = c.get(ctx, keys[i], f, into(i))
			sizes[i] = int(size)
		}
		errs[i] = err
		return nil
	})
	return sizes, errs
}

// storeMany is store for many values.
func (c *Client) storeMany(ctx context.Context, verb *verb, items []Item, options []Option) []error {
	errs := make([]error, len(items))
	var keys []string
	var sizes []uint64
	var which []int // of the items
	for i, item := range items {
		if errs[i] = storable(verb, item.Key, uint64(len(item.Value))); errs[i] != nil {
			continue
		}
		which, keys, sizes = append(which, i), append(keys, item.Key), append(sizes, uint64(len(item.Value)))
		c.enter(item.Key)
		defer c.leave(item.Key)
	}
	if len(which) == 0 {
		return errs
	}
	kept := c.kept(options, len(keys))
	got, err := c.startMany(ctx, verb, keys, sizes, &kept.ReplicateConfig)
	if err != nil {
		for _, i := range which {
			errs[i] = fmt.Errorf("%s %q: %w", verb.name, items[i].Key, err)
		}
		return errs
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.WriteTimeout)
	defer cancel()
	b := &batch{c: c, verb: verb, items: items, errs: errs, targets: make([]*targets, len(items)), sums: make([]*uint64, len(items))}
	_ = each(len(which), c.cfg.Parallel, func(n int) error {
		i := which[n]
		if errs[i] = refused(verb.name, items[i].Key, got[n].Code); errs[i] == nil {
			b.write(ctx, limited, i, got[n].Value, kept.Checksum)
		}
		return nil
	})
	b.end(ctx, limited)
	return errs
}

// startMany begins writes of many keys.
func (c *Client) startMany(ctx context.Context, verb *verb, keys []string, sizes []uint64, config *object.ReplicateConfig) ([]started, error) {
	begin := func(ctx context.Context) (got []started, err error) {
		q := wire.BatchPutStartRequest{ClientID: c.id, Keys: keys, SliceLengths: sizes, Config: *config, TenantID: c.cfg.Tenant}
		err = verb.startMany(ctx, c, &q, &got)
		if errors.Is(err, errcode.RPCFail) && c.alone(keys...) { // see start
			var revoked []ended
			if verb.revokeMany(ctx, c, keys, &revoked) == nil {
				got = nil
				err = verb.startMany(ctx, c, &q, &got)
			}
		}
		return got, answers(got, len(keys), err)
	}
	return detached(ctx, c, keys, begin, func(ctx context.Context, got []started) {
		var begun []string
		for i := range got {
			if got[i].Code == errcode.OK {
				begun = append(begun, keys[i])
			}
		}
		if len(begun) > 0 {
			ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
			defer cancel()
			var revoked []ended
			_ = verb.revokeMany(ctx, c, begun, &revoked) // else the master gives them up in time
		}
	})
}

// batch is many writes of one kind that have begun.
type batch struct {
	c       *Client
	verb    *verb
	items   []Item
	errs    []error
	targets []*targets // nil for items that have not begun
	sums    []*uint64
}

// write writes one value.
func (b *batch) write(ctx, limited context.Context, i int, replicas []object.ReplicaDescriptor, summed bool) {
	value := b.items[i].Value
	to, err := b.c.targets(replicas)
	b.targets[i] = to
	if summed {
		sum := uint64(transfer.Sum(value))
		b.sums[i] = &sum
	}
	if err == nil {
		err = to.write(limited, 0, value)
	}
	if err != nil {
		b.errs[i] = fmt.Errorf("%s %q: %w", b.verb.name, b.items[i].Key, b.c.blame(ctx, limited, err))
	}
}

// end ends what was written and revokes what was not.
func (b *batch) end(ctx, limited context.Context) {
	var good []int
	var metas []object.Meta
	for i, to := range b.targets {
		if to != nil && b.errs[i] == nil {
			good, metas = append(good, i), append(metas, object.Meta{Key: b.items[i].Key, Checksum: b.sums[i]})
		}
	}
	if len(good) > 0 {
		var got []ended
		q := wire.BatchPutEndRequest{ClientID: b.c.id, ObjectMetas: metas, ReplicaType: object.ReplicaAll, TenantID: b.c.cfg.Tenant}
		err := b.verb.endMany(limited, b.c, &q, &got)
		err = answers(got, len(good), err)
		for n, i := range good {
			why := err
			if why == nil && got[n].Code != errcode.OK {
				why = fmt.Errorf("its end: %w", got[n].Code)
			}
			if why != nil {
				b.errs[i] = fmt.Errorf("%s %q: %w", b.verb.name, b.items[i].Key, b.c.blame(ctx, limited, why))
			}
		}
	}
	b.revoke(ctx)
	for i, to := range b.targets {
		switch {
		case to == nil || to.file == nil:
		case b.errs[i] != nil:
			to.discard()
		default:
			b.c.endFile(ctx, b.verb, b.items[i].Key, to)
		}
	}
}

// revoke takes back what has begun and failed.
func (b *batch) revoke(ctx context.Context) {
	var bad []int
	var keys []string
	for i, to := range b.targets {
		switch {
		case to == nil || b.errs[i] == nil:
		case to.unsettled.Load():
			b.errs[i] = left(b.errs[i])
		default:
			bad, keys = append(bad, i), append(keys, b.items[i].Key)
		}
	}
	if len(bad) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	var got []ended
	err := b.verb.revokeMany(ctx, b.c, keys, &got)
	err = answers(got, len(bad), err)
	for n, i := range bad {
		if err != nil {
			b.errs[i] = fmt.Errorf("%w (and it could not be revoked: %w)", b.errs[i], err)
		} else {
			b.errs[i] = revoked(b.errs[i], got[n].Code)
		}
	}
}
