package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// between is metadata that says something else than the owner does: that its memory is larger, that its keys are
// others, that it is reached through a relay.
type between struct {
	segment.Metadata
	change func(*segment.Descriptor) // of what is published; nil = nothing
	// handshake is where owners are asked, instead of where they say; "" = there.
	handshake string
	p2p       bool
}

func (b *between) Descriptor(ctx context.Context, name string) (*segment.Descriptor, error) {
	if b.p2p && b.handshake != "" {
		name = b.handshake
	}
	d, err := b.Metadata.Descriptor(ctx, name)
	if err == nil && b.change != nil {
		b.change(d)
	}
	return d, err
}

func (b *between) Address(ctx context.Context, name string) (string, error) {
	if b.handshake != "" {
		return b.handshake, nil
	}
	return b.Metadata.Address(ctx, name)
}

// relay forwards connections to an address and does to each what its plan says.
type relay struct {
	listener net.Listener
	target   string
	plan     func() plan
	over     chan struct{} // closed by close

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// close ends everything and waits for it.
func (r *relay) close() {
	r.listener.Close()
	close(r.over)
	r.mu.Lock()
	r.done = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// plan is what happens to a connection: after so many bytes to the owner, or back from it, it is ended.
// Negative numbers are never reached.
type plan struct {
	up, down int64
	how      ending
	slow     bool // it takes its time: some 20 MB/s
}

// ending is how a connection ends.
type ending int

const (
	reset   ending = iota // with a reset
	closes                // as if the other side had closed it
	silence               // not at all: nothing comes or goes any more
	garbled               // what comes back is something else
)

func (e ending) String() string { return [...]string{"reset", "closed", "silent", "garbled"}[e] }

// newRelay forwards connections to target.
func newRelay(target string, next func() plan) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: target, plan: next, over: make(chan struct{}), conns: map[net.Conn]bool{}}
	r.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.forward(conn) })
		}
	})
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }
func (r *relay) port() int       { return r.listener.Addr().(*net.TCPAddr).Port }

// enter notes a connection, which is closed when the relay is.
func (r *relay) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		c.Close()
		return false
	}
	r.conns[c] = true
	return true
}

func (r *relay) leave(c net.Conn) {
	c.Close()
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
}

func (r *relay) forward(here net.Conn) {
	if !r.enter(here) {
		return
	}
	defer r.leave(here)
	there, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	if !r.enter(there) {
		return
	}
	defer r.leave(there)
	p := r.plan()
	var both sync.WaitGroup
	both.Go(func() { r.pass(there, here, here, p.up, p) })
	both.Go(func() { r.pass(here, there, here, p.down, p) })
	both.Wait()
}

// plain keeps the runtime from splicing connections: the pipes it would use are left to the garbage collector.
type plain struct{ io.Writer }

// slow is a connection that takes its time.
type slow struct{ net.Conn }

func (s slow) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = s.Conn.Write(b[n:min(n+20<<10, len(b))])
		n += k
		time.Sleep(time.Millisecond)
	}
	return n, err
}

// pass forwards in one direction, and ends the client's connection when its plan says so.
func (r *relay) pass(to, from, client net.Conn, limit int64, p plan) {
	if limit < 0 {
		var w io.Writer = plain{to}
		if p.slow {
			w = slow{to}
		}
		io.Copy(w, from)
		to.(*net.TCPConn).CloseWrite()
		return
	}
	_, err := io.CopyN(plain{to}, from, limit)
	if err != nil {
		to.(*net.TCPConn).CloseWrite()
		return
	}
	switch p.how {
	case silence:
		<-r.over
	case garbled:
		if to != client {
			io.Copy(plain{to}, from)
			return
		}
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			for i := range b[:n] {
				b[i] ^= 0x5A
			}
			to.Write(b[:n])
			if err != nil {
				to.(*net.TCPConn).CloseWrite()
				return
			}
		}
	case reset:
		client.(*net.TCPConn).SetLinger(0)
		fallthrough
	default:
		client.Close()
		to.Close()
		from.Close()
	}
}
