package http

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

const (
	// gap is the least time between two requests, whatever the server says.
	gap = 50 * time.Millisecond
	// retry is the first pause after trouble, doubled each time up to retryMost (or the poll
	// interval, if that is less).
	retry     = 250 * time.Millisecond
	retryMost = 4 * time.Second
	// thorough is after how many answers "the same" the whole document is asked for: there are
	// servers whose ETag is made of size and time in seconds.
	thorough = 12
	// brokenMost is after how many requests that were held back and broke no more are made.
	brokenMost = 3
)

// Watch implements sdk.Connector.
func (c *Connector) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	for ctx.Err() == nil {
		s, changed := c.current()
		if s == nil {
			return errNotConfigured
		}
		follow(ctx, s, changed, sink)
	}
	return nil
}

// follow watches one server until ctx ends or it is another one.
func follow(ctx context.Context, s *server, changed <-chan struct{}, sink sdk.Sink) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.close()
	// A request that is being held back must not outlive its configuration.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-gone }()
	w := following{server: s, sink: sink}
	for {
		pause := w.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// following is where a watch stands.
type following struct {
	server   *server
	sink     sdk.Sink
	etag     string // of the document told last; "" to ask for all of it
	sames    int    // answers "the same" since all of it came
	failures int    // in a row
	broken   int    // requests that were held back and broke, in a row
	plain    bool   // the next request is not to be held back
}

// ask makes one request, tells what came, and returns how long to wait before the next.
func (w *following) ask(ctx context.Context) time.Duration {
	options := w.server.settings
	if w.sames >= thorough {
		w.etag = ""
	}
	wait := options.wait
	if w.etag == "" || w.plain || w.broken >= brokenMost {
		wait = 0
	}
	began := time.Now()
	got, why := w.server.get(ctx, w.etag, wait)
	switch {
	case ctx.Err() != nil:
		return 0
	case why != nil && wait > 0:
		// Perhaps somebody between us and the server closes what is quiet for long: that alone
		// is no trouble with the source.
		if w.broken++; w.broken == brokenMost {
			w.server.logger.Warn("requests that are held back break, asking at intervals from now on", "poll", options.poll, "why", why.Reason)
		}
		w.plain = true
		return max(gap, why.later)
	case why != nil:
		w.sink.Unavailable(why.Unavailable)
		// The document has to be told again when it is back, so ask for all of it.
		w.etag, w.sames = "", 0
		w.failures++
		return troubled(w.failures-1, options.poll, why.later)
	case got.same:
		w.sames++
	default:
		w.sink.Snapshot(got.document())
		w.etag, w.sames = got.etag, 0
	}
	w.failures, w.plain = 0, false
	if got.waited {
		w.broken = 0
	}
	// Whether a server holds requests back is seen when it is asked to.
	untried := wait == 0 && w.etag != "" && options.wait > 0 && w.broken < brokenMost
	return calm(got.waited || untried, options.poll, time.Since(began))
}

// calm is the pause after an answer that took so long: none to speak of if the server holds
// requests back, or may do so from the next one on; else the interval, up to a tenth more or
// less so that masters do not ask in step.
func calm(holds bool, poll, took time.Duration) time.Duration {
	if holds {
		return max(0, gap-took)
	}
	return poll - poll/10 + rand.N(poll/5+1)
}

// troubled is the pause after so many failures in a row.
func troubled(failures int, poll, later time.Duration) time.Duration {
	d := min(retry<<min(failures, 10), retryMost, max(poll, retry))
	return max(d/2+rand.N(d/2+1), later)
}
