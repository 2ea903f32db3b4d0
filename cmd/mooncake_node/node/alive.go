package node

import (
	"context"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// How often the master hears of the node, and the metadata store.
const (
	pingPeriod    = time.Second
	publishPeriod = 30 * time.Second
)

// keepAlive pings the master and mounts again what it has forgotten: after a restart it knows nobody.
func (n *Node) keepAlive(ctx context.Context) {
	failed := 0 // pings in a row
	for wait(ctx, pingPeriod) {
		err := n.ping(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if failed > 0 {
				n.cfg.Log.Info("the master answers again", "master", n.cfg.Master)
			}
			failed = 0
			n.counters.heard.Store(n.cfg.Now().UnixNano())
		default:
			n.counters.pingsFailed.Add(1)
			if failed++; failed == 1 {
				n.cfg.Log.Warn("the master does not answer, trying again", "master", n.cfg.Master, "error", err)
			}
			if !pause(ctx, failed-1) {
				return
			}
		}
	}
}

// ping is one sign of life.
func (n *Node) ping(ctx context.Context) error {
	var got errcode.Result[wire.PingReply]
	if err := call(ctx, &n.link, wire.Ping, &wire.PingRequest{ClientID: n.id}, &got); err != nil {
		return err
	}
	if got.Value.ClientStatus != wire.ClientNeedRemount || n.leaving.Load() {
		return got.Code.Err()
	}
	n.cfg.Log.Info("the master does not know this node; mounting again", "segment", n.name)
	// The master's own metadata store has begun anew with it: others must find the node before they are sent to it.
	if err := n.publish(ctx); err != nil {
		return err
	}
	if err := n.remount(ctx); err != nil {
		return err
	}
	n.counters.remounts.Add(1)
	return nil
}

// keepPublished puts into the metadata store what it may have lost, now and then. A store that is away is no
// reason to stop: who knows the node already does not ask for it again.
func (n *Node) keepPublished(ctx context.Context) {
	failing := false
	for wait(ctx, publishPeriod) {
		err := n.publish(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			n.cfg.Log.Warn("the metadata store can't be told of this node; those who know it go on", "error", err)
		case err == nil && failing:
			n.cfg.Log.Info("the metadata store knows this node again")
		}
		failing = err != nil
	}
}

func (n *Node) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := n.host.Publish(ctx)
	if err != nil {
		n.counters.publishFailed.Add(1)
	}
	return err
}
