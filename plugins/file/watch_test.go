package file

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// recorder is a sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	events []string
	bell   chan struct{}
}

func (r *recorder) Snapshot(doc sdk.Document) { r.add("doc " + string(doc.Content)) }

func (r *recorder) Unavailable(why *sdk.Unavailable) { r.add(why.Kind.String()) }

func (r *recorder) add(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.events); n == 0 || r.events[n-1] != event {
		r.events = append(r.events, event)
	}
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *recorder) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return ""
	}
	return r.events[len(r.events)-1]
}

// await waits until the newest event is this one.
func (r *recorder) await(t *testing.T, event string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for r.last() != event {
		select {
		case <-r.bell:
		case <-limit:
			t.Fatalf("last event %q, want %q", r.last(), event)
		}
	}
}

// watching starts a Watch that ends with the test.
func watching(t *testing.T, c *Connector) *recorder {
	t.Helper()
	r := &recorder{bell: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Watch(ctx, "", r) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// slowPoll keeps polling out of the way, so that a test shows that events suffice.
func slowPoll(t *testing.T, path string) *Connector {
	t.Helper()
	c := New(hclog.NewNullLogger())
	if err := c.Configure(t.Context(), sdk.Config{URI: path, Options: map[string]string{"poll": "1h"}}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWatchEditors(t *testing.T) {
	shell := func(script string) func(t *testing.T, path, text string) {
		return func(t *testing.T, path, text string) {
			cmd := exec.Command("sh", "-ec", script)
			cmd.Env = append(os.Environ(), "P="+path, "TEXT="+text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	styles := []struct {
		name string
		edit func(t *testing.T, path, text string)
	}{
		{"mv", shell(`printf %s "$TEXT" > "$P.x"; mv "$P.x" "$P"`)},
		{"truncate and write", shell(`printf %s "$TEXT" > "$P"`)},
		{"sed -i", shell(`sed -i "s/.*/$TEXT/" "$P"`)},
		{"vim with backup", shell(`mv "$P" "$P~"; printf %s "$TEXT" > "$P"; rm "$P~"`)},
		{"vim with backup by copy", shell(`cp "$P" "$P~"; printf %s "$TEXT" > "$P"; rm "$P~"`)},
		{"hard link replaced", shell(`printf %s "$TEXT" > "$P.x"; ln -f "$P.x" "$P"; rm "$P.x"`)},
		{"append slowly", shell(`: > "$P"; for i in 1 2 3 4; do sleep 0.02; done; printf %s "$TEXT" >> "$P"`)},
		{"ours", func(t *testing.T, path, text string) {
			c := configured(t, path)
			doc, err := c.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Save(t.Context(), []byte(text), doc.Revision); err != nil {
				t.Fatal(err)
			}
		}},
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "first")
	r := watching(t, slowPoll(t, path))
	r.await(t, "doc first")
	for i, style := range styles {
		text := fmt.Sprintf("edit%d", i)
		style.edit(t, path, text)
		r.await(t, "doc "+text)
	}
	// Deleted, and made again after a while.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.await(t, "absent")
	write(t, path, "back")
	r.await(t, "doc back")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	r.await(t, "invalid")
}

func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, text string) {
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "policy.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	publish("..1", "one")
	path := filepath.Join(dir, "policy.yaml")
	if err := os.Symlink("..data/policy.yaml", path); err != nil {
		t.Fatal(err)
	}
	r := watching(t, slowPoll(t, path))
	r.await(t, "doc one")
	publish("..2", "two")
	r.await(t, "doc two")
	write(t, filepath.Join(dir, "..2", "policy.yaml"), "two again")
	r.await(t, "doc two again")
	publish("..3", "three")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	r.await(t, "doc three")
}

// TestWatchPolls takes the folder away, whose return no event tells.
func TestWatchPolls(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(folder, "policy.yaml")
	c := New(hclog.NewNullLogger())
	if err := c.Configure(t.Context(), sdk.Config{URI: path, Options: map[string]string{"poll": "100ms"}}); err != nil {
		t.Fatal(err)
	}
	r := watching(t, c)
	r.await(t, "absent")
	for _, text := range []string{"one", "two"} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
		r.await(t, "doc "+text)
		write(t, path, text+" edited")
		r.await(t, "doc "+text+" edited")
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		r.await(t, "absent")
	}
}

func TestWatchReconfigured(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "of a")
	write(t, filepath.Join(dir, "b"), "of b")
	c := slowPoll(t, filepath.Join(dir, "a"))
	r := watching(t, c)
	r.await(t, "doc of a")
	if err := c.Configure(t.Context(), sdk.Config{URI: filepath.Join(dir, "b")}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "doc of b")
}

// TestWatchBurst writes many times; the last counts, and few are told.
func TestWatchBurst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "first")
	r := watching(t, slowPoll(t, path))
	r.await(t, "doc first")
	for i := range 500 {
		write(t, path, fmt.Sprintf("burst %d", i))
	}
	r.await(t, "doc burst 499")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) > 100 {
		t.Errorf("%d events of 500 writes: %s", len(r.events), strings.Join(r.events, ", "))
	}
}
