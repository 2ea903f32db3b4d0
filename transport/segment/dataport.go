package segment

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// region is memory that a data port serves.
type region struct {
	Buffer
	bytes []byte

	mu   sync.Mutex
	gone bool
	used int // transfers under way
	idle sync.Cond
}

func newRegion(b Buffer, bytes []byte) *region {
	r := &region{Buffer: b, bytes: bytes}
	r.idle.L = &r.mu
	return r
}

// begin notes that a transfer uses the region; false when it may not any more.
func (r *region) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	r.used++
	return true
}

func (r *region) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used--; r.used == 0 {
		r.idle.Broadcast()
	}
}

// retire lets no further transfer begin and waits for those under way.
func (r *region) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	for r.used > 0 {
		r.idle.Wait()
	}
}

// dataPort serves the memory of regions to whoever connects, one request after the other on each
// connection. Both framings are served, request by request.
type dataPort struct {
	listener net.Listener
	now      func() time.Time

	mu      sync.RWMutex
	regions []*region
	conns   map[net.Conn]*region // what each is at work on
	done    bool
	wg      sync.WaitGroup
}

const (
	// transferChunk is how much is sent or received under one deadline.
	transferChunk = 4 << 20
	// progressTimeout is how long a chunk may take.
	progressTimeout = 30 * time.Second
)

func (p *dataPort) add(r *region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regions = append(p.regions, r)
}

// remove takes a region away and waits until nobody uses it any more: connections that are at work on it
// are cut off.
func (p *dataPort) remove(r *region) {
	p.mu.Lock()
	for i, other := range p.regions {
		if other == r {
			p.regions = append(p.regions[:i:i], p.regions[i+1:]...)
			break
		}
	}
	for conn, at := range p.conns {
		if at == r {
			conn.Close()
		}
	}
	p.mu.Unlock()
	r.retire()
}

// use returns the region that a request is about, begun, or nil.
func (p *dataPort) use(conn net.Conn, q request) *region {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.regions {
		if r.contains(q.addr, q.size) && r.begin() {
			p.conns[conn] = r
			return r
		}
	}
	return nil
}

func (p *dataPort) unuse(conn net.Conn, r *region) {
	p.mu.Lock()
	if _, ok := p.conns[conn]; ok {
		p.conns[conn] = nil
	}
	p.mu.Unlock()
	r.end()
}

func (p *dataPort) serve() {
	defer p.wg.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		p.mu.Lock()
		if p.done {
			p.mu.Unlock()
			conn.Close()
			return
		}
		p.conns[conn] = nil
		p.wg.Add(1)
		p.mu.Unlock()
		go func() {
			defer p.wg.Done()
			p.converse(conn)
			conn.Close()
			p.mu.Lock()
			delete(p.conns, conn)
			p.mu.Unlock()
		}()
	}
}

// converse answers requests until one can't be answered or the other side closes.
func (p *dataPort) converse(conn net.Conn) {
	var head [requestBytes]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		q := parseRequest(&head)
		r := p.use(conn, q)
		if r == nil {
			if q.answered() {
				conn.Write(appendStatus(nil, statusRejected))
				p.linger(conn)
			}
			return
		}
		err := p.transfer(conn, q, r)
		p.unuse(conn, r)
		if err != nil {
			return
		}
		conn.SetDeadline(time.Time{})
	}
}

// linger takes what the other side is still sending, for a moment, so that closing the connection doesn't
// take back the answer.
func (p *dataPort) linger(conn net.Conn) {
	conn.SetDeadline(p.now().Add(time.Second))
	if c, ok := conn.(*net.TCPConn); ok {
		c.CloseWrite()
	}
	io.Copy(io.Discard, conn)
}

func (p *dataPort) transfer(conn net.Conn, q request, r *region) error {
	at := q.addr - r.Addr
	mem := r.bytes[at : at+q.size]
	var status []byte
	if q.answered() {
		status = appendStatus(make([]byte, 0, statusBytes), statusDone)
	}
	if q.writes() {
		if err := receive(conn, mem, p.now); err != nil {
			return err
		}
		if len(status) == 0 {
			return nil
		}
		_, err := conn.Write(status)
		return err
	}
	return send(conn, status, mem, p.now)
}

// send writes a head and data, within progressTimeout for each chunk.
func send(conn net.Conn, head, data []byte, now func() time.Time) error {
	for len(head)+len(data) > 0 {
		n := min(len(data), transferChunk)
		if err := conn.SetWriteDeadline(now().Add(progressTimeout)); err != nil {
			return err
		}
		bufs := net.Buffers{head, data[:n]}
		if len(head) == 0 {
			bufs = bufs[1:]
		}
		if _, err := bufs.WriteTo(conn); err != nil {
			return err
		}
		head, data = nil, data[n:]
	}
	return nil
}

// receive fills data, within progressTimeout for each chunk.
func receive(conn net.Conn, data []byte, now func() time.Time) error {
	for len(data) > 0 {
		n := min(len(data), transferChunk)
		if err := conn.SetReadDeadline(now().Add(progressTimeout)); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// stop ends the service and waits for it.
func (p *dataPort) stop() {
	p.listener.Close()
	p.mu.Lock()
	p.done = true
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
