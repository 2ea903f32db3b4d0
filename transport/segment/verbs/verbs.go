package verbs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// ErrNotBuilt is returned by a program that was built without the tag rdma.
var ErrNotBuilt = errors.New("this program was built without RDMA: build it with `go build -tags rdma` (needs a C compiler and libibverbs-dev)")

// ErrClosed is returned by what waits for a device that is closed.
var ErrClosed = errors.New("the device is closed")

// Device is an opened device with a protection domain and a completion queue of its own. Its methods may be
// called at the same time, but Next and NextEvent each by one caller only, and Close once, after everything
// made of it is gone.
type Device interface {
	// Limits returns what the device can do.
	Limits() Limits
	// Port describes one of its ports, counted from 1.
	Port(number int) (Port, error)
	// GIDs returns the valid entries of a port's table.
	GIDs(port int) ([]GIDEntry, error)
	// Register makes memory known to the device. The memory must stay where it is until the region is closed.
	Register(at unsafe.Pointer, length uint64, access Access) (Region, error)
	// NewQueuePair makes a queue pair in the state RESET.
	NewQueuePair(q QueueConfig) (QueuePair, error)
	// Next waits until there are completions and returns how many it has stored. spin is how often it looks
	// before it sleeps. It fails with ErrClosed after Shutdown.
	Next(into []Completion, spin int) (int, error)
	// NextEvent waits for what happens to the device. It fails with ErrClosed after Shutdown.
	NextEvent() (Event, error)
	// Shutdown wakes Next and NextEvent for good.
	Shutdown()
	// Close gives the device back. Regions and queue pairs must be closed before.
	Close() error
}

// Region is registered memory.
type Region interface {
	// LKey and RKey are the keys for the own side and for others.
	LKey() uint32
	RKey() uint32
	// Close withdraws it; the device uses the memory no more.
	Close() error
}

// QueuePair is one end of a reliable connection.
type QueuePair interface {
	// Number is what the other end must know.
	Number() uint32
	// Init brings it from RESET to INIT, Connect from there over RTR to RTS.
	Init(port int) error
	Connect(p Path) error
	// Fail brings it into the error state: what has been posted completes, flushed if it wasn't done.
	Fail() error
	// Post posts work in one call and returns how much of it was taken. Each request completes.
	Post(work []Work) (int, error)
	// Close destroys it. The device uses no memory for it any more; completions that were not polled are lost.
	Close() error
}

// Limits of a device.
type Limits struct {
	MaxRegion        uint64 // bytes of one region
	MaxQueuePairs    int
	MaxWork          int // requests of one queue pair
	MaxCompletions   int // entries of a completion queue
	MaxReads         int // outstanding reads, as responder
	MaxReadsAsMaster int // outstanding reads, as initiator
	Ports            int
}

// PortState is the state of a port.
type PortState int

// PortActive is the state of a port that carries data.
const PortActive PortState = 4

// Port of a device.
type Port struct {
	State      PortState
	MTU        int // active, in bytes
	LID        uint16
	InfiniBand bool // else Ethernet
	MaxMessage uint32
}

// GID is the address of a port.
type GID [16]byte

// String writes a GID as sixteen two-digit hexadecimal bytes with colons.
func (g GID) String() string {
	var b strings.Builder
	for i, x := range g {
		if i > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%02x", x)
	}
	return b.String()
}

// ParseGID reads what String writes.
func ParseGID(text string) (g GID, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != len(g) {
		return g, fmt.Errorf("GID %q: it must be 16 hexadecimal bytes joined by colons", text)
	}
	for i, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil || len(b) != 1 {
			return GID{}, fmt.Errorf("GID %q: byte %d is %q, not two hexadecimal digits", text, i, p)
		}
		g[i] = b[0]
	}
	return g, nil
}

// GIDType tells the kinds of GID apart.
type GIDType int

// The types of a GID.
const (
	GIDInfiniBand GIDType = iota
	GIDRoCE1
	GIDRoCE2
)

// GIDEntry is one line of a port's table. Interface is the index of the network device it belongs to, 0 for
// none.
type GIDEntry struct {
	Index     int
	GID       GID
	Type      GIDType
	Interface int
}

// Access says who may do what with a region.
type Access int

// The kinds of access. Others never write to memory that is not Local, too.
const (
	Local           Access = 1
	RemoteWrite     Access = 2
	RemoteRead      Access = 4
	RelaxedOrdering Access = 1 << 20
)

// QueueConfig is the size of a queue pair.
type QueueConfig struct {
	SendWork, ReceiveWork int // requests
	Elements              int // pieces of memory in one request
	Inline                int // bytes
}

// Path is how one queue pair reaches another.
type Path struct {
	Remote       GID
	RemoteLID    uint16
	RemoteNumber uint32
	Port         int // own
	GIDIndex     int // own
	MTU          int // bytes: 256, 512, 1024, 2048 or 4096
	HopLimit     int
	TrafficClass int
	ServiceLevel int
	Reads        int // outstanding, either way
	Timeout      int // 4.096 µs · 2^Timeout until an unanswered packet is sent again
	Retries      int
}

// Opcode is what a request does.
type Opcode uint32

// The operations: one-sided, the other end's program takes no part.
const (
	Write Opcode = 0
	Read  Opcode = 4
)

// Work is one request: Length bytes between the own address and the other side's. A request of no bytes has no
// keys and only shows that the other side answers. The layout is known to the C side.
type Work struct {
	ID            uint64
	Local, Remote uint64
	Length        uint32
	LKey, RKey    uint32
	Opcode        Opcode
}

// Status is how a request has ended.
type Status uint32

// The statuses that are told apart.
const (
	Success          Status = 0
	LocalLength      Status = 1
	LocalOperation   Status = 2
	LocalProtection  Status = 4
	Flushed          Status = 5
	LocalAccess      Status = 8
	RemoteInvalid    Status = 9
	RemoteAccess     Status = 10
	RemoteOperation  Status = 11
	RetriesExhausted Status = 12
)

var statuses = map[Status]string{
	Success: "success", LocalLength: "local length error", LocalOperation: "local operation error",
	LocalProtection: "local protection error", Flushed: "flushed because the queue pair is in the error state",
	LocalAccess: "local access error", RemoteInvalid: "the other side refuses the operation",
	RemoteAccess: "the other side refuses the key or the address", RemoteOperation: "the other side could not do it",
	RetriesExhausted: "the other side does not answer, transport retry counter exceeded",
}

// Error says what a status means.
func (s Status) Error() string {
	if text, ok := statuses[s]; ok {
		return text
	}
	return fmt.Sprintf("status %d of the adapter", uint32(s))
}

// Local reports whether the own side is at fault.
func (s Status) Local() bool {
	return s == LocalLength || s == LocalOperation || s == LocalProtection || s == LocalAccess
}

// Completion is the end of a request. The layout is known to the C side.
type Completion struct {
	ID     uint64
	Status Status
	Queue  uint32 // number of the queue pair
}

// EventKind tells events apart.
type EventKind int

// The events that mean something here; others are EventOther.
const (
	EventOther      EventKind = iota
	EventQueuePair            // a queue pair has failed
	EventPortDown             // also a change of its address
	EventPortActive           //
	EventDevice               // the device or its completion queue has failed
)

// Event is something that happened to a device.
type Event struct {
	Kind  EventKind
	Name  string // what the library calls it
	Port  int
	Queue uint32 // number of the queue pair, if it is about one
}
