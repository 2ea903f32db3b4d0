// Package connectortest serves a connector in the background of a test and calls it as a master
// does: over a unix socket, with gRPC and mutual TLS, so that a test sees what a master would.
//
//	func TestMine(t *testing.T) {
//		host := connectortest.Serve(t, New())
//		if err := host.Configure(sdk.Config{URI: "..."}); err != nil { t.Fatal(err) }
//		watch := host.Watch("")
//		doc, err := watch.AwaitSnapshot(nil)
//		...
//	}
//
// Everything waits at most Patience and then says what it waited for. Package conformance
// checks the finished executable; this package is for the author's own tests.
//
// Invariant: after the test nothing is left of what a Host made: watches are ended first, then
// the connector is stopped, the connection closed, the server stopped, the socket removed.
package connectortest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/internal/identity"
)

// Patience is how long a call, an Await or the end of a Host waits before it gives up.
const Patience = 10 * time.Second

// Host is the master's side of a connector that is served in this process. Its methods may be
// called concurrently.
type Host struct {
	folder  string
	server  *grpc.Server
	conn    *grpc.ClientConn
	rpc     connectorv1.ConnectorClient
	stopped <-chan struct{}
	serving sync.WaitGroup

	mu      sync.Mutex
	watches []*Watch // guarded by mu
	closed  bool     // guarded by mu
}

// Serve serves a connector until the test ends. What goes wrong at the end fails the test: a
// Watch that does not return when it is cancelled, a Stop that does not answer.
func Serve(t testing.TB, connector sdk.Connector) *Host {
	t.Helper()
	h, err := Start(connector)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Start serves a connector until Close, for examples and programs that are no tests.
func Start(connector sdk.Connector) (*Host, error) {
	// Not a test's own folder: the names of sockets are short.
	folder, err := os.MkdirTemp("", "connector-")
	if err != nil {
		return nil, err
	}
	h := &Host{folder: folder}
	if err := h.start(connector); err != nil {
		return nil, errors.Join(fmt.Errorf("serving the connector: %w", err), os.RemoveAll(folder))
	}
	return h, nil
}

func (h *Host) start(connector sdk.Connector) error {
	ours, _, err := identity.New(time.Now())
	if err != nil {
		return err
	}
	theirs, _, err := identity.New(time.Now())
	if err != nil {
		return err
	}
	host, err := x509.ParseCertificate(ours.Certificate[0])
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(host)
	client, err := identity.Client(ours, theirs.Certificate[0])
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", filepath.Join(h.folder, "socket"))
	if err != nil {
		return err
	}
	h.server = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{theirs}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted, MinVersion: tls.VersionTLS12,
		})),
		grpc.MaxRecvMsgSize(sdk.MaxMessage), grpc.MaxSendMsgSize(sdk.MaxMessage))
	h.stopped = sdk.Register(h.server, connector)
	h.conn, err = grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(credentials.NewTLS(client)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", listener.Addr().String())
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessage), grpc.MaxCallSendMsgSize(sdk.MaxMessage)))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	h.rpc = connectorv1.NewConnectorClient(h.conn)
	h.serving.Go(func() { _ = h.server.Serve(listener) }) // ends with Close
	return nil
}

// Close ends everything; a second call does nothing. The error says what did not end in time.
func (h *Host) Close() error {
	h.mu.Lock()
	watches, closed := h.watches, h.closed
	h.closed = true
	h.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	for _, w := range watches {
		w.Close()
	}
	select {
	case <-h.stopped: // the test did it
	default:
		if err := h.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stopping the connector: %w", err))
		}
	}
	errs = append(errs, h.conn.Close())
	ended := make(chan struct{})
	go func() {
		h.server.Stop() // waits for the author's methods
		h.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(Patience):
		errs = append(errs, fmt.Errorf("a method of the connector still runs %s after it was cancelled; Watch must return when its context ends", Patience))
	}
	return errors.Join(append(errs, os.RemoveAll(h.folder))...)
}

// Describe asks the connector what it is.
func (h *Host) Describe() (sdk.Description, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	d, err := h.rpc.Describe(ctx, &connectorv1.DescribeRequest{})
	if err != nil {
		return sdk.Description{}, failed("Describe", err)
	}
	return sdk.Description{
		Name: d.GetName(), Version: d.GetVersion(), Writable: d.GetCapabilities().GetWritable(), Watches: d.GetCapabilities().GetWatches(),
		OptionsSchema: d.GetOptionsSchema(), AbsentIsEmpty: d.GetAbsentMeans() == connectorv1.AbsentMeans_ABSENT_MEANS_EMPTY,
	}, nil
}

// Configure configures the connector. A refused configuration is an *sdk.ConfigError.
func (h *Host) Configure(config sdk.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := h.rpc.Configure(ctx, &connectorv1.ConfigureRequest{Uri: config.URI, ClusterId: config.ClusterID, Options: config.Options})
	if err != nil {
		return failed("Configure", err)
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

// Load loads the document. Where there is none the error is an *sdk.Unavailable.
func (h *Host) Load() (sdk.Document, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := h.rpc.Load(ctx, &connectorv1.LoadRequest{})
	if err != nil {
		return sdk.Document{}, failed("Load", err)
	}
	if !answer.GetPresent() {
		return sdk.Document{}, unavailable(answer.GetUnavailable())
	}
	return sdk.Document{Content: answer.GetDocument(), Revision: answer.GetRevision()}, nil
}

// Save saves a document in place of the expected revision and returns the new one. Errors wrap
// sdk.ErrConflict or sdk.ErrReadOnly, or are an *sdk.Unavailable (of kind Unreachable: the
// contract tells no more about a failed save).
func (h *Host) Save(document []byte, expected string) (revision string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := h.rpc.Save(ctx, &connectorv1.SaveRequest{Document: document, ExpectedRevision: expected})
	if err != nil {
		return "", failed("Save", err)
	}
	switch answer.GetOutcome() {
	case connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED:
		return answer.GetRevision(), nil
	case connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT:
		return "", fmt.Errorf("%w: %s", sdk.ErrConflict, answer.GetReason())
	case connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY:
		return "", fmt.Errorf("%w: %s", sdk.ErrReadOnly, answer.GetReason())
	}
	return "", &sdk.Unavailable{Kind: sdk.Unreachable, Reason: answer.GetReason()}
}

// Stop stops the connector, as a master does before the process ends.
func (h *Host) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if _, err := h.rpc.Stop(ctx, &connectorv1.StopRequest{}); err != nil {
		return failed("Stop", err)
	}
	return nil
}

// failed is a gRPC error in words.
func failed(call string, err error) error {
	if status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%s did not return within %s", call, Patience)
	}
	return fmt.Errorf("%s: %s: %s", call, status.Code(err), status.Convert(err).Message())
}

func unavailable(u *connectorv1.Unavailable) *sdk.Unavailable {
	kinds := map[connectorv1.UnavailableKind]sdk.Kind{
		connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT:    sdk.Absent,
		connectorv1.UnavailableKind_UNAVAILABLE_KIND_AUTH:      sdk.Auth,
		connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID:   sdk.Invalid,
		connectorv1.UnavailableKind_UNAVAILABLE_KIND_PERMANENT: sdk.Permanent,
	}
	return &sdk.Unavailable{Kind: kinds[u.GetKind()], Reason: u.GetReason(), Final: !u.GetRetryable()}
}
