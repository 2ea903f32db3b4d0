package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// endpoint is the connection between a device here and one there. Who has it dropped never uses it again: another one
// takes its place.
type endpoint struct {
	nic    *nic
	path   string // of the other side: name@device
	queues []*queue

	// The following is guarded by nic.connecting.
	made    bool     // the queue pairs exist
	numbers []uint32 // of the own queue pairs
	peer    []uint32 // of the other side's, nil until they are connected to

	// The following is guarded by nic.mu.
	active   bool               // this side makes the connection
	joined   bool               // both sides know each other's queue pairs
	cancel   context.CancelFunc // of the handshake of the active side
	ready    bool               // slices are posted
	broken   error              // why it was dropped
	since    time.Time
	alive    bool // something has succeeded since the last probe
	used     time.Time
	inFlight int
	drained  chan struct{} // closed when it is broken and nothing is in flight
	turn     int
}

// queue is one queue pair and what waits for it.
type queue struct {
	endpoint    *endpoint
	qp          verbs.QueuePair
	first, last *slice // a chain
	posted      int
	waiting     bool // in the backlog
}

// Reasons for the end of an endpoint that say nothing about the way: what was under way is tried again at once.
var (
	errRenamed  = errors.New("this process has taken another name")
	errReplaced = errors.New("the other side has made the connection anew")
	errGivenUp  = errors.New("a transfer over the same connection was given up")
	errSpoiled  = errors.New("another transfer over the same connection was refused")
	errPortDown = errors.New("the port is down")
)

// innocent reports whether an error says nothing about the way that was taken.
func innocent(err error) bool {
	return errors.Is(err, errRenamed) || errors.Is(err, errReplaced) || errors.Is(err, errGivenUp) || errors.Is(err, errSpoiled) || errors.Is(err, errPortDown)
}

// because names the way in an error.
func (ep *endpoint) because(err error) error {
	return fmt.Errorf("RDMA from %s to %s: %w", ep.nic.name, ep.path, err)
}

// newEndpoint makes an endpoint without queue pairs and puts it in its place. n.mu is held.
func (n *nic) newEndpoint(path string) *endpoint {
	now := n.a.o.Now()
	ep := &endpoint{nic: n, path: path, since: now, used: now, drained: make(chan struct{})}
	for range n.a.o.QueuePairs {
		ep.queues = append(ep.queues, &queue{endpoint: ep})
	}
	n.endpoints[path] = ep
	return ep
}

// to returns the endpoint to a path, which is made and connected if there is none. n.mu is held.
func (n *nic) to(path string, p *Peer) (*endpoint, error) {
	if ep := n.endpoints[path]; ep != nil {
		return ep, nil
	}
	if !n.active {
		return nil, fmt.Errorf("RDMA device %s: its port is down", n.name)
	}
	if err := n.makeRoom(); err != nil {
		return nil, err
	}
	if !n.a.begin() {
		return nil, ErrClosed
	}
	ep := n.newEndpoint(path)
	ctx, cancel := context.WithTimeout(n.a.base, n.a.o.HandshakeTimeout)
	ep.active, ep.cancel = true, cancel
	go func() {
		defer n.a.end()
		defer cancel()
		if err := ep.connect(ctx, p); err != nil {
			n.mu.Lock()
			n.drop(ep, ep.because(err))
			n.unlock()
		}
	}()
	return ep, nil
}

// makeRoom drops the endpoint that was used least lately if there are too many. n.mu is held.
func (n *nic) makeRoom() error {
	if len(n.endpoints)+n.breaking < n.a.o.Endpoints {
		return nil
	}
	var oldest *endpoint
	for _, ep := range n.endpoints {
		if ep.inFlight == 0 && (oldest == nil || ep.used.Before(oldest.used)) && ep.idle() {
			oldest = ep
		}
	}
	if oldest == nil || n.breaking > 0 {
		return fmt.Errorf("RDMA device %s has %d endpoints, all in use (MC_MAX_EP_PER_CTX)", n.name, n.a.o.Endpoints)
	}
	n.drop(oldest, errors.New("it made room for another one"))
	return nil
}

// idle reports whether nothing waits for the endpoint. nic.mu is held.
func (ep *endpoint) idle() bool {
	return !slices.ContainsFunc(ep.queues, func(q *queue) bool { return q.first != nil })
}

// prepare makes the queue pairs, if they aren't there yet, up to INIT. nic.connecting is held.
func (ep *endpoint) prepare() error {
	n := ep.nic
	n.mu.Lock()
	broken := ep.broken
	n.mu.Unlock()
	if broken != nil {
		return broken
	}
	if ep.made {
		return nil
	}
	ep.made = true
	for _, q := range ep.queues {
		qp, err := n.dev.NewQueuePair(verbs.QueueConfig{SendWork: n.depth, ReceiveWork: 1, Elements: 4, Inline: 64})
		if err != nil {
			return err
		}
		n.mu.Lock()
		q.qp = qp
		n.queuePairs++
		n.mu.Unlock()
		ep.numbers = append(ep.numbers, qp.Number())
		if err := qp.Init(n.a.o.Port); err != nil {
			return err
		}
	}
	return nil
}

// join connects the queue pairs to those of the other side, up to RTS. nic.connecting is held.
func (ep *endpoint) join(gid verbs.GID, lid uint16, numbers []uint32) error {
	n := ep.nic
	for i, q := range ep.queues {
		err := q.qp.Connect(verbs.Path{
			Remote: gid, RemoteLID: lid, RemoteNumber: numbers[i],
			Port: n.a.o.Port, GIDIndex: n.gid.Index, MTU: n.mtu, HopLimit: 16,
			TrafficClass: n.a.o.TrafficClass, ServiceLevel: n.a.o.ServiceLevel,
			Reads: n.reads, Timeout: 14, Retries: 7,
		})
		if err != nil {
			return err
		}
	}
	ep.peer = slices.Clone(numbers)
	n.mu.Lock()
	ep.joined = true
	n.mu.Unlock()
	return nil
}

// open lets slices be posted.
func (ep *endpoint) open() {
	n := ep.nic
	n.mu.Lock()
	if ep.broken == nil && !ep.ready {
		ep.ready = true
		ep.since = n.a.o.Now()
		for _, q := range ep.queues {
			n.post(q)
		}
	}
	n.unlock()
}

// drop ends an endpoint: what waits for it fails, what is under way is flushed, and its queue pairs go when that has
// come back. n.mu is held.
func (n *nic) drop(ep *endpoint, why error) {
	if ep.broken != nil {
		return
	}
	ep.broken, ep.ready = why, false
	if ep.cancel != nil {
		ep.cancel()
	}
	if n.endpoints[ep.path] == ep {
		delete(n.endpoints, ep.path)
	}
	if ep.inFlight == 0 {
		close(ep.drained)
	}
	for _, q := range ep.queues {
		for s := q.first; s != nil; {
			next := s.next
			n.finish(s, why)
			s = next
		}
		q.first, q.last = nil, nil
	}
	if !innocent(why) {
		n.a.o.Log.Debug("RDMA endpoint ends", "device", n.name, "peer", ep.path, "error", why)
	}
	n.breaking++
	n.a.also()
	go func() {
		defer n.a.end()
		ep.takeDown()
	}()
}

// takeDown destroys the queue pairs of a broken endpoint when their work has come back, or after a while all the same:
// then the device uses no memory for them any more, either.
func (ep *endpoint) takeDown() {
	n := ep.nic
	n.connecting.Lock() // who makes or connects them now, does so no longer afterwards
	for _, q := range ep.queues {
		if q.qp != nil {
			if err := q.qp.Fail(); err != nil {
				n.a.o.Log.Warn("RDMA queue pair", "device", n.name, "peer", ep.path, "error", err)
			}
		}
	}
	n.connecting.Unlock()
	timeout := time.NewTimer(drainTimeout)
	select {
	case <-ep.drained:
	case <-timeout.C:
	}
	timeout.Stop()
	gone := 0
	for _, q := range ep.queues {
		if q.qp == nil {
			continue
		}
		if err := q.qp.Close(); err != nil {
			n.a.o.Log.Warn("RDMA queue pair", "device", n.name, "peer", ep.path, "error", err)
		}
		gone++
	}
	n.mu.Lock()
	if ep.inFlight > 0 {
		for i := range n.flights {
			if f := &n.flights[i]; f.queue != nil && f.queue.endpoint == ep {
				if f := n.land(uint32(i)); f.slice != nil {
					n.finish(f.slice, ep.broken)
				}
			}
		}
	}
	n.breaking--
	n.queuePairs -= gone
	n.unlock()
}

// dropAll ends all endpoints of a device.
func (n *nic) dropAll(why error) {
	n.mu.Lock()
	for _, ep := range n.endpoints {
		n.drop(ep, why)
	}
	n.unlock()
}

// connect is the active side of a handshake. Without the other side's consent nothing is posted.
func (ep *endpoint) connect(ctx context.Context, p *Peer) error {
	n := ep.nic
	n.connecting.Lock()
	err := ep.prepare()
	own := n.path()
	if err == nil && own == ep.path { // each queue pair is connected to itself
		err = ep.join(n.gid.GID, n.lid, ep.numbers)
		n.connecting.Unlock()
		if err == nil {
			ep.open()
		}
		return err
	}
	n.connecting.Unlock()
	if err != nil {
		return err
	}
	request := message{
		LocalNICPath: own, PeerNICPath: ep.path, LocalGID: n.gid.GID.String(), LocalLID: n.lid,
		QPNum: ep.numbers, ReadyAck: new(bool),
	}
	answer, err := request.exchange(ctx, p)
	if err != nil {
		return err
	}
	if answer.LocalNICPath != ep.path || answer.PeerNICPath != own {
		return fmt.Errorf("the answer is from %q to %q, it must be from %q to %q", answer.LocalNICPath, answer.PeerNICPath, ep.path, own)
	}
	gid, lid, err := answer.address(p.device(ep.path))
	if err != nil {
		return err
	}
	if err := ep.agree(gid, lid, answer.QPNum); err != nil {
		return err
	}
	if answer.ReadyAck != nil {
		*request.ReadyAck = true
		if _, err := request.exchange(ctx, p); err != nil {
			return err
		}
	}
	ep.open()
	return nil
}

// agree connects to the queue pairs of an answer, unless the other side, active at the same time, has had that done
// already.
func (ep *endpoint) agree(gid verbs.GID, lid uint16, numbers []uint32) error {
	n := ep.nic
	n.connecting.Lock()
	defer n.connecting.Unlock()
	if err := ep.prepare(); err != nil { // it may be broken by now
		return err
	}
	if len(numbers) != len(ep.queues) {
		return fmt.Errorf("the other side has %d queue pairs, this one %d (MC_NUM_QP_PER_EP)", len(numbers), len(ep.queues))
	}
	if ep.peer != nil {
		if !slices.Equal(ep.peer, numbers) {
			return errReplaced
		}
		return nil
	}
	return ep.join(gid, lid, numbers)
}
