package rpc

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestSecondLoop saturates the first loop until there is a second, and stops until there is
// none; no call may fail meanwhile.
func TestSecondLoop(t *testing.T) {
	if portable {
		return // it has none
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	s := newServer(t, Options{Loops: 2, IdleTimeout: time.Minute})
	Handle(s, wire.ExistKey, func(_ *Call, q *wire.ExistKeyRequest, r *errcode.Result[bool]) error {
		if q.Key == "work" {
			for start := time.Now(); time.Since(start) < 200*time.Microsecond; {
			}
		}
		r.Value = true
		return nil
	})
	addr := listen(t, s)
	for round := range 2 {
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 6 {
			c := dial(t, addr)
			for range 3 {
				wg.Go(func() {
					for !stop.Load() {
						var r errcode.Result[bool]
						if err := Invoke(t.Context(), c, wire.ExistKey, &wire.ExistKeyRequest{Key: "work"}, &r); err != nil || !r.Value {
							t.Errorf("%+v, %v", r, err)
							return
						}
					}
				})
			}
		}
		waitFor(t, "a second loop", func() bool { return s.Stats().Loops == 2 })
		time.Sleep(50 * time.Millisecond)
		stop.Store(true)
		wg.Wait()
		if round == 1 {
			break // once back is enough
		}
		waitFor(t, "the second loop to end", func() bool { return s.Stats().Loops == 1 })
		c := dial(t, addr)
		var r errcode.Result[bool]
		if err := Invoke(t.Context(), c, wire.ExistKey, &wire.ExistKeyRequest{Key: "idle"}, &r); err != nil || !r.Value {
			t.Errorf("with one loop again: %+v, %v", r, err)
		}
	}
}

// TestOutOfDescriptors has more peers than the server may have connections.
func TestOutOfDescriptors(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	s := newServer(t, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})})
	handlers(s)
	addr := listen(t, s)
	first := raw(t, addr)
	send(t, first, frame(1, wire.ExistKey.ID(), existBody))
	answerTo(t, first, 1)

	low := before
	low.Cur = 40
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	var conns []net.Conn
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			if !errors.Is(err, unix.EMFILE) {
				t.Fatal(err)
			}
			break
		}
		conns = append(conns, c)
	}
	waitFor(t, "a warning", func() bool { return strings.Contains(log.String(), "accepting a connection failed") })
	send(t, first, frame(2, wire.ExistKey.ID(), existBody))
	answerTo(t, first, 2)
	for _, c := range conns {
		c.Close()
	}
	waitFor(t, "room", func() bool { return s.Stats().Open == 1 })
	last := raw(t, addr)
	send(t, last, frame(3, wire.ExistKey.ID(), existBody))
	answerTo(t, last, 3)
	if n := strings.Count(log.String(), "\n"); n > logBurst {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
}

// syncBuffer is a buffer that a logger and a test may use at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestHeld checks that memory follows what arrives, not what is announced, and is given back.
func TestHeld(t *testing.T) {
	var h held
	h.hold(make([]byte, 100))
	most := 0
	for h.pending() < 3<<20 {
		n := min(1000, len(h.space()))
		h.w += n
		if most = max(most, len(h.b)-4*h.pending()); most > 1<<minBlock {
			t.Fatalf("%d bytes for %d", len(h.b), h.pending())
		}
	}
	h.consume(h.pending() - 10)
	if h.space(); h.r != 0 || h.pending() != 10 {
		t.Errorf("%d pending from %d", h.pending(), h.r)
	}
	h.consume(10)
	if h.block != nil || h.bytes() != nil {
		t.Error("still holds a block")
	}
}
