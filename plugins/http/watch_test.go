package http

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChangesAreSeen(t *testing.T) {
	for _, holds := range []bool{false, true} {
		t.Run(fmt.Sprintf("holds %v", holds), func(t *testing.T) {
			s := newSource(t, "one")
			s.holds = holds
			h, _ := watched(t, configured(t, s.URL, "poll=100ms"))
			h.until(t, "snapshot one")
			for i := range 5 {
				s.set(fmt.Sprint("change ", i))
				h.until(t, fmt.Sprint("snapshot change ", i))
			}
		})
	}
}

// TestAHeldRequestIsAnsweredAtOnce: with a long interval, only a held request can be that quick.
func TestAHeldRequestIsAnsweredAtOnce(t *testing.T) {
	s := newSource(t, "one")
	s.holds = true
	h, stop := watched(t, configured(t, s.URL, "poll=1h"))
	h.until(t, "snapshot one")
	for i := range 20 {
		s.set(fmt.Sprint(i))
		h.until(t, fmt.Sprint("snapshot ", i))
	}
	if n := s.requests(); n > 60 {
		t.Errorf("%d requests for 20 changes", n)
	}
	stop() // while a request is being held back
}

func TestAServerThatDoesNotHoldBackIsNotHurried(t *testing.T) {
	s := newSource(t, "one")
	h, _ := watched(t, configured(t, s.URL, "poll=1h"))
	h.until(t, "snapshot one")
	for end := time.Now().Add(10 * time.Second); s.requests() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not asked whether it holds requests back")
		}
	}
	time.Sleep(5 * gap)
	if n := s.requests(); n != 2 {
		t.Errorf("%d requests, want the document and one try", n)
	}
}

// TestAStormEndsOnTheLast: a thousand changes make far fewer documents, the last among them.
func TestAStormEndsOnTheLast(t *testing.T) {
	s := newSource(t, "begin")
	s.holds = true
	h, _ := watched(t, configured(t, s.URL))
	h.until(t, "snapshot begin")
	for i := range 1000 {
		s.set(fmt.Sprint(i))
		time.Sleep(time.Millisecond)
	}
	h.until(t, "snapshot 999")
	if n := len(h.all()); n > 200 {
		t.Errorf("%d documents were passed on", n)
	}
	// Order: numbers only grow.
	last := -1
	for _, e := range h.all()[1:] {
		var n int
		if _, err := fmt.Sscanf(e, "snapshot %d", &n); err != nil || n <= last {
			t.Fatalf("%q after %d", e, last)
		}
		last = n
	}
}

// TestDownAndUp: each trouble is told as what it is, never as a document, and the document is
// told again afterwards though it is the same.
func TestDownAndUp(t *testing.T) {
	faults := map[string]http.HandlerFunc{
		"absent":      http.NotFound,
		"auth":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"unreachable": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"invalid": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte("x"))
		},
	}
	for _, holds := range []bool{false, true} {
		for kind, fault := range faults {
			t.Run(fmt.Sprint(kind, " holds ", holds), func(t *testing.T) {
				t.Parallel()
				s := newSource(t, "one")
				s.holds = holds
				h, _ := watched(t, configured(t, s.URL, "poll=100ms", "wait=1s"))
				for range 3 {
					h.until(t, "snapshot one")
					s.answers(fault)
					h.until(t, kind)
					s.answers(nil)
				}
				h.until(t, "snapshot one")
				for _, e := range h.all() {
					if e != "snapshot one" && e != kind {
						t.Errorf("heard %q", e)
					}
				}
			})
		}
	}
}

func TestTheServerGoesAndComesBack(t *testing.T) {
	s := newSource(t, "one")
	address := s.Listener.Addr().String()
	h, _ := watched(t, configured(t, s.URL))
	h.until(t, "snapshot one")
	s.CloseClientConnections()
	s.Close()
	h.until(t, "unreachable")
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("somebody else has the port now: %v", err)
	}
	back := httptest.NewUnstartedServer(s)
	back.Listener.Close()
	back.Listener = l
	back.Start()
	defer back.Close()
	up := time.Now()
	h.until(t, "snapshot one")
	if d := time.Since(up); d > 5*time.Second {
		t.Errorf("seen %v after it was back", d)
	}
}

// TestABrokenHeldRequestIsNoTrouble: proxies cut what is quiet. The document is there, so
// nothing is said, and after some the connector goes back to intervals.
func TestABrokenHeldRequestIsNoTrouble(t *testing.T) {
	s := newSource(t, "one")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Prefer") == "" {
			s.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusGatewayTimeout)
	}))
	defer proxy.Close()
	h, _ := watched(t, configured(t, proxy.URL, "poll=100ms"))
	h.until(t, "snapshot one")
	s.set("two")
	h.until(t, "snapshot two")
	s.set("three")
	h.until(t, "snapshot three")
	if got := h.all(); !slices.Equal(got, []string{"snapshot one", "snapshot two", "snapshot three"}) {
		t.Errorf("heard %q", got)
	}
}

func TestAServerThatAsksForTimeGetsIt(t *testing.T) {
	s := newSource(t, "one")
	h, _ := watched(t, configured(t, s.URL, "poll=100ms", "wait=0s"))
	h.until(t, "snapshot one")
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	h.until(t, "unreachable")
	at, before := time.Now(), s.requests()
	s.answers(nil)
	h.until(t, "snapshot one")
	if d := time.Since(at); d < 800*time.Millisecond || s.requests() != before+1 {
		t.Errorf("asked again after %v, %d times", d, s.requests()-before)
	}
}

// TestAnETagThatDoesNotChange: servers that make it of size and seconds miss changes; asking
// for all of it now and then finds them.
func TestAnETagThatDoesNotChange(t *testing.T) {
	s := newSource(t, "one")
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"3-17"`)
		if r.Header.Get("If-None-Match") == `"3-17"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = w.Write(s.content)
	})
	h, _ := watched(t, configured(t, s.URL, "poll=100ms", "wait=0s"))
	h.until(t, "snapshot one")
	s.set("two")
	h.until(t, "snapshot two")
}

// TestAnotherConfiguration takes effect while a request to the former server is held back.
func TestAnotherConfiguration(t *testing.T) {
	one, two := newSource(t, "one"), newSource(t, "two")
	one.holds, two.holds = true, true
	c := configured(t, one.URL)
	h, _ := watched(t, c)
	h.until(t, "snapshot one")
	for range 3 {
		configure(t, c, two.URL)
		h.until(t, "snapshot two")
		configure(t, c, one.URL)
		h.until(t, "snapshot one")
	}
}

func TestOnlyChangesAreCarried(t *testing.T) {
	s := newSource(t, strings.Repeat("x", 1<<20))
	sent := 0
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("ETag", `"x"`)
		if r.Header.Get("If-None-Match") == `"x"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		_, _ = w.Write(s.content)
	})
	watched(t, configured(t, s.URL, "poll=100ms", "wait=0s"))
	for end := time.Now().Add(10 * time.Second); s.requests() < 10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d requests", s.requests())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent != 1 {
		t.Errorf("the document was sent %d times in ten requests", sent)
	}
}
