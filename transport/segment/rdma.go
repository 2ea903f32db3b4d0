package segment

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// rails is the way to one owner by RDMA, as it was published once. The connections belong to the adapter.
type rails struct {
	adapter   *rdma.Adapter
	peer      *rdma.Peer
	published rdma.PeerConfig // without Dial

	ctx    context.Context // ends when the carrier is closed
	cancel context.CancelFunc
}

// openRails makes the way to an owner. Nothing is connected yet.
func openRails(adapter *rdma.Adapter, metadata Metadata, owner string, d *Descriptor) (*rails, error) {
	name := d.RDMAServerName
	if name == "" {
		name = d.Name
	}
	dialled := name
	if _, asked := metadata.(peers); asked {
		dialled = owner // the descriptor came from there
	}
	published := rdma.PeerConfig{Name: name, Matrix: d.PriorityMatrix}
	for _, dev := range d.Devices {
		published.Devices = append(published.Devices, rdma.Device(dev))
	}
	for _, b := range d.Buffers {
		published.Buffers = append(published.Buffers, rdma.Buffer{Address: b.Addr, Length: b.Length, Place: b.Name, LKeys: b.LKey, RKeys: b.RKey})
	}
	r := &rails{adapter: adapter, published: published}
	dialling := published
	dialling.Dial = func(ctx context.Context, body []byte) ([]byte, error) {
		address, err := metadata.Address(ctx, dialled) // each time: it may have started anew elsewhere
		if err != nil {
			return nil, err
		}
		return call(ctx, address, messageConnection, body)
	}
	var err error
	if r.peer, err = rdma.NewPeer(dialling); err != nil {
		if errors.Is(err, rdma.ErrNoMemory) {
			err = fmt.Errorf("%w: %w", ErrRejected, err)
		}
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

func (r *rails) transfer(ctx context.Context, q request, data []byte) error {
	do := r.adapter.Read
	if q.writes() {
		do = r.adapter.Write
	}
	return r.whileOpen(ctx, func(ctx context.Context) error { return do(ctx, r.peer, q.addr, data) })
}

func (r *rails) connect(ctx context.Context, q request) error {
	return r.whileOpen(ctx, func(ctx context.Context) error { return r.adapter.Connect(ctx, r.peer, q.addr) })
}

// whileOpen does something until the carrier is closed, and says in the words of this package what has failed.
func (r *rails) whileOpen(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(errCarrierClosed) })()
	err := do(ctx)
	if errors.Is(err, rdma.ErrAccess) || errors.Is(err, rdma.ErrNoMemory) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	if err != nil && context.Cause(ctx) == errCarrierClosed {
		return errCarrierClosed
	}
	return err
}

var errCarrierClosed = errors.New("the carrier is closed")

func (r *rails) reaches(_ *Descriptor, q request) bool { return r.peer.Covers(q.addr, q.size) }

func (r *rails) same(other route) bool {
	o, ok := other.(*rails)
	return ok && o.adapter == r.adapter && reflect.DeepEqual(o.published, r.published)
}

func (r *rails) retire() {}
func (r *rails) close()  { r.cancel() }
