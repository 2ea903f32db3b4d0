package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// Watch implements sdk.Connector.
func (c *Connector) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	for {
		l, changed, stopped := c.current()
		if stopped {
			return errStopped
		}
		if l == nil {
			sink.Unavailable(errUnconfigured)
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				continue
			}
		}
		w := &watch{c: c, link: l, sink: sink}
		w.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// watch follows the key under one configuration.
type watch struct {
	*link
	c       *Connector
	sink    sdk.Sink
	pauses  pauses
	at      int64  // newest revision of the cluster that was seen
	cluster uint64 // the cluster it was seen of
	trouble string // what the log said last
	late    int    // watches in a row that have not begun
}

// run reads and watches in turns until ctx or the link ends.
func (w *watch) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	for ctx.Err() == nil && w.ctx.Err() == nil {
		f, err := w.read(ctx)
		if err != nil {
			if ctx.Err() == nil && w.ctx.Err() == nil {
				w.failed(ctx, err)
			}
			continue
		}
		w.well()
		w.tell(f)
		began := time.Now()
		err = w.follow(ctx, f)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > w.limits.pulse {
			w.pauses = pauses{}
		}
		w.c.logger.Info("the watch of the tenant quota policy ended, reading it anew", "key", w.key, "why", plain(message(err)))
		if w.pauses.n > 0 { // not the first in a row
			w.rest(ctx, w.pauses.next(answering))
		} else {
			w.pauses.n++
		}
	}
}

// failed tells that the key can't be read, and waits.
func (w *watch) failed(ctx context.Context, err error) {
	why := w.unavailable(err)
	w.sink.Unavailable(why)
	if w.trouble != why.Reason {
		w.trouble = why.Reason
		w.c.logger.Warn("the tenant quota policy can't be read, trying on", "why", why.Reason, "kind", why.Kind.String())
	}
	most := answering
	switch conn := w.existing(ctx); {
	case why.Kind != sdk.Unreachable:
		most = refusing
	case conn != nil && !w.connected(ctx):
		most = silent
	}
	w.rest(ctx, w.pauses.next(most))
}

func (w *watch) well() {
	if w.trouble != "" {
		w.trouble = ""
		w.c.logger.Info("the tenant quota policy can be read again", "key", w.key)
	}
}

// tell passes on what a read saw.
func (w *watch) tell(f found) {
	if w.cluster != 0 && (f.cluster != w.cluster || f.at < w.at) {
		w.c.logger.Warn("this is another etcd cluster than before, or one restored from a backup: what it holds counts",
			"key", w.key, "at_revision", f.at, "was", w.at, "cluster", clusterName(f.cluster), "was_cluster", clusterName(w.cluster))
	}
	w.at, w.cluster = f.at, f.cluster
	w.c.say(w.link, f)
	if doc, why := w.event(f); why != nil {
		w.sink.Unavailable(why)
	} else {
		w.sink.Snapshot(doc)
	}
}

// follow watches the key from behind what was read, until that ends, and says why.
func (w *watch) follow(ctx context.Context, f found) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A member that hangs is left soon, one that is slow gets its time when it comes to that.
	limit := min(w.timeout, w.limits.pulse<<min(w.late, 8))
	w.late++
	starting := time.AfterFunc(limit, func() { cancel(fmt.Errorf("no watch within %s", limit)) })
	defer starting.Stop()
	answers := make(chan *etcdserverpb.WatchResponse)
	ended := make(chan error, 1)
	stream, err := w.open(ctx, f.at+1)
	if err != nil {
		return cause(ctx, err)
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	err = w.receive(ctx, stream, f, answers, ended, starting)
	cancel(err)
	for { // until the goroutine is gone
		select {
		case <-answers:
		case <-ended:
			return err
		}
	}
}

// open asks for the changes of the key.
func (w *watch) open(ctx context.Context, from int64) (etcdserverpb.Watch_WatchClient, error) {
	_, conn, err := w.conn(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := etcdserverpb.NewWatchClient(conn).Watch(clientv3.WithRequireLeader(ctx), callOptions...)
	if err != nil {
		return nil, err
	}
	create := &etcdserverpb.WatchCreateRequest{Key: []byte(w.key), StartRevision: from, ProgressNotify: true, Fragment: true}
	return stream, stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}})
}

// receive deals with the answers of a watch.
func (w *watch) receive(ctx context.Context, stream etcdserverpb.Watch_WatchClient, f found, answers <-chan *etcdserverpb.WatchResponse, ended chan error, starting *time.Timer) error {
	beat := time.NewTicker(w.limits.pulse)
	defer beat.Stop()
	again := time.NewTicker(w.reconcile)
	defer again.Stop()
	created, alive := false, true
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			ended <- err // for who waits for the goroutine
			return cause(ctx, err)
		case answer := <-answers:
			alive = true
			if answer.GetCreated() && !answer.GetCanceled() {
				created, w.late = true, 0
				starting.Stop()
			}
			next, err := w.take(f, answer)
			if err != nil {
				return err
			}
			f = next
		case <-beat.C:
			if !created {
				continue // the start has its own limit
			}
			if !alive {
				return fmt.Errorf("no sign of life within %s", w.limits.pulse)
			}
			alive = false
			ask := &etcdserverpb.WatchRequest_ProgressRequest{ProgressRequest: &etcdserverpb.WatchProgressRequest{}}
			if err := stream.Send(&etcdserverpb.WatchRequest{RequestUnion: ask}); err != nil {
				return cause(ctx, err)
			}
		case <-again.C:
			// Whatever the watch says: is it still this version that is there?
			now, err := w.read(ctx)
			switch {
			case err != nil:
				return err
			case now.cluster != w.cluster || now.at < w.at:
				return errors.New("another cluster, or one restored from a backup")
			case now.revision != f.revision:
				w.tell(now)
				f = now
			}
		}
	}
}

// take deals with one answer of a watch and returns what is there now.
func (w *watch) take(f found, answer *etcdserverpb.WatchResponse) (found, error) {
	switch {
	case answer.GetCompactRevision() > 0:
		return f, fmt.Errorf("the revisions up to %d were compacted away", answer.GetCompactRevision())
	case answer.GetCanceled():
		return f, fmt.Errorf("etcd cancelled it: %s", answer.GetCancelReason())
	case answer.GetHeader().GetClusterId() != w.cluster:
		return f, errors.New("another cluster answers")
	}
	w.at = max(w.at, answer.GetHeader().GetRevision())
	events := answer.GetEvents()
	if len(events) == 0 {
		return f, nil
	}
	last := events[len(events)-1] // the others are overtaken
	kv := last.GetKv()
	if kv.GetModRevision() <= f.at {
		return f, nil // a read has seen more
	}
	now := found{at: kv.GetModRevision(), cluster: w.cluster}
	if last.GetType() == mvccpb.Event_PUT {
		now.present, now.content, now.mod, now.create = true, kv.GetValue(), kv.GetModRevision(), kv.GetCreateRevision()
		now.revision = revisionOf(now.mod, now.content)
	}
	if doc, why := w.event(now); why != nil {
		w.c.say(w.link, now)
		w.sink.Unavailable(why)
	} else {
		w.c.logger.Debug("the tenant quota policy in etcd was changed", "mod_revision", now.mod, "bytes", len(now.content))
		w.sink.Snapshot(doc)
	}
	return now, nil
}

// cause is why a stream broke: our own reason if we broke it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && status.Code(err) != codes.OK {
		return why
	}
	return err
}
