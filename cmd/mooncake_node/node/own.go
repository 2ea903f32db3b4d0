package node

import (
	"context"
	"fmt"

	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// own is a carrier that reaches the node's own memory without a network.
type own struct {
	*segment.Carrier
	n *Node
}

// Read fills dst from a place, Write copies src to one.
func (o own) Read(ctx context.Context, from transfer.Place, dst []byte) error {
	b, err := o.n.at(from, len(dst))
	switch {
	case err != nil:
		return err
	case b == nil:
		return o.Carrier.Read(ctx, from, dst)
	}
	copy(dst, b)
	return nil
}

// Write copies src to a place.
func (o own) Write(ctx context.Context, to transfer.Place, src []byte) error {
	b, err := o.n.at(to, len(src))
	switch {
	case err != nil:
		return err
	case b == nil:
		return o.Carrier.Write(ctx, to, src)
	}
	copy(b, src)
	return nil
}

// at returns the node's own memory at a place, nil where the place is somebody else's.
func (n *Node) at(p transfer.Place, size int) ([]byte, error) {
	if p.Owner != n.host.Name() {
		return nil, nil
	}
	for _, m := range n.memory {
		b := m.Bytes()
		if p.Address >= m.Address() && p.Address-m.Address() <= uint64(len(b)) && uint64(size) <= uint64(len(b))-(p.Address-m.Address()) {
			return b[p.Address-m.Address():][:size], nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x are not memory that this node lends", size, p.Address)
}
