package transfer

import (
	"container/list"
	"context"
	"sync"
)

// desk is what one object needs to be carried: buffers. Whoever has one has the turn.
type desk struct {
	buffers  [][]byte
	releases []func()
	calls    int  // of the carrier that may touch the buffers; guarded by desks.mu
	left     bool // its object has gone on without it; guarded by desks.mu
}

// desks hands out so many desks and no more, in the order they are asked for.
type desks struct {
	carrier Carrier
	size    int // of a buffer
	most    int

	mu     sync.Mutex
	idle   []*desk
	made   int       // desks there are
	busy   int       // left, but with calls that have not returned
	queue  list.List // of chan *desk, each with room for one
	closed bool
}

// sit waits for a desk.
func (s *desks) sit(ctx context.Context) (*desk, error) {
	for {
		d, err := s.wait(ctx)
		if d != nil || err != nil {
			return d, err
		}
	}
}

// wait is sit, which returns neither a desk nor an error when things have changed.
func (s *desks) wait(ctx context.Context) (*desk, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, &Error{Cause: Canceled, Err: ErrClosed}
	case len(s.idle) > 0:
		d := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		s.mu.Unlock()
		return d, nil
	case s.made < s.most:
		s.made++
		s.mu.Unlock()
		return s.build()
	}
	c := make(chan *desk, 1)
	e := s.queue.PushBack(c)
	s.mu.Unlock()
	select {
	case d := <-c:
		return d, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.queue.Remove(e)
	s.mu.Unlock()
	select {
	case d := <-c: // it came at the same moment
		s.skip(d)
	default:
	}
	return nil, ended(ctx)
}

// build makes a desk that has been counted.
func (s *desks) build() (*desk, error) {
	d := new(desk)
	for range buffersPerTurn {
		b, release, err := s.carrier.Buffer(s.size)
		if err != nil {
			d.release()
			s.mu.Lock()
			s.made--
			s.mu.Unlock()
			s.skip(nil) // there may be no other desk to wait for
			return nil, &Error{Cause: NoMemory, Err: err}
		}
		d.buffers, d.releases = append(d.buffers, b), append(d.releases, release)
	}
	return d, nil
}

func (d *desk) release() {
	for _, release := range d.releases {
		release()
	}
}

// skip passes on what has been handed to somebody who doesn't want it any more: a desk, or nil, the news that
// things have changed.
func (s *desks) skip(d *desk) {
	if d != nil {
		s.stand(d)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.queue.Front(); e != nil {
		s.queue.Remove(e)
		e.Value.(chan *desk) <- nil
	}
}

// wanted reports whether somebody waits for a desk.
func (s *desks) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len() > 0
}

// stand gives a desk back. The next has it as soon as no call of the carrier uses it.
func (s *desks) stand(d *desk) {
	s.mu.Lock()
	if d.calls > 0 {
		d.left = true
		s.busy++
		s.mu.Unlock()
		return
	}
	s.pass(d)
}

// pass gives a desk to who has waited longest. mu is held, and is not any more when it returns.
func (s *desks) pass(d *desk) {
	if s.closed {
		s.made--
		s.mu.Unlock()
		d.release()
		return
	}
	if e := s.queue.Front(); e != nil {
		s.queue.Remove(e)
		e.Value.(chan *desk) <- d
	} else {
		s.idle = append(s.idle, d)
	}
	s.mu.Unlock()
}

// use notes that a call of the carrier begins that uses the desk. nil is no desk.
func (s *desks) use(d *desk) {
	if d != nil {
		s.mu.Lock()
		d.calls++
		s.mu.Unlock()
	}
}

// leave notes that it has returned.
func (s *desks) leave(d *desk) {
	if d == nil {
		return
	}
	s.mu.Lock()
	d.calls--
	if d.calls > 0 || !d.left {
		s.mu.Unlock()
		return
	}
	d.left = false
	s.busy--
	s.pass(d)
}

// close gives back what nobody sits at, and wakes who waits.
func (s *desks) close() {
	s.mu.Lock()
	s.closed = true
	idle := s.idle
	s.idle = nil
	s.made -= len(idle)
	for e := s.queue.Front(); e != nil; e = s.queue.Front() {
		s.queue.Remove(e)
		e.Value.(chan *desk) <- nil
	}
	s.mu.Unlock()
	for _, d := range idle {
		d.release()
	}
}

// stats returns the bytes of all buffers there are, and how many desks wait for calls that were given up.
func (s *desks) stats() (bytes, busy int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made * buffersPerTurn * s.size, s.busy
}
