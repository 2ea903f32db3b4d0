package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// conn is one connection: frames to send gather in out until they are flushed, frames that
// come are read into in and handed on where they lie.
type conn struct {
	fd, index  int
	in         []byte
	start, end int // of what is read and not yet handed on
	out        []byte
	written    int  // of out
	watching   bool // for room to write
}

// firstBuffer is the memory for replies that a connection starts with.
const firstBuffer = 16 << 10

// maxFrame bounds a frame, so that garbage on the wire is not taken for a gigantic one.
const maxFrame = 1 << 30

// errClosed says that the other end has closed the connection.
var errClosed = errors.New("the connection was closed by the other end")

// flush writes what has gathered. What does not fit is left for when there is room.
func (c *conn) flush(p *poller) error {
	for c.written < len(c.out) {
		n, err := writeSocket(c.fd, c.out[c.written:])
		if errors.Is(err, errAgain) {
			if !c.watching {
				c.watching = true
				return p.watch(c.fd, c.index, true)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		c.written += n
	}
	c.out, c.written = c.out[:0], 0
	if c.watching {
		c.watching = false
		return p.watch(c.fd, c.index, false)
	}
	return nil
}

// receive reads once and calls reply for each complete reply.
func (c *conn) receive(reply func(seq uint32, code byte, body []byte) error) error {
	return c.frames(replyHead, 8, func(head, body []byte) error {
		return reply(binary.LittleEndian.Uint32(head[4:]), head[2], body)
	})
}

// frames reads once and hands on each complete frame. A head is headLen bytes long and says at
// lengthAt how long body and attachment are. Whatever is left in the socket makes it ready
// again.
func (c *conn) frames(headLen, lengthAt int, frame func(head, body []byte) error) error {
	if c.in == nil {
		c.in = make([]byte, firstBuffer)
	}
	n, err := readSocket(c.fd, c.in[c.end:])
	switch {
	case errors.Is(err, errAgain):
		return nil
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case n == 0:
		return errClosed
	}
	c.end += n
	for {
		rest := c.in[c.start:c.end]
		need := headLen
		if len(rest) >= headLen {
			if rest[0] != magic || rest[1] != 0 {
				return fmt.Errorf("the other end speaks another protocol: a frame starts with % x", rest[:4])
			}
			body, attachment := binary.LittleEndian.Uint32(rest[lengthAt:]), binary.LittleEndian.Uint32(rest[lengthAt+4:])
			if uint64(body)+uint64(attachment) > maxFrame {
				return fmt.Errorf("a frame announces %d bytes, more than %d", uint64(body)+uint64(attachment), maxFrame)
			}
			need = headLen + int(body) + int(attachment)
			if len(rest) >= need {
				c.start += need
				if err := frame(rest[:headLen], rest[headLen:headLen+int(body)]); err != nil {
					return err
				}
				continue
			}
		}
		c.makeRoom(need)
		return nil
	}
}

// makeRoom sees to it that a frame of need bytes that starts at start fits.
func (c *conn) makeRoom(need int) {
	switch {
	case c.start == c.end:
		c.start, c.end = 0, 0
	case c.start > 0 && (c.start+need > len(c.in) || c.end == len(c.in)):
		c.end = copy(c.in, c.in[c.start:c.end])
		c.start = 0
	}
	if need > len(c.in) {
		grown := make([]byte, max(need, 2*len(c.in)))
		c.end = copy(grown, c.in[c.start:c.end])
		c.start, c.in = 0, grown
	}
}
