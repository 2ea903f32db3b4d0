package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestMetadata(t *testing.T) {
	plain := func(status int, body string) reply { return reply{status, "", body} }
	stored := func(body string) reply { return reply{200, "application/json", body} }
	steps := []struct {
		request, body string
		want          reply
	}{
		{"GET /health", "", plain(200, "OK")},
		{"GET /metadata", "", plain(400, "Missing key parameter")},
		{"GET /metadata?key=", "", plain(400, "Missing key parameter")},
		{"PUT /metadata", "x", plain(400, "Missing key parameter")},
		{"DELETE /metadata?x=1", "", plain(400, "Missing key parameter")},
		{"GET /metadata?key=a", "", plain(404, "metadata not found")},
		{"PUT /metadata?key=a%2Fb&z=1", "x\x00\xff", plain(200, "metadata updated")},
		{"GET /metadata?key=a%2Fb", "", stored("x\x00\xff")},
		{"GET /metadata?key=a%2fb", "", stored("x\x00\xff")},
		{"GET /metadata?key=a/b", "", stored("x\x00\xff")},
		{"PUT /metadata?key=a/b", "y", plain(200, "metadata updated")},
		{"GET /metadata?z=1&key=a%2Fb", "", stored("y")},
		{"PUT /metadata?key=a+b", "plus", plain(200, "metadata updated")},
		{"GET /metadata?key=a%2Bb", "", stored("plus")},
		{"GET /metadata?key=a%20b", "", plain(404, "metadata not found")},
		{"PUT /metadata?key=%zz%4", "odd", plain(200, "metadata updated")},
		{"GET /metadata?key=%25zz%254", "", stored("odd")},
		{"PUT /metadata?key=e", "", plain(200, "metadata updated")},
		{"GET /metadata?key=e", "", stored("")},
		{"DELETE /metadata?key=e", "", plain(200, "metadata deleted")},
		{"DELETE /metadata?key=e", "", plain(404, "metadata not found")},
		{"PUT /metadata?key=mooncake%2Frpc_meta%2F127.0.0.1%3A17870", "one", plain(200, "metadata updated")},
		{"PUT /metadata?key=mooncake%2Frpc_meta%2F127.0.0.1%3A17870", "one", plain(200, "metadata unchanged")},
		{"PUT /metadata?key=mooncake/rpc_meta/127.0.0.1:17870", "two", plain(400, "Duplicate rpc_meta key not allowed")},
		{"GET /metadata?key=mooncake/rpc_meta/127.0.0.1:17870", "", stored("one")},
		{"DELETE /metadata?key=mooncake/rpc_meta/127.0.0.1:17870", "", plain(200, "metadata deleted")},
		{"PUT /metadata?key=mooncake/rpc_meta/127.0.0.1:17870", "two", plain(200, "metadata updated")},
		{"POST /metadata?key=a", "x", unknownRoute},
		{"HEAD /metadata?key=a/b", "", unknownRoute},
		{"GET /metadata/", "", unknownRoute},
		{"GET /metadata/?key=a/b", "", unknownRoute},
		{"GET /health/", "", unknownRoute},
		{"POST /health", "", unknownRoute},
		{"GET /", "", unknownRoute},
	}
	h := NewMetadataServer(NewStore(), hclog.NewNullLogger()).Handler()
	for _, step := range steps {
		check(t, step.request, ask(t, h, step.request, step.body), step.want)
	}
}

func TestCleanup(t *testing.T) {
	store := NewStore()
	h := NewMetadataServer(store, hclog.NewNullLogger()).Handler()
	put := func(key string) {
		t.Helper()
		if got := ask(t, h, "PUT /metadata?key="+key, "x"); got.status != 200 {
			t.Fatalf("%s: %+v", key, got)
		}
	}
	put("mooncake%2Fram%2F127.0.0.1%3A17870") // as clients write them
	put("mooncake%2Frpc_meta%2F127.0.0.1%3A17870")
	put("mooncake%2Fc1%2Fram%2F127.0.0.1%3A17870")
	put("mooncake/ram/other")
	put("mooncake/ram/a%25b")
	if ram, rpcMeta := store.Cleanup("127.0.0.1:17870", ""); !ram || !rpcMeta {
		t.Errorf("removed ram %t rpc_meta %t, want both", ram, rpcMeta)
	}
	if ram, rpcMeta := store.Cleanup("127.0.0.1:17870", "c1"); !ram || rpcMeta {
		t.Errorf("removed ram %t rpc_meta %t, want the first", ram, rpcMeta)
	}
	if ram, rpcMeta := store.Cleanup("127.0.0.1:17870", ""); ram || rpcMeta {
		t.Errorf("removed ram %t rpc_meta %t, want none", ram, rpcMeta)
	}
	if ram, _ := store.Cleanup("a%b", ""); !ram {
		t.Error("a name with a percent sign is not found")
	}
	if n := store.Len(); n != 1 {
		t.Errorf("%d entries left, want 1", n)
	}
}

func TestStoreIsConcurrent(t *testing.T) {
	store := NewStore()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				key := fmt.Sprint("mooncake/ram/", n%7)
				store.Put(key, []byte{byte(i)})
				store.Get(key)
				if n%5 == 0 {
					store.Cleanup(fmt.Sprint(n%7), "")
				}
			}
		})
	}
	wg.Wait()
	if n := store.Len(); n > 7 {
		t.Errorf("%d entries, want at most 7", n)
	}
}

// logged collects the messages of a logger.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logged) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (l *logged) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Debug})
}

func TestRemoteCleaner(t *testing.T) {
	var mu sync.Mutex
	var got []string
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Method+" "+r.RequestURI)
		mu.Unlock()
		if strings.Contains(r.RequestURI, "broken") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer remote.Close()
	log := &logged{}
	c := NewRemoteCleaner(remote.URL+"/metadata", log.logger())
	c.Cleanup("127.0.0.1:17870", "")
	c.Cleanup("a b/+%", "c1")
	c.Cleanup("broken", "")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.Close(ctx)
	c.Cleanup("late", "") // after Close nothing happens
	want := []string{
		"DELETE /metadata?key=mooncake%2Fram%2F127.0.0.1%3A17870", "DELETE /metadata?key=mooncake%2Frpc_meta%2F127.0.0.1%3A17870",
		"DELETE /metadata?key=mooncake%2Fc1%2Fram%2Fa%20b%2F%2B%25", "DELETE /metadata?key=mooncake%2Fc1%2Frpc_meta%2Fa%20b%2F%2B%25",
		"DELETE /metadata?key=mooncake%2Fram%2Fbroken", "DELETE /metadata?key=mooncake%2Frpc_meta%2Fbroken",
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("requests %q\nwant     %q", got, want)
	}
	if n := log.count("could not be removed"); n != 2 {
		t.Errorf("%d failures logged, want 2", n)
	}
}

// A metadata server that does not answer neither blocks the caller nor the end.
func TestRemoteCleanerIsNotHeldUp(t *testing.T) {
	release := make(chan struct{})
	remote := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer remote.Close()
	defer close(release)
	log := &logged{}
	c := NewRemoteCleaner(remote.URL, log.logger())
	for i := range cleanerQueue + 10 {
		c.Cleanup(fmt.Sprint(i), "")
	}
	if n := log.count("too many are waiting"); n < 9 || n > 10 {
		t.Errorf("%d segments left behind, want 9 or 10", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	c.Close(ctx)
	select {
	case <-c.done:
	default:
		t.Error("Close returned before the goroutine had")
	}
}
