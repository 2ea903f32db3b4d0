package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func newServer(t testing.TB, opts Options) *Server {
	t.Helper()
	opts.Now = time.Now
	opts.Poison = true
	opts.Portable = portable
	s, err := NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen serves s on a port of its own until the test ends.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Errorf("serve ended with %v", err)
		}
		if n := s.Stats().Open; n != 0 {
			t.Errorf("%d connections are left open", n)
		}
	})
	return l.Addr().String()
}

// handlers registers a few calls with fixed answers, those of the master whose answers to
// malformed frames were captured.
func handlers(s *Server) {
	Handle(s, wire.ServiceReady, func(_ *Call, _ *wire.ServiceReadyRequest, r *errcode.Result[string]) error {
		r.Value = wire.ProtocolVersion
		return nil
	})
	Handle(s, wire.ExistKey, func(_ *Call, q *wire.ExistKeyRequest, r *errcode.Result[bool]) error {
		switch q.TenantID {
		case "panic":
			panic("a handler's mistake")
		case "fail":
			return errors.New("disk on fire")
		case "_x", "a\x01":
			r.Code = errcode.InvalidParams
		}
		return nil
	})
	Handle(s, wire.BatchExistKey, func(_ *Call, q *wire.BatchExistKeyRequest, r *[]errcode.Result[bool]) error {
		*r = structpack.Resize(*r, len(q.Keys))
		for i, k := range q.Keys {
			if k == "bad" {
				(*r)[i].Code = errcode.InvalidParams
			}
		}
		return nil
	})
	Handle(s, wire.Ping, func(_ *Call, _ *wire.PingRequest, r *errcode.Result[wire.PingReply]) error {
		r.Value.ClientStatus = wire.ClientOK
		return nil
	})
	Handle(s, wire.RemoveAll, func(_ *Call, q *wire.RemoveAllRequest, r *int64) error {
		if q.TenantID == "fail" {
			*r = -1
		}
		return nil
	})
	Handle(s, wire.PutEnd, func(_ *Call, _ *wire.PutEndRequest, r *errcode.Result[errcode.Void]) error {
		r.Code = errcode.ObjectNotFound
		return nil
	})
	Handle(s, wire.RemoveByRegex, func(_ *Call, _ *wire.RemoveByRegexRequest, r *errcode.Result[int64]) error {
		r.Code = errcode.InvalidParams
		return nil
	})
	Handle(s, wire.FetchTasks, func(*Call, *wire.FetchTasksRequest, *errcode.Result[[]wire.TaskAssignment]) error {
		return nil
	})
	Handle(s, wire.PutStart, func(_ *Call, _ *wire.PutStartRequest, r *errcode.Result[[]object.ReplicaDescriptor]) error {
		r.Value = append(r.Value, object.ReplicaDescriptor{ID: 7})
		return nil
	})
}

// frame builds a request.
func frame(seq, function uint32, body string) []byte {
	b := appendRequestHead(nil, seq, function)
	b[12], b[13], b[14], b[15] = byte(len(body)), byte(len(body)>>8), byte(len(body)>>16), byte(len(body)>>24)
	return append(b, body...)
}

// exchange sends bytes on a connection of its own, closes the sending half, and returns all
// that comes back.
func exchange(t testing.TB, addr string, sent []byte) []byte {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("after % x: %v", got, err)
	}
	return got
}

// capturedExchange is what the original master answered to malformed bytes.
type capturedExchange struct {
	Label       string `json:"label"`
	Description string `json:"desc"`
	Sent        string `json:"sent"`
	Reply       string `json:"reply"`
}

func malformed(t testing.TB) []capturedExchange {
	t.Helper()
	f, err := os.Open("../../testdata/wire/capture.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []capturedExchange
	for d := json.NewDecoder(z); ; {
		var x capturedExchange
		if err := d.Decode(&x); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(x.Label, "bad:") {
			all = append(all, x)
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compactRequest reports whether a request has a body without literal. The original answers
// it with a literal all the same; this server answers in the form it was asked in.
func compactRequest(b []byte) bool {
	h, body := parseHead(b), b[requestHeadLen:]
	return h.function != wire.ServiceReady.ID() && len(body) > 4 && (body[0]&1 == 0 || body[4]&4 == 0)
}

// withoutLiteral returns a reply in the compact form.
func withoutLiteral(b []byte) []byte {
	head, body := b[:responseHeadLen], b[responseHeadLen:]
	payload := body[5+bytes.IndexByte(body[5:], 0)+1:]
	out := append(bytes.Clone(head), body[0]&^1, body[1], body[2], body[3])
	return finishResponse(append(out, payload...), 0)
}

// TestMalformedFrames sends what the original master was sent and expects its answers, byte
// for byte.
func TestMalformedFrames(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	addr := listen(t, s)
	// Not about framing, or in a form that is not the original's on purpose: its calls are
	// not registered here, or their replies carry the compatible part.
	other := map[string]bool{
		"BatchPutStart 3 keys, 1 length":                true,
		"BatchPutStart 3 keys, 3 lengths, 1 group id":   true,
		"GetReplicaListByRegex bad regex":               true,
		"GetReplicaListByRegex catastrophic-size regex": true,
		"length 0xffffffff, no body":                    true,
		"length 0xffffffff, attach 0xffffffff, no body": true,
	}
	tested := 0
	for _, x := range malformed(t) {
		if other[x.Description] {
			continue
		}
		tested++
		sent, want := unhex(t, x.Sent), unhex(t, x.Reply)
		if len(want) > 0 && want[2] == 0 && compactRequest(sent) {
			want = withoutLiteral(want)
		}
		if got := exchange(t, addr, sent); !bytes.Equal(got, want) {
			t.Errorf("%s: answered\n%x, want\n%x", x.Description, got, want)
		}
	}
	if tested != 47 {
		t.Errorf("%d exchanges tested, want 47", tested)
	}
	refused := s.Stats().Refused
	for reason, want := range map[string]uint64{
		"unknown_function": 3, "bad_magic": 4, "bad_version": 2, "bad_serializer": 1, "cut_frame": 1,
	} {
		if refused[reason] != want {
			t.Errorf("%d frames refused for %s, want %d", refused[reason], reason, want)
		}
	}
}

func TestConnectionSurvivesRefusedRequests(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	c := dial(t, listen(t, s))
	ctx := t.Context()
	for _, tt := range []struct {
		function uint32
		body     string
		code     uint16
		text     string
	}{
		{0xdeadbeef, "body", 11, "the rpc function not registered"},
		{wire.ExistKey.ID(), "", 4, "invalid rpc arg"},
		{wire.ExistKey.ID(), "\x00\x00\x00\x00", 4, "invalid rpc arg"},
		{wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x01k\x05panic", 10, "unknown rpc function exception"},
		{wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x01k\x04fail", 10, "disk on fire"},
	} {
		_, err := c.InvokeRaw(ctx, tt.function, []byte(tt.body))
		var e *ReplyError
		if !errors.As(err, &e) || e.Code != tt.code || e.Text != tt.text {
			t.Errorf("%q: %v, want code %d and %q", tt.body, err, tt.code, tt.text)
		}
	}
	var r errcode.Result[string]
	if err := Invoke(ctx, c, wire.ServiceReady, &wire.ServiceReadyRequest{}, &r); err != nil || r.Value != "2.0.0" {
		t.Errorf("after all that: %v, %v", r, err)
	}
	if st := s.Stats(); st.Panics != 1 || st.Accepted != 1 {
		t.Errorf("%d panics on %d connections, want 1 on 1", st.Panics, st.Accepted)
	}
	if got, want := s.Counters()["ExistKey"], (Counters{Requests: 2, Failures: 2}); got != want {
		t.Errorf("counters %+v, want %+v", got, want)
	}
}

func TestOversizedFrames(t *testing.T) {
	s := newServer(t, Options{MaxFrame: 1000})
	handlers(s)
	addr := listen(t, s)
	head := func(body, attachment uint32) []byte {
		b := appendRequestHead(nil, 1, wire.ServiceReady.ID())
		b[12], b[13], b[14], b[15] = byte(body), byte(body>>8), byte(body>>16), byte(body>>24)
		b[16], b[17], b[18], b[19] = byte(attachment), byte(attachment>>8), byte(attachment>>16), byte(attachment>>24)
		return b
	}
	good := frame(1, wire.ServiceReady.ID(), "")
	answer := exchange(t, addr, good)
	for name, tt := range map[string]struct {
		sent []byte
		want int
	}{
		"body at the limit":         {append(head(1000, 0), make([]byte, 1000)...), len(answer)},
		"body over the limit":       {append(head(1001, 0), make([]byte, 1001)...), 0},
		"attachment over the limit": {append(append(good, head(0, 1001)...), 1), len(answer)},
		"together over the limit":   {head(500, 501), 0},
		"both at their most":        {head(1<<32-1, 1<<32-1), 0},
	} {
		if got := exchange(t, addr, tt.sent); len(got) != tt.want {
			t.Errorf("%s: %d bytes back, want %d", name, len(got), tt.want)
		}
	}
	if n := s.Stats().Refused["too_large"]; n != 4 {
		t.Errorf("%d frames counted as too large, want 4", n)
	}
}

// TestAnnouncedIsNotAllocated checks that a read buffer follows what arrives, not what is
// announced, and shrinks again.
func TestAnnouncedIsNotAllocated(t *testing.T) {
	const body = 200 << 20
	in := input{buf: make([]byte, readBuffer)}
	h := appendRequestHead(nil, 1, 2)
	h[12], h[13], h[14], h[15] = 0, 0, byte(body>>16&0xff), byte(body>>24)
	in.filled(copy(in.space(), h))
	for range 100 {
		in.filled(min(1000, len(in.space())))
	}
	if got := in.pending(); len(in.buf) > 2*got {
		t.Errorf("%d bytes of buffer for %d that arrived", len(in.buf), got)
	}
	for in.pending() < 3<<20 {
		in.filled(len(in.space()))
	}
	in.consume(in.pending())
	in.settle()
	if len(in.buf) != readBuffer {
		t.Errorf("%d bytes of buffer after a large frame, want %d", len(in.buf), readBuffer)
	}

	// A middling buffer stays for a while.
	for in.pending() < 2*keepBuffer {
		in.filled(len(in.space()))
	}
	in.consume(in.pending() - 10)
	in.settle()
	if len(in.buf) < 2*keepBuffer {
		t.Errorf("buffer shrank to %d at once", len(in.buf))
	}
	for range smallReads {
		in.filled(min(100, len(in.space())))
		in.consume(100)
		in.settle()
	}
	if len(in.buf) != readBuffer || in.pending() != 10 {
		t.Errorf("%d bytes of buffer with %d pending after small reads, want %d and 10", len(in.buf), in.pending(), readBuffer)
	}
}

func TestProcess(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	var stream []byte
	for seq := range uint32(50) {
		stream = append(stream, frame(seq, wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x01k\x01t")...)
		stream = append(stream, frame(seq, 0xdeadbeef, "x")...)
	}
	whole := newSession(s, "peer", 0)
	consumed, out, err := whole.process(bytes.Clone(stream))
	if consumed != len(stream) || err != nil {
		t.Fatalf("%d of %d bytes consumed, %v", consumed, len(stream), err)
	}
	want := bytes.Clone(out)
	for i, b := 0, want; len(b) > 0; i++ {
		if seq := b[4]; int(seq) != i/2 {
			t.Fatalf("answer %d is to request %d", i, seq)
		}
		b = b[responseHeadLen+int(b[8]):]
	}

	for _, step := range []int{1, 7, 20, 33} {
		var got, pending []byte
		part := newSession(s, "peer", 0)
		for rest := stream; len(rest) > 0; {
			n := min(step, len(rest))
			pending = append(pending, rest[:n]...)
			rest = rest[n:]
			consumed, out, err := part.process(pending)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, out...)
			pending = pending[consumed:]
		}
		if !bytes.Equal(got, want) {
			t.Errorf("in steps of %d the answers differ", step)
		}
	}
}

// TestProcessPauses checks that answers do not gather without bound.
func TestProcessPauses(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	keys := strings.Repeat("\x00\x00", 10000)
	one := frame(1, wire.BatchExistKey.ID(), "\x63\x8d\xf7\x00\x08\x10\x27"+keys+"\x00\x00")
	stream := bytes.Repeat(one, 100)
	p := newSession(s, "peer", 0)
	rounds, most := 0, 0
	for len(stream) > 0 {
		consumed, out, err := p.process(stream)
		if err != nil || consumed == 0 {
			t.Fatalf("consumed %d, %v", consumed, err)
		}
		stream = stream[consumed:]
		rounds++
		most = max(most, len(out))
	}
	if rounds < 5 || most > 2*flushAt {
		t.Errorf("%d rounds, at most %d bytes of answers", rounds, most)
	}
}

func TestReplyForms(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	addr := listen(t, s)
	put := func(release wire.Release, literal bool) string {
		return string(wire.PutStart.AppendRequest(nil, &wire.PutStartRequest{Key: "k"}, release, literal))
	}
	for name, tt := range map[string]struct {
		sent []byte
		head string // hash word and what follows, up to where it matters
	}{
		"literal":           {frame(1, wire.ExistKey.ID(), "\xd9\x1e\xf9\x7c\x04\xfd\x80\x0c\x80\x0c\xff\x00\x01k\x01t"), "d300e89004870b0100"},
		"compact":           {frame(1, wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x01k\x01t"), "d200e890"},
		"no body":           {frame(1, wire.ServiceReady.ID(), ""), "35ccb31c0487800c0100"},
		"ignored body":      {frame(1, wire.ServiceReady.ID(), "\x00\x00"), "35ccb31c0487800c0100"},
		"0.3.13, compact":   {frame(1, wire.PutStart.ID(), put(wire.R0313, false)), "a72739c401"},
		"0.3.14, compact":   {frame(1, wire.PutStart.ID(), put(wire.R0314, false)), "a72739c401"},
		"0.3.13 in literal": {frame(1, wire.PutStart.ID(), put(wire.R0313, true)), "a72739c405"},
	} {
		got := exchange(t, addr, tt.sent)
		if len(got) < responseHeadLen || !strings.HasPrefix(hex.EncodeToString(got[responseHeadLen:]), tt.head) {
			t.Errorf("%s: answered %x, want a body starting with %s", name, got, tt.head)
		}
	}
	if c := s.Counters()["PutStart"]; c.Requests != 3 || c.Release0314 != 1 {
		t.Errorf("counters %+v, want 3 requests, 1 of 0.3.14", c)
	}
}

func TestCounters(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	c := dial(t, listen(t, s))
	ctx := t.Context()
	for _, tenant := range []string{"a", "b", "_x"} {
		var r errcode.Result[bool]
		if err := Invoke(ctx, c, wire.ExistKey, &wire.ExistKeyRequest{Key: "k", TenantID: tenant}, &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, keys := range [][]string{{"a", "b"}, {"a", "bad", "bad"}, {"bad"}, {}} {
		var r []errcode.Result[bool]
		if err := Invoke(ctx, c, wire.BatchExistKey, &wire.BatchExistKeyRequest{Keys: keys}, &r); err != nil {
			t.Fatal(err)
		}
		if len(r) != len(keys) {
			t.Errorf("%d results for %d keys", len(r), len(keys))
		}
	}
	for _, tenant := range []string{"a", "fail"} {
		var n int64
		if err := Invoke(ctx, c, wire.RemoveAll, &wire.RemoveAllRequest{TenantID: tenant}, &n); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Counters()
	for name, want := range map[string]Counters{
		"ExistKey":      {Requests: 3, Failures: 1},
		"BatchExistKey": {Requests: 4, Failures: 1, Empty: 1, PartialSuccesses: 1, Items: 6, FailedItems: 3},
		"RemoveAll":     {Requests: 2, Failures: 1},
		"Ping":          {},
	} {
		if got[name] != want {
			t.Errorf("%s: %+v, want %+v", name, got[name], want)
		}
	}
	if len(got) != 9 || !s.Registered("Ping") || s.Registered("CopyStart") {
		t.Errorf("%d calls are counted; Ping %v, CopyStart %v", len(got), s.Registered("Ping"), s.Registered("CopyStart"))
	}
}

// TestShutdownInTraffic shuts down while many clients call. Whatever the handler saw must
// have been answered.
func TestShutdownInTraffic(t *testing.T) {
	s := newServer(t, Options{IdleTimeout: time.Minute})
	var handled, answered atomic.Int64
	Handle(s, wire.ExistKey, func(*Call, *wire.ExistKeyRequest, *errcode.Result[bool]) error {
		handled.Add(1)
		return nil
	})
	addr := listen(t, s)
	started := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for range 8 {
		c := dial(t, addr)
		for range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					var r errcode.Result[bool]
					if err := Invoke(context.Background(), c, wire.ExistKey, &wire.ExistKeyRequest{Key: "k"}, &r); err != nil {
						if !errors.Is(err, ErrClientClosed) && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") {
							t.Errorf("call ended with %v", err)
						}
						return
					}
					answered.Add(1)
					if n == 100 {
						started <- struct{}{}
					}
				}
			})
		}
	}
	for range 32 {
		<-started
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if h, a := handled.Load(), answered.Load(); h != a || h < 3200 {
		t.Errorf("%d requests handled, %d answered", h, a)
	}
	if err := s.Serve(refusedListener(t)); !errors.Is(err, ErrServerClosed) {
		t.Errorf("serving after shutdown: %v", err)
	}
}

// refusedListener returns a listener for a server that serves no more.
func refusedListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestShutdownCutsDeafPeers has a peer that sends requests and reads no answers.
func TestShutdownCutsDeafPeers(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	addr := listen(t, s)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := frame(1, wire.BatchExistKey.ID(), "\x63\x8d\xf7\x00\x08\x10\x27"+strings.Repeat("\x00\x00", 10000)+"\x00\x00")
	if err := c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil { // until all buffers on the way are full
		_, err = c.Write(big)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
}

func TestTimeouts(t *testing.T) {
	s := newServer(t, Options{IdleTimeout: 30 * time.Millisecond, WriteTimeout: 30 * time.Millisecond, Delay: true})
	handlers(s)
	c, err := net.Dial("tcp", listen(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(frame(1, wire.ServiceReady.ID(), "")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || len(got) != 33 {
		t.Errorf("%d bytes before the server closed, %v", len(got), err)
	}
}

func TestReplyTooLarge(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	s.maxReply = 10
	c := dial(t, listen(t, s))
	_, err := c.InvokeRaw(t.Context(), wire.ServiceReady.ID(), nil)
	var e *ReplyError
	if !errors.As(err, &e) || e.Code != uint16(CodeTooLarge) {
		t.Errorf("%v, want code %d", err, CodeTooLarge)
	}
}

// TestKeptStringsAreFound shows what Poison is for.
func TestKeptStringsAreFound(t *testing.T) {
	s := newServer(t, Options{})
	var kept, cloned string
	Handle(s, wire.ExistKey, func(c *Call, q *wire.ExistKeyRequest, _ *errcode.Result[bool]) error {
		kept, cloned = q.Key, strings.Clone(q.Key)
		if c.Peer() != "10.1.2.3:4" {
			t.Errorf("peer %q", c.Peer())
		}
		return nil
	})
	if _, _, err := newSession(s, "10.1.2.3:4", 0).process(frame(1, wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x03key\x01t")); err != nil {
		t.Fatal(err)
	}
	if cloned != "key" || kept == "key" {
		t.Errorf("cloned %q, kept %q", cloned, kept)
	}
}

func TestProcessDoesNotAllocate(t *testing.T) {
	s := newServer(t, Options{})
	s.opts.Poison = false
	handlers(s)
	keys := make([]string, 128)
	for i := range keys {
		keys[i] = "a-key-of-usual-length"
	}
	for name, in := range map[string][]byte{
		"ExistKey":      frame(1, wire.ExistKey.ID(), string(wire.ExistKey.AppendRequest(nil, &wire.ExistKeyRequest{Key: "k", TenantID: "t"}, wire.Latest, true))),
		"BatchExistKey": frame(1, wire.BatchExistKey.ID(), string(wire.BatchExistKey.AppendRequest(nil, &wire.BatchExistKeyRequest{Keys: keys}, wire.Latest, true))),
		"PutStart":      frame(1, wire.PutStart.ID(), string(wire.PutStart.AppendRequest(nil, &wire.PutStartRequest{Key: "k"}, wire.Latest, true))),
	} {
		p := newSession(s, "peer", 0)
		if n := testing.AllocsPerRun(200, func() {
			if consumed, _, err := p.process(in); consumed != len(in) || err != nil {
				t.Fatal(consumed, err)
			}
		}); n >= 1 {
			t.Errorf("%s: %v allocations per request", name, n)
		}
	}
}

func TestRefusalsAreLoggedSparingly(t *testing.T) {
	var buf bytes.Buffer
	now := time.Unix(1000, 0)
	s, err := NewServer(Options{
		Now:    func() time.Time { return now },
		Logger: hclog.New(&hclog.LoggerOptions{Output: &buf, Level: hclog.Debug}),
	})
	if err != nil {
		t.Fatal(err)
	}
	handlers(s)
	p := newSession(s, "10.1.2.3:4", 0)
	send := func(n int, in []byte) {
		for range n {
			if _, _, err := p.process(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(100, frame(9, 0xdeadbeef, "x"))
	send(1, frame(9, wire.ExistKey.ID(), "\x78\x56\x34\x12"))
	if n := strings.Count(buf.String(), "reason=unknown_function"); n != logBurst {
		t.Errorf("%d lines about unknown functions, want %d", n, logBurst)
	}
	for _, want := range []string{"peer=10.1.2.3:4", "function_id=0xdeadbeef", "seq=9", "body_len=1", "rpc=ExistKey", "hash=0x12345678", "want_hash=0x7cf91ed8"} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
	buf.Reset()
	now = now.Add(logPeriod)
	send(1, frame(9, 0xdeadbeef, "x"))
	if !strings.Contains(buf.String(), "suppressed=95") {
		t.Errorf("logged %q, want a line that tells of 95 others", buf.String())
	}
	if n := s.Stats().Refused["unknown_function"]; n != 101 {
		t.Errorf("%d counted, want 101", n)
	}
}

func TestMisuse(t *testing.T) {
	if _, err := NewServer(Options{}); err == nil {
		t.Error("a server without a clock was made")
	}
	if _, err := NewServer(Options{Now: time.Now, IdleTimeout: -1}); err == nil {
		t.Error("a server with a negative timeout was made")
	}
	s := newServer(t, Options{})
	handlers(s)
	mustPanic := func(what string) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", what)
			}
		}()
		handlers(s)
	}
	mustPanic("registering twice")
	listen(t, s)
	for !s.serving.Load() {
		time.Sleep(time.Millisecond)
	}
	mustPanic("registering while serving")
}
