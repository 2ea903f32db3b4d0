package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// ReplyError is an error of the framing that the server answered with.
type ReplyError struct {
	// Code is one of the Code constants, or what the server made up.
	Code uint16
	// Text is the server's explanation.
	Text string
}

// Error returns text and code.
func (e *ReplyError) Error() string { return fmt.Sprintf("rpc error %d: %s", e.Code, e.Text) }

// ErrClientClosed is returned for calls on a client after Close, or when the server closed
// the connection.
var ErrClientClosed = errors.New("rpc connection is closed")

// DefaultMaxReply is the largest reply a client takes unless told otherwise.
const DefaultMaxReply = 1 << 30

// DialOption changes how a Client works.
type DialOption func(*Client)

// Compact makes the client write requests without type literals, as peers built with NDEBUG
// do. The server then answers in the same way.
func Compact() DialOption { return func(c *Client) { c.literal = false } }

// As makes the client write requests as clients of the release do. The default is
// wire.Latest.
func As(release wire.Release) DialOption { return func(c *Client) { c.release = release } }

// MaxReply bounds the body of a reply in bytes; a larger one closes the connection.
func MaxReply(n uint32) DialOption { return func(c *Client) { c.maxReply = n } }

// Client is one connection to a server. Any number of goroutines may call through it at
// once; their requests are pipelined.
type Client struct {
	nc       net.Conn
	literal  bool
	release  wire.Release
	maxReply uint32

	sending sync.Mutex // held while a request is numbered and written
	seq     uint32     // guarded by sending
	buf     []byte     // guarded by sending

	mu      sync.Mutex // guards pending and err
	pending map[uint32]chan reply
	err     error // why the connection ended

	readerDone chan struct{}
}

// reply is the answer to one request, its body in memory of its own.
type reply struct {
	code uint8
	body []byte
	err  error
}

// Dial connects to a server.
func Dial(ctx context.Context, addr string, opts ...DialOption) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	return NewClient(nc, opts...), nil
}

// NewClient makes a client of a connection, which it owns.
func NewClient(nc net.Conn, opts ...DialOption) *Client {
	c := &Client{
		nc: nc, literal: true, release: wire.Latest, maxReply: DefaultMaxReply,
		pending: map[uint32]chan reply{}, readerDone: make(chan struct{}),
	}
	for _, o := range opts {
		o(c)
	}
	go c.read()
	return c
}

// Close ends the connection and all calls in flight, and waits for the reader.
func (c *Client) Close() error {
	c.fail(ErrClientClosed)
	<-c.readerDone
	return nil
}

// Done is closed when the connection has ended: calls through it fail without being sent.
func (c *Client) Done() <-chan struct{} { return c.readerDone }

// Invoke makes one call and waits for its result. It returns nil when *resp holds the
// result, whether that is good or bad news; a *ReplyError when the server refused the
// request; else why there was no answer, such as the error of ctx. Strings in *resp share
// the memory of the reply, which nobody else uses.
func Invoke[Req, Resp any](ctx context.Context, c *Client, r *wire.RPC[Req, Resp], req *Req, resp *Resp) error {
	ans, err := c.roundTrip(ctx, r.ID(), func(dst []byte) []byte {
		return r.AppendRequest(dst, req, c.release, c.literal)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name(), err)
	}
	if ans.code != 0 {
		return fmt.Errorf("%s: %w", r.Name(), replyError(ans))
	}
	if _, err := r.DecodeResponse(ans.body, resp); err != nil {
		return fmt.Errorf("%s: reply: %w", r.Name(), err)
	}
	return nil
}

// InvokeRaw sends body, which may be anything, to a function id and returns the body of the
// answer.
func (c *Client) InvokeRaw(ctx context.Context, function uint32, body []byte) ([]byte, error) {
	ans, err := c.roundTrip(ctx, function, func(dst []byte) []byte { return append(dst, body...) })
	if err != nil {
		return nil, err
	}
	if ans.code != 0 {
		return nil, replyError(ans)
	}
	return ans.body, nil
}

func replyError(ans reply) error {
	if ans.code == codeExtended {
		var e extendedError
		if err := extendedErrorText.Decode(ans.body, &e); err != nil {
			return fmt.Errorf("rpc error %d with an undecodable body: %w", ans.code, err)
		}
		return &ReplyError{Code: e.Code, Text: e.Text}
	}
	var text string
	if err := errorText.Decode(ans.body, &text); err != nil {
		return fmt.Errorf("rpc error %d with an undecodable body: %w", ans.code, err)
	}
	return &ReplyError{Code: uint16(ans.code), Text: text}
}

// waiters recycles the channels on which callers wait; one is put back only once it is known
// that nothing will be sent on it.
var waiters = sync.Pool{New: func() any { return make(chan reply, 1) }}

func (c *Client) roundTrip(ctx context.Context, function uint32, body func([]byte) []byte) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	wait := waiters.Get().(chan reply)
	seq, err := c.send(ctx, function, body, wait)
	if err != nil {
		return reply{}, err
	}
	select {
	case ans := <-wait:
		waiters.Put(wait)
		return ans, ans.err
	case <-ctx.Done():
		// The reply may still come; its number stays known so that it is taken for what it is.
		c.mu.Lock()
		if _, ok := c.pending[seq]; ok {
			c.pending[seq] = nil
		}
		c.mu.Unlock()
		return reply{}, ctx.Err()
	}
}

// send numbers and writes one request.
func (c *Client) send(ctx context.Context, function uint32, body func([]byte) []byte, wait chan reply) (uint32, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	seq := c.seq
	c.seq++
	c.buf = body(appendRequestHead(c.buf[:0], seq, function))
	binary.LittleEndian.PutUint32(c.buf[12:], uint32(len(c.buf)-requestHeadLen))

	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return 0, err
	}
	c.pending[seq] = wait
	c.mu.Unlock()

	deadline, _ := ctx.Deadline() // the zero time is no deadline
	if err := c.nc.SetWriteDeadline(deadline); err != nil {
		return 0, c.fail(err)
	}
	n, err := c.nc.Write(c.buf)
	if cap(c.buf) > recycleLimit {
		c.buf = nil
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		delete(c.pending, seq)
		c.mu.Unlock()
		return 0, context.DeadlineExceeded
	}
	if err != nil {
		// Part of a request may be out, so that the connection is of no more use.
		return 0, c.fail(err)
	}
	return seq, nil
}

// read hands replies to their callers until the connection ends.
func (c *Client) read() {
	defer close(c.readerDone)
	r := bufio.NewReaderSize(c.nc, 64<<10)
	var h [responseHeadLen]byte
	for {
		if _, err := io.ReadFull(r, h[:]); err != nil {
			c.fail(err)
			return
		}
		n, attachment := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
		switch {
		case h[0] != magic || h[1] != 0:
			c.fail(fmt.Errorf("server speaks another protocol: reply starts with % x", h[:4]))
			return
		case n > c.maxReply || attachment > c.maxReply:
			c.fail(fmt.Errorf("reply of %d bytes is larger than the limit of %d", uint64(n)+uint64(attachment), c.maxReply))
			return
		}
		body, err := readBody(r, int(n))
		if err == nil {
			_, err = io.CopyN(io.Discard, r, int64(attachment))
		}
		if err != nil {
			c.fail(err)
			return
		}
		seq := binary.LittleEndian.Uint32(h[4:])
		c.mu.Lock()
		wait, ok := c.pending[seq]
		delete(c.pending, seq)
		c.mu.Unlock()
		if !ok {
			c.fail(fmt.Errorf("reply to request %d, which is not waiting for one", seq))
			return
		}
		if wait != nil {
			wait <- reply{code: h[2], body: body}
		}
	}
}

// readBody reads n bytes, allocating only a little ahead of what has arrived.
func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, min(n, step))
	for got := 0; ; {
		k, err := io.ReadFull(r, body[got:])
		got += k
		if err != nil || got == n {
			return body, err
		}
		grown := make([]byte, min(n, 2*got))
		copy(grown, body)
		body = grown
	}
}

// fail closes the connection, ends the calls in flight with err, and returns what calls
// fail with from now on.
func (c *Client) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		err = ErrClientClosed
	}
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	pending := c.pending
	c.pending = map[uint32]chan reply{}
	c.mu.Unlock()
	c.nc.Close()
	for _, wait := range pending {
		if wait != nil {
			wait <- reply{err: err}
		}
	}
	return err
}
