package kvevent

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// item is what a peer's writer writes next: a message, an answer to a ping, or nothing more.
type item struct {
	message *zmq4.Msg
	pong    []byte
	last    bool
}

// peer is one connection, of a subscriber as far as it behaves like one.
type peer struct {
	conn          net.Conn
	link          *link
	zmtp          *zmq4.Conn
	out           chan item
	subscriptions atomic.Int32 // to the empty topic, which is every message's
	leaving       sync.Once
	left          chan struct{}
}

func newPeer(conn net.Conn) *peer {
	return &peer{conn: conn, out: make(chan item, highWater), left: make(chan struct{})}
}

// offer gives an item to the writer, or drops it when too much waits.
func (p *peer) offer(i item) {
	select {
	case p.out <- i:
	default:
		if i.last {
			p.leave() // it doesn't read
		}
	}
}

// leave ends reading and writing.
func (p *peer) leave() {
	p.leaving.Do(func() {
		close(p.left)
		_ = p.conn.Close() // whatever was to be said has been, or cannot be
	})
}

// greet shakes hands.
func (p *peer) greet(deadline time.Time) error {
	if err := p.conn.SetDeadline(deadline); err != nil {
		return err
	}
	p.link = &link{Conn: p.conn, greeting: greetingBytes}
	var err error
	if p.zmtp, err = zmq4.Open(p.link, null.Security(), zmq4.Pub, nil, true, func(*zmq4.Conn) {}); err != nil {
		return err
	}
	p.link.buffer = bufio.NewWriterSize(p.conn, 64<<10)
	return p.conn.SetDeadline(time.Time{})
}

// read follows the peer's subscriptions until the connection ends.
func (p *peer) read() error {
	in := bufio.NewReaderSize(p.conn, 512)
	for {
		flags, body, err := readFrame(in)
		switch {
		case err != nil:
			return err
		case flags&flagCommand != 0:
			if context, ok := bytes.CutPrefix(body, []byte("\x04PING")); ok && len(context) >= 2 {
				p.offer(item{pong: context[2:]}) // what follows its time to live is to be echoed
			}
		case len(body) == 1 && body[0] == 1:
			p.subscriptions.Add(1)
		case len(body) == 1 && body[0] == 0 && p.subscriptions.Load() > 0:
			p.subscriptions.Add(-1)
		}
	}
}

// write writes what is offered until the peer leaves, or the last item is written.
func (p *peer) write() {
	defer p.leave()
	for {
		var i item
		select {
		case <-p.left:
			return
		case i = <-p.out:
		}
		var err error
		switch {
		case i.last:
			_ = p.link.buffer.Flush()
			return
		case i.message != nil:
			err = p.zmtp.SendMsg(*i.message)
		default:
			err = p.zmtp.SendCmd(zmq4.CmdPong, i.pong)
		}
		if err == nil && len(p.out) == 0 {
			err = p.link.buffer.Flush()
		}
		if err != nil {
			return
		}
	}
}

// greetingBytes is how long the greeting of a peer is, before its first frame.
const greetingBytes = 64

// link is the connection as the protocol's library sees it. It lets frames of a sensible length
// through only, since the library takes memory for as many bytes as a peer announces.
type link struct {
	net.Conn
	greeting int           // bytes of the greeting still to come
	frame    bytes.Buffer  // what is left of the frame that is being read
	buffer   *bufio.Writer // once the hands are shaken
}

// Read implements net.Conn.
func (l *link) Read(b []byte) (int, error) {
	if l.greeting > 0 {
		n, err := l.Conn.Read(b[:min(len(b), l.greeting)])
		l.greeting -= n
		return n, err
	}
	if l.frame.Len() == 0 {
		flags, body, err := readFrame(l.Conn)
		if err != nil {
			return 0, err
		}
		l.frame.WriteByte(flags | flagLong)
		l.frame.Write(binary.BigEndian.AppendUint64(nil, uint64(len(body))))
		l.frame.Write(body)
	}
	return l.frame.Read(b)
}

// Write implements net.Conn.
func (l *link) Write(b []byte) (int, error) {
	if l.buffer != nil {
		return l.buffer.Write(b)
	}
	return l.Conn.Write(b)
}

// The flags of a frame.
const (
	flagLong    = 0x02
	flagCommand = 0x04
)

// maxFrame is the longest frame taken from a peer, in bytes. They send subscriptions, of a few.
const maxFrame = 4096

var errFrame = errors.New("not the frame of a subscriber")

func readFrame(r io.Reader) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1])
	if flags = head[0]; flags&flagLong != 0 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(head[1:])
	}
	if flags&^(flagLong|flagCommand) != 0 || n > maxFrame {
		return 0, nil, fmt.Errorf("%w: flags %#x, %d bytes", errFrame, flags, n)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return flags, body, err
}
