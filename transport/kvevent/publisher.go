package kvevent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options say where and how events are published.
type Options struct {
	Endpoint  string // tcp://*:5557, tcp://10.0.0.1:5557, tcp://eth0:5557 or ipc:///path
	BackendID string // which master the events are of
	Capacity  int    // events that may wait; 0 = no limit
	Legacy    bool   // write the older field names too
	ObjectKey bool   // without, nothing is published about objects, only that a tenant was cleared
	ModelName string // these are told as they are; empty or 0 is nil
	Salt      string
	LoRA      string
	BlockSize uint32
	DPRank    uint32 // told as it is
	Now       func() time.Time
	Log       hclog.Logger
}

// The ways in which Open refuses, besides failing to bind.
var (
	ErrNoEndpoint  = errors.New("kv_events_bind_endpoint is empty")
	ErrNoBackendID = errors.New("kv_events_backend_id is empty")
)

// Publisher publishes events. Its methods may be called at any time by anybody; those about
// events do nothing that takes time. A nil Publisher publishes nothing.
type Publisher struct {
	options Options
	hub     *hub

	mu       sync.Mutex
	waiting  queue
	sequence uint64 // of the next message
	id       uint64 // of the next event
	closed   bool
	wake     chan struct{}
	done     chan struct{} // closed when nothing waits and nothing comes

	batches, events, dropped, keyless atomic.Uint64
}

// Status is what GET /kv_events/status tells.
type Status struct {
	Enabled bool
	Batches uint64 // messages published, whether or not anybody listened
	Events  uint64 // events in them
	Dropped uint64 // events that the full queue lost
	Keyless uint64 // events about objects suppressed for want of their key
}

// Open binds the endpoint and publishes what it is told from then on, until Close.
func Open(o Options) (*Publisher, error) {
	switch {
	case o.Endpoint == "":
		return nil, ErrNoEndpoint
	case o.BackendID == "":
		return nil, ErrNoBackendID
	}
	l, err := listen(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if !o.ObjectKey {
		o.Log.Warn("without object keys nothing is published about objects, only that a tenant was cleared; see skipped_keyless_events")
	}
	p := &Publisher{
		options:  o,
		hub:      newHub(l, o.Now, o.Log),
		sequence: 1,
		id:       1,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	go p.run()
	o.Log.Info("kv events are published", "endpoint", o.Endpoint, "address", p.Addr(), "backend_id", o.BackendID)
	return p, nil
}

// Addr returns where the publisher listens, as an endpoint.
func (p *Publisher) Addr() string { return p.hub.addr() }

// Stored tells that an object is readable on a medium, which is "cpu" or "disk".
func (p *Publisher) Stored(tenant, key, group, medium string) {
	p.object(stored, tenant, key, group, medium)
}

// Removed tells that an object is no longer readable on a medium.
func (p *Publisher) Removed(tenant, key, group, medium string) {
	p.object(removed, tenant, key, group, medium)
}

// Cleared tells that nothing of a tenant is left.
func (p *Publisher) Cleared(tenant string) {
	if p != nil {
		p.add(event{kind: cleared, tenant: strings.Clone(tenant)})
	}
}

func (p *Publisher) object(k kind, tenant, key, group, medium string) {
	switch {
	case p == nil:
	case !p.options.ObjectKey || key == "":
		p.keyless.Add(1)
	default:
		// The strings may lie in a request or a table.
		p.add(event{kind: k, tenant: strings.Clone(tenant), key: strings.Clone(key), group: strings.Clone(group), medium: medium})
	}
}

func (p *Publisher) add(e event) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	if c := p.options.Capacity; c > 0 && p.waiting.len >= c {
		p.waiting.pop()
		p.sequence++ // the gap tells of the loss
		p.dropped.Add(1)
	}
	p.waiting.push(e)
	p.mu.Unlock()
	p.rouse()
}

func (p *Publisher) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run publishes until the publisher is closed and nothing waits.
func (p *Publisher) run() {
	defer close(p.done)
	b := batch{events: make([]event, 0, batchSize)}
	for {
		open := p.next(&b)
		if len(b.events) > 0 {
			p.publish(&b)
			continue
		}
		if !open {
			return
		}
		<-p.wake
	}
}

// next takes the oldest events, and reports whether more may come.
func (p *Publisher) next(b *batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.events = b.events[:0]
	for p.waiting.len > 0 && len(b.events) < batchSize {
		b.events = append(b.events, p.waiting.pop())
	}
	if n := uint64(len(b.events)); n > 0 {
		b.sequence, b.firstID = p.sequence, p.id
		p.sequence++
		p.id += n
	}
	return !p.closed
}

func (p *Publisher) publish(b *batch) {
	if p.hub.subscribers() > 0 {
		p.hub.send(p.options.message(b, p.options.Now()))
	}
	p.events.Add(uint64(len(b.events)))
	p.batches.Add(1)
}

// Status returns what has been published so far.
func (p *Publisher) Status() Status {
	if p == nil {
		return Status{}
	}
	return Status{Enabled: true, Batches: p.batches.Load(), Events: p.events.Load(), Dropped: p.dropped.Load(), Keyless: p.keyless.Load()}
}

// Close publishes what waits, gives the subscribers until the context ends to read it and leaves
// them. Events told later are ignored.
func (p *Publisher) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.rouse()
	<-p.done
	return p.hub.close(ctx)
}
