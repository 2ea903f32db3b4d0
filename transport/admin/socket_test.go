package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// listen serves on a free port until the test ends and returns the address.
func listen(t *testing.T, serve func(net.Listener) error, stop func(context.Context) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// send writes raw bytes, closes the sending side and returns what came back.
func send(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, request) // the server may have had enough already
	_ = c.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(c) // so may it cut the connection
	return string(answer)
}

// malformed returns more than a hundred requests with something wrong.
func malformed() []string {
	out := []string{
		"", "\r\n\r\n", "\x00", "\xff\xfe\xfd", "GET", "GET ", "GET /", "GET /\r\n\r\n", "GET / HTTP\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n x\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET  /health  HTTP/1.1\r\nHost: a\r\n\r\n",
		"get /health HTTP/1.1\r\nHost: a\r\n\r\n", "G\x00T /health HTTP/1.1\r\nHost: a\r\n\r\n", "GET health HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
		"TRACE /health HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "GET //// HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /health?%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /health?&&&=&= HTTP/1.1\r\nHost: a\r\n\r\n", "GET /health?\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /health#x HTTP/1.1\r\nHost: a\r\n\r\n", "GET ?x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /query_key?key=%00%ff HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n",
		"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
		"GET /health HTTP/1.1\r\nHost: a\r\nExpect: nonsense\r\n\r\n", "GET /health HTTP/1.1\r\nHost: \x00\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET /health HTTP/1.1\r\nA\tB: c\r\nHost: a\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + "junk",
		"GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\nRange: bytes=a-b\r\n\r\n",
		strings.Repeat("A", 100000), "GET /" + strings.Repeat("a", 2<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /health HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("b", 2<<20) + "\r\n\r\n", "GET /health HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 300000) + "\r\n",
		strings.Repeat("GET /nope HTTP/1.1\r\nHost: a\r\n\r\n", 50), strings.Repeat("\r\n", 1000),
	}
	const put = "PUT /api/v1/tenant_quotas?tenant_id=ta HTTP/1.1\r\nHost: a\r\n"
	for _, rest := range []string{
		"\r\n", "Content-Length: 10\r\n\r\n", "Content-Length: 10\r\n\r\n{", "Content-Length: 3\r\n\r\n{}}}}}", "Content-Length: 0\r\n\r\n",
		"Content-Length: 68719476736\r\n\r\n{", "Content-Length: 67108865\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{}   \r\n", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
		"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}X\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n", "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n{",
	} {
		out = append(out, put+rest)
	}
	for _, body := range []string{"{", "[", "\x00", "\xff", `{"requested_quota_bytes":`, `{"requested_quota_bytes":9e99}`, strings.Repeat("{", 10000), strings.Repeat(`{"x":`, 10000), `"\u`, "/*"} {
		for _, target := range []string{"PUT /api/v1/tenant_quotas?tenant_id=ta", "POST /api/v1/soft_pin", "POST /api/v1/soft_unpin", "POST /api/v1/remove_all?force=%"} {
			out = append(out, fmt.Sprintf("%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body))
		}
	}
	return out
}

// After each malformed request both servers still serve, nothing panicked, and at the end no
// goroutine is left over.
func TestMalformedRequests(t *testing.T) {
	log := &logged{}
	f := loaded()
	state := f.state()
	c := &clock{now: start}
	s := NewServer(state, NewReporter(state, start), Options{Version: "v", Now: c.Now, Log: log.logger()})
	m := NewMetadataServer(NewStore(), log.logger())
	admin, metadata := listen(t, s.Serve, s.Shutdown), listen(t, m.Serve, m.Shutdown)
	const healthy = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	send(t, admin, healthy)
	send(t, metadata, healthy)
	before := runtime.NumGoroutine()
	requests := malformed()
	if len(requests) < 100 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, request := range requests {
		for _, address := range []string{admin, metadata} {
			answer := send(t, address, request)
			if answer != "" && !strings.HasPrefix(answer, "HTTP/1.") {
				t.Errorf("%.60q: answered %.60q", request, answer)
			}
			if strings.HasPrefix(answer, "HTTP/1.1 500") {
				t.Errorf("%.60q: answered %.200q", request, answer)
			}
		}
		for _, address := range []string{admin, metadata} {
			if answer := send(t, address, healthy); !strings.HasPrefix(answer, "HTTP/1.1 200 OK") {
				t.Fatalf("after %.60q: %.200q", request, answer)
			}
		}
	}
	if len(f.said) != 0 {
		for _, said := range f.said {
			if !strings.HasPrefix(said, "remove") { // its body is not read
				t.Errorf("a malformed request changed something: %s", said)
			}
		}
	}
	if n := log.count("panic"); n != 0 {
		t.Errorf("%d panics: %s", n, log.lines)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestBodyBound(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	address := listen(t, s.Serve, s.Shutdown)
	big := fmt.Sprintf("PUT /api/v1/tenant_quotas?tenant_id=ta HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", MaxBodyBytes+1)
	if answer := send(t, address, big); !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !strings.HasSuffix(answer,
		"\r\n\r\n"+`{"success":false,"error_code":-600,"error_message":"request body is larger than 67108864 bytes"}`) {
		t.Errorf("announced: %q", answer)
	}
	body := io.MultiReader(strings.NewReader(`{"x":"`), io.LimitReader(endless{}, MaxBodyBytes))
	r, err := http.NewRequest(http.MethodPut, "http://"+address+"/api/v1/tenant_quotas?tenant_id=ta", body)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(r); err == nil { // the server may also have cut the connection
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("in chunks: %s", answer.Status)
		}
		_ = answer.Body.Close()
	}
	long := `{"requested_quota_bytes":5,"x":"` + strings.Repeat("a", 9<<20) + `"}`
	if got := ask(t, s.Handler(), "PUT /api/v1/tenant_quotas?tenant_id=ta", long); got.status != 200 {
		t.Errorf("9 MiB: %+v", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// One connection carries many requests, and what Shutdown finds under way is answered.
func TestKeepAliveAndShutdown(t *testing.T) {
	f := loaded()
	entered, release := make(chan struct{}), make(chan struct{})
	state := f.state()
	state.Service = func() ServiceState {
		if entered != nil {
			close(entered)
			entered = nil
			<-release
		}
		return Serving()
	}
	c := &clock{now: start}
	s := NewServer(state, NewReporter(state, start), Options{Version: "v", Now: c.Now, Log: (&logged{}).logger()})
	address := listen(t, s.Serve, s.Shutdown)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for range 3 {
		if _, err := io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != `{"version":"2.0.0","display_version":"v"}` {
			t.Fatalf("%q %v", body, err)
		}
	}
	wait := entered
	if _, err := io.WriteString(conn, "GET /role HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-wait
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	close(release)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "leader" {
		t.Errorf("%q %v", body, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		_ = c.Close()
		t.Error("the port is still open")
	}
}

// A request that does not end in time is cut by Shutdown.
func TestShutdownCuts(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "PUT /api/v1/tenant_quotas?tenant_id=ta HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // until the request is under way
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("a cut request is no error")
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestShutdownDoesNotWaitForTheSilent ends a server to which somebody is connected who has never asked for anything.
func TestShutdownDoesNotWaitForTheSilent(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answer, err := http.Get("http://" + l.Addr().String() + "/version") // accepted after the other
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second) // the library would take five
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if n, err := silent.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the silent connection reads %d bytes, %v", n, err)
	}
}

// Many keys leave in pieces, and with the right length.
func TestManyKeys(t *testing.T) {
	f := loaded()
	keys := make([]string, 200_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%08d", i)
	}
	f.keys = map[string][]string{"default": keys}
	state := f.state()
	s := NewServer(state, NewReporter(state, start), Options{Version: "v", Now: time.Now, Log: (&logged{}).logger()})
	address := listen(t, s.Serve, s.Shutdown)
	answer, err := http.Get("http://" + address + "/get_all_keys")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != strings.Join(keys, "\n")+"\n" || answer.ContentLength != int64(len(body)) {
		t.Errorf("%d bytes, length %d, %v", len(body), answer.ContentLength, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A peer that sends its request drop by drop is cut; others are served meanwhile.
func TestSlowClients(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	if s.http.ReadHeaderTimeout <= 0 || s.http.ReadTimeout <= 0 || s.http.WriteTimeout <= 0 || s.http.IdleTimeout <= 0 || s.http.MaxHeaderBytes <= 0 {
		t.Fatalf("a bound is missing: %+v", s.http)
	}
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.IdleTimeout = 100*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond
	address := listen(t, s.Serve, s.Shutdown)
	for _, request := range []string{"GET /hea", "GET /health HTTP/1.1\r\nHost: a\r\nX", "PUT /api/v1/tenant_quotas?tenant_id=ta HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{", ""} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if answer := send(t, address, "GET /role HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(answer, "leader") {
			t.Errorf("another client got %q", answer)
		}
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Errorf("%q: not cut: %v", request, err)
		}
		if strings.HasPrefix(request, "PUT") && !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("%q: %q", request, answer)
		}
		_ = conn.Close()
	}
}
