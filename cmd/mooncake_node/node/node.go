package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// Node lends memory to a pool.
type Node struct {
	cfg      Config
	id       core.UUID
	link     link
	metadata segment.Metadata
	carrier  *segment.Carrier
	adapter  *rdma.Adapter // nil without RDMA
	memory   []*segment.Memory
	listener net.Listener // of the HTTP interface, nil without one

	host     *segment.Host // set once the host is open
	segments []core.Info   // what is mounted, set with host
	name     string        // of the segments, set with host

	counters counters
	leaving  atomic.Bool
	mounted  chan struct{} // closed when the memory has been lent for the first time
}

// What New fails with, beside a configuration that makes no sense.
var (
	ErrHTTP    = errors.New("the HTTP interface can't be opened")
	ErrMemory  = errors.New("there is no memory to lend")
	ErrDevices = errors.New("there are no devices for RDMA")
)

// LeastTransferMem is the least Config.TransferMem for so many tasks at a time, in bytes.
func LeastTransferMem(tasks int) int { return transfer.LeastMemory(tasks) }

// New makes a node: its memory is there and its HTTP interface is bound when it returns. Run serves it.
func New(cfg Config) (_ *Node, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, id: newID(), link: link{address: cfg.Master}, mounted: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.free())
		}
	}()
	if n.metadata, err = segment.OpenMetadata(cfg.Metadata, cfg.Cluster, cfg.Now); err != nil {
		return nil, &ConfigError{"Metadata", err}
	}
	if cfg.RDMA != nil {
		if n.adapter, err = rdma.Open(*cfg.RDMA); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDevices, err)
		}
	}
	if cfg.HTTP != "" {
		if n.listener, err = net.Listen("tcp", cfg.HTTP); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrHTTP, err)
		}
	}
	for _, size := range cfg.pieces() {
		m, err := n.newMemory(size)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMemory, err)
		}
		n.memory = append(n.memory, m)
	}
	n.carrier = n.newCarrier()
	return n, nil
}

// newID returns a random identity.
func newID() core.UUID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return core.UUID{First: binary.LittleEndian.Uint64(b[:8]), Second: binary.LittleEndian.Uint64(b[8:])}
}

// Discard gives back what a node has that Run will not be called for.
func (n *Node) Discard() error {
	n.carrier.Close()
	n.link.close()
	return n.free()
}

// free gives back what New has opened, but for the carrier.
func (n *Node) free() error {
	var errs []error
	if n.metadata != nil {
		errs = append(errs, n.metadata.Close())
	}
	if n.adapter != nil {
		errs = append(errs, n.adapter.Close())
	}
	for _, m := range n.memory {
		errs = append(errs, m.Free())
	}
	n.memory = nil
	if n.listener != nil {
		if err := n.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// HTTPAddr returns where the HTTP interface listens, nil without one.
func (n *Node) HTTPAddr() net.Addr {
	if n.listener == nil {
		return nil
	}
	return n.listener.Addr()
}

// Mounted is closed when the node's memory is part of the pool for the first time.
func (n *Node) Mounted() <-chan struct{} { return n.mounted }

// Name returns what the node's segments are called, once Mounted is closed.
func (n *Node) Name() string { return n.name }

// Endpoint returns what replicas on the node have as their endpoint, once Mounted is closed.
func (n *Node) Endpoint() string { return n.host.Name() }

// leaveTimeout bounds what a node does last: telling master and metadata store that it goes.
const leaveTimeout = 5 * time.Second

// Run lends the memory until stop is closed, then moves what is on it to others, within the DrainTimeout, takes
// the memory out of the pool and returns nil. When ctx ends it leaves at once. Nothing of the node is
// left when it returns; what it returns otherwise is why the memory could not be lent.
func (n *Node) Run(ctx context.Context, stop <-chan struct{}) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { err = errors.Join(err, n.Discard()) }()
	var serving sync.WaitGroup
	if n.listener != nil {
		server := n.newServer()
		serving.Go(func() {
			if err := server.Serve(n.listener); err != nil && !errors.Is(err, errServerClosed) {
				n.cfg.Log.Error("the HTTP interface has ended", "error", err)
			}
		})
		defer func() {
			server.Close()
			serving.Wait()
		}()
	}

	// stop counts while the node is still waiting for a master, too.
	joining, abandon := context.WithCancel(ctx)
	defer abandon()
	joined := make(chan error, 1)
	go func() { joined <- n.join(joining) }()
	select {
	case err = <-joined:
	case <-stop:
		abandon()
		err = <-joined
	}
	if err != nil {
		n.leave(ctx)
		if joining.Err() != nil {
			return nil // asked to stop before it had begun
		}
		return err
	}
	close(n.mounted)
	n.cfg.Log.Info("memory is lent", "segment", n.name, "endpoint", n.host.Name(), "bytes", n.cfg.SegmentBytes, "segments", len(n.segments), "protocol", n.cfg.protocol(), "master", n.cfg.Master)

	loops, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { n.keepAlive(loops) })
	wg.Go(func() { n.keepPublished(loops) })
	wg.Go(func() { n.work(loops) })
	select {
	case <-stop:
		n.drain(ctx)
	case <-ctx.Done():
		n.cfg.Log.Warn("leaving at once: what is on this node is lost")
	}
	end()
	wg.Wait()
	n.leave(ctx)
	return nil
}

// newCarrier makes what moves bytes for tasks.
func (n *Node) newCarrier() *segment.Carrier {
	return segment.NewCarrier(segment.CarrierConfig{Metadata: n.metadata, RDMA: n.adapter, Now: n.cfg.Now})
}

// newMemory maps memory to lend.
func (n *Node) newMemory(size uint64) (*segment.Memory, error) {
	if size > 1<<62 {
		return nil, errors.New(strconv.FormatUint(size, 10) + " bytes are more than a process can have")
	}
	m, err := segment.NewMemoryIn(n.cfg.Pages, int(size))
	if err == nil && m.Fallback() != nil {
		n.cfg.Log.Warn("the memory is in smaller pages than asked for", "error", m.Fallback())
	}
	return m, err
}
