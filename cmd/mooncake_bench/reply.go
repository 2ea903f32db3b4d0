package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// shape is what a reply holds for each key when it holds no error.
type shape int

const (
	shapeVoid     shape = iota // nothing
	shapeBool                  // whether the key is there
	shapeReplicas              // where to write
	shapeList                  // where to read
	shapePing                  // state of the client; not about a key
)

// cursor walks over a reply. After running past the end it stays failed and reads zeros.
type cursor struct {
	buf    []byte
	pos    int
	width  int // bytes of each size
	failed bool
}

func (c *cursor) skip(n int) {
	if n < 0 || n > len(c.buf)-c.pos {
		c.failed, c.pos = true, len(c.buf)
		return
	}
	c.pos += n
}

func (c *cursor) byte() byte {
	if c.pos >= len(c.buf) {
		c.failed = true
		return 0
	}
	b := c.buf[c.pos]
	c.pos++
	return b
}

func (c *cursor) int32() int32 {
	at := c.pos
	if c.skip(4); c.failed {
		return 0
	}
	return int32(binary.LittleEndian.Uint32(c.buf[at:]))
}

// size reads a size field. One that exceeds the reply fails.
func (c *cursor) size() int {
	at := c.pos
	if c.skip(c.width); c.failed {
		return 0
	}
	var n uint64
	switch c.width {
	case 1:
		n = uint64(c.buf[at])
	case 2:
		n = uint64(binary.LittleEndian.Uint16(c.buf[at:]))
	case 4:
		n = uint64(binary.LittleEndian.Uint32(c.buf[at:]))
	default:
		n = binary.LittleEndian.Uint64(c.buf[at:])
	}
	if n > uint64(len(c.buf)) {
		c.failed = true
		return 0
	}
	return int(n)
}

func (c *cursor) text() { c.skip(c.size()) }

// descriptor skips one replica descriptor.
func (c *cursor) descriptor() {
	c.skip(8) // id
	switch c.byte() {
	case 0, 1: // memory, NoF
		c.skip(16)
		c.text()
		c.text()
	case 2: // disk
		c.text()
		c.skip(8)
	case 3: // local disk
		c.skip(24)
		c.text()
	case 4: // distributed file system
		c.text()
		c.skip(28)
	default:
		c.failed = true
	}
	c.skip(4) // status
}

func (c *cursor) descriptors() {
	for n := c.size(); n > 0 && !c.failed; n-- {
		c.descriptor()
	}
}

// outcome reads one expected and returns 0, missCode or the code of the failure.
func (c *cursor) outcome(s shape) int32 {
	if c.byte() == 0 {
		code := c.int32()
		if s == shapeList && missing(code) {
			return missCode
		}
		return code
	}
	switch s {
	case shapeBool:
		if c.byte() == 0 {
			return missCode
		}
	case shapeReplicas:
		c.descriptors()
	case shapeList:
		c.descriptors()
		c.skip(8)
		if c.byte() != 0 {
			c.skip(8)
		}
	case shapePing:
		c.skip(12)
	}
	return 0
}

// open reads what stands before the payload of a body: hash, metainfo, total length, literal.
func (c *call) open(body []byte) (cursor, error) {
	if len(body) < 4 {
		return cursor{}, fmt.Errorf("%s: reply of %d bytes", c.name, len(body))
	}
	word := binary.LittleEndian.Uint32(body)
	if word&^1 != c.hash {
		return cursor{}, fmt.Errorf("%s: reply has type hash 0x%08x, want 0x%08x", c.name, word&^1, c.hash)
	}
	k := cursor{buf: body, pos: 4, width: 1}
	if word&1 != 0 {
		meta := k.byte()
		k.width = 1 << (meta >> 3 & 3)
		if meta&3 != 0 {
			k.skip(1 << (meta & 3))
		}
		if meta&4 != 0 {
			if !bytes.HasPrefix(body[k.pos:], c.prefix) {
				return k, fmt.Errorf("%s: reply has another type literal", c.name)
			}
			k.skip(len(c.prefix))
		}
	}
	return k, nil
}

// outcomes reads a reply about n keys into codes, which are appended to dst: 0, missCode or a
// negative code per key. A call that is not about keys has one outcome.
func (c *call) outcomes(dst []int32, body []byte, n int) ([]int32, error) {
	k, err := c.open(body)
	if err != nil {
		return dst, err
	}
	if c.batch {
		if got := k.size(); got != n && !k.failed {
			return dst, fmt.Errorf("%s: reply about %d keys, want %d", c.name, got, n)
		}
	}
	for range n {
		dst = append(dst, k.outcome(c.shape))
	}
	if k.failed {
		return dst, fmt.Errorf("%s: reply of %d bytes is not well formed", c.name, len(body))
	}
	return dst, nil
}
