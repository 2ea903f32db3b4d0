package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestMain fails when goroutines are left over.
func TestMain(m *testing.M) {
	code := m.Run()
	for deadline := 200; code == 0 && runtime.NumGoroutine() > 1; deadline-- {
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over:\n%s\n", stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(code)
}

// source is a server that keeps one document as a good one does: ETags, preconditions, and, if
// holds is set, requests held back until something changes.
type source struct {
	*httptest.Server

	mu      sync.Mutex
	content []byte
	version int           // 0: there is no document
	changed chan struct{} // closed and replaced with every change
	fault   http.Handler  // answers instead, when set
	holds   bool
	gets    int
	header  http.Header // of the last request
}

func newSource(t *testing.T, content string) *source {
	t.Helper()
	s := &source{changed: make(chan struct{})}
	if content != "" {
		s.set(content)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *source) set(content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put([]byte(content))
}

func (s *source) put(content []byte) {
	s.content = content
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// answers makes the server answer this way from now on; nil is well again.
func (s *source) answers(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = nil
	if h != nil {
		s.fault = h
	}
}

func (s *source) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

func (s *source) etag() string { return fmt.Sprintf(`"v%d"`, s.version) }

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = r.Header.Clone()
	if r.Method == http.MethodGet {
		s.gets++
	}
	if fault := s.fault; fault != nil {
		s.mu.Unlock()
		defer s.mu.Lock()
		fault.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPut {
		s.servePut(w, r)
		return
	}
	var seconds int
	if _, err := fmt.Sscanf(r.Header.Get("Prefer"), "wait=%d", &seconds); err == nil && s.holds {
		w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", seconds))
		limit := time.After(time.Duration(seconds) * time.Second)
		for over := false; !over && s.version > 0 && r.Header.Get("If-None-Match") == s.etag(); {
			changed := s.changed
			s.mu.Unlock()
			select {
			case <-changed:
			case <-limit:
				over = true
			case <-r.Context().Done():
				over = true
			}
			s.mu.Lock()
		}
	}
	if s.version == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", s.etag())
	if r.Header.Get("If-None-Match") == s.etag() {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(s.content)
}

func (s *source) servePut(w http.ResponseWriter, r *http.Request) {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if match != "" && (s.version == 0 || match != s.etag()) || none == "*" && s.version > 0 || match == "" && none == "" {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.put(content)
	w.Header().Set("ETag", s.etag())
	w.WriteHeader(http.StatusNoContent)
}

// configured returns a connector for an address with options "name=value".
func configured(t *testing.T, uri string, options ...string) *Connector {
	t.Helper()
	c := New(hclog.NewNullLogger())
	configure(t, c, uri, options...)
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func configure(t *testing.T, c *Connector, uri string, options ...string) {
	t.Helper()
	if err := c.Configure(t.Context(), sdk.Config{URI: uri, ClusterID: "blue", Options: asOptions(options)}); err != nil {
		t.Fatal(err)
	}
}

func asOptions(list []string) map[string]string {
	m := map[string]string{}
	for _, option := range list {
		name, value, _ := strings.Cut(option, "=")
		m[name] = value
	}
	return m
}

// heard is a sink that a test reads.
type heard struct {
	mu     sync.Mutex
	events []string // "snapshot CONTENT" or "KIND"
	last   string
}

func (h *heard) Snapshot(doc sdk.Document) { h.add("snapshot " + string(doc.Content)) }

func (h *heard) Unavailable(why *sdk.Unavailable) { h.add(why.Kind.String()) }

func (h *heard) add(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if event != h.last {
		h.events = append(h.events, event)
		h.last = event
	}
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.events...)
}

// until waits for an event to be the newest.
func (h *heard) until(t *testing.T, event string) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		h.mu.Lock()
		last := h.last
		h.mu.Unlock()
		if last == event {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q did not come; heard %q", event, h.all())
		}
	}
}

// watched runs a watch for the rest of the test, or until the function is called.
func watched(t *testing.T, c *Connector) (*heard, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &heard{}
	done := make(chan error, 1)
	go func() { done <- c.Watch(ctx, "", h) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the watch ends with %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the watch does not end")
		}
	})
	t.Cleanup(stop)
	return h, stop
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
