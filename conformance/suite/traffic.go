package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// traffic is one client: it lends memory that nobody touches, then puts, looks up and removes
// for tenant-a, and checks that tenant-b is held to its quota and strangers are refused. It
// returns the first answer that is not the one expected.
func traffic(ctx context.Context, addr string, n uint64, ops *atomic.Int64) error {
	dial, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := rpc.Dial(dial, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	id := segment.UUID{First: n, Second: n}
	call := context.WithoutCancel(ctx)
	info := segment.Info{ID: id, Name: fmt.Sprint("host", n, ":1"), Base: 1 << 40, Size: 4 << 30, Endpoint: fmt.Sprint("host", n, ":1"), Protocol: "tcp"}
	var ok errcode.Result[errcode.Void]
	if err := rpc.Invoke(call, c, wire.MountSegment, &wire.MountSegmentRequest{Segment: info, ClientID: id}, &ok); err != nil || ok.Code != 0 {
		return fmt.Errorf("mount: %v, %w", ok.Code, err)
	}
	if err := rpc.Invoke(call, c, wire.ReMountSegment, &wire.ReMountSegmentRequest{Segments: []segment.Info{info}, ClientID: id}, &ok); err != nil || ok.Code != 0 {
		return fmt.Errorf("remount: %v, %w", ok.Code, err)
	}
	for i := 0; ctx.Err() == nil; i++ {
		if err := round(call, c, id, fmt.Sprint("c", n, "-", i)); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		ops.Add(7)
		if i%50 == 0 {
			var pong errcode.Result[wire.PingReply]
			if err := rpc.Invoke(call, c, wire.Ping, &wire.PingRequest{ClientID: id}, &pong); err != nil || pong.Value.ClientStatus != wire.ClientOK {
				return fmt.Errorf("ping: %v, %w", pong.Value.ClientStatus, err)
			}
		}
	}
	return nil
}

// round is one object's life.
func round(ctx context.Context, c *rpc.Client, id segment.UUID, key string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	start := func(tenant string, size uint64) (errcode.Code, error) {
		var r errcode.Result[[]object.ReplicaDescriptor]
		err := rpc.Invoke(ctx, c, wire.PutStart, &wire.PutStartRequest{ClientID: id, Key: key, SliceLength: size, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: tenant}, &r)
		return r.Code, err
	}
	steps := []struct {
		what string
		want errcode.Code
		do   func() (errcode.Code, error)
	}{
		{"put start", errcode.OK, func() (errcode.Code, error) { return start("tenant-a", 4096) }},
		{"put end", errcode.OK, func() (errcode.Code, error) {
			var r errcode.Result[errcode.Void]
			err := rpc.Invoke(ctx, c, wire.PutEnd, &wire.PutEndRequest{ClientID: id, ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: "tenant-a"}, &r)
			return r.Code, err
		}},
		{"exist", errcode.OK, func() (errcode.Code, error) {
			var r errcode.Result[bool]
			err := rpc.Invoke(ctx, c, wire.ExistKey, &wire.ExistKeyRequest{Key: key, TenantID: "tenant-a"}, &r)
			if err == nil && !r.Value {
				return errcode.ObjectNotFound, nil
			}
			return r.Code, err
		}},
		{"get", errcode.OK, func() (errcode.Code, error) {
			var r errcode.Result[object.ReplicaList]
			err := rpc.Invoke(ctx, c, wire.GetReplicaList, &wire.GetReplicaListRequest{Key: key, TenantID: "tenant-a"}, &r)
			return r.Code, err
		}},
		{"put of a tenant without policy", errcode.TenantNotRegistered, func() (errcode.Code, error) { return start("nobody", 4096) }},
		{"put over the quota", errcode.TenantQuotaExceeded, func() (errcode.Code, error) { return start("tenant-b", 65<<20) }},
		{"remove", errcode.OK, func() (errcode.Code, error) {
			var r errcode.Result[errcode.Void]
			err := rpc.Invoke(ctx, c, wire.Remove, &wire.RemoveRequest{Key: key, Force: true, TenantID: "tenant-a"}, &r)
			return r.Code, err
		}},
	}
	for _, s := range steps {
		code, err := s.do()
		if err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		if code != s.want {
			return fmt.Errorf("%s: %v, want %v", s.what, code, s.want)
		}
	}
	return nil
}
