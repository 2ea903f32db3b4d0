package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

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
	return &lanes{
		address: net.JoinHostPort(host, strconv.Itoa(d.DataPort)), version: min(max(d.DataVersion, 1), cfg.DataVersion),
		slots: make(chan struct{}, cfg.Lanes), now: cfg.Now,
	}, nil
}

func (p *lanes) same(other route) bool {
	o, ok := other.(*lanes)
	return ok && o.address == p.address && o.version == p.version
}

// lanes is one owner's TCP data port, and the connections to it.
type lanes struct {
	address string
	version int
	now     func() time.Time

	slots chan struct{} // one for each transfer under way

	mu      sync.Mutex
	idle    []net.Conn
	busy    map[net.Conn]bool
	retired bool
}

func (p *lanes) transfer(ctx context.Context, q request, data []byte) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		conn, used, err := p.get(ctx)
		if err != nil {
			return err
		}
		err = p.carry(ctx, conn, q, data)
		p.put(conn, err == nil)
		if err == nil || !used || ctx.Err() != nil || !disconnected(err) {
			return err
		}
		// The other side had closed a connection that lay idle. Both reading and writing may be done twice.
	}
}

// disconnected reports whether an error says that the other side has closed the connection.
func disconnected(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// get returns a connection, and whether it has been used before.
func (p *lanes) get(ctx context.Context) (net.Conn, bool, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		conn := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.busy[conn] = true
		p.mu.Unlock()
		return conn, true, nil
	}
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == nil {
		p.busy = make(map[net.Conn]bool)
	}
	p.busy[conn] = true
	return conn, false, nil
}

func (p *lanes) put(conn net.Conn, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, conn)
	if good && !p.retired && conn.SetDeadline(time.Time{}) == nil {
		p.idle = append(p.idle, conn)
		return
	}
	conn.Close()
}

// retire closes the connections that lie idle, and the others when they are done.
func (p *lanes) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for _, conn := range p.idle {
		conn.Close()
	}
	p.idle = nil
}

// close closes all connections at once.
func (p *lanes) close() {
	p.retire()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.busy {
		conn.Close()
	}
}

// carry does one transfer over a connection.
func (p *lanes) carry(ctx context.Context, conn net.Conn, q request, data []byte) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if p.version >= 2 {
		q.opcode |= opAnswered
	}
	head := q.append(make([]byte, 0, requestBytes))
	switch {
	case !q.writes():
		return p.fetch(conn, q, head, data)
	case q.answered():
		return p.deliver(conn, head, data)
	}
	// Version 1 doesn't say whether it has taken the data. It answers what follows on the connection, in
	// order, if it has.
	if err := send(conn, head, data, p.now); err != nil {
		return err
	}
	last := request{size: 1, addr: q.addr + q.size - 1, opcode: opRead}
	var b [1]byte
	err := p.fetch(conn, last, last.append(head[:0]), b[:])
	if disconnected(err) {
		return fmt.Errorf("%w, or it has gone: %w", ErrRejected, err)
	}
	if err == nil && b[0] != data[len(data)-1] {
		return errors.New("what was written is not there")
	}
	return err
}

// fetch sends a request to read and takes the answer.
func (p *lanes) fetch(conn net.Conn, q request, head, data []byte) error {
	if err := send(conn, head, nil, p.now); err != nil {
		return err
	}
	if q.answered() {
		conn.SetReadDeadline(p.now().Add(progressTimeout))
		if err := readStatus(conn); err != nil {
			return err
		}
	}
	return receive(conn, data, p.now)
}

// deliver sends a request to write with its data and waits for the status, which a rejection sends
// before it has taken all data.
func (p *lanes) deliver(conn net.Conn, head, data []byte) error {
	if len(data) <= deliverAtOnce {
		if err := send(conn, head, data, p.now); err != nil {
			return err
		}
		conn.SetReadDeadline(p.now().Add(progressTimeout))
		return readStatus(conn)
	}
	sent := make(chan error, 1)
	conn.SetReadDeadline(time.Time{}) // until all is sent, it is sending that is watched
	go func() {
		err := send(conn, head, data, p.now)
		if err == nil {
			err = conn.SetReadDeadline(p.now().Add(progressTimeout))
		} else {
			conn.Close()
		}
		sent <- err
	}()
	err := readStatus(conn)
	if err != nil {
		conn.Close() // sending need not go on
	}
	if sending := <-sent; err == nil {
		err = sending
	}
	return err
}

// deliverAtOnce is how much is sent without looking for a rejection meanwhile, in bytes: the buffers of a
// connection take it.
const deliverAtOnce = 64 << 10
