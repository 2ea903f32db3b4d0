package rdma

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// own is memory of the adapter's own, registered for transfers.
type own struct {
	bytes  []byte
	region *Region
}

// newOwn maps and registers memory. Nobody else can reach it.
func (a *Adapter) newOwn(size int) (*own, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("RDMA buffer of %d bytes: %w", size, err)
	}
	wishLargePages(b)
	r, err := a.Register(b, false)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(b))
	}
	return &own{b, r}, nil
}

func (o *own) close() error {
	return errors.Join(o.region.Close(), unix.Munmap(o.bytes))
}

// bounce is registered memory that transfers pass through whose own memory is not registered.
type bounce struct {
	a     *Adapter
	size  int         // of a chunk
	slots chan []byte // free chunks; nil are those that were never used

	mu  sync.Mutex
	own []*own
}

const bounceChunk = 1 << 20

// bounceWindow is how many chunks a transfer has under way.
const bounceWindow = 4

func (b *bounce) init(a *Adapter) {
	b.a, b.size = a, bounceChunk
	n := max(a.o.BounceMemory/bounceChunk, 1)
	b.slots = make(chan []byte, n)
	for range n {
		b.slots <- nil
	}
}

// fill makes a chunk that was never used.
func (b *bounce) fill(chunk []byte) ([]byte, error) {
	if chunk != nil {
		return chunk, nil
	}
	o, err := b.a.newOwn(b.size)
	if err != nil {
		b.slots <- nil
		return nil, err
	}
	b.mu.Lock()
	b.own = append(b.own, o)
	b.mu.Unlock()
	return o.bytes, nil
}

func (b *bounce) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for _, o := range b.own {
		err = errors.Join(err, o.close())
	}
	b.own = nil
	return err
}

// hop is a part of a transfer in a chunk.
type hop struct {
	chunk, data []byte
	job         *job
	region      *Region
}

// bounced carries bytes of memory that is not registered through chunks that are, several at a time.
func (a *Adapter) bounced(ctx context.Context, p *Peer, op verbs.Opcode, address uint64, data []byte) error {
	var under []hop
	land := func() error {
		h := under[0]
		under = under[1:]
		err := h.job.wait(ctx)
		if err == nil && op == verbs.Read {
			copy(h.data, h.chunk)
		}
		h.region.end()
		a.bounce.slots <- h.chunk
		return err
	}
	var err error
	for err == nil && (len(data) > 0 || len(under) > 0) {
		var chunk []byte
		got := false
		switch {
		case len(data) == 0 || len(under) >= bounceWindow:
		case len(under) > 0: // who holds some waits for none
			select {
			case chunk = <-a.bounce.slots:
				got = true
			default:
			}
		default:
			select {
			case chunk = <-a.bounce.slots:
				got = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !got {
			err = land()
			continue
		}
		if chunk, err = a.bounce.fill(chunk); err != nil {
			break
		}
		at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(chunk))))
		n := min(len(data), len(chunk))
		r := a.regions.use(at, uint64(n))
		if r == nil {
			a.bounce.slots <- chunk
			err = ErrClosed
			break
		}
		if op == verbs.Write {
			copy(chunk, data[:n])
		}
		j := a.newJob(p, op)
		j.cut(r, at, address, uint64(n))
		j.start()
		under = append(under, hop{chunk, data[:n], j, r})
		data, address = data[n:], address+uint64(n)
	}
	if err != nil {
		failed, cancel := context.WithCancel(ctx)
		cancel()
		ctx = failed // the rest is given up
		for len(under) > 0 {
			land()
		}
	}
	return err
}

// buffers lends registered memory, and keeps some of what comes back.
type buffers struct {
	a *Adapter

	mu   sync.Mutex
	free map[int][]*own // by the logarithm of the size
	kept int            // bytes
	lent int
}

const (
	minBuffer = 16 // the logarithm of the least size
	maxKept   = 1 << 28
)

// Buffer returns n bytes of registered memory to read into and write from, and what gives them back. Nobody else can
// reach them.
func (a *Adapter) Buffer(n int) (b []byte, release func(), err error) {
	if n <= 0 {
		return nil, nil, fmt.Errorf("RDMA buffer of %d bytes: there must be at least one", n)
	}
	if !a.begin() {
		return nil, nil, ErrClosed
	}
	defer a.end()
	s := &a.buffers
	size := max(bits.Len(uint(n-1)), minBuffer)
	s.mu.Lock()
	var o *own
	if k := len(s.free[size]); k > 0 {
		o = s.free[size][k-1]
		s.free[size] = s.free[size][:k-1]
		s.kept -= len(o.bytes)
	}
	s.mu.Unlock()
	if o == nil {
		if o, err = a.newOwn(1 << size); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	s.lent++
	s.mu.Unlock()
	return o.bytes[:n:n], sync.OnceFunc(func() { s.back(size, o) }), nil
}

func (s *buffers) back(size int, o *own) {
	s.mu.Lock()
	s.lent--
	keep := s.free != nil && s.kept+len(o.bytes) <= maxKept
	if keep {
		s.free[size] = append(s.free[size], o)
		s.kept += len(o.bytes)
	}
	s.mu.Unlock()
	if !keep {
		if err := o.close(); err != nil {
			s.a.o.Log.Warn("RDMA buffer", "error", err)
		}
	}
}

// close gives back what is kept. What is lent is given back when it comes back.
func (s *buffers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, all := range s.free {
		for _, o := range all {
			err = errors.Join(err, o.close())
		}
	}
	s.free = nil
	return err
}
