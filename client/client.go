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
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Config says which pool a client works with.
type Config struct {
	Master string // host:port of the master's RPC
	// Metadata is where owners of memory publish how they are reached: segment.P2P, or the URL of a
	// metadata store; Cluster sets the names of one cluster apart there, usually it is "".
	Metadata, Cluster string
	Tenant            string // whose objects; "" is the tenant "default" where tenants are off
	Lanes             int    // most connections to one owner of memory; 0 = segment.DefaultLanes
}

// protocolVersion is the version of the store protocol, which master and client must agree on.
const protocolVersion = "2.0.0"

// ErrVersion is returned when the master speaks another version of the store protocol.
var ErrVersion = errors.New("the master speaks another version of the store protocol")

// Client is a connection to a pool.
type Client struct {
	cfg     Config
	id      core.UUID
	carrier *segment.Carrier

	mu     sync.Mutex // guards conn and closed
	conn   *rpc.Client
	closed bool
}

// Dial connects to a master and agrees with it on the version.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	metadata, err := segment.OpenMetadata(cfg.Metadata, cfg.Cluster, time.Now)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, id: newID(), carrier: segment.NewCarrier(segment.CarrierConfig{Metadata: metadata, Lanes: cfg.Lanes, Now: time.Now})}
	if err := c.agree(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// agree asks for the master's version.
func (c *Client) agree(ctx context.Context) error {
	var ready errcode.Result[string]
	if err := call(ctx, c, wire.ServiceReady, &wire.ServiceReadyRequest{}, &ready); err != nil {
		return err
	}
	if ready.Value != protocolVersion {
		return fmt.Errorf("%w: %q (%w), this client %q", ErrVersion, ready.Value, ready.Code, protocolVersion)
	}
	return nil
}

// newID returns a random identity.
func newID() core.UUID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return core.UUID{First: binary.LittleEndian.Uint64(b[:8]), Second: binary.LittleEndian.Uint64(b[8:])}
}

// Close ends all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	conn := c.conn
	c.conn, c.closed = nil, true
	c.mu.Unlock()
	c.carrier.Close()
	if conn != nil {
		return conn.Close()
	}
	return nil
}

// ErrClosed is returned for calls on a client after Close.
var ErrClosed = errors.New("the client is closed")

// connection returns the connection to the master, made anew if there is none.
func (c *Client) connection(ctx context.Context) (*rpc.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.conn == nil {
		conn, err := rpc.Dial(ctx, c.cfg.Master)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	return c.conn, nil
}

// drop forgets a connection that has failed.
func (c *Client) drop(conn *rpc.Client) {
	c.mu.Lock()
	if c.conn == conn {
		c.conn = nil
	}
	c.mu.Unlock()
	conn.Close()
}

// call makes one call to the master. A connection that fails is not used again.
func call[Req, Resp any](ctx context.Context, c *Client, r *wire.RPC[Req, Resp], req *Req, resp *Resp) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	err = rpc.Invoke(ctx, conn, r, req, resp)
	var reply *rpc.ReplyError
	if err != nil && ctx.Err() == nil && !errors.As(err, &reply) {
		c.drop(conn)
	}
	return err
}

// refused makes an error of a code.
func refused(what, key string, code errcode.Code) error {
	if code == errcode.OK {
		return nil
	}
	return fmt.Errorf("%s %q: %w", what, key, code)
}
