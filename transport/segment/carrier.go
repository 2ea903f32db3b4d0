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

// Place is memory of somebody else: an absolute address in the process called Owner, as a replica's
// descriptor has it.
type Place struct {
	Owner   string
	Address uint64
}

// Carrier reads and writes the memory of others. It is safe for concurrent use.
type Carrier struct {
	metadata Metadata
	lanes    int
	now      func() time.Time

	mu     sync.Mutex
	peers  map[string]*peer
	closed bool
}

// DefaultLanes is how many connections are kept to one peer.
const DefaultLanes = 4

// NewCarrier makes a carrier that finds owners in a metadata store, or asks them, and keeps at most lanes
// connections to each; 0 means DefaultLanes. now tells the time.
func NewCarrier(m Metadata, lanes int, now func() time.Time) *Carrier {
	if lanes <= 0 {
		lanes = DefaultLanes
	}
	return &Carrier{metadata: m, lanes: lanes, now: now, peers: make(map[string]*peer)}
}

// Read fills dst from a place. It fails with ErrRejected when the owner has no such memory, and with the
// transport's error when it can't be reached.
func (c *Carrier) Read(ctx context.Context, from Place, dst []byte) error {
	return c.transfer(ctx, from, opRead, dst)
}

// Write copies src to a place and returns when it is there. Errors are those of Read.
func (c *Carrier) Write(ctx context.Context, to Place, src []byte) error {
	return c.transfer(ctx, to, opWrite, src)
}

// Close closes all connections; transfers under way fail.
func (c *Carrier) Close() {
	c.mu.Lock()
	c.closed = true
	peers := c.peers
	c.peers = nil
	c.mu.Unlock()
	for _, p := range peers {
		p.close()
	}
}

func (c *Carrier) transfer(ctx context.Context, at Place, op byte, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	q := request{size: uint64(len(data)), addr: at.Address, opcode: op}
	p, err := c.peer(ctx, at.Owner, q)
	if err == nil {
		err = p.transfer(ctx, q, data)
	}
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	c.forget(at.Owner, p) // it may have started anew elsewhere
	verb := "reading"
	if op == opWrite {
		verb = "writing"
	}
	return fmt.Errorf("%s %d bytes at %#x of %s: %w", verb, q.size, q.addr, at.Owner, err)
}

// peer finds an owner. What it is known to have published is used as long as that includes the address asked
// for.
func (c *Carrier) peer(ctx context.Context, owner string, q request) (*peer, error) {
	c.mu.Lock()
	p, closed := c.peers[owner], c.closed
	known := p != nil && p.found.find(q.addr, q.size) != nil
	c.mu.Unlock()
	switch {
	case closed:
		return nil, net.ErrClosed
	case known:
		return p, nil
	}
	d, err := c.metadata.Descriptor(ctx, owner)
	if err != nil {
		return nil, err
	}
	if d.find(q.addr, q.size) == nil {
		return nil, ErrRejected
	}
	fresh, err := c.newPeer(ctx, owner, d)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if p = c.peers[owner]; p != nil && p.address == fresh.address && p.version == fresh.version {
		p.found = d // other memory behind the same port: the connections are good
		return p, nil
	}
	if p != nil {
		defer p.close()
	}
	c.peers[owner] = fresh
	return fresh, nil
}

func (c *Carrier) newPeer(ctx context.Context, owner string, d *Descriptor) (*peer, error) {
	if !d.Speaks(ProtocolTCP) {
		return nil, fmt.Errorf("it speaks %v, not tcp", d.Protocol)
	}
	if d.DataPort == 0 {
		return nil, errors.New("its descriptor has no tcp_data_port")
	}
	host := d.DataHost
	if host == "" {
		address, err := c.metadata.Address(ctx, owner)
		if err != nil {
			return nil, err
		}
		if host, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	return &peer{
		address: net.JoinHostPort(host, strconv.Itoa(d.DataPort)), version: max(d.DataVersion, 1),
		found: d, slots: make(chan struct{}, c.lanes), now: c.now,
	}, nil
}

// forget drops what is known about an owner after a failure.
func (c *Carrier) forget(owner string, p *peer) {
	if p == nil {
		return
	}
	c.mu.Lock()
	if c.peers[owner] == p {
		delete(c.peers, owner)
	}
	c.mu.Unlock()
	p.retire()
}

// peer is one owner's data port, and the connections to it.
type peer struct {
	address string
	version int
	now     func() time.Time
	found   *Descriptor // guarded by the carrier's lock

	slots chan struct{} // one for each transfer under way

	mu      sync.Mutex
	idle    []net.Conn
	busy    map[net.Conn]bool
	retired bool
}

func (p *peer) transfer(ctx context.Context, q request, data []byte) error {
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
func (p *peer) get(ctx context.Context) (net.Conn, bool, error) {
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

func (p *peer) put(conn net.Conn, good bool) {
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
func (p *peer) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for _, conn := range p.idle {
		conn.Close()
	}
	p.idle = nil
}

// close closes all connections at once.
func (p *peer) close() {
	p.retire()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.busy {
		conn.Close()
	}
}

// carry does one transfer over a connection.
func (p *peer) carry(ctx context.Context, conn net.Conn, q request, data []byte) error {
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
func (p *peer) fetch(conn net.Conn, q request, head, data []byte) error {
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
func (p *peer) deliver(conn net.Conn, head, data []byte) error {
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
