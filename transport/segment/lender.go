package segment

import (
	"context"
	"encoding/json"
	"net"
	"sync"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// tcpLender lends memory by a data port.
type tcpLender struct{ port *dataPort }

func lendByTCP(cfg HostConfig) (lender, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(cfg.Bind, "0"))
	if err != nil {
		return nil, err
	}
	l := tcpLender{newDataPort(listener, cfg.Now)}
	l.port.wg.Add(1)
	go l.port.serve()
	return l, nil
}

func (l tcpLender) add(r *region) error {
	l.port.add(r)
	return nil
}

func (l tcpLender) remove(r *region) error {
	l.port.remove(r)
	return nil
}

func (l tcpLender) describe(d *Descriptor, all []*region) {
	d.Protocol, d.DataPort = protocols{ProtocolTCP}, port(l.port.listener)
	for _, r := range all {
		d.Buffers = append(d.Buffers, r.Buffer)
	}
}

// connect refuses those who want an RDMA connection.
func (tcpLender) connect([]byte) []byte {
	reply, _ := json.Marshal(map[string]any{"reply_msg": "this host speaks TCP only", "qp_num": []int{}})
	return reply
}

func (l tcpLender) stop() { l.port.stop() }

// rdmaLender lends memory by RDMA.
type rdmaLender struct {
	adapter *rdma.Adapter
	leave   func()

	ctx     context.Context // ends with the host
	cancel  context.CancelFunc
	changed chan struct{}
	wg      sync.WaitGroup
}

// lendByRDMA makes an adapter serve the host. When other devices are to be published, because a port is down or up,
// the host is published anew.
func (h *Host) lendByRDMA(adapter *rdma.Adapter) (lender, error) {
	l := &rdmaLender{adapter: adapter, changed: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	l.leave, err = adapter.Serve(rdma.Service{
		Name: h.name,
		Changed: func() {
			select {
			case l.changed <- struct{}{}:
			default: // it will be noticed with the one before
			}
		},
		Devices: h.devicesOf,
	})
	if err != nil {
		return nil, err
	}
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		for {
			select {
			case <-l.ctx.Done():
				return
			case <-l.changed:
				h.publish(l.ctx) // who mounts and pings publishes again when the store can't be reached now
			}
		}
	}()
	return l, nil
}

// devicesOf returns what an owner has published about its devices.
func (h *Host) devicesOf(ctx context.Context, owner string) (all []rdma.Device, err error) {
	d, err := h.metadata.Descriptor(ctx, owner)
	if err != nil {
		return nil, err
	}
	for _, dev := range d.Devices {
		all = append(all, rdma.Device(dev))
	}
	return all, nil
}

func (l *rdmaLender) add(r *region) (err error) {
	r.rails, err = l.adapter.Register(r.bytes, true)
	return err
}

func (l *rdmaLender) remove(r *region) error { return r.rails.Close() }

func (l *rdmaLender) describe(d *Descriptor, all []*region) {
	d.Protocol, d.DataHost, d.DataVersion = protocols{ProtocolRDMA}, "", 1
	var lent []*rdma.Region
	for _, r := range all {
		lent = append(lent, r.rails)
	}
	devices, matrix, buffers := l.adapter.Published(lent)
	d.PriorityMatrix = matrix
	for _, dev := range devices {
		d.Devices = append(d.Devices, Device(dev))
	}
	for _, b := range buffers {
		d.Buffers = append(d.Buffers, Buffer{Addr: b.Address, Length: b.Length, Name: b.Place, LKey: b.LKeys, RKey: b.RKeys})
	}
}

func (l *rdmaLender) connect(body []byte) []byte {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	return l.adapter.Answer(ctx, body)
}

func (l *rdmaLender) stop() {
	l.cancel()
	l.wg.Wait()
	l.leave()
}
