package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// watch is a Watch call under way.
type watch struct {
	k      *kit
	cancel context.CancelFunc
	events chan *connectorv1.WatchResponse
	ended  chan struct{} // closed when the stream is over
	err    error         // why it is over; read after ended
}

// watch begins a Watch. The caller must close it.
func (k *kit) watch(ctx context.Context, p *child, from string) (*watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := p.rpc.Watch(ctx, &connectorv1.WatchRequest{FromRevision: from})
	if err != nil {
		cancel()
		return nil, k.callError("Watch", err)
	}
	w := &watch{k: k, cancel: cancel, events: make(chan *connectorv1.WatchResponse), ended: make(chan struct{})}
	k.running.Go(func() {
		defer close(w.ended)
		for {
			event, err := stream.Recv()
			if err != nil {
				w.err = k.callError("Watch", err)
				return
			}
			if err := checkEvent(event); err != nil {
				w.err = err
				cancel()
				return
			}
			select {
			case w.events <- event:
			case <-ctx.Done():
				w.err = ctx.Err()
				return
			}
		}
	})
	return w, nil
}

// close ends the stream and waits for its end.
func (w *watch) close() {
	w.cancel()
	<-w.ended
}

// checkEvent checks what every event must hold.
func checkEvent(event *connectorv1.WatchResponse) error {
	switch e := event.GetEvent().(type) {
	case *connectorv1.WatchResponse_Snapshot:
		if e.Snapshot.GetRevision() == "" {
			return errors.New("Watch gave a snapshot without a revision")
		}
		if err := checkSize("Watch", e.Snapshot.GetDocument()); err != nil {
			return err
		}
		if sum := sha256.Sum256(e.Snapshot.GetDocument()); !bytes.Equal(sum[:], e.Snapshot.GetSha256()) {
			return fmt.Errorf("Watch gave a snapshot (revision %q, %d bytes) whose sha256 is not that of its document; a master refuses it",
				shorten(e.Snapshot.GetRevision()), len(e.Snapshot.GetDocument()))
		}
	case *connectorv1.WatchResponse_Unavailable:
		if e.Unavailable.GetReason() == "" {
			return errors.New("Watch said unavailable without a reason for people")
		}
	case *connectorv1.WatchResponse_Heartbeat:
	default:
		return errors.New("Watch gave an event that is neither snapshot, nor unavailable, nor heartbeat")
	}
	return nil
}

// await takes events until one is wanted; an error of wanted ends it. what is for the message
// when there is none in time.
func (w *watch) await(ctx context.Context, limit time.Duration, what string, wanted func(*connectorv1.WatchResponse) (bool, error)) (*connectorv1.WatchResponse, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case event := <-w.events:
			if ok, err := wanted(event); ok || err != nil {
				return event, err
			}
		case <-w.ended:
			return nil, fmt.Errorf("waiting for %s: %w", what, w.err)
		case <-late.C:
			return nil, fmt.Errorf("no %s within %s", what, limit)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// first is the first event that is not a heartbeat.
func (w *watch) first(ctx context.Context, limit time.Duration) (*connectorv1.WatchResponse, error) {
	return w.await(ctx, limit, "first snapshot", func(e *connectorv1.WatchResponse) (bool, error) {
		return e.GetHeartbeat() == nil, nil
	})
}

// snapshot waits for a snapshot of that document. Other snapshots may come before.
func (w *watch) snapshot(ctx context.Context, limit time.Duration, document []byte) (*connectorv1.Snapshot, error) {
	e, err := w.await(ctx, limit, "snapshot of what was put at the source", func(e *connectorv1.WatchResponse) (bool, error) {
		return e.GetSnapshot() != nil && same(e.GetSnapshot().GetDocument(), document), nil
	})
	return e.GetSnapshot(), err
}

// unavailable waits for an unavailable. A snapshot of another document than the allowed is an
// error: something was invented.
func (w *watch) unavailable(ctx context.Context, limit time.Duration, allowed []byte, why string) (*connectorv1.Unavailable, error) {
	e, err := w.await(ctx, limit, "unavailable event although "+why, func(e *connectorv1.WatchResponse) (bool, error) {
		if s := e.GetSnapshot(); s != nil && (allowed == nil || !same(s.GetDocument(), allowed)) {
			return false, invented("Watch", why, s.GetDocument())
		}
		return e.GetUnavailable() != nil, nil
	})
	return e.GetUnavailable(), err
}

// invented is the error of a document that the source does not hold.
func invented(call, why string, document []byte) error {
	kind := "a document"
	if empty(document) {
		kind = "an empty policy"
	}
	return fmt.Errorf("%s gave %s (%q) although %s; it must say unavailable, never make up a policy", call, kind, shorten(string(document)), why)
}
