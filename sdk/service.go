package sdk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// heartbeat is how often an idle stream says that it is alive. The contract names it.
const heartbeat = 10 * time.Second

// service puts a Connector behind the contract.
type service struct {
	connectorv1.UnimplementedConnectorServer
	connector Connector
	stopped   chan struct{} // closed when Stop was served
	once      sync.Once
	watches   atomic.Int32 // calls of the author's Watch that have not returned
}

func newService(c Connector) *service { return &service{connector: c, stopped: make(chan struct{})} }

// Register offers a connector on a gRPC server, in the newest version of the contract, and
// returns a channel that is closed when a Stop was served. Serve does it for a process that a
// master starts; this is for tests and other ways of running. The server must take and send
// messages of MaxMessage bytes.
func Register(server grpc.ServiceRegistrar, connector Connector) (stopped <-chan struct{}) {
	s := newService(connector)
	connectorv1.RegisterConnectorServer(server, s)
	return s.stopped
}

func (s *service) Describe(context.Context, *connectorv1.DescribeRequest) (*connectorv1.DescribeResponse, error) {
	d := s.connector.Describe()
	absent := connectorv1.AbsentMeans_ABSENT_MEANS_ERROR
	if d.AbsentIsEmpty {
		absent = connectorv1.AbsentMeans_ABSENT_MEANS_EMPTY
	}
	return &connectorv1.DescribeResponse{
		Name: d.Name, Version: d.Version, SdkVersion: Version, OptionsSchema: d.OptionsSchema, AbsentMeans: absent,
		Capabilities: &connectorv1.Capabilities{Writable: d.Writable, Watches: d.Watches},
	}, nil
}

func (s *service) Configure(ctx context.Context, req *connectorv1.ConfigureRequest) (*connectorv1.ConfigureResponse, error) {
	options := req.GetOptions()
	if options == nil {
		options = map[string]string{}
	}
	err := s.connector.Configure(ctx, Config{URI: req.GetUri(), ClusterID: req.GetClusterId(), Options: options})
	var refused *ConfigError
	switch {
	case err == nil:
		return &connectorv1.ConfigureResponse{}, nil
	case errors.As(err, &refused) && len(refused.Notes) > 0:
		resp := &connectorv1.ConfigureResponse{}
		for _, n := range refused.Notes {
			resp.Notes = append(resp.Notes, &connectorv1.ConfigNote{Field: n.Field, Message: n.Message})
		}
		return resp, nil
	}
	return nil, status.Error(codes.Internal, err.Error())
}

func (s *service) Load(ctx context.Context, _ *connectorv1.LoadRequest) (*connectorv1.LoadResponse, error) {
	doc, err := s.connector.Load(ctx)
	if err != nil {
		return &connectorv1.LoadResponse{Unavailable: asUnavailable(err)}, nil
	}
	if err := check(doc); err != nil {
		return nil, err
	}
	return &connectorv1.LoadResponse{Present: true, Document: doc.Content, Revision: doc.Revision}, nil
}

// check catches what an author must not send before the master does.
func check(doc Document) error {
	if doc.Revision == "" {
		return status.Error(codes.Internal, "the connector gave a document without a revision")
	}
	if len(doc.Content) > MaxDocument {
		return status.Error(codes.Internal, fmt.Sprintf("the connector gave a document of %d bytes, the limit is %d", len(doc.Content), MaxDocument))
	}
	return nil
}

func asUnavailable(err error) *connectorv1.Unavailable {
	var u *Unavailable
	if !errors.As(err, &u) {
		u = &Unavailable{Kind: Unreachable, Reason: err.Error()}
	}
	kind := connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNREACHABLE
	switch u.Kind {
	case Absent:
		kind = connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT
	case Auth:
		kind = connectorv1.UnavailableKind_UNAVAILABLE_KIND_AUTH
	case Invalid:
		kind = connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID
	case Permanent:
		kind = connectorv1.UnavailableKind_UNAVAILABLE_KIND_PERMANENT
	}
	return &connectorv1.Unavailable{Kind: kind, Reason: u.Reason, Retryable: !u.Final}
}

func (s *service) Save(ctx context.Context, req *connectorv1.SaveRequest) (*connectorv1.SaveResponse, error) {
	revision, err := s.connector.Save(ctx, req.GetDocument(), req.GetExpectedRevision())
	resp := &connectorv1.SaveResponse{Outcome: connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED, Revision: revision}
	switch {
	case err == nil:
		if revision == "" {
			return nil, status.Error(codes.Internal, "the connector gave no revision for what it saved")
		}
		return resp, nil
	case errors.Is(err, ErrConflict):
		resp.Outcome = connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT
	case errors.Is(err, ErrReadOnly):
		resp.Outcome = connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY
	default:
		resp.Outcome = connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE
	}
	resp.Revision, resp.Reason = "", err.Error()
	for _, said := range []error{ErrConflict, ErrReadOnly} { // by the outcome
		resp.Reason = strings.TrimPrefix(resp.Reason, said.Error()+": ")
	}
	return resp, nil
}

// Watch runs the author's Watch beside a sender, and waits for both.
func (s *service) Watch(req *connectorv1.WatchRequest, stream grpc.ServerStreamingServer[connectorv1.WatchResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	box := newOutbox(req.GetFromRevision())
	ended := make(chan struct{})
	var why error
	s.watches.Add(1)
	go func() {
		defer close(ended)
		defer s.watches.Add(-1)
		why = s.connector.Watch(ctx, req.GetFromRevision(), box)
	}()
	err := s.send(ctx, stream, box, ended)
	cancel()
	<-ended
	if err != nil {
		return err
	}
	if stream.Context().Err() != nil {
		return status.FromContextError(stream.Context().Err()).Err()
	}
	if why == nil {
		why = errors.New("the connector stopped watching")
	}
	return status.Error(codes.Unavailable, why.Error())
}

// send passes on what the box holds until the stream breaks, the context ends or the author's
// Watch returns; only the first is an error.
func (s *service) send(ctx context.Context, stream grpc.ServerStreamingServer[connectorv1.WatchResponse], box *outbox, ended <-chan struct{}) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	err := stream.Send(s.alive())
	for err == nil {
		select {
		case <-box.bell:
			err = flush(stream, box)
		case <-beat.C:
			err = stream.Send(s.alive())
		case <-ended:
			return flush(stream, box)
		case <-ctx.Done():
			return nil
		}
	}
	return err
}

// alive is a heartbeat.
func (s *service) alive() *connectorv1.WatchResponse {
	return &connectorv1.WatchResponse{Event: &connectorv1.WatchResponse_Heartbeat{Heartbeat: &connectorv1.Heartbeat{
		Watches: uint32(s.watches.Load()), Tasks: uint32(runtime.NumGoroutine()),
	}}}
}

func flush(stream grpc.ServerStreamingServer[connectorv1.WatchResponse], box *outbox) error {
	doc, why := box.take()
	switch {
	case doc != nil:
		if err := check(*doc); err != nil {
			return err
		}
		sum := sha256.Sum256(doc.Content)
		return stream.Send(&connectorv1.WatchResponse{Event: &connectorv1.WatchResponse_Snapshot{
			Snapshot: &connectorv1.Snapshot{Document: doc.Content, Revision: doc.Revision, Sha256: sum[:]},
		}})
	case why != nil:
		return stream.Send(&connectorv1.WatchResponse{Event: &connectorv1.WatchResponse_Unavailable{Unavailable: asUnavailable(why)}})
	}
	return nil
}

func (s *service) Stop(ctx context.Context, _ *connectorv1.StopRequest) (*connectorv1.StopResponse, error) {
	err := s.connector.Stop(ctx)
	s.once.Do(func() { close(s.stopped) })
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &connectorv1.StopResponse{}, nil
}
