package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// nodes are the make-believe clients whose memory the objects lie in: each has mounted one
// segment, which exists only in the master's books, and pings once a second.
type nodes struct {
	client   *rpc.Client
	ids      []segment.UUID
	segments []segment.Info

	failedPings atomic.Uint64
	cancel      context.CancelFunc
	wait        sync.WaitGroup
}

// callTimeout bounds the calls of nodes, as released clients bound theirs.
const callTimeout = 30 * time.Second

// rpcOptions are the options that make a client write requests as the dialect says.
func (d dialect) rpcOptions() []rpc.DialOption {
	opts := []rpc.DialOption{rpc.As(d.release)}
	if !d.literal {
		opts = append(opts, rpc.Compact())
	}
	return opts
}

// mountNodes mounts count segments of size bytes each, and keeps their clients alive until
// close. seed tells runs against one master apart.
func mountNodes(ctx context.Context, addr string, d dialect, count int, size, seed uint64) (*nodes, error) {
	client, err := rpc.Dial(ctx, addr, d.rpcOptions()...)
	if err != nil {
		return nil, err
	}
	n := &nodes{client: client}
	for i := range count {
		host := fmt.Sprintf("bench-%x-%03d:17000", seed&0xffff, i)
		n.ids = append(n.ids, segment.UUID{First: seed | 1, Second: uint64(i) + 1})
		n.segments = append(n.segments, segment.Info{
			ID: segment.UUID{First: seed | 1, Second: uint64(i) + 1 + 1<<32}, Name: host, Base: 1 << 40, Size: size, Endpoint: host, Protocol: "tcp",
		})
	}
	if err := n.mount(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	pinging, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.wait.Go(func() { n.ping(pinging) })
	return n, nil
}

func (n *nodes) mount(ctx context.Context) error {
	var version errcode.Result[string]
	if err := invoke(ctx, n.client, wire.ServiceReady, &wire.ServiceReadyRequest{}, &version); err != nil {
		return err
	}
	if version.Value != wire.ProtocolVersion {
		return fmt.Errorf("ServiceReady: the master speaks version %q of the protocol, want %q", version.Value, wire.ProtocolVersion)
	}
	for i := range n.ids {
		var done errcode.Result[errcode.Void]
		if err := invoke(ctx, n.client, wire.MountSegment, &wire.MountSegmentRequest{Segment: n.segments[i], ClientID: n.ids[i]}, &done); err != nil {
			return err
		}
		if done.Code != errcode.OK {
			return fmt.Errorf("mounting segment %d of %d bytes: %w", i+1, n.segments[i].Size, done.Code)
		}
		if err := n.remount(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (n *nodes) remount(ctx context.Context, i int) error {
	var done errcode.Result[errcode.Void]
	req := wire.ReMountSegmentRequest{Segments: n.segments[i : i+1], ClientID: n.ids[i]}
	if err := invoke(ctx, n.client, wire.ReMountSegment, &req, &done); err != nil {
		return err
	}
	if done.Code != errcode.OK {
		return fmt.Errorf("remounting segment %d: %w", i+1, done.Code)
	}
	return nil
}

// ping keeps the clients alive until ctx ends.
func (n *nodes) ping(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for i, id := range n.ids {
			var state errcode.Result[wire.PingReply]
			err := invoke(ctx, n.client, wire.Ping, &wire.PingRequest{ClientID: id}, &state)
			if err == nil && state.Value.ClientStatus == wire.ClientNeedRemount {
				err = n.remount(ctx, i)
			}
			if err != nil && ctx.Err() == nil {
				n.failedPings.Add(1)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// close stops the pings. With unmount the segments go, and with them the objects.
func (n *nodes) close(ctx context.Context, unmount bool) error {
	n.cancel()
	n.wait.Wait()
	var errs []error
	for i := range n.ids {
		if !unmount {
			break
		}
		var done errcode.Result[errcode.Void]
		req := wire.UnmountSegmentRequest{SegmentID: n.segments[i].ID, ClientID: n.ids[i]}
		if err := invoke(ctx, n.client, wire.UnmountSegment, &req, &done); err != nil {
			errs = append(errs, err)
			break
		}
		if done.Code != errcode.OK {
			errs = append(errs, fmt.Errorf("unmounting segment %d: %w", i+1, done.Code))
		}
	}
	return errors.Join(append(errs, n.client.Close())...)
}

// invoke makes one call within callTimeout.
func invoke[Req, Resp any](ctx context.Context, c *rpc.Client, r *wire.RPC[Req, Resp], req *Req, resp *Resp) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return rpc.Invoke(ctx, c, r, req, resp)
}
