package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// keepAlive finds out within half a minute that the other side of a connection that lies idle has vanished.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// openLanes makes the lanes to an owner's data port, of which none is connected yet.
func openLanes(ctx context.Context, cfg *CarrierConfig, d *Descriptor) (*lanes, error) {
	if d.DataPort == 0 {
		return nil, errors.New("its descriptor has no tcp_data_port")
	}
	host := d.DataHost
	if host == "" {
		address, err := cfg.Metadata.Address(ctx, d.Name)
		if err != nil {
			return nil, err
		}
		if host, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	address := net.JoinHostPort(host, strconv.Itoa(d.DataPort))
	return newLanes(address, min(max(d.DataVersion, 1), cfg.DataVersion), cfg.Lanes, cfg.Stall, cfg.Now), nil
}

func newLanes(address string, version, count int, stall time.Duration, now func() time.Time) *lanes {
	return &lanes{address: address, version: version, stall: stall, now: now, slots: make(chan struct{}, count), busy: make(map[*stream]bool)}
}

// lanes is one owner's TCP data port, and the connections to it.
type lanes struct {
	address string
	version int
	stall   time.Duration // how long a transfer may stand still
	now     func() time.Time

	slots chan struct{} // one for each transfer under way

	mu      sync.Mutex
	idle    []*stream
	busy    map[*stream]bool
	retired bool
	closed  bool
}

func (p *lanes) reaches(found *Descriptor, q request) bool { return found.find(q.addr, q.size) != nil }

func (p *lanes) connect(context.Context, request) error { return nil }

func (p *lanes) same(other route) bool {
	o, ok := other.(*lanes)
	return ok && o.address == p.address && o.version == p.version
}

func (p *lanes) transfer(ctx context.Context, q request, data []byte) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		s, used, err := p.get(ctx)
		if err != nil {
			return err
		}
		intact := true
		if ctx.Done() == nil {
			err = p.carry(s, q, data)
		} else {
			stop := context.AfterFunc(ctx, func() { giveUp(s.conn, q) })
			err = p.carry(s, q, data)
			intact = stop()
		}
		open := q.writes() && unsettled(err)
		if !intact && err != nil && q.writes() {
			// What has been sent may still be written, until the other side has read all of it and closes.
			_, end := io.Copy(io.Discard, s.conn)
			open = unsettled(end)
		}
		p.put(s, intact && err == nil)
		if err == nil {
			return nil
		}
		if open {
			return fmt.Errorf("%w; %w", p.explain(err), ErrUnsettled)
		}
		if !used || ctx.Err() != nil || !disconnected(err) {
			return p.explain(err)
		}
		// The other side had closed a connection that lay idle. Both reading and writing may be done twice.
	}
}

// settleTime is how long the owner has to take or refuse what was sent of a write that is given up.
const settleTime = 200 * time.Millisecond

// giveUp ends what goes on over a connection. A write is cut off such that nothing of it is written any more after the
// other side has closed the connection, for which there is a moment.
func giveUp(conn net.Conn, q request) {
	if tcp, ok := conn.(*net.TCPConn); ok && q.writes() && tcp.CloseWrite() == nil {
		time.AfterFunc(settleTime, func() { conn.Close() })
		return
	}
	conn.Close()
}

// ErrUnsettled is within the error of a write of which something may still be written later, since its owner has neither
// answered nor ended the connection: the memory isn't to be used for anything else for a while.
var ErrUnsettled = errors.New("what was sent may still be written")

// unsettled reports whether a connection that fails with an error has failed without a word of the other side, which may
// still read from it what it was sent.
func unsettled(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && (failed.Timeout() || !disconnected(err))
}

// disconnected reports whether an error says that the connection has come to its end.
func disconnected(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// explain adds to errors of the network what they mean here.
func (p *lanes) explain(err error) error {
	switch {
	case errors.Is(err, ErrRejected):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("data port %s: nothing has moved for %v: %w", p.address, p.stall, err)
	case disconnected(err):
		return fmt.Errorf("data port %s has ended the connection: %w", p.address, err)
	}
	return fmt.Errorf("data port %s: %w", p.address, err)
}

// get returns a connection, and whether it has been used before.
func (p *lanes) get(ctx context.Context) (*stream, bool, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, net.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.busy[s] = true
		p.mu.Unlock()
		return s, true, nil
	}
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return nil, false, net.ErrClosed
	}
	s := newStream(conn, p.stall, p.now)
	p.busy[s] = true
	return s, false, nil
}

// put takes a connection back. It is kept for the next transfer if it is good: whole, and nothing on its way
// that nobody asked for.
func (p *lanes) put(s *stream, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, s)
	if good && !p.retired && !s.rest() {
		p.idle = append(p.idle, s)
		return
	}
	s.conn.Close()
}

// retire closes the connections that lie idle, and the others when they are done.
func (p *lanes) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for _, s := range p.idle {
		s.conn.Close()
	}
	p.idle = nil
}

// close closes all connections at once.
func (p *lanes) close() {
	p.retire()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for s := range p.busy {
		s.conn.Close()
	}
}

// carry does one transfer over a connection.
func (p *lanes) carry(s *stream, q request, data []byte) error {
	if p.version >= 2 {
		q.opcode |= opAnswered
	}
	var room [2 * requestBytes]byte
	head := q.append(room[:0])
	switch {
	case !q.writes():
		return fetch(s, q, head, data)
	case q.answered():
		return deliver(s, head, data)
	}
	// Version 1 doesn't say whether it has taken the data. But it answers what follows on the connection,
	// in order, if it has.
	last := request{size: 1, addr: q.addr + q.size - 1, opcode: opRead}
	var b [1]byte
	err := s.send(head, data, last.append(room[requestBytes:requestBytes]), nil)
	if err == nil {
		err = s.fill(b[:])
	}
	if disconnected(err) {
		return rejectedOrGone(err)
	}
	if err == nil && b[0] != data[len(data)-1] {
		return errors.New("what was written is not there")
	}
	return err
}

// fetch sends a request to read and takes the answer.
func fetch(s *stream, q request, head, data []byte) error {
	if err := s.send(head, nil, nil, nil); err != nil {
		return err
	}
	if q.answered() {
		if err := takeStatus(s); err != nil {
			return err
		}
		return s.fill(data)
	}
	err := s.fill(data)
	if disconnected(err) {
		return rejectedOrGone(err)
	}
	return err
}

// rejectedOrGone is the error of a connection that has ended where version 1 would have answered: it rejects by
// closing.
func rejectedOrGone(err error) error {
	return fmt.Errorf("%w, or it has gone: %w", ErrRejected, err)
}

// deliver sends a request to write with its data and takes the status, which a rejection sends before it has
// taken all data.
func deliver(s *stream, head, data []byte) error {
	early := errors.New("an answer came before the data was sent")
	err := s.send(head, data, nil, func() error {
		if s.glance(statusBytes) {
			return early
		}
		return nil
	})
	if err == nil {
		return takeStatus(s)
	}
	// Why it doesn't take the data may have arrived all the same.
	if s.glance(statusBytes) {
		if said := takeStatus(s); said != nil {
			return said
		}
	}
	return err
}

// takeStatus takes a status and says what it means.
func takeStatus(s *stream) error {
	var b [statusBytes]byte
	if err := s.fill(b[:]); err != nil {
		return err
	}
	return parseStatus(b)
}
