package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// protocolVersion is the version of the store protocol, which master and node must agree on.
const protocolVersion = "2.0.0"

// ErrVersion is returned when the master speaks another version of the store protocol.
var ErrVersion = errors.New("the master speaks another version of the store protocol")

// callTimeout bounds one call to the master.
const callTimeout = 10 * time.Second

// link is the connection to the master, made anew when it has failed.
type link struct {
	address string

	mu     sync.Mutex // guards conn and closed
	conn   *rpc.Client
	closed bool
}

// connection returns the connection; a new one has agreed on the version.
func (l *link) connection(ctx context.Context) (*rpc.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, rpc.ErrClientClosed
	}
	if l.conn != nil {
		return l.conn, nil
	}
	conn, err := rpc.Dial(ctx, l.address)
	if err != nil {
		return nil, err
	}
	var ready errcode.Result[string]
	if err = rpc.Invoke(ctx, conn, wire.ServiceReady, &wire.ServiceReadyRequest{}, &ready); err == nil && ready.Value != protocolVersion {
		err = fmt.Errorf("%w: %q (%w), this node %q", ErrVersion, ready.Value, ready.Code, protocolVersion)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.conn = conn
	return conn, nil
}

// drop forgets a connection that has failed.
func (l *link) drop(conn *rpc.Client) {
	l.mu.Lock()
	if l.conn == conn {
		l.conn = nil
	}
	l.mu.Unlock()
	conn.Close()
}

func (l *link) close() {
	l.mu.Lock()
	conn := l.conn
	l.conn, l.closed = nil, true
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// call makes one call to the master, within callTimeout.
func call[Req, Resp any](ctx context.Context, l *link, r *wire.RPC[Req, Resp], req *Req, resp *Resp) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := l.connection(limited)
	if err != nil {
		return err
	}
	err = rpc.Invoke(limited, conn, r, req, resp)
	var reply *rpc.ReplyError
	if err != nil && ctx.Err() == nil && !errors.As(err, &reply) {
		l.drop(conn)
	}
	return err
}

// do is call where all that is answered is a code, which becomes the error.
func do[Req any](ctx context.Context, l *link, r *wire.RPC[Req, errcode.Result[errcode.Void]], req *Req) error {
	_, err := ask(ctx, l, r, req)
	return err
}

// ask is call where the answer is a value or a code, which becomes the error.
func ask[Req, V any](ctx context.Context, l *link, r *wire.RPC[Req, errcode.Result[V]], req *Req) (V, error) {
	var got errcode.Result[V]
	err := call(ctx, l, r, req, &got)
	if err == nil && got.Code != errcode.OK {
		err = fmt.Errorf("%s: %w", r.Name(), got.Code)
	}
	return got.Value, err
}

// pause waits between two attempts, the n-th from 0; it reports false when ctx ends first.
func pause(ctx context.Context, n int) bool {
	return wait(ctx, min(firstPause<<min(n, 10), longestPause))
}

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
