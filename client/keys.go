package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Stat is what the master knows about a key.
type Stat struct {
	Size     uint64 // bytes; 0 if no replica is known that has a size
	Replicas []object.ReplicaDescriptor
	Checksum *uint64       // as the writer gave it, see transfer.Checksum; nil without
	Lease    time.Duration // how long the value is protected from eviction from now on
}

// stat makes a Stat of replicas.
func stat(replicas []object.ReplicaDescriptor) Stat {
	s := Stat{Replicas: replicas}
	for i := range replicas {
		switch l := &replicas[i].Location; l.Index {
		case object.LocationMemory:
			s.Size = l.Memory.Buffer.Size
		case object.LocationNoF:
			s.Size = l.NoF.Buffer.Size
		case object.LocationLocalDisk:
			s.Size = l.LocalDisk.ObjectSize
		case object.LocationDisk:
			s.Size = l.Disk.ObjectSize
		case object.LocationDFS:
			s.Size = l.DFS.ObjectSize
		}
	}
	return s
}

// Stat says where the value of a key lies. It is protected from eviction for a while afterwards, as by Get,
// whose errors these are.
func (c *Client) Stat(ctx context.Context, key string) (Stat, error) {
	var list errcode.Result[object.ReplicaList]
	if err := call(ctx, c, again, wire.GetReplicaList, &wire.GetReplicaListRequest{Key: key, TenantID: c.cfg.Tenant}, &list); err != nil {
		return Stat{}, fmt.Errorf("stat %q: %w", key, err)
	}
	if list.Code != errcode.OK {
		return Stat{}, refused("stat", key, list.Code)
	}
	s := stat(list.Value.Replicas)
	s.Checksum, s.Lease = list.Value.Checksum, time.Duration(min(list.Value.LeaseTTLMs, uint64(maxLease/time.Millisecond)))*time.Millisecond
	return s, nil
}

// List returns what the master knows about the keys in which a regular expression of ECMAScript is found, without
// checksums and leases. It fails with errcode.InvalidParams for one that is wrong.
func (c *Client) List(ctx context.Context, regex string) (map[string]Stat, error) {
	var got errcode.Result[wire.Map[string, []object.ReplicaDescriptor]]
	if err := call(ctx, c, again, wire.GetReplicaListByRegex, &wire.GetReplicaListByRegexRequest{Regex: regex, TenantID: c.cfg.Tenant}, &got); err != nil {
		return nil, fmt.Errorf("list %q: %w", regex, err)
	}
	if got.Code != errcode.OK {
		return nil, refused("list", regex, got.Code)
	}
	found := make(map[string]Stat, len(got.Value.Entries))
	for _, e := range got.Value.Entries {
		found[e.Key] = stat(e.Value)
	}
	return found, nil
}

// Keys returns the keys in which a regular expression is found, sorted, as List.
func (c *Client) Keys(ctx context.Context, regex string) ([]string, error) {
	found, err := c.List(ctx, regex)
	keys := make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, err
}

// Exists reports whether a key has a value that can be read. One that has is protected from eviction for a while.
func (c *Client) Exists(ctx context.Context, key string) (bool, error) {
	var got errcode.Result[bool]
	if err := call(ctx, c, again, wire.ExistKey, &wire.ExistKeyRequest{Key: key, TenantID: c.cfg.Tenant}, &got); err != nil {
		return false, fmt.Errorf("exists %q: %w", key, err)
	}
	return got.Value, refused("exists", key, got.Code)
}

// ExistsBatch is Exists of many keys, for which the master is asked once. It returns an answer and an error for each, in
// their order.
func (c *Client) ExistsBatch(ctx context.Context, keys []string) ([]bool, []error) {
	there, errs := make([]bool, len(keys)), make([]error, len(keys))
	if len(keys) == 0 {
		return there, errs
	}
	var got []errcode.Result[bool]
	err := call(ctx, c, again, wire.BatchExistKey, &wire.BatchExistKeyRequest{Keys: keys, TenantID: c.cfg.Tenant}, &got)
	if err = answers(got, len(keys), err); err != nil {
		return there, fill(len(keys), fmt.Errorf("exists: %w", err))
	}
	for i := range got {
		there[i], errs[i] = got[i].Value, refused("exists", keys[i], got[i].Code)
	}
	return there, errs
}

// Remove removes a key; one that was read a short while ago only if force is set, else it fails with
// errcode.ObjectHasLease. A key without a value fails with errcode.ObjectNotFound, as may one that was removed
// while the connection to the master was lost.
func (c *Client) Remove(ctx context.Context, key string, force bool) error {
	var got errcode.Result[errcode.Void]
	if err := call(ctx, c, again, wire.Remove, &wire.RemoveRequest{Key: key, Force: force, TenantID: c.cfg.Tenant}, &got); err != nil {
		return fmt.Errorf("remove %q: %w", key, err)
	}
	return refused("remove", key, got.Code)
}

// RemoveBatch is Remove of many keys, for which the master is asked once. It returns an error for each, in their order.
func (c *Client) RemoveBatch(ctx context.Context, keys []string, force bool) []error {
	errs := make([]error, len(keys))
	if len(keys) == 0 {
		return errs
	}
	var got []errcode.Result[errcode.Void]
	err := call(ctx, c, again, wire.BatchRemove, &wire.BatchRemoveRequest{Keys: keys, Force: force, TenantID: c.cfg.Tenant}, &got)
	if err = answers(got, len(keys), err); err != nil {
		return fill(len(keys), fmt.Errorf("remove: %w", err))
	}
	for i := range got {
		errs[i] = refused("remove", keys[i], got[i].Code)
	}
	return errs
}

// RemoveByRegex removes the keys in which a regular expression of ECMAScript is found, and returns how many those
// were. Those that were read a short while ago stay, unless force is set.
func (c *Client) RemoveByRegex(ctx context.Context, regex string, force bool) (int64, error) {
	var got errcode.Result[int64]
	if err := call(ctx, c, once, wire.RemoveByRegex, &wire.RemoveByRegexRequest{Regex: regex, Force: force, TenantID: c.cfg.Tenant}, &got); err != nil {
		return 0, fmt.Errorf("remove by regular expression %q: %w", regex, err)
	}
	return got.Value, refused("remove by regular expression", regex, got.Code)
}

// RemoveAll removes all keys of the tenant, and returns how many those were, as RemoveByRegex.
func (c *Client) RemoveAll(ctx context.Context, force bool) (int64, error) {
	var got int64
	if err := call(ctx, c, once, wire.RemoveAll, &wire.RemoveAllRequest{Force: force, TenantID: c.cfg.Tenant}, &got); err != nil {
		return 0, fmt.Errorf("remove all: %w", err)
	}
	return got, nil
}
