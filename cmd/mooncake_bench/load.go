package main

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// clock returns nanoseconds since some moment.
type clock func() int64

// loadSpec is what one load does.
type loadSpec struct {
	name        string
	work        work
	mix         mixture // of mixed
	conns       int
	outstanding int     // operations in flight per connection
	rate        float64 // operations per second that are meant to start; 0 is a closed loop
	beside      bool    // ends with the others and does not move the window on
	slot, slots int     // number of its first slot, and of all slots in the run
}

// target is what all loads of a run share.
type target struct {
	addr    *net.TCPAddr
	dialect dialect
	space   *keyspace
	clients []segment.UUID // that mounted the segments
	size    uint64         // of objects, bytes
	seed    uint64
	now     clock
	stop    *atomic.Bool // ends everything early
}

// load keeps operations in flight from one thread.
type load struct {
	spec   loadSpec
	target *target
	window *window
	rec    *recorder

	poll   *poller
	conns  []*conn
	slots  []slot
	stride uint32 // sequence numbers of one slot are so far apart; a power of two

	chooser chooser
	total   int // of the mixture's weights
	whole   [opCount][2]*request
	partial map[partKey]*request

	pacer    *pacer
	free     []*slot // open loop: without operation, the longest first
	paused   []*slot // in order of wake
	inFlight int
	heard    int64 // when the last reply came
	dry      bool  // no keys are left

	codes []int32 // of the reply at hand
}

// slot is room for one operation in flight.
type slot struct {
	index    int // in the load
	conn     *conn
	lane     uint32 // low bits of its sequence numbers
	seq      uint32
	op       op
	step     int
	request  *request
	tenant   *tenantKeys
	keys     []uint64 // that the current call is about
	intended int64    // when the operation was meant to start
	wake     int64    // when it may go on, if paused
	busy     bool
	misses   uint64
	failed   []int32 // codes of the keys that failed so far
}

// partKey names a request for fewer keys than a whole batch.
type partKey struct {
	op   op
	step int
	n    int
}

// maxPartial bounds the requests for partial batches that are kept.
const maxPartial = 512

// refusedPause is how long a slot waits after a write of which nothing was accepted. A client
// would not hammer a full pool either.
const refusedPause = int64(time.Millisecond)

// silence is how long the master may answer nothing before a run gives up; released clients
// wait as long.
const silence = int64(30 * time.Second)

// newLoad connects a load. number tells the loads of a run apart.
func newLoad(spec loadSpec, number int, t *target, w *window) (*load, error) {
	l := &load{
		spec: spec, target: t, window: w, rec: newRecorder(),
		stride:  1 << bits.Len32(uint32(spec.outstanding-1)),
		partial: map[partKey]*request{},
		total:   spec.mix.total(),
	}
	slots := spec.conns * spec.outstanding
	l.chooser = chooser{
		space: t.space, slots: max(spec.slots, slots), batch: spec.work.batch, moving: spec.work.op == opMixed,
		rng: rand.New(rand.NewPCG(t.seed, uint64(number))),
	}
	var err error
	if l.poll, err = newPoller(); err != nil {
		return nil, err
	}
	l.slots = make([]slot, slots)
	for i := range spec.conns {
		fd, err := dial(t.addr)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("%s, connection %d: %w", spec.name, i+1, err)
		}
		c := &conn{fd: fd, index: i}
		l.conns = append(l.conns, c)
		if err := l.poll.add(fd, i); err != nil {
			l.close()
			return nil, fmt.Errorf("%s, connection %d: %w", spec.name, i+1, err)
		}
		for k := range spec.outstanding {
			s := &l.slots[i*spec.outstanding+k]
			*s = slot{index: i*spec.outstanding + k, conn: c, lane: uint32(k), seq: uint32(k) - l.stride}
		}
	}
	return l, nil
}

// close ends the connections.
func (l *load) close() {
	for _, c := range l.conns {
		closeSocket(c.fd)
	}
	l.poll.close()
}

// request returns the encoded request of a step of an operation for n keys.
func (l *load) request(o op, stepNumber, n int) (*request, error) {
	if n == l.spec.work.batch || o == opPing {
		if r := l.whole[o][stepNumber]; r != nil {
			return r, nil
		}
	} else if r := l.partial[partKey{o, stepNumber, n}]; r != nil {
		return r, nil
	}
	t := l.target
	r, err := newRequest(steps[o][stepNumber].of(n), t.dialect, t.space.namer, t.space.tenantLen(), n, t.size)
	switch {
	case err != nil:
		return nil, err
	case n == l.spec.work.batch || o == opPing:
		l.whole[o][stepNumber] = r
	case len(l.partial) < maxPartial:
		l.partial[partKey{o, stepNumber, n}] = r
	}
	return r, nil
}

// run does the work until the window is over or, where it has no length, until the keys are
// used up, and then waits for what is in flight.
func (l *load) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := l.target.now()
	l.heard = now
	if l.spec.rate > 0 {
		l.pacer = newPacer(now, l.spec.rate)
		for i := range l.slots {
			l.free = append(l.free, &l.slots[i])
		}
	} else {
		for i := range l.slots {
			if err := l.begin(&l.slots[i], now); err != nil {
				return err
			}
			if err := l.slots[i].conn.flush(l.poll); err != nil {
				return err
			}
		}
	}
	for {
		now = l.target.now()
		if !l.spec.beside {
			l.window.advance(now)
		}
		if l.target.stop.Load() {
			return nil
		}
		done := l.window.now() == over
		if !done {
			if err := l.resume(now); err != nil {
				return err
			}
			if err := l.dispatch(now); err != nil {
				return err
			}
		}
		if l.inFlight == 0 && (done || l.dry && len(l.paused) == 0) {
			break
		}
		if l.inFlight > 0 && now-l.heard > silence {
			return fmt.Errorf("%s: no answer for %v to %d operations in flight", l.spec.name, time.Duration(silence), l.inFlight)
		}
		if err := l.poll.wait(l.patience(now), l.ready); err != nil {
			return err
		}
	}
	if !l.spec.beside && l.window.running.Add(-1) == 0 {
		l.window.finish(now)
	}
	l.missed()
	return nil
}

// patience is how long there is nothing to do unless a reply comes.
func (l *load) patience(now int64) time.Duration {
	until := now + int64(100*time.Millisecond) // to notice stop and silence
	if at, ok := l.window.edge(); ok && !l.spec.beside {
		until = min(until, at)
	}
	if l.window.now() != over {
		if l.pacer != nil && len(l.free) > 0 && !l.dry {
			until = min(until, l.pacer.at())
		}
		if len(l.paused) > 0 {
			until = min(until, l.paused[0].wake)
		}
	}
	return time.Duration(until - now)
}

// ready handles a socket that is.
func (l *load) ready(index int, writable bool) error {
	c := l.conns[index]
	if writable {
		if err := c.flush(l.poll); err != nil {
			return err
		}
	}
	now := int64(0) // read only if there is a reply
	err := c.receive(func(seq uint32, code byte, body []byte) error {
		if now == 0 {
			now = l.target.now()
			l.heard = now
		}
		s := &l.slots[index*l.spec.outstanding+int(min(seq&(l.stride-1), uint32(l.spec.outstanding-1)))]
		if !s.busy || s.seq != seq {
			return fmt.Errorf("%s: reply to request %d, which waits for none", l.spec.name, seq)
		}
		if code != 0 {
			return fmt.Errorf("%s: %s was answered with rpc error %d %q", l.spec.name, s.request.call.name, code, printable(body))
		}
		return l.answer(s, body, now)
	})
	if err != nil {
		if errors.Is(err, errClosed) {
			err = fmt.Errorf("%s: %w", l.spec.name, err)
		}
		return err
	}
	if l.pacer != nil && now != 0 && l.window.now() != over {
		if err := l.dispatch(now); err != nil {
			return err
		}
	}
	return c.flush(l.poll)
}

// printable shortens a body for a message.
func printable(body []byte) string {
	const most = 80
	var out []byte
	for _, b := range body[:min(len(body), most)] {
		if b >= 0x20 && b < 0x7f {
			out = append(out, b)
		}
	}
	return string(out)
}

// dispatch starts what is due in an open loop.
func (l *load) dispatch(now int64) error {
	for l.pacer != nil && len(l.free) > 0 && !l.dry {
		intended, due := l.pacer.take(now)
		if !due {
			return nil
		}
		s := l.free[0]
		l.free = l.free[1:]
		if err := l.begin(s, intended); err != nil {
			return err
		}
		if err := s.conn.flush(l.poll); err != nil {
			return err
		}
	}
	return nil
}

// resume lets slots go on whose pause is over.
func (l *load) resume(now int64) error {
	for len(l.paused) > 0 && l.paused[0].wake <= now {
		s := l.paused[0]
		l.paused = l.paused[1:]
		if l.pacer != nil {
			l.free = append(l.free, s)
			continue
		}
		if err := l.begin(s, now); err != nil {
			return err
		}
		if err := s.conn.flush(l.poll); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the next operation in a slot; the request is not flushed yet.
func (l *load) begin(s *slot, intended int64) error {
	s.op = l.spec.work.op
	if s.op == opMixed {
		s.op = l.spec.mix.pick(l.chooser.rng.IntN(l.total))
	}
	s.tenant, s.keys = l.chooser.choose(s.op, l.spec.slot+s.index, l.spec.work.batch, s.keys[:0])
	if s.tenant == nil && l.spec.work.op == opMixed {
		s.op = opPut // nothing is left to remove
		s.tenant, s.keys = l.chooser.choose(s.op, l.spec.slot+s.index, l.spec.work.batch, s.keys[:0])
	}
	if s.tenant == nil {
		l.dry = true
		return nil
	}
	s.step, s.intended, s.misses, s.failed, s.busy = 0, intended, 0, s.failed[:0], true
	l.inFlight++
	return l.send(s)
}

// send makes the call of the slot's current step.
func (l *load) send(s *slot) (err error) {
	if s.request, err = l.request(s.op, s.step, len(s.keys)); err != nil {
		return err
	}
	s.seq += l.stride
	t := l.target
	s.conn.out = s.request.appendTo(s.conn.out, s.seq, t.space.namer, s.keys, s.tenant.name, t.clients[s.index%len(t.clients)])
	return nil
}

// answer takes the reply to the slot's call.
func (l *load) answer(s *slot, body []byte, now int64) (err error) {
	if l.codes, err = s.request.call.outcomes(l.codes[:0], body, max(1, len(s.keys))); err != nil {
		return err
	}
	good := s.keys[:0]
	answered := uint64(0)
	for i, code := range l.codes {
		switch {
		case code < 0 && !(s.op == opFill && code == codeExists):
			s.failed = append(s.failed, code)
			continue
		case code == missCode:
			s.misses++
		}
		answered++
		if len(s.keys) > 0 && (code == 0 || s.step+1 == len(steps[s.op])) {
			good = append(good, s.keys[i])
		}
	}
	if s.op != opPing {
		s.keys = good
	}
	if s.step+1 < len(steps[s.op]) && len(s.keys) > 0 {
		s.step++
		return l.send(s)
	}
	return l.finish(s, answered, now)
}

// finish counts an operation and starts the slot's next one.
func (l *load) finish(s *slot, answered uint64, now int64) error {
	s.busy = false
	l.inFlight--
	l.count(s, answered, now)
	switch {
	case l.window.now() == over:
	case answered == 0 && len(steps[s.op]) > 1:
		s.wake = now + refusedPause
		l.paused = append(l.paused, s)
	case l.pacer != nil:
		l.free = append(l.free, s)
	default:
		return l.begin(s, now)
	}
	return nil
}

func (l *load) count(s *slot, answered uint64, now int64) {
	w, r := l.window, l.rec
	inside := w.now() == measuring
	timed := inside
	if l.pacer != nil {
		timed = w.now() != warming && s.intended >= w.begin.Load() && (inside || s.intended < w.end.Load())
	}
	if timed && answered > 0 {
		r.time(now - s.intended)
	}
	if !inside {
		return
	}
	if !l.spec.beside && !w.any.Load() {
		w.any.Store(true)
	}
	if answered > 0 {
		r.ops++
	} else {
		r.failedOps++
	}
	r.keys += answered
	r.misses += s.misses
	for _, code := range s.failed {
		r.codes[code]++
	}
}

// missed records the operations of an open loop that were due in the window and never sent:
// each has waited at least until its end.
func (l *load) missed() {
	if l.pacer == nil || l.dry {
		return
	}
	begin, end := l.window.begin.Load(), l.window.end.Load()
	for {
		intended, due := l.pacer.take(end - 1)
		if !due {
			return
		}
		if intended >= begin {
			l.rec.unsent++
			l.rec.time(end - intended)
		}
	}
}
