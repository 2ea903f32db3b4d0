package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

var watchCases = []testCase{
	{name: "watch/first", about: "the first snapshot comes within 5 s and is what Load gives", run: firstSnapshot},
	{name: "watch/from-revision", about: "the first snapshot is left out when the host has that revision already", run: fromRevision},
	{name: "watch/change", about: "a change at the source is told within 5 s, and Load then gives it too", run: change},
	{name: "watch/two", about: "two Watch calls at once both see a change", run: twoWatches},
	{name: "watch/bytes", about: "a document that is no YAML is passed on as it is or told as unavailable, and a good one after it is told", run: alienBytes},
	{name: "watch/blank", about: "an empty document is never turned into a policy, and a good one after it is told", run: blank},
	{name: "watch/nobody", about: "an empty list of tenants that the source says is passed on", run: nobody},
	{name: "watch/storm", about: "1,000 edits during which the host does not read: they end with the last, in order", run: storm},
	{name: "watch/cancel", about: "a cancelled Watch ends within 2 s, in the connector as well", run: cancelled},
	{name: "watch/heartbeat", about: "a heartbeat at once, and then at least every 15 s", run: heartbeats, background: true},
	{name: "watch/leaks", about: "100 Watch calls, one after the other, leave no descriptors, tasks (threads, where tasks are not told) or memory behind", run: leaks},
}

// watched starts a connector for a source that holds document(1) and a Watch that has told it.
// The caller ends both by the function.
func (k *kit) watched(ctx context.Context) (*child, *watch, func(), error) {
	if _, err := k.current(ctx); err != nil {
		return nil, nil, nil, err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := k.watch(ctx, p, "")
	if err != nil {
		p.end(k)
		return nil, nil, nil, err
	}
	if _, err := w.first(ctx, k.limit(eventLimit)); err != nil {
		w.close()
		p.end(k)
		return nil, nil, nil, err
	}
	return p, w, func() { w.close(); p.end(k) }, nil
}

// told writes a document to the source and waits until the Watch tells it.
func (k *kit) told(ctx context.Context, w *watch, document []byte) error {
	if err := k.source.Set(ctx, document); err != nil {
		return err
	}
	_, err := w.snapshot(ctx, k.limit(eventLimit), document)
	return err
}

func firstSnapshot(ctx context.Context, k *kit) error {
	now, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	event, err := w.first(ctx, k.limit(eventLimit))
	if err != nil {
		return err
	}
	s := event.GetSnapshot()
	switch {
	case s == nil:
		return fmt.Errorf("the source holds a document, but Watch says unavailable: %s", event.GetUnavailable().GetReason())
	case s.GetRevision() != now.GetRevision() || !bytes.Equal(s.GetDocument(), now.GetDocument()):
		return fmt.Errorf("Watch begins with revision %q (%d bytes), Load gave %q (%d bytes)",
			s.GetRevision(), len(s.GetDocument()), now.GetRevision(), len(now.GetDocument()))
	}
	return nil
}

// quietLimit is how long nothing must come; it is not the connector that is waited for.
const quietLimit = 2 * time.Second

func fromRevision(ctx context.Context, k *kit) error {
	now, err := k.current(ctx)
	if err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	w, err := k.watch(ctx, p, now.GetRevision())
	if err != nil {
		return err
	}
	defer w.close()
	quiet, cancel := context.WithTimeout(ctx, quietLimit)
	defer cancel()
	event, err := w.first(quiet, k.limit(eventLimit))
	switch {
	case err == nil && event.GetSnapshot().GetRevision() == now.GetRevision():
		return errors.New("Watch from the current revision begins with a snapshot of it; it must be left out")
	case err == nil:
		return fmt.Errorf("Watch from the current revision begins with %v although nothing changed", event)
	case quiet.Err() == nil:
		return err
	}
	next := document(3)
	err = k.told(ctx, w, next)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // what could be looked at is as it should be
	}
	return err
}

func change(ctx context.Context, k *kit) error {
	p, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	sets := []func(context.Context, []byte) error{k.source.Set, k.source.Set}
	if f, ok := k.source.(*fileSource); ok { // the other ways in which people save a file
		sets = append(sets, f.overwrite, f.recreate, f.Set)
	}
	seen := map[string]int{}
	for i, set := range sets {
		next := document(10 + i)
		if err := set(ctx, next); err != nil {
			return err
		}
		s, err := w.snapshot(ctx, k.limit(eventLimit), next)
		if err != nil {
			return err
		}
		if before, known := seen[s.GetRevision()]; known {
			return fmt.Errorf("changes %d and %d have the same revision %q; another document must have another", before+1, i+1, s.GetRevision())
		}
		seen[s.GetRevision()] = i
		now, err := k.load(ctx, p)
		if err != nil {
			return err
		}
		if now.GetRevision() != s.GetRevision() || !bytes.Equal(now.GetDocument(), s.GetDocument()) {
			return fmt.Errorf("Watch told revision %q, Load then gives %q", s.GetRevision(), now.GetRevision())
		}
	}
	return nil
}

func twoWatches(ctx context.Context, k *kit) error {
	p, one, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	two, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer two.close()
	if _, err := two.first(ctx, k.limit(eventLimit)); err != nil {
		return fmt.Errorf("Watch 2 of two: %w", err)
	}
	next := document(20)
	if err := k.source.Set(ctx, next); err != nil {
		return err
	}
	for i, w := range []*watch{one, two} {
		if _, err := w.snapshot(ctx, k.limit(eventLimit), next); err != nil {
			return fmt.Errorf("Watch %d of two: %w", i+1, err)
		}
	}
	return nil
}

func alienBytes(ctx context.Context, k *kit) error {
	return k.strange(ctx, []byte("\xff\xfe\x00tenants: [\x01\n\x80"), "the source holds bytes that are no YAML")
}

func blank(ctx context.Context, k *kit) error {
	return k.strange(ctx, nil, "the source holds an empty document")
}

// strange puts something that is no policy at the source. It may be passed on byte for byte,
// for the host to refuse, or be unavailable.
func (k *kit) strange(ctx context.Context, text []byte, why string) error {
	_, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := k.source.Set(ctx, text); err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		return skipf("the source does not take it: %v", err)
	}
	_, err = w.await(ctx, k.limit(eventLimit), "event although "+why, func(e *connectorv1.WatchResponse) (bool, error) {
		s := e.GetSnapshot()
		if s != nil && !bytes.Equal(s.GetDocument(), text) {
			return false, fmt.Errorf("Watch gave %q although %s; it must be passed on as it is, or told as unavailable", shorten(string(s.GetDocument())), why)
		}
		return e.GetHeartbeat() == nil, nil
	})
	if err != nil {
		return err
	}
	good := document(30)
	return k.told(ctx, w, good)
}

func nobody(ctx context.Context, k *kit) error {
	_, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	text := []byte("version: 1\ntenants: []\n")
	return k.told(ctx, w, text)
}

const (
	stormEdits = 1000
	stormMost  = 60 * time.Second // the edits stop after that, for slow source commands
	stormLarge = 4 << 10          // bytes of a document: together more than fits into a stream's window
)

func storm(ctx context.Context, k *kit) error {
	_, w, end, err := k.watched(ctx)
	if err != nil {
		return err
	}
	defer end()
	const base = 1000
	last, begin := 0, time.Now()
	for i := range stormEdits {
		if time.Since(begin) > k.limit(stormMost) {
			break
		}
		if err := k.source.Set(ctx, padded(document(base+i), stormLarge)); err != nil {
			return fmt.Errorf("edit %d: %w", i+1, err)
		}
		last = base + i
	}
	newest := 0
	_, err = w.await(ctx, k.limit(eventLimit), fmt.Sprintf("snapshot of the last of %d edits", last-base+1), func(e *connectorv1.WatchResponse) (bool, error) {
		if e.GetSnapshot() == nil {
			return false, nil
		}
		n, ok := number(e.GetSnapshot().GetDocument())
		switch {
		case !ok:
			return false, fmt.Errorf("Watch gave %q, which was never at the source", shorten(string(e.GetSnapshot().GetDocument())))
		case n < newest:
			return false, fmt.Errorf("Watch gave edit %d after edit %d; snapshots must come in the order of the source", n-base+1, newest-base+1)
		}
		newest = n
		return n == last, nil
	})
	if err != nil && newest > 0 {
		return fmt.Errorf("the newest told is edit %d: %w", newest-base+1, err)
	}
	return err
}

func heartbeats(ctx context.Context, k *kit) error {
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return err
	}
	defer w.close()
	isBeat := func(e *connectorv1.WatchResponse) (bool, error) { return e.GetHeartbeat() != nil, nil }
	if _, err := w.await(ctx, k.limit(eventLimit), "heartbeat at the beginning", isBeat); err != nil {
		return err
	}
	for range 2 {
		// Other cases change the source meanwhile; that is no reason to be silent.
		if _, err := w.await(ctx, k.limit(silenceLimit), "heartbeat", isBeat); err != nil {
			return err
		}
	}
	return nil
}
