package rdma

import (
	"errors"
	"fmt"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// listen takes the events of a device.
func (n *nic) listen() {
	defer n.a.loops.Done()
	for {
		e, err := n.dev.NextEvent()
		if err != nil {
			if !errors.Is(err, verbs.ErrClosed) {
				n.disable(err)
			}
			return
		}
		switch {
		case e.Kind == verbs.EventQueuePair:
			n.mu.Lock()
			if ep := n.endpointOf(e.Queue); ep != nil {
				n.drop(ep, ep.because(errors.New(e.Name)))
			}
			n.unlock()
		case e.Kind == verbs.EventDevice:
			n.disable(errors.New(e.Name))
		case e.Kind == verbs.EventPortDown && e.Port == n.a.o.Port:
			n.disable(fmt.Errorf("%w: %s", errPortDown, e.Name))
		case e.Kind == verbs.EventPortActive && e.Port == n.a.o.Port:
			n.a.o.Log.Info("RDMA port is active", "device", n.name, "used in", n.a.o.RailPause)
			n.mu.Lock()
			n.activeAt = n.a.o.Now().Add(n.a.o.RailPause)
			n.mu.Unlock()
		}
	}
}

// endpointOf returns the endpoint that a queue pair belongs to, or nil. n.mu is held.
func (n *nic) endpointOf(number uint32) *endpoint {
	for _, ep := range n.endpoints {
		for _, q := range ep.queues {
			if q.qp != nil && q.qp.Number() == number {
				return ep
			}
		}
	}
	return nil
}

// disable takes a device out of use: what is under way goes another way.
func (n *nic) disable(why error) {
	n.mu.Lock()
	was := n.active
	n.active, n.activeAt = false, time.Time{}
	n.mu.Unlock()
	n.a.o.Log.Warn("RDMA device is out of use", "device", n.name, "error", why)
	if !errors.Is(why, errPortDown) {
		why = fmt.Errorf("%w: %w", errPortDown, why)
	}
	n.dropAll(fmt.Errorf("RDMA device %s: %w", n.name, why))
	if was {
		n.a.changed()
	}
}

// changed tells the host that other devices are to be published.
func (a *Adapter) changed() {
	a.mu.Lock()
	s := a.service
	a.mu.Unlock()
	if s != nil && s.Changed != nil {
		s.Changed()
	}
}

// keep looks after what nobody waits for: ports that have come back, connections that are not acknowledged, and idle
// ones whose other side may be gone.
func (a *Adapter) keep() {
	defer a.loops.Done()
	every := min(time.Second, max(min(a.o.RailPause/4, ackTimeout), 10*time.Millisecond))
	if a.o.Probe > 0 {
		every = min(every, max(a.o.Probe/4, 10*time.Millisecond))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-a.base.Done():
			return
		case <-tick.C:
		}
		changed := false
		for _, n := range a.nics {
			changed = n.look() || changed
		}
		if changed {
			a.changed()
		}
	}
}

// look does one round of keep for a device, and reports whether it has come back into use.
func (n *nic) look() (back bool) {
	now := n.a.o.Now()
	n.mu.Lock()
	defer n.unlock()
	if !n.activeAt.IsZero() && !now.Before(n.activeAt) && !n.blind {
		n.active, n.activeAt, back = true, time.Time{}, true
		n.a.o.Log.Info("RDMA device is used again", "device", n.name)
	}
	n.forgetRails(now)
	for _, ep := range n.endpoints {
		switch {
		case !ep.ready && !ep.active && now.Sub(ep.since) > ackTimeout:
			n.drop(ep, ep.because(errors.New("the connection was not acknowledged")))
		case !ep.ready || n.a.o.Probe < 0 || now.Sub(ep.since) < n.a.o.Probe:
		case ep.alive || ep.inFlight > 0:
			ep.alive, ep.since = false, now
		default:
			ep.since = now
			n.probe(ep)
		}
	}
	return back
}

// suspect probes the idle endpoints to a peer that doesn't answer on one: if it is gone all break at the same time, not one
// after the other as each is tried.
func (a *Adapter) suspect(p *Peer) {
	for _, n := range a.nics {
		n.mu.Lock()
		for _, path := range p.paths {
			if ep := n.endpoints[path]; ep != nil && ep.ready && ep.inFlight == 0 {
				n.probe(ep)
			}
		}
		n.unlock()
	}
}

// probe posts a request of no bytes, which fails if the other side is gone. n.mu is held.
func (n *nic) probe(ep *endpoint) {
	if len(n.free) == 0 {
		return
	}
	q := ep.queues[0]
	i := n.free[len(n.free)-1]
	f := &n.flights[i]
	f.queue = q
	n.works[0] = verbs.Work{ID: uint64(f.life)<<32 | uint64(i), Opcode: verbs.Write}
	if _, err := q.qp.Post(n.works[:1]); err != nil {
		f.queue = nil
		n.drop(ep, ep.because(err))
		return
	}
	n.free = n.free[:len(n.free)-1]
	q.posted++
	ep.inFlight++
}
