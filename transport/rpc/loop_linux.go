package rpc

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// loop serves the connections it owns on one goroutine: it waits for all of them together,
// and each time goes through every one that is ready, reading what has come, handling what is
// whole, and writing the answers, with one system call for each. What takes long it leaves to
// workers, and meanwhile the connection at hand rests.
type loop struct {
	group  *group
	server *Server
	number int
	poll   *poller

	streams []*stream // by descriptor
	count   int
	later   []*stream // have more to do, after the others had their turn
	idle    queue     // wait for requests; used when there is an idle timeout
	stalled queue     // wait for room to write; used when there is a write timeout
	now     int64     // since the group began, in nanoseconds, as of this turn
	buf     []byte    // what is read lands here first
	out     []byte    // where answers are made
	meter   meter

	mu   sync.Mutex // guards mail and over
	mail []*stream  // new ones, and those that come back from a worker
	over bool       // takes no more mail

	reads, writes           atomic.Uint64 // system calls
	bytesRead, bytesWritten atomic.Uint64
}

const (
	// loopBuffer is how much is read at once.
	loopBuffer = 64 << 10
	// lingerTick is how often a loop that shuts down looks for peers that have had enough time.
	lingerTick = 20 * time.Millisecond
)

// post gives c to the loop, from any goroutine, and reports whether the loop takes it.
func (l *loop) post(c *stream) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	l.mail = append(l.mail, c)
	l.mu.Unlock()
	l.poll.wake()
	return true
}

// run serves until there is nothing left to serve after the server began to shut down, or
// until the loop has retired.
func (l *loop) run() {
	l.meter.reset()
	var later []*stream
	for {
		l.meter.before(l.group.clock)
		n, err := l.poll.wait(l.patience(), l.group.hold)
		if err != nil {
			// Waiting for one's own descriptors does not fail.
			panic(err)
		}
		l.now = l.group.clock()
		measured := l.meter.after(l.now)
		for i := range l.poll.events[:n] {
			e := &l.poll.events[i]
			if int(e.Fd) == l.poll.waker {
				continue // the mail is looked at below
			}
			// A descriptor that was closed and opened again since may get the event of its
			// predecessor, which costs a read in vain.
			if c := l.stream(int(e.Fd)); c != nil {
				c.readable = c.readable || e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
				c.ended = c.ended || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
				l.serve(c)
			}
		}
		l.collect()
		later, l.later = l.later, later[:0]
		for i, c := range later {
			later[i] = nil
			c.queued = false
			if c.loop == l {
				l.serve(c)
			}
		}
		l.expire()
		if l.server.closing.Load() {
			l.depart()
			if l.ended() {
				return
			}
		} else if measured && l.balance() {
			return
		}
	}
}

func (l *loop) stream(fd int) *stream {
	if fd < len(l.streams) {
		return l.streams[fd]
	}
	return nil
}

// collect takes the mail.
func (l *loop) collect() {
	l.mu.Lock()
	mail := l.mail
	l.mail = nil
	l.mu.Unlock()
	for _, c := range mail {
		if c.busy {
			c.busy = false
		} else if !l.adopt(c) {
			continue
		}
		l.touch(c)
		l.serve(c)
	}
}

// adopt makes the loop the owner of c.
func (l *loop) adopt(c *stream) bool {
	c.loop = l
	c.session.stripe = l.number % stripes
	if c.fd >= len(l.streams) {
		grown := make([]*stream, max(c.fd+1, 2*len(l.streams), 64))
		copy(grown, l.streams)
		l.streams = grown
	}
	l.streams[c.fd] = c
	l.count++
	if err := l.poll.add(c.fd); err != nil {
		l.server.trouble("watching a connection failed", "peer", c.session.call.peer, "error", err)
		l.close(c)
		return false
	}
	c.readable = true
	return true
}

// release is the reverse of adopt.
func (l *loop) release(c *stream) {
	c.unqueue()
	l.streams[c.fd] = nil
	l.count--
	c.loop = nil
}

// close ends a connection, whatever it still has.
func (l *loop) close(c *stream) {
	l.release(c)
	c.gone = true
	c.drop()
	closeSocket(c.fd)
	l.server.open.Add(-1)
}

// depart moves a loop that is to end forward: every connection that may leave does.
func (l *loop) depart() {
	cut := l.server.cut.Load()
	for _, c := range l.streams {
		switch {
		case c == nil || c.busy:
		case cut:
			l.close(c)
		case !c.leaving:
			l.serve(c)
		case l.now-c.since >= int64(linger):
			l.close(c)
		}
	}
}

// expire closes the connections that have waited too long.
func (l *loop) expire() {
	for d := int64(l.server.opts.IdleTimeout); l.idle.first != nil && l.now-l.idle.first.since >= d; {
		l.close(l.idle.first)
	}
	for d := int64(l.server.opts.WriteTimeout); l.stalled.first != nil && l.now-l.stalled.first.since >= d; {
		l.close(l.stalled.first)
	}
}

// patience is how many milliseconds the next wait may take; -1 is for ever.
func (l *loop) patience() int {
	if len(l.later) > 0 {
		return 0
	}
	until := int64(-1)
	sooner := func(t int64) {
		if until < 0 || t < until {
			until = t
		}
	}
	if c := l.idle.first; c != nil {
		sooner(c.since + int64(l.server.opts.IdleTimeout))
	}
	if c := l.stalled.first; c != nil {
		sooner(c.since + int64(l.server.opts.WriteTimeout))
	}
	if l.server.closing.Load() {
		sooner(l.now + int64(lingerTick))
	}
	if l.number > 0 {
		sooner(l.now + int64(meterPeriod))
	}
	if until < 0 {
		return -1
	}
	return int((max(until-l.group.clock(), 0) + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// ended reports whether the loop has nothing left to serve, and if so lets nothing more come.
func (l *loop) ended() bool {
	if l.count > 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = len(l.mail) == 0
	return l.over
}
