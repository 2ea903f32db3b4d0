package connector

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/policy"
	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Connector is a connector process, kept running. It is a policy.Source.
type Connector struct {
	spec    Spec
	deps    Deps
	find    func() (*program, error)
	guard   *guard // owned by the supervisor
	sockets *sockets
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the supervisor has ended

	mu       sync.Mutex
	status   policy.SourceStatus // guarded by mu
	current  *session            // guarded by mu; nil while there is none to call
	changed  chan struct{}       // guarded by mu; closed and replaced with current
	pending  policy.Event        // guarded by mu; the newest event, until it is delivered
	revision string              // guarded by mu; of the newest event, "" unless a document
	bell     chan struct{}       // holds one token when pending is set
}

var _ policy.Source = (*Connector)(nil)

// Start finds and starts a connector and waits until it is configured. An error is one line
// that names the flag and the reason, and nothing is left running. With Deps.Optional the first
// attempt may fail: Status then says how, and it goes on trying.
func Start(ctx context.Context, spec Spec, deps Deps) (*Connector, error) {
	deps = deps.withDefaults()
	deps.Logger = deps.Logger.With("connector", spec.Type)
	place, err := newSockets(deps.Clock.Now())
	if err != nil {
		return nil, err
	}
	c := &Connector{
		spec: spec, deps: deps, sockets: place,
		find:  func() (*program, error) { return spec.find(deps.Self) },
		ended: make(chan struct{}), changed: make(chan struct{}), bell: make(chan struct{}, 1),
		status: policy.SourceStatus{
			Type: spec.Type, Origin: flagURI + "=" + spec.URI, State: policy.Starting, Since: deps.Clock.Now(),
		},
	}
	run, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	first := make(chan error, 1)
	go c.supervise(run, first)
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil || deps.Optional && ctx.Err() == nil {
		return c, nil
	}
	c.Close()
	var named *findError
	if errors.As(err, &named) {
		return nil, named
	}
	return nil, fmt.Errorf("%s=%s %s=%s: tenant quota connector%w", flagType, spec.Type, flagURI, spec.URI, introduced(err))
}

// Close stops the process and waits until it and everything else is gone. Calls under way end
// with an error.
func (c *Connector) Close() {
	c.cancel()
	<-c.ended
}

// Status implements policy.Source.
func (c *Connector) Status() policy.SourceStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// supervise keeps a process running until ctx ends. The result of the first start goes to
// first; if it is an error, that was all, unless the connector is optional.
func (c *Connector) supervise(ctx context.Context, first chan<- error) {
	defer close(c.ended)
	defer c.sockets.remove()
	defer c.setState(policy.Stopped, nil)
	// Children live as long as the thread that started them: see attributes.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer c.startGuard()()
	deaths := 0
	for {
		s, err := c.launch(ctx)
		if err != nil && (first == nil || c.deps.Optional) {
			c.setState(policy.Degraded, err)
		}
		if first != nil {
			first <- err
			if err != nil && !c.deps.Optional {
				return
			}
			first = nil
		}
		ran := err == nil
		if ran {
			c.install(s)
			started := c.deps.Clock.Now()
			err = c.follow(ctx, s)
			c.install(nil)
			s.end(c.deps.Timing.Stop)
			if c.deps.Clock.Now().Sub(started) > 20*c.deps.Timing.RetryReady {
				deaths = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		deaths++
		pause := c.pause(deaths, ran)
		c.setState(policy.Degraded, err)
		c.deps.Logger.Warn("connector lost, the last policy stays in force", "why", oneLine(err.Error()), "again_in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		c.mu.Lock()
		c.status.Restarts++
		c.mu.Unlock()
	}
}

// pause is how long to wait before the next start, after so many deaths in a row; ran tells
// that the last process had been started and configured well.
func (c *Connector) pause(deaths int, ran bool) time.Duration {
	t := c.deps.Timing
	if deaths == 1 && ran {
		return time.Duration(c.deps.Rand.Uint64N(uint64(t.Retry)))
	}
	most := t.RetryMost
	if ran {
		most = t.RetryReady
	}
	d := min(t.Retry<<min(deaths-1, 20), most)
	return d/2 + time.Duration(c.deps.Rand.Uint64N(uint64(d/2)+1))
}

// install makes a session the one to call, or nil.
func (c *Connector) install(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = s
	if s != nil {
		c.status.AbsentIsEmpty = s.about.GetAbsentMeans() == connectorv1.AbsentMeans_ABSENT_MEANS_EMPTY
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Connector) setState(state string, err error) {
	now := c.deps.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.status.LastError, c.status.LastErrorTime = oneLine(err.Error()), now
	}
	if c.status.State != state {
		c.status.State, c.status.Since = state, now
	}
}

// follow reads the watch of a session until it ends, and says why.
func (c *Connector) follow(ctx context.Context, s *session) error {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	c.mu.Lock()
	from := c.revision
	c.mu.Unlock()
	stream, err := s.rpc.Watch(s.ctx, &connectorv1.WatchRequest{FromRevision: from})
	if err != nil {
		return fmt.Errorf("it can't be watched: %s", statusText(err))
	}
	silence := time.AfterFunc(c.deps.Timing.Silence, s.cancel)
	defer silence.Stop()
	ready := false
	for {
		m, err := stream.Recv()
		switch {
		case err != nil && !silence.Stop() && ctx.Err() == nil:
			return fmt.Errorf("it was silent for %s", c.deps.Timing.Silence)
		case err != nil:
			select {
			case <-s.proc.exited:
				return errors.New(s.proc.death())
			case <-time.After(200 * time.Millisecond): // the stream breaks before the process is waited for
			}
			return fmt.Errorf("its watch ended: %s", statusText(err))
		}
		silence.Reset(c.deps.Timing.Silence)
		if err := c.receive(m); err != nil {
			return err
		}
		if !ready {
			ready = true
			c.setState(policy.Ready, nil)
			c.deps.Logger.Info("connector is ready", "name", s.about.GetName(), "version", s.about.GetVersion(), "pid", s.proc.ID())
		}
	}
}

// receive keeps one event of a stream for delivery, in place of an older one.
func (c *Connector) receive(m *connectorv1.WatchResponse) error {
	var event policy.Event
	revision := ""
	switch e := m.GetEvent().(type) {
	case *connectorv1.WatchResponse_Heartbeat:
		return nil
	case *connectorv1.WatchResponse_Snapshot:
		doc := policy.Document{Content: e.Snapshot.GetDocument(), Revision: e.Snapshot.GetRevision()}
		if doc.Revision == "" {
			return errors.New("it broke the contract: a snapshot without a revision")
		}
		if sum := sha256.Sum256(doc.Content); string(sum[:]) != string(e.Snapshot.GetSha256()) {
			return errors.New("it broke the contract: a snapshot that does not match its hash")
		}
		if gone := tooLarge(doc.Content); gone != nil {
			event.Unavailable = gone
			break
		}
		event.Document, revision = &doc, doc.Revision
	case *connectorv1.WatchResponse_Unavailable:
		event.Unavailable = unavailable(e.Unavailable)
	default:
		return errors.New("it broke the contract: an empty event")
	}
	c.mu.Lock()
	c.pending, c.revision = event, revision
	c.mu.Unlock()
	select {
	case c.bell <- struct{}{}:
	default:
	}
	return nil
}

// Watch implements policy.Source.
func (c *Connector) Watch(ctx context.Context, deliver func(policy.Event)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.bell:
		}
		c.mu.Lock()
		event := c.pending
		c.pending = policy.Event{}
		c.mu.Unlock()
		deliver(event)
	}
}

func tooLarge(document []byte) *policy.Unavailable {
	if len(document) <= sdk.MaxDocument {
		return nil
	}
	return &policy.Unavailable{Kind: policy.Invalid, Reason: fmt.Sprintf("the document has %d bytes, at most %d are accepted", len(document), sdk.MaxDocument)}
}
