package client

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// what is done with a call that passes between a client and its master.
type fate int

const (
	pass   fate = iota
	lost        // the connection ends before the call has reached the master
	unsaid      // it ends when the master has made the call, before the answer
	held        // the answer waits until it is released
)

// between is a way to a master on which calls meet their fates.
type between struct {
	listener net.Listener
	master   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	fates map[uint32][]fate // of the next calls of a function, by its number
	all   map[uint32]fate   // of those without
	calls map[uint32]int
	held  chan struct{} // closed to release what is held
	once  sync.Once
	open  map[net.Conn]bool
	done  bool
}

func newBetween(t *testing.T, master string) *between {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &between{listener: l, master: master, fates: map[uint32][]fate{}, all: map[uint32]fate{}, calls: map[uint32]int{}, held: make(chan struct{}), open: map[net.Conn]bool{}}
	b.wg.Go(b.serve)
	t.Cleanup(func() {
		l.Close()
		b.cut(true)
		b.release()
		b.wg.Wait()
	})
	return b
}

func (b *between) address() string { return b.listener.Addr().String() }

// next says what happens to the next calls of a function.
func (b *between) next(function uint32, fates ...fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fates[function] = append(b.fates[function], fates...)
}

// every says what happens to all calls of a function from now on.
func (b *between) every(function uint32, f fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[function] = f
}

// count returns how many calls of a function have reached the master.
func (b *between) count(function uint32) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[function]
}

func (b *between) release() { b.once.Do(func() { close(b.held) }) }

// cut ends all connections, for good or not.
func (b *between) cut(done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = b.done || done
	for conn := range b.open {
		conn.Close()
	}
	clear(b.open)
}

// connections returns how many there are.
func (b *between) connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) / 2
}

func (b *between) serve() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", b.master)
		if err != nil {
			conn.Close()
			continue
		}
		b.mu.Lock()
		if b.done {
			conn.Close()
			up.Close()
		} else {
			b.open[conn], b.open[up] = true, true
			w := &way{b: b, client: conn, master: up, fates: map[uint32]fate{}}
			b.wg.Go(w.forth)
			b.wg.Go(w.back)
		}
		b.mu.Unlock()
	}
}

// way is one connection.
type way struct {
	b              *between
	client, master net.Conn
	mu             sync.Mutex
	fates          map[uint32]fate // of the answers that are awaited
}

func (w *way) end() {
	w.client.Close()
	w.master.Close()
	w.b.mu.Lock()
	delete(w.b.open, w.client)
	delete(w.b.open, w.master)
	w.b.mu.Unlock()
}

// forth carries calls to the master.
func (w *way) forth() {
	defer w.end()
	head := make([]byte, 20)
	for {
		if _, err := io.ReadFull(w.client, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head[12:]))
		if _, err := io.ReadFull(w.client, body); err != nil {
			return
		}
		seq, function := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
		w.b.mu.Lock()
		f := w.b.all[function]
		if fates := w.b.fates[function]; len(fates) > 0 {
			f, w.b.fates[function] = fates[0], fates[1:]
		}
		if f != lost {
			w.b.calls[function]++
		}
		w.b.mu.Unlock()
		if f == lost {
			return
		}
		w.mu.Lock()
		w.fates[seq] = f
		w.mu.Unlock()
		if _, err := w.master.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// back carries answers to the client.
func (w *way) back() {
	defer w.end()
	head := make([]byte, 16)
	for {
		if _, err := io.ReadFull(w.master, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head[8:]))
		if _, err := io.ReadFull(w.master, body); err != nil {
			return
		}
		w.mu.Lock()
		f := w.fates[binary.LittleEndian.Uint32(head[4:])]
		w.mu.Unlock()
		switch f {
		case unsaid:
			return
		case held:
			answer := append(bytes.Clone(head), body...)
			w.b.wg.Go(func() {
				<-w.b.held
				w.client.Write(answer)
			})
			continue
		}
		if _, err := w.client.Write(append(bytes.Clone(head), body...)); err != nil {
			return
		}
	}
}
