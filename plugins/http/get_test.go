package http

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestConfigurationsRefused: each mistake is told with its field, all at once.
func TestConfigurationsRefused(t *testing.T) {
	cases := []struct {
		uri     string
		options []string
		want    string // of the error, in part
	}{
		{"", nil, "uri: the http connector requires a non-empty uri"},
		{"policy.yaml", nil, "uri: it is not an http or https address"},
		{"ftp://host/x", nil, "uri: it is not an http or https address"},
		{"http:///x", nil, "uri: it is not an http or https address"},
		{"http://[::1", nil, "uri: it is not an address"},
		{"https://me:secret@host/x", nil, "uri: a name and password in the address"},
		{"https://host/x#y", nil, "uri: the part after #"},
		{"https://host/x", []string{"poll=1ms"}, `options.poll: "1ms" is not a duration between 100ms and 1h0m0s, like 5s`},
		{"https://host/x", []string{"wait=-1s"}, "options.wait"},
		{"https://host/x", []string{"timeout=soon"}, "options.timeout"},
		{"https://host/x", []string{"redirects=11"}, "options.redirects"},
		{"https://host/x", []string{"max_bytes=0"}, "options.max_bytes"},
		{"https://host/x", []string{"save=maybe"}, "options.save"},
		{"https://host/x", []string{"pol=1s"}, "options.pol: unknown option"},
		{"https://host/x", []string{"client_key_file=/nowhere"}, "options.client_cert_file"},
		{"https://host/x", []string{"ca_file=/nowhere"}, "options.ca_file: open /nowhere"},
		{"http://host/x", []string{"token_file=/nowhere"}, "options.token_file: a token is sent over https"},
		{"x", []string{"poll=0s", "save=no"}, "uri: it is not an http or https address with a host; want an address like https://config.example.com/mooncake/policy.yaml; options.poll"},
	}
	for _, c := range cases {
		err := New(nil).Configure(t.Context(), sdk.Config{URI: c.uri, Options: asOptions(c.options)})
		var refused *sdk.ConfigError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %s", c.uri, c.options, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the message repeats the password: %v", c.uri, err)
		}
	}
}

func TestARefusedConfigurationChangesNothing(t *testing.T) {
	s := newSource(t, "one")
	c := configured(t, s.URL)
	if err := c.Configure(t.Context(), sdk.Config{URI: "nonsense"}); err == nil {
		t.Fatal("nonsense is accepted")
	}
	if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != "one" {
		t.Errorf("%q, %v", doc.Content, err)
	}
}

func TestNotConfigured(t *testing.T) {
	c := New(nil)
	if _, err := c.Load(t.Context()); err == nil {
		t.Error("a document without an address")
	}
	if _, err := c.Save(t.Context(), nil, ""); err == nil {
		t.Error("saved without an address")
	}
	if err := c.Watch(t.Context(), "", &heard{}); err == nil {
		t.Error("watched without an address")
	}
}

// TestAnswers: what each answer of a server means.
func TestAnswers(t *testing.T) {
	code := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	body := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		}
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte(text))
				_ = conn.Close()
			}
		}
	}
	cases := []struct {
		name   string
		answer http.HandlerFunc
		kind   sdk.Kind
		want   string // the document, or a part of the reason
		good   bool
	}{
		{"yaml", body("application/yaml; charset=utf-8", "version: 1"), 0, "version: 1", true},
		{"octets", body("application/octet-stream", "x"), 0, "x", true},
		{"a type nobody knows", body("policy/mooncake;;", "x"), 0, "x", true},
		{"yaml called a page", body("text/html", "version: 1"), 0, "version: 1", true},
		{"nothing in it", body("text/plain", ""), 0, "", true},
		{"a page", body("text/html; charset=utf-8", "\n <!DOCTYPE html><p>Sign in"), sdk.Invalid, "web page", false},
		{"404", code(404), sdk.Absent, "404 Not Found", false},
		{"410", code(410), sdk.Absent, "410 Gone", false},
		{"401", code(401), sdk.Auth, "401 Unauthorized; it wants a token", false},
		{"403", code(403), sdk.Auth, "403 Forbidden", false},
		{"407", code(407), sdk.Auth, "407", false},
		{"400", code(400), sdk.Unreachable, "400 Bad Request", false},
		{"418", code(418), sdk.Unreachable, "418", false},
		{"429", code(429), sdk.Unreachable, "429 Too Many Requests", false},
		{"500", code(500), sdk.Unreachable, "500 Internal Server Error", false},
		{"503", code(503), sdk.Unreachable, "503", false},
		{"599", code(599), sdk.Unreachable, "answers 599", false},
		{"204", code(204), sdk.Unreachable, "no whole document", false},
		{"206", code(206), sdk.Unreachable, "no whole document", false},
		{"304 to a question that was none", code(304), sdk.Unreachable, "304", false},
		{"cut short", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nversion: 1\n"), sdk.Unreachable, "broke off after 11 bytes", false},
		{"cut short in a chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nversion: 1\n\r\n"), sdk.Unreachable, "broke off after 11 bytes", false},
		{"no end", raw("HTTP/1.1 200 OK\r\n\r\nversion: 1\n"), sdk.Invalid, "does not say where it ends", false},
		{"not HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n"), sdk.Unreachable, "malformed HTTP", false},
		{"hangs up", raw(""), sdk.Unreachable, "EOF", false},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("x"))
		}, sdk.Invalid, "encoded as gzip", false},
		{"too long, and says so", body("text/plain", strings.Repeat("x", 1001)), sdk.Invalid, "has 1001 bytes, at most 1000", false},
		{"too long, in chunks", func(w http.ResponseWriter, _ *http.Request) {
			for range 30 {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 500))
				w.(http.Flusher).Flush()
			}
		}, sdk.Invalid, "more than 1000 bytes", false},
		{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, sdk.Unreachable, "within 2s", false},
	}
	s := newSource(t, "")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s.answers(c.answer)
			connector := configured(t, s.URL+"/p.yaml?signature=secret", "timeout=2s", "max_bytes=1000")
			doc, err := connector.Load(t.Context())
			var why *sdk.Unavailable
			switch {
			case c.good && (err != nil || string(doc.Content) != c.want || doc.Revision == ""):
				t.Errorf("%q with revision %q, %v", doc.Content, doc.Revision, err)
			case c.good:
			case !errors.As(err, &why):
				t.Errorf("%q, %v", doc.Content, err)
			case why.Kind != c.kind || !strings.Contains(why.Reason, c.want):
				t.Errorf("%v, want %v with %q", why, c.kind, c.want)
			case !strings.HasPrefix(why.Reason, s.URL+"/p.yaml?...: "):
				t.Errorf("%q does not name the source, or shows its secrets", why.Reason)
			}
		})
	}
}

func TestTheRevisionIsTheETagAndAHash(t *testing.T) {
	s := newSource(t, "")
	c := configured(t, s.URL)
	revisions := map[string]string{}
	for _, etag := range []string{`"a"`, `W/"a"`, "", "unquoted", `"with blank "`, `"`} {
		for _, content := range []string{"one", "two"} {
			s.answers(func(w http.ResponseWriter, _ *http.Request) {
				if etag != "" {
					w.Header().Set("ETag", etag)
				}
				_, _ = w.Write([]byte(content))
			})
			doc, err := c.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if usable(etag) != "" && !strings.HasPrefix(doc.Revision, etag+" ") {
				t.Errorf("revision %q of ETag %q", doc.Revision, etag)
			}
			if former, known := revisions[doc.Revision]; known && former != content {
				t.Errorf("revision %q means %q and %q", doc.Revision, former, content)
			}
			revisions[doc.Revision] = content
		}
	}
	if len(revisions) != 6 { // two of each usable ETag, and two of none
		t.Errorf("%d revisions: %v", len(revisions), revisions)
	}
}

func TestTheClusterIsPartOfTheAddress(t *testing.T) {
	s := newSource(t, "")
	s.answers(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) })
	doc, err := configured(t, s.URL+"/{cluster_id}/p.yaml").Load(t.Context())
	if err != nil || string(doc.Content) != "/blue/p.yaml" {
		t.Errorf("%q, %v", doc.Content, err)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for uri, want := range map[string]string{
		"http://" + address:              "connection refused",
		"http://nobody.invalid/p.yaml":   "nobody.invalid is not found by name",
		"http://127.0.0.1:1/p.yaml?k=sv": "127.0.0.1:1/p.yaml?...: ",
	} {
		_, err := configured(t, uri).Load(t.Context())
		var why *sdk.Unavailable
		if !errors.As(err, &why) || why.Kind != sdk.Unreachable || !strings.Contains(why.Reason, want) {
			t.Errorf("%s: %v, want %s", uri, err, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-3": 0, "soon": 0, "999999": laterMost,
		sent.Add(time.Minute).Format(http.TimeFormat):    time.Minute,
		sent.Add(-time.Minute).Format(http.TimeFormat):   0,
		sent.Add(24 * time.Hour).Format(http.TimeFormat): laterMost,
		fmt.Sprint(uint64(1) << 40):                      0,
	} {
		resp := &http.Response{Header: http.Header{}}
		resp.Header.Set("Retry-After", value)
		resp.Header.Set("Date", sent.Format(http.TimeFormat))
		if got := retryAfter(resp); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestPauses(t *testing.T) {
	for range 1000 {
		if d := calm(false, 10*time.Second, time.Second); d < 9*time.Second || d > 11*time.Second {
			t.Fatalf("an interval of 10 s becomes %v", d)
		}
		if d := troubled(0, 10*time.Second, 0); d < retry/2 || d > retry {
			t.Fatalf("the first pause after trouble is %v", d)
		}
		if d := troubled(50, 10*time.Second, 0); d < retryMost/2 || d > retryMost {
			t.Fatalf("a late pause after trouble is %v", d)
		}
		if d := troubled(50, 100*time.Millisecond, 0); d > retry {
			t.Fatalf("a pause with a short interval is %v", d)
		}
		if d := troubled(0, time.Second, time.Minute); d != time.Minute {
			t.Fatalf("asked to wait a minute, waits %v", d)
		}
	}
	if d := calm(true, 10*time.Second, time.Minute); d != 0 {
		t.Errorf("after a request that was held back it waits %v", d)
	}
	if d := calm(true, 10*time.Second, 0); d != gap {
		t.Errorf("a server that only says it holds back is asked after %v", d)
	}
}
