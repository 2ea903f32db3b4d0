package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// TestMain is a connector when it is run as one, and fails when goroutines are left over.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "connector-of" {
		connectorOf(os.Args[2])
	}
	code := m.Run()
	for deadline := 100; code == 0 && runtime.NumGoroutine() > 1; deadline-- {
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over:\n%s\n", stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(code)
}

// scripted is a connector whose answers the test sets.
type scripted struct {
	describe  Description
	configure func(Config) error
	load      func() (Document, error)
	watch     func(context.Context, string, Sink) error
	save      func([]byte, string) (string, error)
	stop      error
}

func (s *scripted) Describe() Description { return s.describe }

func (s *scripted) Configure(_ context.Context, c Config) error { return s.configure(c) }

func (s *scripted) Load(context.Context) (Document, error) { return s.load() }

func (s *scripted) Watch(ctx context.Context, from string, sink Sink) error {
	return s.watch(ctx, from, sink)
}

func (s *scripted) Save(_ context.Context, document []byte, expected string) (string, error) {
	return s.save(document, expected)
}

func (s *scripted) Stop(context.Context) error { return s.stop }

// called serves a connector within the test and returns a client of it.
func called(t *testing.T, c Connector) (connectorv1.ConnectorClient, *service) {
	t.Helper()
	pipe := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	s := newService(c)
	connectorv1.RegisterConnectorServer(server, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(pipe) })
	conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return connectorv1.NewConnectorClient(conn), s
}

func TestDescribeAndConfigure(t *testing.T) {
	var got Config
	c := &scripted{
		describe:  Description{Name: "n", Version: "v", Writable: true, AbsentIsEmpty: true, OptionsSchema: "{}"},
		configure: func(c Config) error { got = c; return nil },
	}
	client, _ := called(t, c)
	d, err := client.Describe(t.Context(), &connectorv1.DescribeRequest{})
	if err != nil || d.GetName() != "n" || d.GetVersion() != "v" || d.GetSdkVersion() != Version || !d.GetCapabilities().GetWritable() ||
		d.GetCapabilities().GetWatches() || d.GetOptionsSchema() != "{}" || d.GetAbsentMeans() != connectorv1.AbsentMeans_ABSENT_MEANS_EMPTY {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := client.Configure(t.Context(), &connectorv1.ConfigureRequest{Uri: "u", ClusterId: "c"}); err != nil || got.URI != "u" || got.ClusterID != "c" || got.Options == nil {
		t.Errorf("%+v, %v", got, err)
	}
	c.configure = func(Config) error { return fmt.Errorf("x: %w", Refuse("options.a", "%q is not a number", "z")) }
	answer, err := client.Configure(t.Context(), &connectorv1.ConfigureRequest{})
	if err != nil || len(answer.GetNotes()) != 1 || answer.GetNotes()[0].GetField() != "options.a" || answer.GetNotes()[0].GetMessage() != `"z" is not a number` {
		t.Errorf("%v, %v", answer, err)
	}
	c.configure = func(Config) error { return errors.New("bug") }
	if _, err := client.Configure(t.Context(), &connectorv1.ConfigureRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("%v", err)
	}
}

func TestLoadAndSave(t *testing.T) {
	c := &scripted{}
	client, _ := called(t, c)
	load := func(doc Document, err error) (*connectorv1.LoadResponse, error) {
		c.load = func() (Document, error) { return doc, err }
		return client.Load(t.Context(), &connectorv1.LoadRequest{})
	}
	if r, err := load(Document{Content: []byte("x"), Revision: "1"}, nil); err != nil || !r.GetPresent() || string(r.GetDocument()) != "x" || r.GetRevision() != "1" {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := load(Document{Content: []byte("x")}, nil); status.Code(err) != codes.Internal {
		t.Errorf("no revision: %v", err)
	}
	for kind, want := range map[Kind]connectorv1.UnavailableKind{
		Absent: connectorv1.UnavailableKind_UNAVAILABLE_KIND_ABSENT, Unreachable: connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNREACHABLE,
		Auth: connectorv1.UnavailableKind_UNAVAILABLE_KIND_AUTH, Invalid: connectorv1.UnavailableKind_UNAVAILABLE_KIND_INVALID,
		Permanent: connectorv1.UnavailableKind_UNAVAILABLE_KIND_PERMANENT,
	} {
		r, err := load(Document{}, fmt.Errorf("x: %w", &Unavailable{Kind: kind, Reason: "r", Final: kind == Permanent}))
		if u := r.GetUnavailable(); err != nil || r.GetPresent() || u.GetKind() != want || u.GetReason() != "r" || u.GetRetryable() == (kind == Permanent) {
			t.Errorf("%s: %v, %v", kind, r, err)
		}
	}
	if r, err := load(Document{}, errors.New("odd")); err != nil || r.GetUnavailable().GetKind() != connectorv1.UnavailableKind_UNAVAILABLE_KIND_UNREACHABLE || r.GetUnavailable().GetReason() != "odd" {
		t.Errorf("%v, %v", r, err)
	}
	for _, tt := range []struct {
		err  error
		want connectorv1.SaveOutcome
	}{
		{nil, connectorv1.SaveOutcome_SAVE_OUTCOME_SAVED},
		{fmt.Errorf("x: %w", ErrConflict), connectorv1.SaveOutcome_SAVE_OUTCOME_CONFLICT},
		{fmt.Errorf("x: %w", ErrReadOnly), connectorv1.SaveOutcome_SAVE_OUTCOME_READ_ONLY},
		{&Unavailable{Kind: Auth, Reason: "r"}, connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE},
		{errors.New("odd"), connectorv1.SaveOutcome_SAVE_OUTCOME_UNAVAILABLE},
	} {
		c.save = func(document []byte, expected string) (string, error) {
			if string(document) != "d" || expected != "e" {
				t.Errorf("%q %q", document, expected)
			}
			return "7", tt.err
		}
		r, err := client.Save(t.Context(), &connectorv1.SaveRequest{Document: []byte("d"), ExpectedRevision: "e"})
		saved := tt.err == nil
		if err != nil || r.GetOutcome() != tt.want || (r.GetRevision() == "7") != saved || (r.GetReason() == "") != saved {
			t.Errorf("%v: %v, %v", tt.err, r, err)
		}
	}
	c.save = func([]byte, string) (string, error) { return "", fmt.Errorf("%w: a snapshot", ErrReadOnly) }
	if r, err := client.Save(t.Context(), &connectorv1.SaveRequest{}); err != nil || r.GetReason() != "a snapshot" {
		t.Errorf("the outcome says that it is read-only, the reason why: %v, %v", r, err)
	}
	c.save = func([]byte, string) (string, error) { return "", nil }
	if _, err := client.Save(t.Context(), &connectorv1.SaveRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("no revision: %v", err)
	}
}

func TestWatch(t *testing.T) {
	sinks := make(chan Sink)
	end := make(chan error)
	gone := make(chan struct{})
	c := &scripted{watch: func(ctx context.Context, from string, sink Sink) error {
		sinks <- sink
		select {
		case err := <-end:
			return err
		case <-ctx.Done():
			close(gone)
			return nil
		}
	}}
	client, _ := called(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Watch(ctx, &connectorv1.WatchRequest{FromRevision: "1"})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *connectorv1.WatchResponse {
		t.Helper()
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if beat := next().GetHeartbeat(); beat == nil || beat.GetWatches() != 1 || beat.GetTasks() == 0 {
		t.Errorf("no heartbeat at once that counts: %v", beat)
	}
	sink := <-sinks
	sink.Snapshot(Document{Content: []byte("known"), Revision: "1"}) // the master has it
	sink.Snapshot(Document{Content: []byte("two"), Revision: "2"})
	m := next().GetSnapshot()
	if sum := sha256.Sum256([]byte("two")); string(m.GetDocument()) != "two" || m.GetRevision() != "2" || !bytes.Equal(m.GetSha256(), sum[:]) {
		t.Errorf("%v", m)
	}
	sink.Snapshot(Document{Content: []byte("two"), Revision: "2"})
	sink.Unavailable(&Unavailable{Kind: Absent, Reason: "away"})
	if u := next().GetUnavailable(); u.GetReason() != "away" {
		t.Errorf("%v", u)
	}
	sink.Unavailable(&Unavailable{Kind: Absent, Reason: "away"})
	sink.Snapshot(Document{Content: []byte("two"), Revision: "2"}) // back unchanged: told
	if m := next().GetSnapshot(); m.GetRevision() != "2" {
		t.Errorf("%v", m)
	}
	for i := range 1000 { // a storm coalesces and ends with the last
		sink.Snapshot(Document{Content: fmt.Append(nil, i), Revision: fmt.Sprint("s", i)})
	}
	told := 0
	for next().GetSnapshot().GetRevision() != "s999" {
		told++
	}
	if told == 999 {
		t.Error("nothing was left out of a storm")
	}
	cancel()
	<-gone
	for ended, want := range map[error]string{errors.New("lost it"): "lost it", error(nil): "the connector stopped watching"} {
		stream, err := client.Watch(t.Context(), &connectorv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		sink := <-sinks
		sink.Snapshot(Document{Content: []byte("last"), Revision: "9"})
		end <- ended
		var last string
		for {
			m, err := stream.Recv()
			if err != nil {
				if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != want {
					t.Errorf("%v, want %s", err, want)
				}
				break
			}
			if s := m.GetSnapshot(); s != nil {
				last = s.GetRevision()
			}
		}
		if last != "9" {
			t.Errorf("what was said before the end is lost: %q", last)
		}
	}
}

func TestStop(t *testing.T) {
	c := &scripted{}
	client, s := called(t, c)
	for range 2 {
		if _, err := client.Stop(t.Context(), &connectorv1.StopRequest{}); err != nil {
			t.Error(err)
		}
	}
	<-s.stopped
	c.stop = errors.New("stuck")
	if _, err := client.Stop(t.Context(), &connectorv1.StopRequest{}); status.Convert(err).Message() != "stuck" {
		t.Errorf("%v", err)
	}
}

func TestEndWithHost(t *testing.T) {
	for name, tt := range map[string]struct{ parent, host int }{
		"other parent": {parent: -1},
		"master gone":  {parent: os.Getppid(), host: 1<<22 + 12345}, // beyond the largest process id
	} {
		tick := make(chan time.Time, 1)
		tick <- time.Time{}
		ended := false
		endWithHost(tt.parent, tt.host, tick, func() { ended = true })
		if !ended {
			t.Error(name)
		}
	}
	tick := make(chan time.Time, 3)
	for range 3 {
		tick <- time.Time{}
	}
	close(tick)
	endWithHost(os.Getppid(), os.Getpid(), tick, func() { t.Error("ended while the master lives") })
}

func TestPassHandshake(t *testing.T) {
	var contract, other bytes.Buffer
	passHandshake(strings.NewReader("banner\nno break: 1|1|unix|/x|grpc|AA\nlater\n1|1|unix|/forged\nrest"), &contract, &other)
	if contract.String() != "1|1|unix|/x|grpc|AA\n" || other.String() != "banner\nno break: later\n1|1|unix|/forged\nrest" {
		t.Errorf("%q, %q", contract.String(), other.String())
	}
}

func TestErrors(t *testing.T) {
	e := &ConfigError{Notes: []ConfigNote{{"uri", "a"}, {"options.x", "b"}}}
	if e.Error() != "uri: a; options.x: b" {
		t.Error(e)
	}
	if u := (&Unavailable{Kind: Permanent, Reason: "r"}); u.Error() != "permanent: r" {
		t.Error(u)
	}
}
