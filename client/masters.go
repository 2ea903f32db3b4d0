package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// protocolVersion is the version of the store protocol, which master and client must agree on.
const protocolVersion = "2.0.0"

// ErrVersion is returned when the master speaks another version of the store protocol.
var ErrVersion = errors.New("the master speaks another version of the store protocol")

// masters are the connections to whichever of several masters serves.
type masters struct {
	addresses []string
	most      int           // connections
	opening   chan struct{} // holds one token while a connection is made
	ctx       context.Context
	cancel    context.CancelFunc // ends ctx, with which connections are made

	mu     sync.Mutex // guards the following
	lines  []*line
	at     int       // the address that was reached last
	rest   time.Time // until when no more connections are tried than there are
	closed bool
}

const (
	// extraTimeout bounds the attempt to connect once more where there is a connection, and extraRest is how long
	// nobody tries after it has failed.
	extraTimeout = time.Second
	extraRest    = 10 * time.Second
)

// line is one connection.
type line struct {
	*rpc.Client
	address string
	calls   int // under way; guarded by the lock of masters
}

// newMasters takes addresses set apart by commas.
func newMasters(addresses string, most int) (*masters, error) {
	m := &masters{most: most, opening: make(chan struct{}, 1)}
	for address := range strings.SplitSeq(addresses, ",") {
		address = strings.TrimSpace(address)
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("master %q: an address is host:port, several are set apart by commas: %w", addresses, err)
		}
		m.addresses = append(m.addresses, address)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// pick returns the open connection with the fewest calls under way, or nil, and whether another one may be opened
// instead.
func (m *masters) pick() (best *line, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	alive := m.lines[:0]
	for _, l := range m.lines {
		select {
		case <-l.Done():
			continue // ended by the other side
		default:
		}
		alive = append(alive, l)
		if best == nil || l.calls < best.calls {
			best = l
		}
	}
	clear(m.lines[len(alive):])
	m.lines = alive
	more = best == nil || best.calls > 0 && len(m.lines) < m.most && !time.Now().Before(m.rest)
	if best != nil && !more {
		best.calls++
	}
	return best, more, nil
}

// claim counts a call on a connection that pick has shown.
func (m *masters) claim(l *line) *line {
	m.mu.Lock()
	l.calls++
	m.mu.Unlock()
	return l
}

// take returns a connection to use, a new one if all are in use and there may be more. It is given back with give.
func (m *masters) take(ctx context.Context) (*line, error) {
	best, more, err := m.pick()
	if err != nil || !more {
		return best, err
	}
	if best == nil {
		select {
		case m.opening <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else {
		select {
		case m.opening <- struct{}{}:
		default: // somebody else makes one
			return m.claim(best), nil
		}
	}
	defer func() { <-m.opening }()
	if best, more, err = m.pick(); err != nil || !more { // there may be one by now
		return best, err
	}
	if best == nil {
		return m.open(ctx)
	}
	extra, cancel := context.WithTimeout(ctx, extraTimeout)
	defer cancel()
	l, err := m.open(extra)
	if err != nil {
		m.mu.Lock()
		m.rest = time.Now().Add(extraRest)
		m.mu.Unlock()
		return m.claim(best), nil
	}
	return l, nil
}

// open makes a connection to the first master that can be reached, beginning with the one that was reached last.
func (m *masters) open(ctx context.Context) (*line, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	m.mu.Lock()
	at := m.at
	m.mu.Unlock()
	var errs []error
	for i := range m.addresses {
		n := (at + i) % len(m.addresses)
		conn, err := dial(ctx, m.addresses[n])
		if err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			conn.Close()
			return nil, ErrClosed
		}
		l := &line{Client: conn, address: m.addresses[n], calls: 1}
		m.at, m.lines = n, append(m.lines, l)
		m.mu.Unlock()
		return l, nil
	}
	if m.ctx.Err() != nil {
		return nil, ErrClosed
	}
	return nil, errors.Join(errs...)
}

// dial connects to a master and asks for its version.
func dial(ctx context.Context, address string) (*rpc.Client, error) {
	conn, err := rpc.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("master at %s: %w", address, err)
	}
	var ready errcode.Result[string]
	err = rpc.Invoke(ctx, conn, wire.ServiceReady, &wire.ServiceReadyRequest{}, &ready)
	if err == nil && ready.Value != protocolVersion {
		err = fmt.Errorf("%w: %q (%w), this client %q", ErrVersion, ready.Value, ready.Code, protocolVersion)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("master at %s: %w", address, err)
	}
	return conn, nil
}

// give gives a connection back. One that is bad is closed and not used again.
func (m *masters) give(l *line, good bool) {
	m.mu.Lock()
	l.calls--
	if !good {
		for i, other := range m.lines {
			if other == l {
				m.lines = append(m.lines[:i:i], m.lines[i+1:]...)
				break
			}
		}
	}
	m.mu.Unlock()
	if !good {
		l.Close()
	}
}

// close ends all connections.
func (m *masters) close() {
	m.mu.Lock()
	m.closed = true
	lines := m.lines
	m.lines = nil
	m.mu.Unlock()
	m.cancel()
	for _, l := range lines {
		l.Close()
	}
}

// often says whether a call may be made twice.
type often bool

const (
	once  often = false
	again often = true // a call whose connection ended before the answer came is made once more
)

// call makes one call to the master. It fails with errcode.RPCFail when there is no answer and with
// errcode.RPCTimeout when that takes too long, besides the error of the context.
func call[Req, Resp any](ctx context.Context, c *Client, may often, r *wire.RPC[Req, Resp], req *Req, resp *Resp) error {
	for try := 0; ; try++ {
		lost, err := callOnce(ctx, c, r, req, resp)
		if err == nil || !lost || may == once || try > 0 {
			return err
		}
		*resp = *new(Resp)
	}
}

// callOnce is call without a second try. lost reports whether the connection ended before the answer came.
func callOnce[Req, Resp any](ctx context.Context, c *Client, r *wire.RPC[Req, Resp], req *Req, resp *Resp) (lost bool, err error) {
	limited, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	var reply *rpc.ReplyError
	l, err := c.masters.take(limited)
	if err == nil {
		err = rpc.Invoke(limited, l.Client, r, req, resp)
		// One whose caller didn't want to wait is as good as before. From a master that doesn't answer in time
		// another connection may have more luck.
		good := err == nil || errors.As(err, &reply) || ctx.Err() != nil
		lost = !good && limited.Err() == nil
		c.masters.give(l, good)
		if err != nil {
			err = fmt.Errorf("master at %s: %w", l.address, err)
		}
	}
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("%s: %w", r.Name(), ctx.Err())
	case c.isClosed():
		return false, ErrClosed
	case errors.Is(err, ErrVersion), errors.As(err, &reply):
		return false, err
	case limited.Err() != nil:
		return false, fmt.Errorf("%w after %v: %w", errcode.RPCTimeout, c.cfg.CallTimeout, err)
	}
	return lost, fmt.Errorf("%w: %w", errcode.RPCFail, err)
}
