package connector

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Once is a connector process run for a person who looks at it: started as a master starts it,
// asked one thing after the other, stopped. Nobody starts it again when it dies.
type Once struct {
	connector *Connector
	session   *session
	stop      chan struct{} // closed by Close
	ended     chan struct{} // closed when everything is gone
}

// About is what a connector says of itself.
type About struct {
	sdk.Description
	SDKVersion string // "" when it was made without the SDK
	Protocol   int    // version of the connector protocol that both sides speak
	PID        int
}

// Seen is one event of a watch; exactly one field is set.
type Seen struct {
	Document    *sdk.Document
	Unavailable *sdk.Unavailable
	Heartbeat   bool
}

// Check says why a master would not run the executable of the spec's type, in the words that it
// would use; nil when it would.
func (s Spec) Check() error {
	p, err := s.find(nil)
	p.close()
	return err
}

// chosen is the executable that a person has named; only its hash is checked, if there is one.
func (s Spec) chosen(path string) (*program, error) {
	p := &program{path: path, own: true}
	if s.SHA256 == "" {
		return p, nil
	}
	return p, s.pin(p)
}

// Open starts the executable at path, or with path "" the one that a master would start for the
// spec's type. If the spec has a hash, the executable must have it. Open only asks for the description; Configure is the caller's. The error is one line
// that names the executable and holds its last words.
func Open(ctx context.Context, path string, spec Spec, deps Deps) (*Once, error) {
	deps = deps.withDefaults()
	find, name := func() (*program, error) { return spec.find(deps.Self) }, "of type "+spec.Type
	if path != "" {
		find, name = func() (*program, error) { return spec.chosen(path) }, path
	}
	place, err := newSockets(deps.Clock.Now())
	if err != nil {
		return nil, err
	}
	o := &Once{
		connector: &Connector{spec: spec, deps: deps, find: find, sockets: place},
		stop:      make(chan struct{}), ended: make(chan struct{}),
	}
	started := make(chan error, 1)
	go o.keep(ctx, started)
	if err := <-started; err != nil {
		<-o.ended
		var named *findError
		if errors.As(err, &named) {
			return nil, named
		}
		return nil, fmt.Errorf("connector %s%w", name, introduced(err))
	}
	return o, nil
}

// keep owns the thread that the process lives as long as: see attributes.
func (o *Once) keep(ctx context.Context, started chan<- error) {
	defer close(o.ended)
	defer o.connector.sockets.remove()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer o.connector.startGuard()()
	limit := o.connector.deps.Timing
	s, err := o.connector.begin(ctx, func(s *session) error { return s.describe(limit.Call) })
	o.session = s
	started <- err
	if err != nil {
		return
	}
	<-o.stop
	s.end(limit.Stop)
}

// Close stops the process and waits until it is gone. It must be called once.
func (o *Once) Close() {
	close(o.stop)
	<-o.ended
}

// About returns what the connector says of itself.
func (o *Once) About() About {
	d := o.session.about
	return About{
		Description: sdk.Description{
			Name: d.GetName(), Version: d.GetVersion(), OptionsSchema: d.GetOptionsSchema(),
			Writable: d.GetCapabilities().GetWritable(), Watches: d.GetCapabilities().GetWatches(),
			AbsentIsEmpty: d.GetAbsentMeans() == connectorv1.AbsentMeans_ABSENT_MEANS_EMPTY,
		},
		SDKVersion: d.GetSdkVersion(), Protocol: o.session.client.NegotiatedVersion(), PID: int(o.session.proc.pid.Load()),
	}
}

// Configure names the source; it may come again. A refusal is a *sdk.ConfigError.
func (o *Once) Configure(ctx context.Context, config sdk.Config) error {
	answer, err := o.session.rpc.Configure(ctx, &connectorv1.ConfigureRequest{Uri: config.URI, ClusterId: config.ClusterID, Options: config.Options})
	if err != nil {
		return o.failed("Configure", err)
	}
	if len(answer.GetNotes()) == 0 {
		return nil
	}
	refused := &sdk.ConfigError{}
	for _, n := range answer.GetNotes() {
		refused.Notes = append(refused.Notes, sdk.ConfigNote{Field: n.GetField(), Message: n.GetMessage()})
	}
	return refused
}

// Load asks for the document. Where there is none the error is an *sdk.Unavailable.
func (o *Once) Load(ctx context.Context) (sdk.Document, error) {
	answer, err := o.session.rpc.Load(ctx, &connectorv1.LoadRequest{})
	switch {
	case err != nil:
		return sdk.Document{}, o.failed("Load", err)
	case !answer.GetPresent():
		return sdk.Document{}, told(answer.GetUnavailable())
	case answer.GetRevision() == "":
		return sdk.Document{}, errors.New("it broke the contract: a document without a revision")
	}
	return sdk.Document{Content: answer.GetDocument(), Revision: answer.GetRevision()}, nil
}

// Save replaces the document if its revision is the expected one. The error of a refusal is
// sdk.ErrConflict, sdk.ErrReadOnly or an *sdk.Unavailable, possibly wrapped.
func (o *Once) Save(ctx context.Context, document []byte, expected string) (revision string, err error) {
	answer, err := o.session.rpc.Save(ctx, &connectorv1.SaveRequest{Document: document, ExpectedRevision: expected})
	if err != nil {
		return "", o.failed("Save", err)
	}
	switch answer.GetOutcome() {
	case connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED:
		if answer.GetRevision() == "" {
			return "", errors.New("it broke the contract: a save without a revision")
		}
		return answer.GetRevision(), nil
	case connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT:
		return "", fmt.Errorf("%w: %s", sdk.ErrConflict, answer.GetReason())
	case connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY:
		return "", fmt.Errorf("%w: %s", sdk.ErrReadOnly, answer.GetReason())
	}
	return "", &sdk.Unavailable{Kind: sdk.Unreachable, Reason: answer.GetReason()}
}

// Watch calls deliver for every event of one stream, heartbeats included, until ctx ends, which
// is no error, or the stream does. from is a revision the caller has already, or "".
func (o *Once) Watch(ctx context.Context, from string, deliver func(Seen)) error {
	// A deadline must not travel along: the connector's clock could be the first to reach it.
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	stream, err := o.session.rpc.Watch(call, &connectorv1.WatchRequest{FromRevision: from})
	if err != nil {
		return o.failed("Watch", err)
	}
	for {
		m, err := stream.Recv()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return o.failed("Watch", err)
		}
		switch e := m.GetEvent().(type) {
		case *connectorv1.WatchResponse_Heartbeat:
			deliver(Seen{Heartbeat: true})
		case *connectorv1.WatchResponse_Unavailable:
			deliver(Seen{Unavailable: told(e.Unavailable)})
		case *connectorv1.WatchResponse_Snapshot:
			doc := sdk.Document{Content: e.Snapshot.GetDocument(), Revision: e.Snapshot.GetRevision()}
			if doc.Revision == "" {
				return errors.New("it broke the contract: a snapshot without a revision")
			}
			if sum := sha256.Sum256(doc.Content); string(sum[:]) != string(e.Snapshot.GetSha256()) {
				return errors.New("it broke the contract: a snapshot that does not match its hash")
			}
			deliver(Seen{Document: &doc})
		default:
			return errors.New("it broke the contract: an empty event")
		}
	}
}

// failed says which call did not work, and whether the process died of it.
func (o *Once) failed(call string, err error) error {
	why := statusText(err)
	if status.Code(err) == codes.DeadlineExceeded {
		why = "it did not answer in time"
	}
	if status.Code(err) == codes.Unavailable {
		select {
		case <-o.session.proc.exited:
			why = o.session.proc.death()
		case <-time.After(200 * time.Millisecond): // the connection breaks before the process is waited for
		}
	}
	return fmt.Errorf("%s failed: %s", call, why)
}

func told(u *connectorv1.Unavailable) *sdk.Unavailable {
	kind := sdk.Unreachable
	switch u.GetKind() {
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT:
		kind = sdk.Absent
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_AUTH:
		kind = sdk.Auth
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID:
		kind = sdk.Invalid
	case connectorv1.UnavailableKind_UNAVAILABLE_KIND_PERMANENT:
		kind = sdk.Permanent
	}
	reason := u.GetReason()
	if reason == "" {
		reason = "the source is " + kind.String()
	}
	return &sdk.Unavailable{Kind: kind, Reason: reason, Final: !u.GetRetryable()}
}
