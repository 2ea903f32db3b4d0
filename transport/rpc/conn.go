package rpc

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// conn serves one connection with a goroutine of its own.
type conn struct {
	server  *Server
	nc      net.Conn
	session *session
}

const (
	// readBuffer is what an idle connection holds.
	readBuffer = 16 << 10
	// keepBuffer is the largest read buffer that is kept while requests stay small.
	keepBuffer = 64 << 10
	// dropBuffer is the size above which a read buffer is given back as soon as its request
	// is answered.
	dropBuffer = 1 << 20
	// smallReads is after how many reads that would have fitted keepBuffer a larger buffer
	// is given back.
	smallReads = 16
	// linger is how long a peer gets to take the last answers after shutdown.
	linger = 500 * time.Millisecond
)

// past is a deadline that is over.
var past = time.Unix(1, 0)

// wake ends the wait for more requests.
func (c *conn) wake() {
	// An error means that the connection is closed, which wakes it as well.
	_ = c.nc.SetReadDeadline(past)
}

// serve reads, answers and writes until the peer leaves, misbehaves, or the server shuts
// down.
func (c *conn) serve() {
	defer c.nc.Close()
	in := input{buf: make([]byte, readBuffer)}
	for {
		n, err := c.read(in.space())
		in.filled(n)
		c.server.bytesRead.Add(uint64(n))
		if n > 0 && !c.answer(&in) {
			return
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && c.server.closing.Load():
			c.leave()
			return
		case errors.Is(err, io.EOF) && in.pending() > 0:
			c.server.refuse(ReasonCutFrame, c.session.call.peer, "bytes", in.pending())
			return
		default:
			return
		}
	}
}

// read waits for bytes, no longer than the idle timeout and not while shutting down.
func (c *conn) read(p []byte) (int, error) {
	if d := c.server.opts.IdleTimeout; d > 0 {
		if err := c.nc.SetReadDeadline(c.server.opts.Now().Add(d)); err != nil {
			return 0, err
		}
		// Shutdown may have set its deadline just before this one.
		if c.server.closing.Load() {
			c.wake()
		}
	}
	return c.nc.Read(p)
}

// answer handles what has been read and writes the answers. It reports whether the
// connection goes on.
func (c *conn) answer(in *input) bool {
	for {
		consumed, out, err := c.session.process(in.bytes())
		in.consume(consumed)
		if len(out) > 0 && !c.write(out) {
			return false
		}
		switch {
		case errors.Is(err, errSlow):
			// The answers before it are on their way; it may take its time.
			consumed, out = c.session.first(in.bytes())
			in.consume(consumed)
			if !c.write(out) {
				return false
			}
		case err != nil:
			return false
		}
		if consumed == 0 || in.pending() == 0 {
			in.settle()
			return true
		}
	}
}

func (c *conn) write(out []byte) bool {
	if d := c.server.opts.WriteTimeout; d > 0 {
		if c.nc.SetWriteDeadline(c.server.opts.Now().Add(d)) != nil {
			return false
		}
	}
	n, err := c.nc.Write(out)
	c.server.bytesWritten.Add(uint64(n))
	return err == nil
}

// leave closes the connection so that the answers written last arrive: closing while
// requests lie unread would make the kernel reset the connection, and a reset may overtake
// answers.
func (c *conn) leave() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.nc.SetReadDeadline(c.server.opts.Now().Add(linger)) != nil {
		return
	}
	// Whatever ends this, the connection is closed next.
	_, _ = io.Copy(io.Discard, c.nc)
}

// input is the read buffer of a connection: bytes between r and w have been read and not yet
// handled. It grows only when it is full of bytes that have arrived, so that announcing much
// costs the server nothing.
type input struct {
	buf   []byte
	r, w  int
	small int // reads in a row that would have fitted keepBuffer
}

func (in *input) bytes() []byte { return in.buf[in.r:in.w] }
func (in *input) pending() int  { return in.w - in.r }
func (in *input) consume(n int) { in.r += n }
func (in *input) filled(n int)  { in.w += n }

// space returns where to read to; it is never empty.
func (in *input) space() []byte {
	if in.r > 0 && (in.r == in.w || in.w == len(in.buf)) {
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if in.w == len(in.buf) {
		size := 2 * len(in.buf)
		if in.pending() >= requestHeadLen {
			h := parseHead(in.bytes())
			if need := requestHeadLen + int(h.payload()); need > len(in.buf) {
				size = min(size, need)
			}
		}
		grown := make([]byte, size)
		copy(grown, in.buf)
		in.buf = grown
	}
	return in.buf[in.w:]
}

// settle gives a large buffer back once it is no longer needed.
func (in *input) settle() {
	if in.pending() > keepBuffer {
		in.small = 0
		return
	}
	if len(in.buf) <= keepBuffer {
		return
	}
	if in.w > keepBuffer {
		in.small = 0
	} else {
		in.small++
	}
	if len(in.buf) > dropBuffer && in.pending() == 0 || in.small >= smallReads {
		buf := make([]byte, max(readBuffer, in.pending()))
		in.w = copy(buf, in.bytes())
		in.r, in.small, in.buf = 0, 0, buf
	}
}
