package connectortest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Watch is a Watch call under way.
type Watch struct {
	cancel context.CancelFunc
	events chan *connectorv1.WatchResponse
	ended  chan struct{} // closed when the stream is over
	err    error         // why; read after ended
}

// Watch begins to watch, as a host that has the revision from ("" for none). It ends with
// Close, or with the Host.
func (h *Host) Watch(from string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{cancel: cancel, events: make(chan *connectorv1.WatchResponse), ended: make(chan struct{})}
	h.mu.Lock()
	h.watches = append(h.watches, w)
	h.mu.Unlock()
	go func() {
		defer close(w.ended)
		w.err = w.follow(ctx, h.rpc, from)
	}()
	return w
}

func (w *Watch) follow(ctx context.Context, rpc connectorv1.ConnectorClient, from string) error {
	stream, err := rpc.Watch(ctx, &connectorv1.WatchRequest{FromRevision: from})
	for err == nil {
		var event *connectorv1.WatchResponse
		if event, err = stream.Recv(); err != nil {
			break
		}
		select {
		case w.events <- event:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failed("Watch", err)
}

// Close cancels the Watch and waits until its stream is over.
func (w *Watch) Close() {
	w.cancel()
	<-w.ended
}

// AwaitSnapshot waits for the next snapshot for which wanted is true; nil wants any. What else
// comes meanwhile is passed over. The error names what came instead.
func (w *Watch) AwaitSnapshot(wanted func(sdk.Document) bool) (sdk.Document, error) {
	var doc sdk.Document
	err := w.await("a snapshot", func(e *connectorv1.WatchResponse) (bool, error) {
		s := e.GetSnapshot()
		if s == nil {
			return false, nil
		}
		if sum := sha256.Sum256(s.GetDocument()); !bytes.Equal(sum[:], s.GetSha256()) {
			return false, errors.New("a snapshot whose sha256 is not that of its document")
		}
		doc = sdk.Document{Content: s.GetDocument(), Revision: s.GetRevision()}
		return wanted == nil || wanted(doc), nil
	})
	if err != nil {
		return sdk.Document{}, err
	}
	return doc, nil
}

// AwaitUnavailable waits until the connector says that there is no document to be had.
// Snapshots that come before are passed over.
func (w *Watch) AwaitUnavailable() (*sdk.Unavailable, error) {
	var why *sdk.Unavailable
	err := w.await("an unavailable", func(e *connectorv1.WatchResponse) (bool, error) {
		if e.GetUnavailable() == nil {
			return false, nil
		}
		why = unavailable(e.GetUnavailable())
		return true, nil
	})
	return why, err
}

// AwaitEnd waits until the connector ends the stream, which it should only do when it can't
// go on, and returns the error that a master would see.
func (w *Watch) AwaitEnd() error {
	err := w.await("the end of the stream", func(*connectorv1.WatchResponse) (bool, error) { return false, nil })
	select {
	case <-w.ended:
		return w.err
	default:
		return err
	}
}

// await takes events until one is wanted.
func (w *Watch) await(what string, wanted func(*connectorv1.WatchResponse) (bool, error)) error {
	late := time.NewTimer(Patience)
	defer late.Stop()
	last := "nothing"
	for {
		select {
		case e := <-w.events:
			ok, err := wanted(e)
			if ok || err != nil {
				return err
			}
			last = word(e)
		case <-w.ended:
			return fmt.Errorf("waiting for %s: the stream is over: %w", what, w.err)
		case <-late.C:
			return fmt.Errorf("waited %s for %s; the last that came was %s", Patience, what, last)
		}
	}
}

// word says what an event is.
func word(e *connectorv1.WatchResponse) string {
	switch {
	case e.GetSnapshot() != nil:
		return fmt.Sprintf("a snapshot of revision %q (%d bytes)", e.GetSnapshot().GetRevision(), len(e.GetSnapshot().GetDocument()))
	case e.GetUnavailable() != nil:
		return "an unavailable: " + unavailable(e.GetUnavailable()).Error()
	}
	return "a heartbeat"
}
