package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// join makes the node known and mounts its memory, as often as that takes: it is a service, and master and
// metadata store may come later. It fails when trying again can't help, and when ctx ends.
func (n *Node) join(ctx context.Context) error {
	if err := n.patiently(ctx, "the master does not answer yet", n.reach); err != nil {
		return err
	}
	if err := n.patiently(ctx, "the metadata store can't be told yet", n.open); err != nil {
		return err
	}
	if err := n.waitForName(ctx); err != nil {
		return err
	}
	return n.patiently(ctx, "the memory can't be mounted yet", n.mount)
}

// hopeless is an error that trying again does not help against.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// patiently does something until it works, is hopeless, or ctx ends. What keeps it from working is logged when
// it changes, and else every half minute.
func (n *Node) patiently(ctx context.Context, what string, f func(context.Context) error) error {
	said, at := "", time.Time{}
	for i := 0; ; i++ {
		err := f(ctx)
		switch {
		case err == nil:
			if said != "" {
				n.cfg.Log.Info("it works now", "was", what)
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(hopeless)):
			return err
		}
		if now := n.cfg.Now(); err.Error() != said || now.Sub(at) >= repeatPeriod {
			n.cfg.Log.Warn(what+", trying again", "error", err)
			said, at = err.Error(), now
		}
		if !pause(ctx, i) {
			return ctx.Err()
		}
	}
}

// repeatPeriod is how often the log says again what has not changed.
const repeatPeriod = 30 * time.Second

// reach connects to the master.
func (n *Node) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := n.link.connection(ctx)
	if errors.Is(err, ErrVersion) {
		return hopeless{err}
	}
	return err
}

// open makes the host, registers the memory and publishes both.
func (n *Node) open(ctx context.Context) error {
	if n.host == nil {
		h, err := segment.NewHost(ctx, n.hostConfig())
		if err != nil {
			return published(err)
		}
		n.host = h
		n.name = orDefault(n.cfg.Name, h.Name())
	}
	for len(n.segments) < len(n.memory) {
		m := n.memory[len(n.segments)]
		err := n.host.Register(ctx, m)
		if store := new(segment.PublishError); err != nil && !errors.As(err, &store) {
			return hopeless{fmt.Errorf("registering %d bytes: %w", len(m.Bytes()), err)}
		}
		n.segments = append(n.segments, core.Info{
			ID: newID(), Name: n.name, Base: m.Address(), Size: uint64(len(m.Bytes())), Endpoint: n.host.Name(), Protocol: n.cfg.protocol(),
		})
		if err != nil {
			return err
		}
	}
	return n.host.Publish(ctx)
}

// hostConfig is how the node is reached.
func (n *Node) hostConfig() segment.HostConfig {
	name := n.cfg.Name
	if name == "" {
		name = net.JoinHostPort(ownAddress(), strconv.Itoa(DefaultPort))
	}
	return segment.HostConfig{Name: name, Metadata: n.cfg.Metadata, Cluster: n.cfg.Cluster, Bind: n.cfg.Bind, DataVersion: n.cfg.DataVersion, RDMA: n.adapter, Now: n.cfg.Now}
}

// published says what it means that a host could not be made: that the metadata store can't be told is worth
// another try, unless another process has the name.
func published(err error) error {
	if store := new(segment.PublishError); !errors.As(err, &store) || errors.Is(err, segment.ErrNameTaken) {
		return hopeless{err}
	}
	return err
}

// waitForName waits while the master has a segment of this name of somebody else: of a node that was here before
// and ended without a word, which the master still waits for, or of one that is there.
func (n *Node) waitForName(ctx context.Context) error {
	end := n.cfg.Now().Add(n.cfg.NameTimeout)
	return n.patiently(ctx, "the master still has a segment of this name", func(ctx context.Context) error {
		status, err := ask(ctx, &n.link, wire.QuerySegmentStatus, &wire.QuerySegmentStatusRequest{SegmentName: n.name})
		switch {
		case errors.Is(err, errcode.SegmentNotFound):
			return nil
		case err != nil:
			return err
		}
		err = fmt.Errorf("segment %s is mounted by another client, in status %s", n.name, status)
		if !n.cfg.Now().Before(end) {
			return hopeless{fmt.Errorf("%w: %w; choose another name", segment.ErrNameTaken, err)}
		}
		return err
	})
}

// mount tells the master of the memory. A node that the master does not know yet is asked to tell once more at
// its first ping.
func (n *Node) mount(ctx context.Context) error {
	for _, s := range n.segments {
		if err := do(ctx, &n.link, wire.MountSegment, &wire.MountSegmentRequest{Segment: s, ClientID: n.id}); err != nil {
			return err
		}
	}
	return n.remount(ctx)
}

// remount tells the master of all memory at once, after which it answers pings with OK.
func (n *Node) remount(ctx context.Context) error {
	return do(ctx, &n.link, wire.ReMountSegment, &wire.ReMountSegmentRequest{Segments: n.segments, ClientID: n.id})
}

// leave takes the memory out of the pool and the name out of the metadata store, as far as both can be told.
func (n *Node) leave(ctx context.Context) {
	limit := leaveTimeout
	if ctx.Err() != nil {
		limit = time.Second // it is to be quick
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for _, s := range n.segments {
		if err := do(ctx, &n.link, wire.UnmountSegment, &wire.UnmountSegmentRequest{SegmentID: s.ID, ClientID: n.id}); err != nil {
			n.cfg.Log.Warn("the master could not be told that the memory goes; it finds out", "segment", s.Name, "error", err)
			break
		}
	}
	if n.host == nil {
		return
	}
	if err := n.host.Close(ctx); err != nil {
		n.cfg.Log.Warn("the metadata store could not be told that the node goes", "error", err)
	}
}
