package segment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// Place is memory of somebody else.
type Place = transfer.Place

// Carrier reads and writes the memory of others. It is safe for concurrent use.
type Carrier struct {
	cfg CarrierConfig

	mu     sync.Mutex
	peers  map[string]*peer
	swept  time.Time // when those that nobody uses were last looked for
	closed bool
}

// route is the way to one owner. Data is the memory to read into or to write from.
type route interface {
	transfer(ctx context.Context, q request, data []byte) error
	// reaches reports whether what the owner has published includes the memory that a request is about.
	reaches(found *Descriptor, q request) bool
	// connect makes the connections that a request may need, where the owner takes part in that only.
	connect(ctx context.Context, q request) error
	// same reports whether another route leads to the same owner in the same life.
	same(other route) bool
	// retire lets what is under way end; close ends it.
	retire()
	close()
}

// peer is one owner, what it has published and the way to it.
type peer struct {
	found *Descriptor // guarded by the carrier's lock
	used  time.Time   // last, likewise
	route
}

// mostIdle is how long an owner that nobody asks for is remembered, with the connections to it: it may be gone for good.
const mostIdle = 10 * time.Minute

// DefaultLanes is how many connections are kept to one peer.
const DefaultLanes = 4

// CarrierConfig says how a Carrier finds others and speaks with them.
type CarrierConfig struct {
	Metadata Metadata
	// RDMA reaches owners that speak RDMA; nil = they can't be reached.
	RDMA  *rdma.Adapter
	Lanes int              // most TCP connections to one owner; 0 = DefaultLanes
	Now   func() time.Time // tells the time
	// DataVersion is the newest version of the TCP data port's protocol to speak, 1 or 2; 0 = 2.
	DataVersion int
	// Stall is how long a transfer over TCP may stand still before it fails; it is noticed within a quarter
	// more. 0 = DefaultStall.
	Stall time.Duration
}

// newestDataVersion is the newest version of the TCP data port's protocol.
const newestDataVersion = 2

// NewCarrier makes a carrier. Nothing is connected before it is needed.
func NewCarrier(cfg CarrierConfig) *Carrier {
	if cfg.Lanes <= 0 {
		cfg.Lanes = DefaultLanes
	}
	if cfg.DataVersion == 0 {
		cfg.DataVersion = newestDataVersion
	}
	if cfg.Stall <= 0 {
		cfg.Stall = DefaultStall
	}
	return &Carrier{cfg: cfg, peers: make(map[string]*peer)}
}

// Read fills dst from a place. It fails with ErrRejected when the owner has no such memory, and with the
// transport's error when it can't be reached.
func (c *Carrier) Read(ctx context.Context, from Place, dst []byte) error {
	return c.transfer(ctx, from, opRead, dst)
}

// Write copies src to a place and returns when it is there. Errors are those of Read; ErrUnsettled is within those of
// writes that may still happen.
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
	p, known, err := c.peer(ctx, at.Owner, q)
	if err == nil {
		err = p.transfer(ctx, q, data)
	}
	if err != nil && known && ctx.Err() == nil { // it may have started anew
		c.forget(at.Owner, p)
		if fresh, _, again := c.peer(ctx, at.Owner, q); again == nil && !p.same(fresh.route) {
			p, err = fresh, fresh.transfer(ctx, q, data)
		}
	}
	if ctx.Err() != nil && err != nil && !errors.Is(err, ctx.Err()) {
		if errors.Is(err, ErrUnsettled) {
			err = fmt.Errorf("%w; %w", ctx.Err(), ErrUnsettled)
		} else {
			err = ctx.Err()
		}
	}
	if err == nil {
		return nil
	}
	c.forget(at.Owner, p)
	verb := "reading"
	if op == opWrite {
		verb = "writing"
	}
	return fmt.Errorf("%s %d bytes at %#x of %s: %w", verb, q.size, q.addr, at.Owner, err)
}

// peer finds an owner. What it is known to have published is used as long as that includes the address asked
// for; known reports whether that was so.
func (c *Carrier) peer(ctx context.Context, owner string, q request) (_ *peer, known bool, err error) {
	c.mu.Lock()
	p, closed := c.peers[owner], c.closed
	if known = p != nil && p.reaches(p.found, q); known {
		p.used = c.cfg.Now()
	}
	c.mu.Unlock()
	switch {
	case closed:
		return nil, false, net.ErrClosed
	case known:
		return p, true, nil
	}
	d, err := c.cfg.Metadata.Descriptor(ctx, owner)
	if err != nil {
		return nil, false, err
	}
	way, err := c.route(ctx, owner, d)
	if err != nil {
		return nil, false, err
	}
	if !way.reaches(d, q) {
		way.close()
		return nil, false, ErrRejected
	}
	fresh := &peer{found: d, route: way, used: c.cfg.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(fresh.used)
	if c.closed {
		way.close()
		return nil, false, net.ErrClosed
	}
	if p = c.peers[owner]; p != nil && p.same(way) {
		p.found, p.used = d, c.cfg.Now() // other memory behind the same port: the connections are good
		way.close()
		return p, false, nil
	}
	if p != nil {
		defer p.retire()
	}
	c.peers[owner] = fresh
	return fresh, false, nil
}

// sweep forgets the owners that nobody has asked for in a while. The lock is held.
func (c *Carrier) sweep(now time.Time) {
	if now.Sub(c.swept) < mostIdle/10 {
		return
	}
	c.swept = now
	for owner, p := range c.peers {
		if now.Sub(p.used) > mostIdle {
			delete(c.peers, owner)
			p.retire()
		}
	}
}

// route opens the way to an owner by a protocol that it speaks.
func (c *Carrier) route(ctx context.Context, owner string, d *Descriptor) (route, error) {
	switch {
	case d.Speaks(ProtocolRDMA) && c.cfg.RDMA != nil:
		return openRails(c.cfg.RDMA, c.cfg.Metadata, owner, d)
	case d.Speaks(ProtocolTCP):
		return openLanes(ctx, &c.cfg, d)
	case d.Speaks(ProtocolRDMA):
		return nil, errors.New("it speaks RDMA, and this carrier has no RDMA adapter")
	}
	return nil, fmt.Errorf("it speaks %v, which is neither %s nor %s", d.Protocol, ProtocolTCP, ProtocolRDMA)
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

// Buffer returns n bytes to read into and write from, and what gives them back. With an RDMA adapter they are
// registered with it.
func (c *Carrier) Buffer(n int) (b []byte, release func(), err error) {
	if c.cfg.RDMA != nil {
		return c.cfg.RDMA.Buffer(n)
	}
	return make([]byte, n), func() {}, nil
}

// Ahead reports whether it is worth connecting before there is anything to carry: by RDMA.
func (c *Carrier) Ahead(protocol string) bool { return protocol == ProtocolRDMA && c.cfg.RDMA != nil }

// Connect makes the connections that transfers with a place may need. By RDMA a byte is read over each, so that they are
// known to be good; for TCP nothing is done.
func (c *Carrier) Connect(ctx context.Context, at Place) error {
	q := request{size: 1, addr: at.Address, opcode: opRead}
	p, _, err := c.peer(ctx, at.Owner, q)
	if err == nil {
		err = p.connect(ctx, q)
	}
	if err != nil {
		c.forget(at.Owner, p)
		return fmt.Errorf("connecting to %s: %w", at.Owner, err)
	}
	return nil
}

var (
	_ transfer.Carrier   = (*Carrier)(nil)
	_ transfer.Connector = (*Carrier)(nil)
)
