// Package client knows who is alive: when each client last pinged, whether it has remounted its
// segments, and which of the states active, suspected and offline follows from that.
//
// Liveness is judged by the master's own progress: a sweep that comes late moves every client's
// clock by the delay, because pings could not be served meanwhile either; and when most
// clients would go offline in one sweep, they are given one more TTL first.
//
// Lock: the registry has one mutex, a leaf. Ping takes it and no other, and the caller is told
// what a ping or a sweep changed, so that it acts on segments without the lock.
package client

import (
	"strings"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Status is what a ping answers; numbers are part of the wire.
type Status int32

// The answers to a ping.
const (
	StatusUndefined   Status = 0
	StatusOK          Status = 1
	StatusNeedRemount Status = 2
)

// State is how alive a client seems.
type State uint8

// The states. A suspected client's memory is kept but nobody is sent there.
const (
	Active State = iota
	Suspected
	Offline
)

// TTLs are the silences, in nanoseconds, after which a client is suspected, and after which a
// suspected one is offline. A Suspicion of zero drops clients without suspecting them first.
type TTLs struct{ Active, Suspicion int64 }

// Breaker limits what one sweep may take offline: where at least MinClients are known and more
// than Share of them would go, they get one more active TTL, once in a row.
type Breaker struct {
	MinClients int
	Share      float64
}

// Registry is the table of clients.
type Registry struct {
	ttl     TTLs
	breaker Breaker
	period  int64 // nominal time between sweeps

	mu        sync.Mutex
	clients   map[segment.UUID]*entry
	strangers map[segment.UUID]int64 // last pings of clients that have mounted nothing here
	lastSweep int64
	held      bool // the breaker held the last sweep back
	totals    Totals
}

type entry struct {
	lastPing int64
	state    State
	ok       bool   // has remounted
	hostID   string // what it said its host is, for local-first placement
}

// Totals count transitions since start.
type Totals struct{ SuspectedTotal, RecoveredTotal, OfflineTotal, HeldTotal, StallTotal uint64 }

// NewRegistry makes a registry that expects a sweep every period nanoseconds.
func NewRegistry(ttl TTLs, breaker Breaker, period int64) *Registry {
	return &Registry{ttl: ttl, breaker: breaker, period: period, clients: make(map[segment.UUID]*entry)}
}

// Ping notes a sign of life. A client that has mounted nothing is not tracked: it is told to
// remount, and that is all. revived tells that the client was suspected until now, so that its
// segments are to be resumed.
func (r *Registry) Ping(id segment.UUID, now int64) (status Status, revived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.clients[id]
	if e == nil {
		r.meet(id, now)
		return StatusNeedRemount, false
	}
	revived = r.alive(e, now)
	if e.ok {
		return StatusOK, revived
	}
	return StatusNeedRemount, revived
}

// Mounted notes that the client mounted a segment, which starts its clock or, like a ping, is
// a sign of life.
func (r *Registry) Mounted(id segment.UUID, now int64) (revived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive(r.track(id), now)
}

// maxStrangers bounds what pings of made-up clients can fill.
const maxStrangers = 1 << 16

// meet remembers a client that pings and has not mounted anything here: one that is about to
// remount after a restart of the master, most likely.
func (r *Registry) meet(id segment.UUID, now int64) {
	if r.strangers == nil {
		r.strangers = make(map[segment.UUID]int64)
	}
	if _, known := r.strangers[id]; known || len(r.strangers) < maxStrangers {
		r.strangers[id] = now
	}
}

// Remounting reports whether a client that is alive has yet to tell its segments.
func (r *Registry) Remounting(now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, lastPing := range r.strangers {
		if now-lastPing <= r.ttl.Active {
			return true
		}
	}
	for _, e := range r.clients {
		if !e.ok && e.state == Active {
			return true
		}
	}
	return false
}

func (r *Registry) track(id segment.UUID) *entry {
	e := r.clients[id]
	if e == nil {
		e = &entry{}
		r.clients[id] = e
		delete(r.strangers, id)
	}
	return e
}

func (r *Registry) alive(e *entry, now int64) (revived bool) {
	e.lastPing = now
	if e.state != Suspected {
		return false
	}
	e.state = Active
	r.totals.RecoveredTotal++
	return true
}

// OK reports whether the client has remounted.
func (r *Registry) OK(id segment.UUID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.clients[id]
	return e != nil && e.ok
}

// Remounted marks the client as having remounted all its segments. For a client that is known
// it is no sign of life.
func (r *Registry) Remounted(id segment.UUID, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.clients[id]
	if e == nil {
		e = r.track(id)
		e.lastPing = now
	}
	e.ok = true
}

// State returns how alive the client seems; a client never seen is Offline.
func (r *Registry) State(id segment.UUID) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clients[id]; e != nil {
		return e.state
	}
	return Offline
}

// RememberHost keeps the host a client said it runs on.
func (r *Registry) RememberHost(id segment.UUID, host string) {
	if host == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clients[id]; e != nil && e.hostID != host {
		e.hostID = strings.Clone(host)
	}
}

// Host returns the host a client said it runs on, or "".
func (r *Registry) Host(id segment.UUID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clients[id]; e != nil {
		return e.hostID
	}
	return ""
}

// Sweep is what one sweep found.
type Sweep struct {
	Suspected []segment.UUID // newly suspected: suspend their segments
	Offline   []segment.UUID // forgotten: unmount their segments
	Stall     int64          // nanoseconds by which the sweep came late; clocks were moved by it
	Held      int            // clients that the breaker kept from going offline
}

// Sweep judges every client at now.
func (r *Registry) Sweep(now int64) Sweep {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s Sweep
	if r.lastSweep != 0 {
		if late := now - r.lastSweep - r.period; late > r.period {
			s.Stall = late
			r.totals.StallTotal++
		}
	}
	r.lastSweep = now
	for id, lastPing := range r.strangers {
		if now-lastPing > r.ttl.Active {
			delete(r.strangers, id)
		}
	}
	for id, e := range r.clients {
		// A client that pinged after the stall began has shown that it lives.
		e.lastPing = min(e.lastPing+s.Stall, now)
		silence := now - e.lastPing
		switch {
		case silence > r.ttl.Active+r.ttl.Suspicion:
			s.Offline = append(s.Offline, id)
		case silence > r.ttl.Active && e.state == Active:
			e.state = Suspected
			r.totals.SuspectedTotal++
			s.Suspected = append(s.Suspected, id)
		}
	}
	if n := len(s.Offline); n > 0 {
		mass := len(r.clients) >= r.breaker.MinClients && float64(n) > r.breaker.Share*float64(len(r.clients))
		if mass && !r.held {
			r.held = true
			r.totals.HeldTotal++
			for _, id := range s.Offline {
				e := r.clients[id]
				e.lastPing = now - r.ttl.Suspicion
				if e.state == Active {
					e.state = Suspected
					s.Suspected = append(s.Suspected, id)
				}
			}
			s.Held, s.Offline = n, nil
			return s
		}
		for _, id := range s.Offline {
			delete(r.clients, id)
		}
		r.totals.OfflineTotal += uint64(n)
	}
	if len(s.Suspected) == 0 && !r.anySuspected() {
		r.held = false
	}
	return s
}

func (r *Registry) anySuspected() bool {
	for _, e := range r.clients {
		if e.state == Suspected {
			return true
		}
	}
	return false
}

// Counts are how many clients there are: in either state, and remounted whatever their state.
type Counts struct {
	Active, Suspected, Remounted int
	Totals
}

// Counts returns the numbers of clients and the totals since start.
func (r *Registry) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Counts{Totals: r.totals}
	for _, e := range r.clients {
		if e.state == Active {
			c.Active++
		} else {
			c.Suspected++
		}
		if e.ok {
			c.Remounted++
		}
	}
	return c
}

// View is one client as HTTP and metrics show it.
type View struct {
	ID        segment.UUID
	State     State
	Remounted bool
	Silence   int64 // nanoseconds since the last ping
}

// Views returns all clients in no particular order.
func (r *Registry) Views(now int64) []View {
	r.mu.Lock()
	defer r.mu.Unlock()
	vs := make([]View, 0, len(r.clients))
	for id, e := range r.clients {
		vs = append(vs, View{ID: id, State: e.state, Remounted: e.ok, Silence: now - e.lastPing})
	}
	return vs
}
