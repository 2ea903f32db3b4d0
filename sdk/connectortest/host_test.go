package connectortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestMain fails when goroutines or sockets are left over.
func TestMain(m *testing.M) {
	tmp, err := os.MkdirTemp("", "ct")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		panic(err)
	}
	code := m.Run()
	for deadline := 100; code == 0; deadline-- {
		left, _ := filepath.Glob(filepath.Join(tmp, "connector-*"))
		if len(left) == 0 && runtime.NumGoroutine() == 1 {
			break
		}
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over: %v\n%s\n", left, stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(tmp)
	os.Exit(code)
}

// scripted says what the test puts into its fields.
type scripted struct {
	load   func() (sdk.Document, error)
	save   func() (string, error)
	events chan any // *sdk.Unavailable, sdk.Document, or an error to end with
	stop   error
}

func (s *scripted) Describe() sdk.Description {
	return sdk.Description{Name: "n", Version: "v", Writable: true, Watches: true, OptionsSchema: "{}", AbsentIsEmpty: true}
}

func (s *scripted) Configure(_ context.Context, c sdk.Config) error {
	switch {
	case c.URI == "bug":
		return errors.New("a bug")
	case c.URI != "u":
		return sdk.Refuse("uri", "not u")
	}
	return nil
}

func (s *scripted) Load(context.Context) (sdk.Document, error) { return s.load() }

func (s *scripted) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	for {
		select {
		case event := <-s.events:
			switch event := event.(type) {
			case *sdk.Unavailable:
				sink.Unavailable(event)
			case sdk.Document:
				sink.Snapshot(event)
			case error:
				return event
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *scripted) Save(context.Context, []byte, string) (string, error) { return s.save() }

func (s *scripted) Stop(context.Context) error { return s.stop }

func TestCalls(t *testing.T) {
	c := &scripted{}
	host := Serve(t, c)
	if d, err := host.Describe(); err != nil || d != c.Describe() {
		t.Errorf("%+v, %v", d, err)
	}
	var refused *sdk.ConfigError
	if err := host.Configure(sdk.Config{URI: "x"}); !errors.As(err, &refused) || err.Error() != "uri: not u" {
		t.Errorf("%v", err)
	}
	if err := host.Configure(sdk.Config{URI: "bug"}); err == nil || err.Error() != "Configure: Internal: a bug" {
		t.Errorf("%v", err)
	}
	if err := host.Configure(sdk.Config{URI: "u"}); err != nil {
		t.Error(err)
	}
	c.load = func() (sdk.Document, error) { return sdk.Document{Content: []byte("d"), Revision: "1"}, nil }
	if d, err := host.Load(); err != nil || string(d.Content) != "d" || d.Revision != "1" {
		t.Errorf("%v, %v", d, err)
	}
	for _, kind := range []sdk.Kind{sdk.Unreachable, sdk.Absent, sdk.Auth, sdk.Invalid, sdk.Permanent} {
		want := sdk.Unavailable{Kind: kind, Reason: "r", Final: kind == sdk.Permanent}
		c.load = func() (sdk.Document, error) { return sdk.Document{}, &want }
		var why *sdk.Unavailable
		if _, err := host.Load(); !errors.As(err, &why) || *why != want {
			t.Errorf("%v, want %v", err, &want)
		}
	}
	c.save = func() (string, error) { return "2", nil }
	if revision, err := host.Save(nil, "1"); err != nil || revision != "2" {
		t.Errorf("%q, %v", revision, err)
	}
	var why *sdk.Unavailable
	for _, want := range []error{sdk.ErrConflict, sdk.ErrReadOnly} {
		c.save = func() (string, error) { return "", fmt.Errorf("%w: so", want) }
		if _, err := host.Save(nil, "1"); !errors.Is(err, want) || !strings.HasSuffix(err.Error(), ": so") {
			t.Errorf("%v, want %v", err, want)
		}
	}
	c.save = func() (string, error) { return "", errors.New("down") }
	if _, err := host.Save(nil, "1"); !errors.As(err, &why) || why.Reason != "down" {
		t.Errorf("%v", err)
	}
}

func TestWatch(t *testing.T) {
	c := &scripted{events: make(chan any)}
	host := Serve(t, c)
	w := host.Watch("")
	c.events <- &sdk.Unavailable{Kind: sdk.Absent, Reason: "away"}
	if why, err := w.AwaitUnavailable(); err != nil || why.Kind != sdk.Absent || why.Reason != "away" {
		t.Errorf("%v, %v", why, err)
	}
	for i := range 3 {
		c.events <- sdk.Document{Content: fmt.Append(nil, i), Revision: fmt.Sprint("r", i)}
	}
	if doc, err := w.AwaitSnapshot(func(d sdk.Document) bool { return d.Revision == "r2" }); err != nil || string(doc.Content) != "2" {
		t.Errorf("%v, %v", doc, err)
	}
	c.events <- errors.New("lost it")
	if err := w.AwaitEnd(); err == nil || err.Error() != "Watch: Unavailable: lost it" {
		t.Errorf("%v", err)
	}
	if _, err := w.AwaitSnapshot(nil); err == nil || err.Error() != "waiting for a snapshot: the stream is over: Watch: Unavailable: lost it" {
		t.Errorf("%v", err)
	}
	w.Close()
}

// TestClose wants a connector that can't be stopped to be told of.
func TestClose(t *testing.T) {
	host, err := Start(&scripted{stop: errors.New("stuck"), events: make(chan any)})
	if err != nil {
		t.Fatal(err)
	}
	host.Watch("")
	if err := host.Close(); err == nil || err.Error() != "stopping the connector: Stop: Internal: stuck" {
		t.Errorf("%v", err)
	}
	if err := host.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
}
