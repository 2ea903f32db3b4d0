package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func dial(t testing.TB, addr string, opts ...DialOption) *Client {
	t.Helper()
	c, err := Dial(t.Context(), addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
}

func TestClientPipelines(t *testing.T) {
	s := newServer(t, Options{})
	Handle(s, wire.ServiceReady, func(_ *Call, _ *wire.ServiceReadyRequest, r *errcode.Result[string]) error {
		r.Value = wire.ProtocolVersion
		return nil
	})
	Handle(s, wire.RemoveByRegex, func(_ *Call, q *wire.RemoveByRegexRequest, r *errcode.Result[int64]) error {
		_, err := fmt.Sscan(q.Regex, &r.Value)
		return err
	})
	addr := listen(t, s)
	for name, opts := range map[string][]DialOption{
		"literal": nil, "compact": {Compact()}, "0.3.13": {As(wire.R0313)},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr, opts...)
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() {
					for i := range 100 {
						want := int64(g*1000 + i)
						var r errcode.Result[int64]
						err := Invoke(t.Context(), c, wire.RemoveByRegex, &wire.RemoveByRegexRequest{Regex: fmt.Sprint(want)}, &r)
						if err != nil || r.Value != want {
							t.Errorf("%d, %v; want %d", r.Value, err, want)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// script is a server that answers each request with what f returns; nil closes.
func script(t *testing.T, f func(seq uint32) []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for {
				var h [requestHeadLen]byte
				if _, err := io.ReadFull(c, h[:]); err != nil {
					break
				}
				if _, err := io.CopyN(io.Discard, c, int64(binary.LittleEndian.Uint32(h[12:]))); err != nil {
					break
				}
				out := f(binary.LittleEndian.Uint32(h[4:]))
				if out == nil {
					break
				}
				if _, err := c.Write(out); err != nil {
					break
				}
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestClientAnswers(t *testing.T) {
	reply := func(seq uint32, code uint8, body string) []byte {
		return finishResponse(append(appendResponseHead(nil, code, seq), body...), 0)
	}
	ready := "\x35\xcc\xb3\x1c\x04\x87\x80\x0c\x01\x00\x01\x052.0.0"
	for _, tt := range []struct {
		name string
		f    func(seq uint32) []byte
		want string // part of the error, "" for success
		once bool   // whether the connection is of no use afterwards
	}{
		{"result", func(seq uint32) []byte { return reply(seq, 0, ready) }, "", false},
		{"error", func(seq uint32) []byte { return appendError(nil, 11, seq, "no such") }, "rpc error 11: no such", false},
		{"extended error", func(seq uint32) []byte {
			return reply(seq, 255, "\x4d\xe6\x2b\x37\x04\xfd\x08\x80\x0c\xff\x00\x2c\x01\x04boom")
		}, "rpc error 300: boom", false},
		{"undecodable error", func(seq uint32) []byte { return reply(seq, 9, "?") }, "undecodable", false},
		{"undecodable extended error", func(seq uint32) []byte { return reply(seq, 255, "?") }, "undecodable", false},
		{"undecodable result", func(seq uint32) []byte { return reply(seq, 0, "????") }, "another type's hash", false},
		{"other number", func(seq uint32) []byte { return reply(seq+1, 0, ready) }, "not waiting", true},
		{"other protocol", func(uint32) []byte { return []byte("HTTP/1.1 400 Bad Request") }, "another protocol", true},
		{"too large", func(seq uint32) []byte { return reply(seq, 0, strings.Repeat("x", 2000)) }, "limit of 1000", true},
		{"closed", func(uint32) []byte { return nil }, ErrClientClosed.Error(), true},
		{"cut reply", func(seq uint32) []byte { return reply(seq, 0, ready)[:20] }, context.DeadlineExceeded.Error(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patience := 10 * time.Second
			if tt.want == context.DeadlineExceeded.Error() {
				patience = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := dial(t, script(t, tt.f), MaxReply(1000))
			var r errcode.Result[string]
			err := Invoke(ctx, c, wire.ServiceReady, &wire.ServiceReadyRequest{}, &r)
			switch {
			case tt.want == "" && (err != nil || r.Value != "2.0.0"):
				t.Errorf("%+v, %v", r, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
			if tt.once {
				if err := Invoke(ctx, c, wire.ServiceReady, &wire.ServiceReadyRequest{}, &r); err == nil {
					t.Error("the connection is still used")
				}
			}
		})
	}
}

// TestClientDeadline lets one call run out of time; its late reply must harm nobody.
func TestClientDeadline(t *testing.T) {
	s := newServer(t, Options{})
	release := make(chan struct{})
	Handle(s, wire.ExistKey, func(*Call, *wire.ExistKeyRequest, *errcode.Result[bool]) error {
		<-release
		return nil
	})
	c := dial(t, listen(t, s))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var r errcode.Result[bool]
	if err := Invoke(ctx, c, wire.ExistKey, &wire.ExistKeyRequest{}, &r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a deadline", err)
	}
	if err := Invoke(ctx, c, wire.ExistKey, &wire.ExistKeyRequest{}, &r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a deadline", err)
	}
	close(release)
	if err := Invoke(t.Context(), c, wire.ExistKey, &wire.ExistKeyRequest{}, &r); err != nil {
		t.Errorf("after a late reply: %v", err)
	}
}

func TestClientClose(t *testing.T) {
	s := newServer(t, Options{})
	entered, release := make(chan struct{}), make(chan struct{})
	Handle(s, wire.ExistKey, func(*Call, *wire.ExistKeyRequest, *errcode.Result[bool]) error {
		close(entered)
		<-release
		return nil
	})
	defer close(release)
	c := dial(t, listen(t, s))
	got := make(chan error)
	go func() {
		var r errcode.Result[bool]
		got <- Invoke(context.Background(), c, wire.ExistKey, &wire.ExistKeyRequest{}, &r)
	}()
	<-entered
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, ErrClientClosed) {
		t.Errorf("call in flight ended with %v", err)
	}
	if _, err := Dial(t.Context(), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("dialling nobody: %v", err)
	}
}
