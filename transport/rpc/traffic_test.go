package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// raw connects without a Client.
func raw(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func send(t testing.TB, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// answerTo reads one reply and checks that it is the answer to request seq.
func answerTo(t testing.TB, r io.Reader, seq uint32) (code uint8, body []byte) {
	t.Helper()
	var h [responseHeadLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		t.Fatalf("answer to %d: %v", seq, err)
	}
	if got := binary.LittleEndian.Uint32(h[4:]); got != seq || h[0] != magic {
		t.Fatalf("answer % x, want that to request %d", h, seq)
	}
	body = make([]byte, binary.LittleEndian.Uint32(h[8:]))
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatalf("body of the answer to %d: %v", seq, err)
	}
	return h[2], body
}

// ended checks that the server sends nothing more and closes.
func ended(t testing.TB, c net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%d more bytes, %v; want the end", len(rest), err)
	}
}

var (
	existBody = "\xd8\x1e\xf9\x7c\x01k\x01t"
	// tenThousand asks about as many keys; every one takes a byte and its answer two.
	tenThousand = "\x63\x8d\xf7\x00\x08\x10\x27" + strings.Repeat("\x00\x00", 10000) + "\x00\x00"
)

func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// settled waits until the server reads no more, and returns how much it has read.
func settled(t testing.TB, s *Server) (last uint64) {
	t.Helper()
	waitFor(t, "the server to stop reading", func() bool {
		time.Sleep(50 * time.Millisecond)
		n := s.Stats().BytesRead
		defer func() { last = n }()
		return n == last && n > 100_000
	})
	return last
}

// TestSlowReader asks for more than fits all buffers before it reads: the server stops taking
// requests rather than gather answers, and then every answer comes, whole and in order.
func TestSlowReader(t *testing.T) {
	s := newServer(t, Options{WriteTimeout: time.Minute, IdleTimeout: time.Minute})
	handlers(s)
	request := bulky(s)
	c := raw(t, listen(t, s))
	const requests = 1500
	sent := make(chan error, 1)
	go func() {
		for seq := range uint32(requests) {
			b := request(seq)
			if seq%2 == 1 {
				b = frame(seq, wire.ExistKey.ID(), existBody)
			}
			if _, err := c.Write(b); err != nil {
				sent <- err
				return
			}
		}
		sent <- c.CloseWrite()
	}()
	last := settled(t, s)
	if all := uint64(requests / 2 * len(request(0))); last > all-all/10 {
		t.Fatalf("%d of %d bytes were taken before any answer was", last, all)
	}
	// Small reads at first, so that the server gets little room at a time.
	var begin [100]byte
	if _, err := io.ReadFull(c, begin[:]); err != nil {
		t.Fatal(err)
	}
	small := &bytes.Buffer{}
	for piece := make([]byte, 777); small.Len() < 3<<20; {
		n, err := c.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		small.Write(piece[:n])
	}
	r := io.MultiReader(bytes.NewReader(begin[:]), small, c)
	for seq := range uint32(requests) {
		answerTo(t, r, seq)
	}
	ended(t, c)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestManyIdleConnections has a thousand connections that do nothing beside a few that do.
func TestManyIdleConnections(t *testing.T) {
	s := newServer(t, Options{})
	handlers(s)
	addr := listen(t, s)
	call := func(c *Client) {
		var r errcode.Result[bool]
		if err := Invoke(t.Context(), c, wire.ExistKey, &wire.ExistKeyRequest{Key: "k"}, &r); err != nil {
			t.Fatal(err)
		}
	}
	first := dial(t, addr)
	call(first)
	goroutines, heap := runtime.NumGoroutine(), heapInUse()
	const idle = 1000
	conns := make([]*net.TCPConn, idle)
	for i := range conns {
		conns[i] = raw(t, addr)
	}
	waitFor(t, "all to be accepted", func() bool { return s.Stats().Open == idle+1 })
	per := (int64(heapInUse()) - int64(heap)) / idle
	t.Logf("about %d bytes of heap per idle connection, its other end included; %d goroutines more", per, runtime.NumGoroutine()-goroutines)
	if s.Stats().Loops > 0 && (per > 2500 || runtime.NumGoroutine() > goroutines+10) {
		t.Error("that is too much")
	}
	for i := range 200 {
		call(first)
		// And those that were idle wake up when they want to.
		if i%20 == 0 {
			send(t, conns[i], frame(uint32(i), wire.ExistKey.ID(), existBody))
			answerTo(t, conns[i], uint32(i))
		}
	}
	for _, c := range conns[:idle/2] {
		c.Close()
	}
	waitFor(t, "half of them to be gone", func() bool { return s.Stats().Open == idle/2+1 })
	call(first)
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// bulky registers a call that answers with many bytes, and returns a request for it that has
// as many, of which the call knows nothing.
func bulky(s *Server) (request func(seq uint32) []byte) {
	text := strings.Repeat("x", 20000)
	Handle(s, wire.GetFsdir, func(_ *Call, _ *wire.GetFsdirRequest, r *errcode.Result[string]) error {
		r.Value = text
		return nil
	})
	return func(seq uint32) []byte { return frame(seq, wire.GetFsdir.ID(), text) }
}

// blocking registers a slow call and a batch that say that they have begun and wait to be let
// go on.
func blocking(t testing.TB, s *Server) (<-chan string, func()) {
	entered, release := make(chan string, 100), make(chan struct{})
	wait := func() {
		select {
		case <-release:
		case <-t.Context().Done(): // the test has failed
		}
	}
	Handle(s, wire.RemoveAll, func(_ *Call, q *wire.RemoveAllRequest, r *int64) error {
		entered <- "slow"
		wait()
		*r = 7
		return nil
	}, Slow)
	Handle(s, wire.BatchExistKey, func(c *Call, q *wire.BatchExistKeyRequest, r *[]errcode.Result[bool]) error {
		*r = structpack.Resize(*r, len(q.Keys))
		if len(q.Keys) > 1000 {
			entered <- "long"
			wait()
			c.Pause()
		}
		return nil
	})
	Handle(s, wire.ExistKey, func(c *Call, _ *wire.ExistKeyRequest, _ *errcode.Result[bool]) error {
		c.Pause()
		return nil
	})
	return entered, func() { close(release) }
}

func removeAll(seq uint32) []byte {
	return frame(seq, wire.RemoveAll.ID(), string(wire.RemoveAll.AppendRequest(nil, &wire.RemoveAllRequest{}, wire.Latest, true)))
}

// TestLongRequestsHoldNobodyElseUp checks that others are served beside a slow and a long
// request, and that the connection that sent them gets its answers in order.
func TestLongRequestsHoldNobodyElseUp(t *testing.T) {
	s := newServer(t, Options{SlowBody: 10000, IdleTimeout: time.Minute})
	entered, let := blocking(t, s)
	addr := listen(t, s)
	slow, long, cut := raw(t, addr), raw(t, addr), raw(t, addr)
	exist := func(seq uint32) []byte { return frame(seq, wire.ExistKey.ID(), existBody) }
	for i, c := range []net.Conn{slow, long} {
		heavy := removeAll(2)
		if i == 1 {
			heavy = frame(2, wire.BatchExistKey.ID(), tenThousand)
		}
		send(t, c, bytes.Join([][]byte{exist(1), heavy, exist(3), heavy[:4], {4, 0, 0, 0}, heavy[8:], exist(5)}, nil))
		answerTo(t, c, 1)
		<-entered
	}
	// Peers of busy connections that leave or send more must not matter either.
	send(t, cut, append(removeAll(1), exist(2)...))
	cut.Close()
	send(t, slow, exist(6))
	if err := long.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	other := dial(t, addr)
	for range 100 {
		var r errcode.Result[bool]
		if err := Invoke(t.Context(), other, wire.ExistKey, &wire.ExistKeyRequest{Key: "k"}, &r); err != nil {
			t.Fatal(err)
		}
	}
	let()
	for seq := uint32(2); seq <= 5; seq++ {
		answerTo(t, slow, seq)
		answerTo(t, long, seq)
	}
	answerTo(t, slow, 6)
	ended(t, long)
}

// TestManyLongRequests has more of them than there are workers.
func TestManyLongRequests(t *testing.T) {
	s := newServer(t, Options{SlowBody: 1000, Workers: 2})
	handlers(s)
	addr := listen(t, s)
	var conns []net.Conn
	for range 20 {
		c := raw(t, addr)
		conns = append(conns, c)
		for seq := range uint32(5) {
			send(t, c, frame(seq, wire.BatchExistKey.ID(), tenThousand))
		}
	}
	for _, c := range conns {
		for seq := range uint32(5) {
			if _, body := answerTo(t, c, seq); len(body) < 20000 {
				t.Errorf("%d bytes for 10000 keys", len(body))
			}
		}
	}
}

// TestShutdownInTheMiddle shuts down while connections are in every state there is.
func TestShutdownInTheMiddle(t *testing.T) {
	s := newServer(t, Options{SlowBody: 10000})
	entered, let := blocking(t, s)
	addr := listen(t, s)
	idle, half, slow, long, deaf := raw(t, addr), raw(t, addr), raw(t, addr), raw(t, addr), raw(t, addr)
	send(t, half, frame(1, wire.ExistKey.ID(), existBody)[:25])
	send(t, slow, removeAll(1))
	send(t, long, append(frame(1, wire.BatchExistKey.ID(), tenThousand), frame(2, wire.ExistKey.ID(), existBody)...))
	<-entered
	<-entered
	// Answers wait for deaf to read them, and requests behind them.
	one := frame(1, wire.BatchExistKey.ID(), "\x63\x8d\xf7\x00\x08\xe8\x03"+strings.Repeat("\x00\x00", 1000)+"\x00\x00")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// It ends with an error when the server is gone.
		_, _ = deaf.Write(bytes.Repeat(one, 10000))
	}()
	settled(t, s)

	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	ended(t, idle)
	ended(t, half)
	idle.Close()
	half.Close()
	answers, err := io.ReadAll(deaf)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	size := uint64(responseHeadLen + binary.LittleEndian.Uint32(answers[8:]))
	if got, want := uint64(len(answers)), size*s.Counters()["BatchExistKey"].Requests; got != want {
		t.Errorf("%d bytes of answers, want %d", got, want)
	}
	deaf.Close()
	<-sent
	select {
	case err := <-done:
		t.Fatalf("shutdown did not wait for handlers: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	let()
	for _, c := range []net.Conn{slow, long} {
		answerTo(t, c, 1)
	}
	slow.Close()
	long.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("still accepting")
	}
}

// TestShutdownCutsBusyConnections has a handler that takes longer than Shutdown may.
func TestShutdownCutsBusyConnections(t *testing.T) {
	s := newServer(t, Options{})
	entered, let := blocking(t, s)
	c := raw(t, listen(t, s))
	send(t, c, removeAll(1))
	<-entered
	time.AfterFunc(100*time.Millisecond, let)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	if d := time.Since(start); d < 90*time.Millisecond {
		t.Errorf("handlers were waited for only %v", d)
	}
}

// TestWriteTimeout has a peer that takes no answers.
func TestWriteTimeout(t *testing.T) {
	s := newServer(t, Options{WriteTimeout: 200 * time.Millisecond})
	big := bulky(s)(1)
	c := raw(t, listen(t, s))
	var err error
	for err == nil {
		_, err = c.Write(big)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the server did not close: %v", err)
	}
	waitFor(t, "the connection to end", func() bool { return s.Stats().Open == 0 })
}

// TestServingDoesNotAllocate counts the memory taken while one connection calls, with its
// requests one by one, in bunches, and cut in two.
func TestServingDoesNotAllocate(t *testing.T) {
	s := newServer(t, Options{})
	s.opts.Poison = false
	handlers(s)
	c := raw(t, listen(t, s))
	one := frame(1, wire.ExistKey.ID(), existBody)
	send(t, c, one)
	_, body := answerTo(t, c, 1)
	answer := responseHeadLen + len(body)
	in := make([]byte, 100*answer)
	for name, pieces := range map[string][][]byte{
		"one": {one}, "bunch": {bytes.Repeat(one, 100)}, "cut": {append(bytes.Clone(one), one[:25]...), one[25:]},
	} {
		requests := 0
		round := func() {
			for _, p := range pieces {
				send(t, c, p)
			}
			n := len(bytes.Join(pieces, nil)) / len(one)
			if _, err := io.ReadFull(c, in[:n*answer]); err != nil {
				t.Fatal(err)
			}
			requests = n
		}
		rounds := testing.AllocsPerRun(500, round)
		join := testing.AllocsPerRun(500, func() { _ = bytes.Join(pieces, nil) })
		if per := (rounds - join) / float64(requests); per >= 1 {
			t.Errorf("%s: %v allocations per request", name, per)
		}
	}
}
