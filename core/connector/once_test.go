package connector

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func openOnce(t *testing.T) *Once {
	t.Helper()
	o, err := Open(t.Context(), "", Spec{Type: "file", Stock: []string{"file"}},
		Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// TestOnce takes one process through every call of the contract.
func TestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	o := openOnce(t)
	about := o.About()
	if about.Name != "file" || !about.Writable || about.SDKVersion != sdk.Version || about.Protocol != sdk.ProtocolVersion || about.PID == 0 {
		t.Errorf("it says of itself %+v", about)
	}
	if err := o.Configure(t.Context(), sdk.Config{URI: path}); err != nil {
		t.Fatal(err)
	}
	var gone *sdk.Unavailable
	if _, err := o.Load(t.Context()); !errors.As(err, &gone) || gone.Kind != sdk.Absent || gone.Final {
		t.Errorf("a load of nothing: %v", err)
	}
	revision, err := o.Save(t.Context(), []byte("version: 1\ntenants: []\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Save(t.Context(), []byte("x"), ""); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("a second creation: %v, want a conflict", err)
	}
	if doc, err := o.Load(t.Context()); err != nil || doc.Revision != revision || string(doc.Content) != "version: 1\ntenants: []\n" {
		t.Errorf("load after save: %+v, %v", doc, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	alive, seen := false, ""
	if err := o.Watch(ctx, "", func(s Seen) {
		alive = alive || s.Heartbeat
		if s.Document != nil {
			seen = s.Document.Revision
			cancel()
		}
	}); err != nil || seen != revision || !alive {
		t.Errorf("watch: %v, revision %q, heartbeat %v", err, seen, alive)
	}
}

func TestOnceRefusals(t *testing.T) {
	var refused *sdk.ConfigError
	if err := openOnce(t).Configure(t.Context(), sdk.Config{}); !errors.As(err, &refused) || refused.Notes[0].Field != "uri" {
		t.Errorf("without a uri: %v", err)
	}
	script := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\nsleep 0.1\necho no database >&2\necho in /x >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), script, Spec{}, Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger()})
	if err == nil {
		t.Fatal("a script that ends was started")
	}
	for _, want := range []string{script, "hello", "no database; in /x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestOncePinned starts an executable that has the hash that was asked for, and none that has not.
func TestOncePinned(t *testing.T) {
	_, program := installed(t, "x")
	open := func(sum string) error {
		o, err := Open(t.Context(), program, Spec{SHA256: sum}, Deps{Clock: wall{}, Rand: random{}, Logger: hclog.NewNullLogger()})
		if err == nil {
			o.Close()
		}
		return err
	}
	is := hashOf(t, program)
	if err := open(is); err != nil {
		t.Error(err)
	}
	other := strings.Repeat("0", 64)
	if err := open(other); err == nil || !strings.Contains(err.Error(), program+" has another SHA-256: expected "+other+", found "+is) {
		t.Error(err)
	}
}

// TestOnceSeesDeath kills the process between two calls.
func TestOnceSeesDeath(t *testing.T) {
	o := openOnce(t)
	if err := o.session.proc.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "it died: signal: killed") {
		t.Errorf("a load from a dead process: %v", err)
	}
}

// TestOnceWatchEndsWithItsTime watches for a time, again and again: its end is no error, whoever's
// clock sees it first.
func TestOnceWatchEndsWithItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	o := openOnce(t)
	if err := o.Configure(t.Context(), sdk.Config{URI: path}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if err := o.Watch(ctx, "", func(Seen) {}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}
