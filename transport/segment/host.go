package segment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// HostConfig says how a Host is reached.
type HostConfig struct {
	// Name is what the host is called, host:port; the port is part of the name and nothing else. Without
	// a metadata store the name is the host of Name, with the port of the handshakes.
	Name string
	// Metadata is where it publishes, an address for OpenMetadata; Cluster as there.
	Metadata, Cluster string
	// Bind is the address it listens on, "" for all. Advertise is the host that others are told, "" for
	// the host of Name.
	Bind, Advertise string
	// DataVersion is the version of the TCP data port's protocol that it says it speaks, 1 or 2; 0 = 2. It
	// serves both.
	DataVersion int
	// RDMA makes the host lend its memory by RDMA, and by nothing else; nil = it lends by TCP. The adapter stays
	// the caller's, to be closed after the host.
	RDMA *rdma.Adapter
	// Now tells the time.
	Now func() time.Time
}

// Host lends memory to whoever knows where it is. It exposes what has been registered and nothing else.
type Host struct {
	name, host string
	address    string // of the handshakes
	p2p        bool
	version    int
	metadata   Metadata
	lender     lender
	handshakes *handshakes

	publishing sync.Mutex // one publication at a time, the newest last
	mu         sync.Mutex
	regions    []*region
	closed     bool
}

// NewHost listens and makes itself known. ctx bounds the calls to the metadata store.
func NewHost(ctx context.Context, cfg HostConfig) (_ *Host, err error) {
	own, _, err := net.SplitHostPort(cfg.Name)
	if err != nil || own == "" {
		return nil, fmt.Errorf("name %q of a host must be host:port", cfg.Name)
	}
	if cfg.DataVersion == 0 {
		cfg.DataVersion = newestDataVersion
	}
	h := &Host{name: cfg.Name, host: cfg.Advertise, p2p: cfg.Metadata == P2P, version: cfg.DataVersion}
	if h.host == "" {
		h.host = own
	}
	if h.metadata, err = OpenMetadata(cfg.Metadata, cfg.Cluster, cfg.Now); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.metadata.Close()
		}
	}()
	listener, err := net.Listen("tcp", net.JoinHostPort(cfg.Bind, "0"))
	if err != nil {
		return nil, err
	}
	h.handshakes = &handshakes{listener: listener, now: cfg.Now, conns: make(map[net.Conn]bool)}
	h.address = net.JoinHostPort(h.host, strconv.Itoa(port(listener)))
	if h.p2p {
		h.name = net.JoinHostPort(own, strconv.Itoa(port(listener)))
		h.handshakes.descriptor = func() []byte { return h.descriptor().encode(cfg.Now()) }
	}
	h.publishing.Lock() // an adapter may want to have its host published anew at once
	if cfg.RDMA != nil {
		h.lender, err = h.lendByRDMA(cfg.RDMA)
	} else {
		h.lender, err = lendByTCP(cfg)
	}
	h.publishing.Unlock()
	if err != nil {
		listener.Close()
		return nil, err
	}
	h.handshakes.connect = h.lender.connect
	h.handshakes.wg.Add(1)
	go h.handshakes.serve()
	if err = h.Publish(ctx); err != nil {
		h.handshakes.stop()
		h.lender.stop()
		return nil, err
	}
	return h, nil
}

// lender is one protocol's way to lend memory.
type lender interface {
	// add lends a region; remove takes it back and returns when nobody uses it any more.
	add(r *region) error
	remove(r *region) error
	// describe adds to a descriptor what others must know.
	describe(d *Descriptor, all []*region)
	// connect answers a message of the handshake port.
	connect(body []byte) []byte
	stop()
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// Name returns what others call the host: what goes into a replica's endpoint.
func (h *Host) Name() string { return h.name }

// Register lends memory, which must stay where it is until Unregister has returned. When it fails with a
// *PublishError the memory is lent all the same.
func (h *Host) Register(ctx context.Context, m *Memory) error {
	r := newRegion(Buffer{Addr: m.Address(), Length: uint64(len(m.bytes)), Name: h.name}, m.bytes)
	if err := h.lender.add(r); err != nil {
		return err
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errors.Join(net.ErrClosed, h.lender.remove(r))
	}
	h.regions = append(h.regions, r)
	h.mu.Unlock()
	return h.publish(ctx)
}

// Unregister takes memory back. When it returns nobody uses it any more, whether or not the store could
// be told.
func (h *Host) Unregister(ctx context.Context, m *Memory) error {
	h.mu.Lock()
	var r *region
	for i, other := range h.regions {
		if other.Addr == m.Address() {
			r = other
			h.regions = append(h.regions[:i:i], h.regions[i+1:]...)
			break
		}
	}
	h.mu.Unlock()
	if r == nil {
		return errors.New("this memory is not registered")
	}
	err := h.publish(ctx)
	return errors.Join(err, h.lender.remove(r))
}

// descriptor is what the host publishes now.
func (h *Host) descriptor() *Descriptor {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := &Descriptor{Name: h.name, DataHost: h.host, DataVersion: h.version}
	h.lender.describe(d, h.regions)
	return d
}

// PublishError is returned when the host does what it should and the metadata store could not be told: others
// may not find it until Publish has succeeded.
type PublishError struct{ Err error }

// Error says what the store said.
func (e *PublishError) Error() string { return "metadata: " + e.Err.Error() }

// Unwrap returns that.
func (e *PublishError) Unwrap() error { return e.Err }

// Publish makes the host known, once more: for a store that has lost what it knew. It fails with a
// *PublishError.
func (h *Host) Publish(ctx context.Context) error {
	h.publishing.Lock()
	defer h.publishing.Unlock()
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	if err := h.metadata.Announce(ctx, h.name, h.address); err != nil {
		return &PublishError{err}
	}
	return h.describe(ctx)
}

func (h *Host) publish(ctx context.Context) error {
	h.publishing.Lock()
	defer h.publishing.Unlock()
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed { // what is withdrawn stays so
		return net.ErrClosed
	}
	return h.describe(ctx)
}

// describe publishes the descriptor; publishing is held.
func (h *Host) describe(ctx context.Context) error {
	if err := h.metadata.Publish(ctx, h.descriptor()); err != nil {
		return &PublishError{err}
	}
	return nil
}

// Close takes everything back and stops listening.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	regions := h.regions
	h.regions = nil
	h.mu.Unlock()
	h.publishing.Lock()
	err := h.metadata.Withdraw(ctx, h.name, h.address)
	h.publishing.Unlock()
	h.handshakes.stop()
	for _, r := range regions {
		err = errors.Join(err, h.lender.remove(r))
	}
	h.lender.stop()
	return errors.Join(err, h.metadata.Close())
}
