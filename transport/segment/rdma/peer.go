package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// ErrNoMemory is returned for places where an owner has lent no memory by RDMA, so that there is no key.
var ErrNoMemory = errors.New("the owner has lent no memory there by RDMA")

// PeerConfig is what an owner has published, and how it is reached.
type PeerConfig struct {
	// Name is what comes before @ in the names of its connections.
	Name string
	// Devices and Matrix as published. Buffers are its memory; those without remote keys can't be reached.
	Devices []Device
	Matrix  map[string][][]string
	Buffers []Buffer
	// Dial sends a message to its handshake port and returns the answer.
	Dial func(ctx context.Context, body []byte) ([]byte, error)
}

// Peer is an owner of memory as it was published once. It holds nothing: another one takes its place when the owner
// has published something else.
type Peer struct {
	name    string
	devices []Device
	paths   []string // by device
	matrix  matrix
	buffers []peerBuffer // by address
	dial    func(ctx context.Context, body []byte) ([]byte, error)
}

// peerBuffer is memory of a peer with a key for each of its devices, and the devices to use for it.
type peerBuffer struct {
	address, length uint64
	rkeys           []uint32
	devices, level  []int
}

// NewPeer returns a peer. It fails if no memory of it can be reached.
func NewPeer(c PeerConfig) (*Peer, error) {
	p := &Peer{name: c.Name, devices: c.Devices, matrix: c.Matrix, dial: c.Dial}
	for _, d := range c.Devices {
		p.paths = append(p.paths, c.Name+"@"+d.Name)
	}
	for _, b := range c.Buffers {
		if len(b.RKeys) == 0 {
			continue
		}
		if len(b.RKeys) != len(c.Devices) {
			return nil, fmt.Errorf("a buffer of %s has %d remote keys for %d devices", c.Name, len(b.RKeys), len(c.Devices))
		}
		to := peerBuffer{address: b.Address, length: b.Length, rkeys: b.RKeys}
		names, level := p.matrix.choices(b.Place)
		for i, name := range names {
			// By name: who counts positions is led astray by a matrix from which a device was taken.
			if at := slices.IndexFunc(c.Devices, func(d Device) bool { return d.Name == name }); at >= 0 {
				to.devices, to.level = append(to.devices, at), append(to.level, level[i])
			}
		}
		if len(to.devices) == 0 {
			return nil, fmt.Errorf("%s has published no device for its memory at %q", c.Name, b.Place)
		}
		p.buffers = append(p.buffers, to)
	}
	if len(p.buffers) == 0 {
		return nil, fmt.Errorf("%s: %w", c.Name, ErrNoMemory)
	}
	sort.Slice(p.buffers, func(i, j int) bool { return p.buffers[i].address < p.buffers[j].address })
	return p, nil
}

// buffer returns the memory at an address, or nil.
func (p *Peer) buffer(address uint64) *peerBuffer {
	i := sort.Search(len(p.buffers), func(i int) bool { return p.buffers[i].address > address }) - 1
	if i < 0 || address-p.buffers[i].address >= p.buffers[i].length {
		return nil
	}
	return &p.buffers[i]
}

// Covers reports whether length bytes at an address can be reached, in one buffer or in several that follow each
// other.
func (p *Peer) Covers(address, length uint64) bool {
	if length == 0 || address+length < address {
		return false
	}
	for length > 0 {
		b := p.buffer(address)
		if b == nil {
			return false
		}
		n := min(length, b.length-(address-b.address))
		address, length = address+n, length-n
	}
	return true
}

// device returns what the peer has published about the device that a path leads to, or nil.
func (p *Peer) device(path string) *Device {
	if i := slices.Index(p.paths, path); i >= 0 {
		return &p.devices[i]
	}
	return nil
}
