package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// Read fills dst with the memory of a peer at an address. dst may be anything; registered memory is not copied. When
// it returns nobody writes to dst any more, also when ctx has ended or it has failed.
func (a *Adapter) Read(ctx context.Context, p *Peer, address uint64, dst []byte) error {
	return a.transfer(ctx, p, verbs.Read, address, dst)
}

// Write copies src to the memory of a peer at an address. Otherwise it is like Read.
func (a *Adapter) Write(ctx context.Context, p *Peer, address uint64, src []byte) error {
	return a.transfer(ctx, p, verbs.Write, address, src)
}

// ErrAccess is returned when an owner refuses the key or the address of a transfer: what it has published is no longer
// true.
var ErrAccess = errors.New("the owner refuses the key or the address")

// Connect reads a byte of a peer's memory at an address over each of the ways that are the best now, so that they are
// connected.
func (a *Adapter) Connect(ctx context.Context, p *Peer, address uint64) error {
	if err := a.enter(ctx, p, address, 1); err != nil {
		return err
	}
	defer a.end()
	own, release, err := a.Buffer(1)
	if err != nil {
		return err
	}
	defer release()
	at := addressOf(own)
	r := a.regions.use(at, 1)
	if r == nil {
		return errNoBuffer
	}
	defer r.end()
	j := a.newJob(p, verbs.Read)
	ways, _ := a.ways(r.place, p, p.buffer(address))
	for range max(len(ways), 1) { // alike, so that each goes another way
		j.cut(r, at, address, 1)
	}
	j.start()
	return j.wait(ctx)
}

var errNoBuffer = errors.New("the buffer is not registered")

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// enter begins something with a peer's memory, which ends with end unless it fails.
func (a *Adapter) enter(ctx context.Context, p *Peer, address, length uint64) error {
	if !p.Covers(address, length) {
		return ErrNoMemory
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !a.begin() {
		return ErrClosed
	}
	return nil
}

func (a *Adapter) transfer(ctx context.Context, p *Peer, op verbs.Opcode, address uint64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := a.enter(ctx, p, address, uint64(len(data))); err != nil {
		return err
	}
	defer a.end()
	at := addressOf(data)
	r := a.regions.use(at, uint64(len(data)))
	if r == nil {
		return a.bounced(ctx, p, op, address, data)
	}
	defer r.end()
	j := a.newJob(p, op)
	j.cut(r, at, address, uint64(len(data)))
	j.start()
	return j.wait(ctx)
}

// job is a transfer between one region and one peer.
type job struct {
	a     *Adapter
	peer  *Peer
	op    verbs.Opcode
	parts []slice
	left  atomic.Int32  // slices that are dealt and have not ended
	done  chan struct{} // told when none is left

	mu     sync.Mutex
	failed []*slice
}

// slice is a part of a job that is one request.
type slice struct {
	job           *job
	local, remote uint64
	length, rkey  uint32
	region        *Region
	piece         *piece
	buffer        *peerBuffer
	way           way
	others        bool // there was another way
	tries         int  // that failed
	spared        int  // that were disturbed by something else
	err           error
	next          *slice
}

func (a *Adapter) newJob(p *Peer, op verbs.Opcode) *job {
	return &job{a: a, peer: p, op: op, done: make(chan struct{}, 1)}
}

// cut adds the slices of length bytes. A small rest joins the last one; none crosses the border of a registration,
// here or there.
func (j *job) cut(r *Region, local, remote, length uint64) {
	most := uint64(j.a.o.SliceSize)
	j.parts = slices.Grow(j.parts, int((length+most-1)/most+2))
	for length > 0 {
		p, b := r.piece(local), j.peer.buffer(remote)
		n := length
		if n > most+most/4 {
			n = most
		}
		n = min(n, p.address+p.length-local, b.address+b.length-remote)
		j.parts = append(j.parts, slice{job: j, local: local, remote: remote, length: uint32(n), region: r, piece: p, buffer: b})
		local, remote, length = local+n, remote+n, length-n
	}
}

// start deals all slices.
func (j *job) start() {
	todo := make([]*slice, len(j.parts))
	for i := range j.parts {
		todo[i] = &j.parts[i]
	}
	j.deal(todo)
}

// deal gives slices to endpoints, in runs: each queue of each good way gets one.
func (j *job) deal(todo []*slice) {
	j.left.Store(int32(len(todo)))
	for len(todo) > 0 {
		first, n := todo[0], 1
		for n < len(todo) && todo[n].buffer == first.buffer && todo[n].region == first.region {
			n++
		}
		j.dealAlike(todo[:n])
		todo = todo[n:]
	}
}

var errNoWay = errors.New("no RDMA device here is active")

// dealAlike deals slices between the same memory here and there.
func (j *job) dealAlike(todo []*slice) {
	a := j.a
	ways, others := a.ways(todo[0].region.place, j.peer, todo[0].buffer)
	if len(ways) == 0 {
		for _, s := range todo {
			s.way = way{}
			s.err = errNoWay
			j.finish(s)
		}
		return
	}
	runs := min(len(todo), len(ways)*a.o.QueuePairs)
	turn := int(a.turn.Add(1))
	for i := range runs {
		w := ways[(turn+i)%len(ways)]
		run := todo[len(todo)*i/runs : len(todo)*(i+1)/runs]
		for k, s := range run {
			s.way, s.others = w, others
			s.rkey = s.buffer.rkeys[w.device]
			s.next = nil
			if k > 0 {
				run[k-1].next = s
			}
		}
		w.nic.send(j.peer, j.peer.paths[w.device], run)
	}
}

// send gives a chain of slices to the endpoint to a path.
func (n *nic) send(p *Peer, path string, run []*slice) {
	n.mu.Lock()
	defer n.unlock()
	ep, err := n.to(path, p)
	if err != nil {
		for _, s := range run {
			n.finish(s, err)
		}
		return
	}
	ep.used = n.a.o.Now()
	q := ep.queues[ep.turn%len(ep.queues)]
	ep.turn++
	n.submit(q, run[0], run[len(run)-1])
}

// finish takes back a slice that has ended.
func (j *job) finish(s *slice) {
	if s.err != nil {
		j.mu.Lock()
		j.failed = append(j.failed, s)
		j.mu.Unlock()
	}
	if j.left.Add(-1) == 0 {
		j.done <- struct{}{}
	}
}

// wait returns when all slices are carried, or when the job has failed and none is under way any more.
func (j *job) wait(ctx context.Context) error {
	var last error // what has failed last, to be said when ctx ends
	for {
		select {
		case <-j.done:
		case <-ctx.Done():
			j.giveUp()
			return ended(ctx, last)
		}
		j.mu.Lock()
		failed := j.failed
		j.failed = nil
		j.mu.Unlock()
		if len(failed) == 0 {
			return nil
		}
		if err := j.judge(failed); err != nil {
			return err
		}
		last = failed[0].err
		if !j.rest(ctx, failed[0]) {
			return ended(ctx, last)
		}
		j.deal(failed)
	}
}

// mostSpared is how often a slice may be disturbed: two processes of one name, for one thing, take each other's connections
// for ever.
const mostSpared = 100

// judge notes failures and returns an error if the job has failed for good.
func (j *job) judge(failed []*slice) error {
	noted := make(map[way]bool, 1)
	for _, s := range failed {
		var status verbs.Status
		known := errors.As(s.err, &status)
		switch {
		case known && (status == verbs.RemoteAccess || status == verbs.RemoteInvalid):
			return fmt.Errorf("%w: %w", ErrAccess, s.err)
		case errors.Is(s.err, ErrClosed), errors.Is(s.err, errNoWay):
			return s.err
		case innocent(s.err):
			if s.spared++; s.spared > mostSpared {
				return fmt.Errorf("after it was disturbed %d times: %w", s.spared, s.err)
			}
			continue
		}
		if s.tries++; s.tries >= j.a.o.Tries {
			return fmt.Errorf("after %d tries: %w", s.tries, s.err)
		}
		if !s.others && errors.Is(s.err, context.DeadlineExceeded) {
			return fmt.Errorf("the handshake takes too long: %w", s.err)
		}
		if s.way.nic != nil && !noted[s.way] {
			noted[s.way] = true
			j.a.noteFailure(s.way.nic, j.peer.paths[s.way.device], s.others)
			if known && status == verbs.RetriesExhausted {
				j.a.suspect(j.peer)
			}
		}
	}
	return nil
}

// rest waits a moment before a slice is tried again, and reports whether ctx has not ended.
func (j *job) rest(ctx context.Context, s *slice) bool {
	if s.tries < 2 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(time.Duration(s.tries) * 5 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended is the error of a transfer whose context has ended: with what had failed before, if anything had.
func ended(ctx context.Context, last error) error {
	if last == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w; before that: %w", ctx.Err(), last)
}

// grace is how long what is under way may take to end by itself when a transfer is given up.
const grace = 20 * time.Millisecond

// giveUp returns when no slice is under way any more. What waits is taken back; what is under way and doesn't end at
// once is flushed, with all else on its connection, which will be made anew.
func (j *job) giveUp() {
	for _, n := range j.a.nics {
		n.mu.Lock()
		n.takeBack(j)
		n.unlock()
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-j.done:
		return
	case <-t.C:
	}
	for _, n := range j.a.nics {
		n.mu.Lock()
		for i := range n.flights {
			if f := &n.flights[i]; f.slice != nil && f.slice.job == j {
				n.drop(f.queue.endpoint, errGivenUp)
			}
		}
		n.unlock()
	}
	<-j.done
}

// takeBack takes the slices of a job out of the queues that they wait in. n.mu is held.
func (n *nic) takeBack(j *job) {
	for _, ep := range n.endpoints {
		for _, q := range ep.queues {
			var first, last *slice
			for s := q.first; s != nil; {
				next := s.next
				s.next = nil
				switch {
				case s.job == j:
					n.finish(s, context.Canceled)
				case last == nil:
					first, last = s, s
				default:
					last.next, last = s, s
				}
				s = next
			}
			q.first, q.last = first, last
		}
		if ep.active && !ep.ready && !ep.joined && ep.idle() { // nobody waits for it any more, and it may take long
			n.drop(ep, errGivenUp)
		}
	}
}
