package kvevent

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/hashicorp/go-hclog"
)

const (
	// highWater is how many messages may wait for one subscriber; more are dropped for it.
	highWater = 10000
	// greetTimeout is how long a peer may take to say who it is.
	greetTimeout = 10 * time.Second
	// maxPeers is how many peers may be connected.
	maxPeers = 1024
)

// hub is the listening socket and those who are connected to it.
type hub struct {
	listener net.Listener
	now      func() time.Time
	log      hclog.Logger

	mu     sync.Mutex
	peers  map[*peer]struct{}
	closed bool
	wg     sync.WaitGroup // one for each peer, and the listener
}

func newHub(l net.Listener, now func() time.Time, log hclog.Logger) *hub {
	h := &hub{listener: l, now: now, log: log, peers: make(map[*peer]struct{})}
	h.wg.Go(h.accept)
	return h
}

func (h *hub) addr() string {
	if a := h.listener.Addr(); a.Network() == "unix" {
		return "ipc://" + a.String()
	} else {
		return "tcp://" + a.String()
	}
}

func (h *hub) accept() {
	for {
		conn, err := h.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			h.log.Warn("a kv event subscriber could not be accepted", "error", err)
			time.Sleep(100 * time.Millisecond) // out of file descriptors, most likely
			continue
		}
		if p := h.enter(conn); p != nil {
			h.wg.Go(func() { h.serve(p) })
		}
	}
}

// enter notes a new peer, or turns it away.
func (h *hub) enter(conn net.Conn) *peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.peers) >= maxPeers {
		_ = conn.Close()
		return nil
	}
	p := newPeer(conn)
	h.peers[p] = struct{}{}
	return p
}

// serve reads what a peer says until it leaves.
func (h *hub) serve(p *peer) {
	err := p.greet(h.now().Add(greetTimeout))
	if err == nil {
		h.wg.Go(p.write)
		err = p.read()
	}
	h.log.Debug("a kv event subscriber has left", "peer", p.conn.RemoteAddr(), "reason", err)
	h.mu.Lock()
	delete(h.peers, p)
	h.mu.Unlock()
	p.leave()
}

// subscribers returns how many peers subscribe.
func (h *hub) subscribers() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.peers {
		if p.subscriptions.Load() > 0 {
			n++
		}
	}
	return n
}

// send hands a message to everybody who subscribes.
func (h *hub) send(m *zmq4.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.peers {
		if p.subscriptions.Load() > 0 {
			p.offer(item{message: m})
		}
	}
}

// close stops listening and leaves everybody once all that waits is written, or when the context
// ends.
func (h *hub) close(ctx context.Context) error {
	err := h.listener.Close()
	h.mu.Lock()
	h.closed = true
	for p := range h.peers {
		p.offer(item{last: true})
	}
	h.mu.Unlock()
	left := make(chan struct{})
	go func() { h.wg.Wait(); close(left) }()
	select {
	case <-left:
		return err
	case <-ctx.Done():
	}
	h.mu.Lock()
	for p := range h.peers {
		p.leave()
	}
	h.mu.Unlock()
	<-left
	return err
}
