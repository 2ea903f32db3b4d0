package transfertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// ErrNoMemory is what places answer where nothing is lent.
var ErrNoMemory = errors.New("no such memory")

// Call is one call of a carrier.
type Call struct {
	Write bool
	At    transfer.Place
	Size  int
}

// Memory is the memory that owners lend, and the Carrier that moves bytes in it. The zero value is ready.
type Memory struct {
	mu      sync.Mutex
	regions map[string][]region
	before  func(context.Context, Call) error
	after   func(context.Context, Call) error
	buffers int // that have not been given back
	bytes   int
	most    int
	calls   int // under way
	held    int // of those, in Hold
	tried   []string
}

type region struct {
	base  uint64
	bytes []byte
}

// Lend makes size bytes at an address of an owner.
func (m *Memory) Lend(owner string, base, size uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.regions == nil {
		m.regions = make(map[string][]region)
	}
	m.regions[owner] = append(m.regions[owner], region{base, make([]byte, size)})
}

// TakeBack ends all that an owner lends.
func (m *Memory) TakeBack(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.regions, owner)
}

// Before has f called before bytes move, without locks; its error fails the call. It may block until the context
// ends. nil ends that.
func (m *Memory) Before(f func(context.Context, Call) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = f
}

// After has f called after bytes have moved; its error fails the call all the same. nil ends that.
func (m *Memory) After(f func(context.Context, Call) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after = f
}

// Hold is for functions given to Before: it waits until free is closed, and counts the call as held until then.
func (m *Memory) Hold(free <-chan struct{}) error {
	m.mu.Lock()
	m.held++
	m.mu.Unlock()
	<-free
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held--
	return errHeld
}

var errHeld = errors.New("held until nobody wanted it any more")

// Held returns how many calls are held.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// Poke writes bytes, Peek reads some, whatever Before says.
func (m *Memory) Poke(at transfer.Place, b []byte) error { return m.move(at, b, true) }

// Peek returns n bytes at a place.
func (m *Memory) Peek(at transfer.Place, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, m.move(at, b, false)
}

func (m *Memory) move(at transfer.Place, b []byte, write bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.regions[at.Owner] {
		if at.Address < r.base || at.Address-r.base > uint64(len(r.bytes)) {
			continue
		}
		if there := r.bytes[at.Address-r.base:]; len(there) >= len(b) {
			if write {
				copy(there, b)
			} else {
				copy(b, there)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: %d bytes at %#x of %s", ErrNoMemory, len(b), at.Address, at.Owner)
}

// Read is a carrier's.
func (m *Memory) Read(ctx context.Context, from transfer.Place, dst []byte) error {
	return m.carry(ctx, Call{false, from, len(dst)}, dst)
}

// Write is a carrier's.
func (m *Memory) Write(ctx context.Context, to transfer.Place, src []byte) error {
	return m.carry(ctx, Call{true, to, len(src)}, src)
}

func (m *Memory) carry(ctx context.Context, c Call, b []byte) error {
	m.mu.Lock()
	m.calls++
	before, after := m.before, m.after
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.calls--
		m.mu.Unlock()
	}()
	if before != nil {
		if err := before(ctx, c); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.move(c.At, b, c.Write); err != nil || after == nil {
		return err
	}
	return after(ctx, c)
}

// Buffer is a carrier's.
func (m *Memory) Buffer(n int) ([]byte, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffers++
	m.bytes += n
	m.most = max(m.most, m.bytes)
	var once sync.Once
	return make([]byte, n), func() {
		once.Do(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.buffers--
			m.bytes -= n
		})
	}, nil
}

// Use says how many buffers there are, how many calls are under way, and how many bytes of buffers there were at
// most.
func (m *Memory) Use() (buffers, calls, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buffers, m.calls, m.most
}

// Ahead is a connector's.
func (m *Memory) Ahead(protocol string) bool { return protocol == "rdma" }

// Connect is a connector's. It looks at a byte, and fails as Read does.
func (m *Memory) Connect(ctx context.Context, at transfer.Place) error {
	err := m.Read(ctx, at, make([]byte, 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tried = append(m.tried, at.Owner)
	return err
}

// Tried returns the owners that have been connected to since the last call, or could not be.
func (m *Memory) Tried() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	tried := m.tried
	m.tried = nil
	return tried
}

var _ transfer.Connector = (*Memory)(nil)
