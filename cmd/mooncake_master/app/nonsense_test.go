package app

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestNonsenseAtThePolicyRoutes sends a thousand malformed requests to the routes about the whole
// policy: none is answered as an error of the master's, and none changes anything.
func TestNonsenseAtThePolicyRoutes(t *testing.T) {
	const document = "version: 1\ntenants:\n  - name: t0 # the first\n    quota: 1MB\n"
	path := policyFile(t, document)
	m := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path)
	m.connectorState(t, "ready")
	open := descriptors(t)

	const route = "/api/v1/tenant_quota_policy"
	r := rand.New(rand.NewPCG(5, 17))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	answers := map[string]int{}
	for i := range 1000 {
		body := pick("", "{", "version: 1\n", "version: 1\ntenants: [", "\xff\xfe\x00", strings.Repeat("[", 3000), strings.Repeat("- ", 2000), document+document, "5\r\nhello\r\n")
		request := pick("GET", "PUT", "POST", "DELETE", "PATCH", "TRACE", "OPTIONS", "X\x00", "") + " " + route +
			pick("", "/plan", "/confirm", "/history", "/", "/..", "//", "/plan/x") +
			pick("", "?", "?at=%zz", "?at=moon", "?expected_revision", "?expected_revision=%00%ff", "?expected_revision=x&confirm_removal=true", "?revision=%", "?raw=true&at=\xff", "?"+strings.Repeat("a", 9000)) +
			pick(" HTTP/1.1", " HTTP/1.1", " HTTP/1.1", " HTTP/9.9", "") + "\r\nHost: x\r\nConnection: close\r\n" +
			pick(fmt.Sprintf("Content-Length: %d\r\n", len(body)), fmt.Sprintf("Content-Length: %d\r\n", len(body)+9), "Content-Length: -1\r\n",
				"Content-Length: 99999999999999\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", "") + "\r\n" + body
		answer := exchange(t, m.http, request)
		status, _, _ := strings.Cut(strings.TrimPrefix(answer, "HTTP/1.1 "), " ")
		answers[status]++
		if strings.HasPrefix(status, "5") && status != "505" || status == "200" && !strings.HasPrefix(request, "GET ") {
			t.Fatalf("request %d: %.300q\n%.300q", i, request, answer)
		}
	}
	t.Logf("answers by status: %v", answers)

	m.connectorState(t, "ready")
	if _, text := m.request(t, http.MethodGet, route+"?raw=true", ""); text != document {
		t.Errorf("in force: %q", text)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != document {
		t.Errorf("at the source: %q, %v", text, err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		http.DefaultClient.CloseIdleConnections()
		if descriptors(t) <= open {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before", descriptors(t), open)
		}
	}
}

// exchange sends a request as it is and returns what comes back until the end.
func exchange(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// The other side may hang up while it is still being talked to.
	_, _ = io.WriteString(c, request)
	_ = c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("no answer to %.300q", request)
	}
	return string(answer)
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(all)
}
