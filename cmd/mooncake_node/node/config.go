package node

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// Config says what a node lends, and to whom.
type Config struct {
	Version string // of this program, for its metrics
	// Master is the master's RPC address, host:port. Admin is its admin interface, which drains need; "" is the
	// host of Master with port 9003.
	Master, Admin string
	// Metadata is where the node publishes how it is reached: segment.P2P, or the URL of a store. Cluster sets
	// the names of one cluster apart there.
	Metadata, Cluster string
	// Name is what the node is called, host:port; the host is also the address that others are told, and the port
	// is a part of the name only. "" is the first address of this machine, with the port of the handshakes
	// where there is no metadata store and DefaultPort where there is one.
	Name string
	Bind string // address the node listens on, "" for all

	SegmentBytes uint64        // how much memory is lent
	MaxSegment   uint64        // of which no more than this in one segment; 0 = DefaultMaxSegment
	Pages        segment.Pages // in which it is mapped
	// RDMA says with which devices the memory is lent by RDMA; nil = it is lent by TCP.
	RDMA        *rdma.Options
	DataVersion int // of the TCP data port's protocol that is published, 1 or 2; 0 = 2. Both are served

	HTTP         string        // address of the HTTP interface, host:port; "" = none
	Tasks        int           // copies and moves at a time; 0 = DefaultTasks
	TransferMem  uint64        // most memory for those that pass through this node, in bytes; 0 = DefaultTransferMem
	DrainTimeout time.Duration // how long leaving may take; 0 = leave without moving anything
	NameTimeout  time.Duration // how long to wait for a name that another segment still has

	Now func() time.Time
	Log hclog.Logger
}

// The defaults.
const (
	DefaultPort        = 50052
	DefaultAdminPort   = 9003
	DefaultMaxSegment  = 64 << 30
	DefaultTasks       = 4
	DefaultTransferMem = 64 << 20
)

// segmentAlign is what the size of every segment but the last is a multiple of: the size of a huge page.
const segmentAlign = 2 << 20

// ConfigError is a field of a Config, by its name, that makes no sense.
type ConfigError struct {
	Field string
	Err   error
}

func (e *ConfigError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// complete checks a configuration and fills in what was left out.
func (c *Config) complete() error {
	if _, _, err := splitAddress(c.Master); err != nil {
		return &ConfigError{"Master", fmt.Errorf("%q: %w", c.Master, err)}
	}
	if c.Admin == "" {
		host, _, _ := net.SplitHostPort(c.Master)
		c.Admin = net.JoinHostPort(host, strconv.Itoa(DefaultAdminPort))
	}
	if _, _, err := splitAddress(c.Admin); err != nil {
		return &ConfigError{"Admin", fmt.Errorf("%q: %w", c.Admin, err)}
	}
	if c.Name != "" {
		if _, _, err := splitAddress(c.Name); err != nil {
			return &ConfigError{"Name", fmt.Errorf("%q: %w", c.Name, err)}
		}
	}
	if c.SegmentBytes == 0 {
		return &ConfigError{"SegmentBytes", errors.New("0: a node lends at least one byte")}
	}
	c.MaxSegment = orDefault(c.MaxSegment, DefaultMaxSegment)
	c.TransferMem = orDefault(c.TransferMem, DefaultTransferMem)
	c.Tasks = orDefault(c.Tasks, DefaultTasks)
	if c.SegmentBytes > c.MaxSegment {
		c.MaxSegment = max(c.MaxSegment/segmentAlign, 1) * segmentAlign
	}
	return nil
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// splitAddress takes host:port apart; neither may be missing.
func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil && host != "" && !strings.ContainsAny(host, " /") {
		if port, err = strconv.Atoi(text); err == nil && port > 0 && port <= 65535 {
			return host, port, nil
		}
	}
	return "", 0, errors.New("want host:port, like 10.0.0.6:50052 (an IPv6 address in brackets)")
}

// protocol is how the memory is reached.
func (c *Config) protocol() string {
	if c.RDMA != nil {
		return segment.ProtocolRDMA
	}
	return segment.ProtocolTCP
}

// pieces are the sizes of the segments that so much memory is lent in.
func (c *Config) pieces() []uint64 {
	var sizes []uint64
	for left := c.SegmentBytes; left > 0; {
		n := min(left, c.MaxSegment)
		sizes, left = append(sizes, n), left-n
	}
	return sizes
}

// ownAddress is the first IPv4 address of an interface that is up and not the loopback, else the loopback's.
func ownAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
				return n.IP.String()
			}
		}
	}
	return "127.0.0.1"
}
