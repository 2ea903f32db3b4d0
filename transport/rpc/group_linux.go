package rpc

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// group is the event loops of a server. It begins with one, since one loop that goes through
// all that is ready costs less per request than two that wake each other's clients in turn; a
// loop that stays saturated gets another one beside it and gives half of its busy connections
// away. When the others together have room again, it gives all of them back and ends.
type group struct {
	server *Server
	start  time.Time
	hold   bool // loops keep their place in the scheduler during short waits
	closed bool // guarded by Server.mu

	mu      sync.Mutex // guards running, and what is in all
	running int        // all[:running] run
	all     []*loop    // those that have ended keep their descriptors for the next time
}

const (
	// A loop is saturated when it has waited for less than 5 % of fullPeriods in a row.
	fullLoad    = 950
	fullPeriods = 3
	// It takes connections of another one, rather than a new loop being started, below this.
	roomyLoad = 500
	// The last loop ends when it and the first have had less work than this together for
	// slackPeriods in a row.
	slackLoad    = 600
	slackPeriods = 20
)

// newGroup starts the first loop.
func newGroup(s *Server) (*group, error) {
	// Somebody else must find a place even when every loop keeps its own.
	hold := runtime.GOMAXPROCS(0) > s.opts.Loops
	g := &group{server: s, start: s.opts.Now(), hold: hold}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.grow(); err != nil {
		return nil, err
	}
	return g, nil
}

// clock is the time since the group began, never 0.
func (g *group) clock() int64 { return int64(g.server.opts.Now().Sub(g.start)) + 1 }

// grow starts one more loop. The caller holds g.mu.
func (g *group) grow() (*loop, error) {
	if g.running == len(g.all) {
		p, err := newPoller()
		if err != nil {
			return nil, fmt.Errorf("starting an event loop: %w", err)
		}
		g.all = append(g.all, &loop{group: g, server: g.server, number: g.running, poll: p, buf: make([]byte, loopBuffer), out: make([]byte, 0, keepOut)})
	}
	l := g.all[g.running]
	g.running++
	l.mu.Lock()
	l.over = false
	l.mu.Unlock()
	g.server.wait.Go(l.run)
	return l, nil
}

// loops returns how many loops run.
func (g *group) loops() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// loopsSoFar returns every loop there is, running or not.
func (g *group) loopsSoFar() []*loop {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all
}

// wake has every loop look at what the server wants. The caller holds Server.mu.
func (g *group) wake() {
	if g.closed {
		return
	}
	for _, l := range g.loopsSoFar() {
		l.poll.wake()
	}
}

// count adds to st what the loops have read and written.
func (g *group) count(st *Stats) {
	for _, l := range g.loopsSoFar() {
		st.Reads += l.reads.Load()
		st.Writes += l.writes.Load()
		st.BytesRead += l.bytesRead.Load()
		st.BytesWritten += l.bytesWritten.Load()
	}
	st.Loops = g.loops()
}

// close frees what loops hold once all of them have ended. The caller holds Server.mu.
func (g *group) close() {
	if g.closed {
		return
	}
	g.closed = true
	for _, l := range g.loopsSoFar() {
		l.poll.close()
	}
}

// attach gives a new connection to an event loop and reports whether there is one for it.
func (s *Server) attach(nc net.Conn, number uint64) bool {
	if s.opts.Portable {
		return false
	}
	fd, err := detach(nc)
	if err != nil {
		if fd >= 0 {
			closeSocket(fd)
		}
		s.trouble("taking a connection out of the runtime failed", "error", err)
		return false
	}
	c := &stream{fd: fd, session: *newSession(s, nc.RemoteAddr().String(), number)}
	c.session.sort = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops == nil && !s.closing.Load() {
		if s.loops, err = newGroup(s); err != nil {
			closeSocket(fd)
			s.trouble("serving without event loop", "error", err)
			return false
		}
	}
	nc.Close()
	s.open.Add(1)
	if s.closing.Load() || !s.loops.post(c) {
		closeSocket(fd)
		s.open.Add(-1)
	}
	return true
}

// post gives a new connection to the loop that has least to do.
func (g *group) post(c *stream) bool {
	now := g.clock()
	g.mu.Lock()
	best := g.all[0]
	for _, l := range g.all[1:g.running] {
		if l.meter.recent(now) < best.meter.recent(now) {
			best = l
		}
	}
	g.mu.Unlock()
	return best.post(c) || g.all[0].post(c)
}

// balance acts on a new load of l: it shares the work of a saturated loop, and ends a loop
// that is not needed any more, which it reports.
func (l *loop) balance() (over bool) {
	g, load := l.group, int(l.meter.load.Load())
	if load < fullLoad {
		l.meter.full = 0
	} else if l.meter.full++; l.meter.full >= fullPeriods {
		l.meter.full = 0
		l.share()
	}
	for _, c := range l.streams {
		if c != nil {
			c.active = false
		}
	}
	if l.number == 0 || load+g.all[0].meter.recent(l.now) >= slackLoad {
		l.meter.slack = 0
		return false
	}
	if l.meter.slack++; l.meter.slack < slackPeriods {
		return false
	}
	return l.retire()
}

// share gives every second of the busy connections to a loop that has room, a new one if
// need be.
func (l *loop) share() {
	g := l.group
	busy := 0
	for _, c := range l.streams {
		if c != nil && c.active {
			busy++
		}
	}
	if busy < 2 {
		return
	}
	g.mu.Lock()
	var to *loop
	for _, x := range g.all[:g.running] {
		if x != l && x.meter.recent(l.now) < roomyLoad {
			to = x
			break
		}
	}
	if to == nil && g.running < l.server.opts.Loops {
		var err error
		if to, err = g.grow(); err != nil {
			l.server.trouble("no more loops", "error", err)
		}
	}
	g.mu.Unlock()
	if to == nil {
		return
	}
	give := false
	for _, c := range l.streams {
		if c == nil || !c.active {
			continue
		}
		if give = !give; give {
			continue // keep the first
		}
		l.give(c, to)
	}
}

// give makes another loop the owner of c, unless a turn or a worker has it now.
func (l *loop) give(c *stream, to *loop) bool {
	if c.busy || c.queued || c.leaving {
		return false
	}
	if err := l.poll.remove(c.fd); err != nil {
		return false
	}
	l.release(c)
	if to.post(c) {
		return true
	}
	// It has just ended.
	if l.adopt(c) {
		l.later = append(l.later, c)
		c.queued = true
	}
	return false
}

// retire ends l if it is the last of the loops and can give all of its connections away.
func (l *loop) retire() bool {
	g := l.group
	for _, c := range l.streams {
		if c != nil {
			l.give(c, g.all[0])
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running != l.number+1 || !l.ended() {
		return false
	}
	g.running--
	l.meter.slack = 0
	return true
}
