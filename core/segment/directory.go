package segment

import (
	"sync"
	"sync/atomic"
)

// directory gives every mounted segment of the process a number, by which allocations name it.
var directory = newSegments()

// segments is a list of segments that only grows; reading takes no lock. Numbers are never
// given twice. Place 0 is nobody's.
type segments struct {
	mu   sync.Mutex // guards growing and forgetting
	list atomic.Pointer[[]atomic.Pointer[Mounted]]
	used uint32
}

// gone stands in for segments that have left their registry, so that they take no memory.
var gone = func() *Mounted {
	m := new(Mounted)
	m.flags.Store(flagDead)
	m.status.Store(int32(StatusUnmounting))
	return m
}()

func newSegments() *segments {
	d := &segments{used: 1}
	list := make([]atomic.Pointer[Mounted], 16)
	d.list.Store(&list)
	return d
}

func (d *segments) at(place uint32) *Mounted { return (*d.list.Load())[place].Load() }

func (d *segments) enter(m *Mounted) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := *d.list.Load()
	if int(d.used) == len(list) {
		grown := make([]atomic.Pointer[Mounted], 2*len(list))
		for i := range list {
			grown[i].Store(list[i].Load())
		}
		list = grown
		d.list.Store(&grown)
	}
	place := d.used
	d.used++
	list[place].Store(m)
	return place
}

// forget puts the stand-in in the place of a segment that nobody needs any more.
func (d *segments) forget(place uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	(*d.list.Load())[place].Store(gone)
}
