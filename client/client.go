package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// Config says which pool a client works with. Master and Metadata are needed.
type Config struct {
	// Master is host:port of the master's RPC, or several of them set apart by commas, of which one serves: they
	// are tried in turn until one is reached.
	Master string
	// Metadata is where owners of memory publish how they are reached: an address for segment.OpenMetadata, such as
	// segment.P2P or the URL of a metadata store; Cluster sets the names of one cluster apart there, usually it is "".
	Metadata, Cluster string
	// Tenant is whose objects the client puts and gets; "" is the tenant "default".
	Tenant string
	// HostID names the machine to masters that place values near their writers; "" = none.
	HostID string
	// SharedFolder is where this machine has the file system that clients share when the master was given
	// --root_fs_dir: the same path as there. Values are then kept on it as well, and read from it when they are not in
	// memory any more. "" = this client doesn't use it.
	SharedFolder string

	Lanes       int // most connections to one owner of memory; 0 = segment.DefaultLanes
	Connections int // most connections to the master; 0 = DefaultConnections
	Parallel    int // most values of a batch under way at a time; 0 = DefaultParallel

	// CallTimeout is how long the master may take to answer a call, whatever the context allows; 0 =
	// DefaultCallTimeout.
	CallTimeout time.Duration
	// WriteTimeout is how long a write may take in all. It must be shorter than --put_start_release_timeout_sec
	// of the master, after which the memory may be another value's; 0 = DefaultWriteTimeout.
	WriteTimeout time.Duration

	// Checksum gives every value a checksum, as the option of that name does for one. Values that have one are
	// compared with it when they are read, whoever wrote them, unless SkipVerification is set.
	Checksum, SkipVerification bool

	// RDMA reaches owners of memory that speak RDMA, see rdma.Open; nil = owners that speak TCP are the only ones
	// that can be reached. It stays the caller's, who closes it after the client.
	RDMA *rdma.Adapter
	// DataVersion is the newest version of the protocol of TCP data ports to speak, 1 or 2; 0 = 2.
	DataVersion int
}

// The values of a Config that are not given.
const (
	DefaultConnections  = 4
	DefaultParallel     = 16
	DefaultCallTimeout  = 30 * time.Second
	DefaultWriteTimeout = 5 * time.Minute
)

// setDefaults completes a configuration.
func (cfg *Config) setDefaults() {
	if cfg.Tenant == "" {
		cfg.Tenant = "default"
	}
	if cfg.Connections <= 0 {
		cfg.Connections = DefaultConnections
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = DefaultParallel
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = DefaultCallTimeout
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = DefaultWriteTimeout
	}
}

// carrier is what the bytes of values go through.
type carrier interface {
	transfer.Carrier
	Close()
}

// Client is a connection to a pool. It is safe for concurrent use.
type Client struct {
	cfg      Config
	id       core.UUID
	masters  *masters
	metadata segment.Metadata
	carrier  carrier

	mu         sync.Mutex // guards the following
	closed     bool
	writing    map[string]int // writes under way, by their keys
	undoing    int            // starts of writes whose callers have gone: to be taken back once they are known
	undone     chan struct{}  // closed when there are none any more; nil until Close waits for that
	background sync.WaitGroup // what goes on after its caller has gone
}

// Dial connects to a master and agrees with it on the version.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg.setDefaults()
	masters, err := newMasters(cfg.Master, cfg.Connections)
	if err != nil {
		return nil, err
	}
	metadata, err := segment.OpenMetadata(cfg.Metadata, cfg.Cluster, time.Now)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, id: newID(), masters: masters, metadata: metadata, writing: make(map[string]int),
		carrier: segment.NewCarrier(segment.CarrierConfig{Metadata: metadata, Lanes: cfg.Lanes, Now: time.Now, DataVersion: cfg.DataVersion, RDMA: cfg.RDMA}),
	}
	reaching, cancel := context.WithTimeout(ctx, cfg.CallTimeout)
	defer cancel()
	l, err := masters.take(reaching)
	if err != nil {
		c.Close()
		return nil, err
	}
	masters.give(l, true)
	return c, nil
}

// newID returns a random identity.
func newID() core.UUID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return core.UUID{First: binary.LittleEndian.Uint64(b[:8]), Second: binary.LittleEndian.Uint64(b[8:])}
}

// ErrClosed is returned for calls on a client after Close.
var ErrClosed = errors.New("the client is closed")

// Close ends all connections and waits for what goes on in the background. Calls under way fail. Writes that were given up
// while they began are taken back before, if the master answers within five seconds.
func (c *Client) Close() error {
	c.awaitUndone()
	c.masters.close()
	c.carrier.Close()
	c.background.Wait()
	return c.metadata.Close()
}

// awaitUndone lets nothing begin any more and waits for what is being taken back.
func (c *Client) awaitUndone() {
	c.mu.Lock()
	c.closed = true
	if c.undone == nil {
		c.undone = make(chan struct{})
		if c.undoing == 0 {
			close(c.undone)
		}
	}
	undone := c.undone
	c.mu.Unlock()
	late := time.NewTimer(revokeTimeout)
	defer late.Stop()
	select {
	case <-undone:
	case <-late.C:
	}
}

// undo counts a write that is to be taken back, or with -1 one that has been.
func (c *Client) undo(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.undoing += n; c.undoing > 0 || c.undone == nil {
		return
	}
	select {
	case <-c.undone: // before, and then another caller went
	default:
		close(c.undone)
	}
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// detach runs f in the background, unless the client is closed.
func (c *Client) detach(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.background.Go(f)
	return true
}

// refused makes an error of a code.
func refused(what, key string, code errcode.Code) error {
	if code == errcode.OK {
		return nil
	}
	return fmt.Errorf("%s %q: %w", what, key, code)
}
