package segment

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Buffer is one piece of memory that its owner has registered: Length bytes at the absolute address Addr of
// the owner's process. The keys are those of RDMA, one for each device; a buffer without remote keys can't
// be a target of RDMA.
type Buffer struct {
	Addr   uint64   `json:"addr"`
	Length uint64   `json:"length"`
	Name   string   `json:"name"`
	LKey   []uint32 `json:"lkey,omitempty"`
	RKey   []uint32 `json:"rkey,omitempty"`
}

// contains reports whether size bytes at an address lie within the buffer; none do.
func (b *Buffer) contains(addr, size uint64) bool {
	return size > 0 && addr >= b.Addr && size <= b.Length && addr-b.Addr <= b.Length-size
}

// Device is one network interface for RDMA. GID is 16 two-digit hexadecimal bytes joined by colons.
type Device struct {
	Name string `json:"name"`
	LID  uint16 `json:"lid"`
	GID  string `json:"gid"`
}

// The protocols of a descriptor.
const (
	ProtocolTCP  = "tcp"
	ProtocolRDMA = "rdma"
)

// Descriptor is what an owner of memory publishes about it. Fields that a protocol has no use for are
// zero.
type Descriptor struct {
	Name      string    `json:"name"`
	Protocol  protocols `json:"protocol"`
	Buffers   []Buffer  `json:"buffers"`
	Timestamp string    `json:"timestamp,omitempty"`

	Devices []Device `json:"devices,omitempty"`
	// PriorityMatrix says for each place of memory which devices are preferred, and which others there
	// are.
	PriorityMatrix map[string][][]string `json:"priority_matrix,omitempty"`
	RDMAServerName string                `json:"rdma_server_name,omitempty"` // replaces Name in the names of connections

	DataHost    string `json:"tcp_data_host,omitempty"` // "" means the host of the handshake address
	DataPort    int    `json:"tcp_data_port,omitempty"`
	DataVersion int    `json:"tcp_proto_version,omitempty"` // 0 means 1
}

// protocols is one name, or several where an owner has buffers of different kinds.
type protocols []string

// UnmarshalJSON takes a string or a list of strings.
func (p *protocols) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*p = protocols{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(p))
}

// MarshalJSON writes one name as a string.
func (p protocols) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		return json.Marshal(p[0])
	}
	return json.Marshal([]string(p))
}

// Speaks reports whether the owner can be reached by a protocol.
func (d *Descriptor) Speaks(protocol string) bool {
	for _, p := range d.Protocol {
		if p == protocol {
			return true
		}
	}
	return false
}

// ParseDescriptor reads what somebody has published. It fails when a name, an address or a length is
// missing, and when keys and devices don't match.
func ParseDescriptor(text []byte) (*Descriptor, error) {
	d := new(Descriptor)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("segment descriptor: %w", err)
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("segment descriptor of %q: %w", d.Name, err)
	}
	return d, nil
}

func (d *Descriptor) validate() error {
	if d.Name == "" {
		return errors.New("it has no name")
	}
	if len(d.Protocol) == 0 || d.Protocol[0] == "" {
		return errors.New("it has no protocol")
	}
	for i := range d.Buffers {
		b := &d.Buffers[i]
		switch {
		case b.Addr == 0 || b.Length == 0 || b.Name == "":
			return fmt.Errorf("buffer %d has address %#x, length %d, name %q: none may be empty", i, b.Addr, b.Length, b.Name)
		case b.Addr+b.Length < b.Addr:
			return fmt.Errorf("buffer %d, %d bytes at %#x, goes beyond the end of memory", i, b.Length, b.Addr)
		case len(b.RKey) > 0 && (len(b.RKey) != len(b.LKey) || len(b.RKey) != len(d.Devices)):
			return fmt.Errorf("buffer %d has %d remote and %d local keys for %d devices", i, len(b.RKey), len(b.LKey), len(d.Devices))
		}
	}
	for _, dev := range d.Devices {
		if dev.Name == "" || dev.GID == "" {
			return fmt.Errorf("device %q has GID %q: neither may be empty", dev.Name, dev.GID)
		}
	}
	if d.DataPort < 0 || d.DataPort > 65535 {
		return fmt.Errorf("data port %d is none", d.DataPort)
	}
	return nil
}

// find returns the buffer that size bytes at an address lie in, or nil.
func (d *Descriptor) find(addr, size uint64) *Buffer {
	for i := range d.Buffers {
		if d.Buffers[i].contains(addr, size) {
			return &d.Buffers[i]
		}
	}
	return nil
}

// encode returns the descriptor as it is published at an instant.
func (d *Descriptor) encode(now time.Time) []byte {
	c := *d
	c.Timestamp = now.Format("2006-01-02 15:04:05.000000")
	if c.Buffers == nil {
		c.Buffers = []Buffer{}
	}
	text, err := json.Marshal(&c)
	if err != nil {
		panic(err) // strings and numbers always can be written
	}
	return text
}
