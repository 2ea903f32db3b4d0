package segment

import (
	"sync"
	"sync/atomic"
)

// Bits of Mounted.flags. Zero means that replicas in the segment can be read.
const (
	flagDead      = 1 << iota // unmounted: what was stored there is gone
	flagSuspended             // the client is silent: what is stored there can't be read now
)

// Mounted is a segment in the pool, from its mount to the end of its unmount. A segment
// mounted again is another Mounted. Its methods are safe for concurrent use and take no lock
// except where said.
type Mounted struct {
	// Info is what the client mounted; it is not changed. Its strings are owned by the pool.
	Info Info
	// Client is who lends the memory.
	Client UUID
	// Protocol is how clients are told to reach what lies there: Info's, unless all is reached over
	// CXL.
	Protocol string
	place    uint32 // in the directory
	store    bool   // hands out nothing, see NewStore

	flags  atomic.Uint32
	status atomic.Int32

	_ [64]byte // what is read on every lookup stays clear of what every allocation writes

	used atomic.Uint64 // written with mu held

	mu     sync.Mutex
	alloc  allocator // guarded by mu, except mayFit
	lender *Mounted  // whose memory this one hands out, nil for its own; never changes
	count  int       // allocations handed out, guarded by mu

	_ [64]byte
}

// Allocation is a piece of a segment's memory, handed out once and freed once. The zero value
// is no allocation.
//
// It holds no pointer, so that tables of allocations cost the garbage collector nothing: the
// segment is named by its place in a directory.
type Allocation struct {
	Address uint64 // in the client's process
	Size    uint64 // bytes as requested
	seg     uint32 // place in the directory, 0 = none
	node    uint32
}

// Seg returns the segment; nil for the zero Allocation. Once the segment has left the
// registry it is a stand-in that is not alive.
func (a Allocation) Seg() *Mounted { return directory.at(a.seg) }

// Stats describes the inside of one segment's allocator.
type Stats struct {
	Allocations int    // handed out and not yet freed
	UsedBytes   uint64 // as requested
	LargestFree uint64 // the largest request that succeeds now
}

func newMounted(info Info, client UUID) *Mounted {
	m := &Mounted{Info: info, Client: client, Protocol: info.Protocol}
	m.place = directory.enter(m)
	m.status.Store(int32(StatusOK))
	m.alloc.init(info.Size)
	return m
}

// Status returns the state of the segment.
func (m *Mounted) Status() Status { return Status(m.status.Load()) }

// Alive reports whether the segment's memory is still lent: false as soon as its unmount has
// begun, and for ever; replicas there are gone.
func (m *Mounted) Alive() bool { return m.flags.Load()&flagDead == 0 }

// Suspended reports whether the client is silent: replicas stay but can't be read, and nothing
// is allocated.
func (m *Mounted) Suspended() bool { return m.flags.Load()&flagSuspended != 0 }

// Readable reports whether replicas there can be read: alive and not suspended.
func (m *Mounted) Readable() bool { return m.flags.Load() == 0 }

// Used returns the bytes handed out, as requested; zero once the unmount has begun.
func (m *Mounted) Used() uint64 { return m.used.Load() }

// Capacity returns the size of the segment in bytes; where memory is shared, of all of it.
func (m *Mounted) Capacity() uint64 {
	if m.lender != nil {
		return m.lender.Info.Size
	}
	return m.Info.Size
}

// Stats returns figures about the segment's allocator; it takes the segment's lock.
func (m *Mounted) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Stats{Allocations: m.count, UsedBytes: m.used.Load(), LargestFree: m.largestFree()}
}

// placeable reports whether the segment takes new allocations.
func (m *Mounted) placeable() bool { return m.Readable() && m.Status() == StatusOK }

// allocate takes size bytes. It fails when no free region is large enough, and always once
// the segment no longer takes allocations.
func (m *Mounted) allocate(size uint64) (Allocation, bool) {
	if !m.allocator().mayFit(size) {
		return Allocation{}, false
	}
	m.mu.Lock()
	a, ok := m.allocateLocked(size)
	m.mu.Unlock()
	return a, ok
}

// allocateLocked is allocate with mu held.
func (m *Mounted) allocateLocked(size uint64) (Allocation, bool) {
	if !m.placeable() {
		return Allocation{}, false
	}
	if m.lender != nil {
		return m.borrow(size)
	}
	offset, index, ok := m.alloc.allocate(size)
	if !ok {
		return Allocation{}, false
	}
	m.used.Store(m.used.Load() + size)
	m.count++
	return Allocation{Address: m.Info.Base + offset, Size: size, seg: m.place, node: index}, true
}

// Free gives the memory back; it takes the segment's lock. On an unmounted segment and for the
// zero Allocation it does nothing. It reports false, changing nothing, when the memory is not
// handed out: an allocation freed twice, unless the memory was handed out again meanwhile.
func (a Allocation) Free() bool {
	m := a.Seg()
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.freeLocked(a)
}

// freeLocked is Free with mu held.
func (m *Mounted) freeLocked(a Allocation) bool {
	if m.lender != nil {
		return m.giveBack(a)
	}
	if m.store {
		m.used.Add(-a.Size)
		return true
	}
	if !m.Alive() {
		return true
	}
	if !m.alloc.free(a.Address-m.Info.Base, a.node) {
		return false
	}
	m.used.Store(m.used.Load() - a.Size)
	m.count--
	return true
}

// setStatus changes the status; no allocation is under way when it returns.
func (m *Mounted) setStatus(status Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Store(int32(status))
}

// suspend sets or clears the suspended flag; no allocation is under way when it returns.
func (m *Mounted) suspend(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		m.flags.Or(flagSuspended)
	} else {
		m.flags.And(^uint32(flagSuspended))
	}
}

// kill ends the life of the segment: its replicas are gone and its allocator with them.
func (m *Mounted) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Store(int32(StatusUnmounting))
	m.flags.Or(flagDead)
	m.alloc.drop()
	m.used.Store(0)
	m.count = 0
}
