package segment

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// dataPort serves the memory of regions to whoever connects, one request after the other on each
// connection. Both framings are served, request by request.
type dataPort struct {
	listener net.Listener
	now      func() time.Time
	stall    time.Duration // how long a transfer may stand still
	most     int           // connections at a time

	regions atomic.Pointer[[]*region] // replaced as a whole, under mu
	mu      sync.Mutex
	callers map[*caller]bool
	done    bool
	wg      sync.WaitGroup
}

// caller is a connection that somebody has made to the data port.
type caller struct {
	*stream
	waiting atomic.Int64 // since when it has nothing to do, in nanoseconds; 0 while it has
}

// mostCallers is how many connections a data port has at a time. Each costs a descriptor and readAhead bytes.
const mostCallers = 4096

// lingerTime is how long a data port goes on taking data after it has rejected a request.
const lingerTime = time.Second

func newDataPort(listener net.Listener, now func() time.Time) *dataPort {
	p := &dataPort{listener: listener, now: now, stall: DefaultStall, most: mostCallers, callers: make(map[*caller]bool)}
	p.regions.Store(new([]*region))
	return p
}

func (p *dataPort) add(r *region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	regions := append(slices.Clone(*p.regions.Load()), r)
	p.regions.Store(&regions)
}

// remove takes a region away and waits until nobody uses it any more: connections that are at work on it
// are cut off.
func (p *dataPort) remove(r *region) {
	p.mu.Lock()
	regions := slices.DeleteFunc(slices.Clone(*p.regions.Load()), func(other *region) bool { return other == r })
	p.regions.Store(&regions)
	p.mu.Unlock()
	r.retire()
}

// use returns the region that a request is about, begun, or nil.
func (p *dataPort) use(conn net.Conn, q request) *region {
	for _, r := range *p.regions.Load() {
		if r.contains(q.addr, q.size) && r.begin(conn) {
			return r
		}
	}
	return nil
}

func (p *dataPort) serve() {
	defer p.wg.Done()
	for {
		conn, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors, most likely.
			p.makeRoom()
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c := p.enter(conn)
		if c == nil {
			conn.Close()
			continue
		}
		go func() {
			defer p.wg.Done()
			p.converse(c)
			conn.Close()
			p.mu.Lock()
			delete(p.callers, c)
			p.mu.Unlock()
		}()
	}
}

// enter notes a connection; nil when it can't be served.
func (p *dataPort) enter(conn net.Conn) *caller {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if tcp.SetKeepAliveConfig(keepAlive) != nil {
			return nil
		}
	}
	c := &caller{stream: newStream(conn, p.stall, p.now)}
	c.waiting.Store(p.now().UnixNano())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return nil
	}
	if len(p.callers) >= p.most && !p.closeIdle() {
		return nil
	}
	p.callers[c] = true
	p.wg.Add(1)
	return c
}

func (p *dataPort) makeRoom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeIdle()
}

// closeIdle closes the connection that has had nothing to do for longest: those who keep connections for later
// make another one. It reports whether there was any. The lock is held.
func (p *dataPort) closeIdle() bool {
	var longest *caller
	for c := range p.callers {
		since := c.waiting.Load()
		if since != 0 && (longest == nil || since < longest.waiting.Load()) {
			longest = c
		}
	}
	if longest == nil {
		return false
	}
	longest.conn.Close()
	delete(p.callers, longest)
	return true
}

// converse answers requests until one can't be answered or the other side closes.
func (p *dataPort) converse(c *caller) {
	var head [requestBytes]byte
	for {
		if !c.rest() {
			c.waiting.Store(p.now().UnixNano())
			err := c.await()
			c.waiting.Store(0)
			if err != nil {
				return
			}
		}
		if c.fill(head[:]) != nil {
			return
		}
		q := parseRequest(&head)
		r := p.use(c.conn, q)
		if r == nil {
			if q.answered() {
				c.conn.Write(appendStatus(nil, statusRejected))
				p.linger(c)
			}
			return
		}
		err := oblige(c.stream, q, r)
		r.end(c.conn)
		if err != nil {
			return
		}
	}
}

// linger takes what the other side is still sending, for a moment, so that closing the connection doesn't
// take back the answer.
func (p *dataPort) linger(c *caller) {
	c.conn.SetDeadline(p.now().Add(lingerTime))
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		tcp.CloseWrite()
	}
	io.Copy(io.Discard, c.conn)
}

// oblige does what a request asks for with a region that it lies in.
func oblige(s *stream, q request, r *region) error {
	at := q.addr - r.Addr
	mem := r.bytes[at : at+q.size]
	var room [statusBytes]byte
	status := room[:0]
	if q.answered() {
		status = appendStatus(status, statusDone)
	}
	if !q.writes() {
		return s.send(status, mem, nil, nil)
	}
	if err := s.fill(mem); err != nil || !q.answered() {
		return err
	}
	return s.send(status, nil, nil, nil)
}

// stop ends the service and waits for it.
func (p *dataPort) stop() {
	p.listener.Close()
	p.mu.Lock()
	p.done = true
	for c := range p.callers {
		c.conn.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
