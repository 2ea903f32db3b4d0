package rdma

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// nic is one device of the adapter.
type nic struct {
	a     *Adapter
	index int
	name  string
	dev   verbs.Device
	gid   verbs.GIDEntry
	lid   uint16
	mtu   int
	reads int
	depth int

	// connecting is held by who makes queue pairs or changes their state, before mu.
	connecting sync.Mutex

	mu         sync.Mutex
	active     bool
	blind      bool      // completions can't be taken any more: it is never active again
	activeAt   time.Time // when to be active again; zero = not foreseen
	endpoints  map[string]*endpoint
	breaking   int // endpoints that are being taken down
	queuePairs int
	flights    []flight // requests under way, by the low half of their number
	free       []uint32 // flights that are none
	backlog    []*queue // with slices that could not be posted yet, each once
	rails      map[string]*rail
	works      [postBatch]verbs.Work
	ended      *slice // slices whose jobs are to be told, a chain
}

// flight is one request that was posted.
type flight struct {
	slice *slice // nil for a probe
	queue *queue // nil for none
	life  uint32 // the high half of its number: tells those that follow each other apart
}

const (
	postBatch = 64
	reapBatch = 64
)

func (a *Adapter) openNIC(name string) (*nic, error) {
	dev, err := verbs.Open(name, a.o.Completions)
	if err != nil {
		return nil, err
	}
	n := &nic{a: a, index: len(a.nics), name: name, dev: dev, endpoints: make(map[string]*endpoint), rails: make(map[string]*rail)}
	if err := n.prepare(); err != nil {
		dev.Shutdown()
		dev.Close()
		return nil, fmt.Errorf("RDMA device %s: %w", name, err)
	}
	return n, nil
}

func (n *nic) prepare() error {
	o := &n.a.o
	limits := n.dev.Limits()
	port, err := n.dev.Port(o.Port)
	if err != nil {
		return err
	}
	table, err := n.dev.GIDs(o.Port)
	if err != nil {
		return err
	}
	if n.gid, err = chooseGID(table, o.GIDIndex, interfaceName); err != nil {
		return fmt.Errorf("port %d: %w", o.Port, err)
	}
	n.lid = port.LID
	if most := int(port.MaxMessage) / 2; most >= minSlice { // half, as the last slice may be longer
		o.SliceSize = min(o.SliceSize, most)
	}
	n.mtu = min(o.MTU, max(port.MTU, 256))
	n.reads = min(16, max(limits.MaxReads, 1), max(limits.MaxReadsAsMaster, 1))
	n.depth = min(o.QueueDepth, max(limits.MaxWork, 1))
	n.active = port.State == verbs.PortActive
	if !n.active && len(n.a.o.Devices) == 0 {
		return fmt.Errorf("port %d is not active", o.Port)
	}
	most := o.Completions
	if limits.MaxCompletions > 0 {
		most = min(most, limits.MaxCompletions)
	}
	n.flights = make([]flight, most)
	n.free = make([]uint32, most)
	for i := range n.free {
		n.free[i] = uint32(len(n.free) - 1 - i)
	}
	return nil
}

func (n *nic) usable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.active
}

// unlock gives n.mu back and then tells the jobs of the slices that have ended meanwhile.
func (n *nic) unlock() {
	s := n.ended
	n.ended = nil
	n.mu.Unlock()
	for s != nil {
		next := s.next
		s.next = nil
		s.job.finish(s)
		s = next
	}
}

// finish notes that a slice has ended; err is nil if it was carried. n.mu is held.
func (n *nic) finish(s *slice, err error) {
	s.err = err
	s.next = n.ended
	n.ended = s
}

// reap takes completions as they come, and posts what has waited for room.
func (n *nic) reap() {
	defer n.a.loops.Done()
	var got [reapBatch]verbs.Completion
	for {
		k, err := n.dev.Next(got[:], n.a.o.Spin)
		if err != nil {
			if !errors.Is(err, verbs.ErrClosed) {
				n.mu.Lock()
				n.blind = true
				n.mu.Unlock()
				n.disable(err)
			}
			return
		}
		n.mu.Lock()
		for _, c := range got[:k] {
			n.complete(c)
		}
		n.refill()
		n.unlock()
	}
}

// complete notes the end of a request. n.mu is held.
func (n *nic) complete(c verbs.Completion) {
	i, life := uint32(c.ID), uint32(c.ID>>32)
	if int(i) >= len(n.flights) || n.flights[i].life != life || n.flights[i].queue == nil {
		return // it was given up
	}
	f := n.land(i)
	ep := f.queue.endpoint
	if c.Status == verbs.Success {
		ep.alive = true
		if f.slice != nil {
			n.finish(f.slice, nil)
		}
		return
	}
	err := ep.broken
	if c.Status != verbs.Flushed || err == nil {
		err = ep.because(c.Status)
	}
	if f.slice != nil {
		n.finish(f.slice, err)
		if c.Status == verbs.RemoteAccess || c.Status == verbs.RemoteInvalid {
			err = ep.because(errSpoiled) // the others have done nothing wrong
		}
	}
	n.drop(ep, err)
}

// land frees a flight. n.mu is held.
func (n *nic) land(i uint32) flight {
	f := n.flights[i]
	n.flights[i] = flight{life: f.life + 1}
	n.free = append(n.free, i)
	f.queue.posted--
	ep := f.queue.endpoint
	if ep.inFlight--; ep.inFlight == 0 && ep.broken != nil {
		close(ep.drained)
	}
	return f
}

// submit queues a chain of slices and posts what there is room for. n.mu is held.
func (n *nic) submit(q *queue, first, last *slice) {
	if q.first == nil {
		q.first = first
	} else {
		q.last.next = first
	}
	q.last = last
	if q.endpoint.ready {
		n.post(q)
	}
}

// post posts what waits in a queue as far as there is room; a queue with a rest joins the backlog. n.mu is held.
func (n *nic) post(q *queue) {
	ep := q.endpoint
	for q.first != nil && ep.broken == nil && q.posted < n.depth && len(n.free) > 0 {
		room := min(postBatch, n.depth-q.posted, len(n.free))
		s, k := q.first, 0
		for ; s != nil && k < room; s, k = s.next, k+1 {
			i := n.free[len(n.free)-1-k]
			f := &n.flights[i]
			f.slice, f.queue = s, q
			n.works[k] = verbs.Work{
				ID: uint64(f.life)<<32 | uint64(i), Local: s.local, Remote: s.remote, Length: s.length,
				LKey: s.piece.lkeys[n.index], RKey: s.rkey, Opcode: s.job.op,
			}
		}
		taken, err := q.qp.Post(n.works[:k])
		for j := taken; j < k; j++ { // not taken: no flights after all
			f := &n.flights[n.free[len(n.free)-1-j]]
			f.slice, f.queue = nil, nil
		}
		n.take(q, taken)
		if err != nil {
			n.drop(ep, ep.because(err))
			return
		}
	}
	if q.first != nil && ep.broken == nil && !q.waiting {
		q.waiting = true
		n.backlog = append(n.backlog, q)
	}
}

// take notes that the first of the slices that wait in a queue, and of the free flights, are under way. n.mu is held.
func (n *nic) take(q *queue, taken int) {
	top := len(n.free)
	n.free = n.free[:top-taken]
	q.posted += taken
	q.endpoint.inFlight += taken
	for range taken {
		s := q.first
		q.first, s.next = s.next, nil
	}
	if q.first == nil {
		q.last = nil
	}
}

// refill posts what has waited for room, each queue in its turn. n.mu is held.
func (n *nic) refill() {
	for range len(n.backlog) {
		q := n.backlog[0]
		n.backlog = n.backlog[:copy(n.backlog, n.backlog[1:])]
		q.waiting = false
		n.post(q)
		if len(n.free) == 0 {
			return
		}
	}
}
