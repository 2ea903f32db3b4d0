package segment

import "math"

// ByID returns the segment mounted with this id, in any status, nil if there is none.
func (p *Pool) ByID(id UUID) *Mounted {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byID[id]
}

// ByName returns the segment mounted last with this name, in any status, nil if there is none.
func (p *Pool) ByName(name string) *Mounted {
	all := p.current().all
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Info.Name == name {
			return all[i]
		}
	}
	return nil
}

// QuerySegment returns the bytes handed out and the capacity of the segments of this name that
// are in status OK, silent ones included. It fails with ErrNotFound when there is none.
func (p *Pool) QuerySegment(name string) (used, capacity uint64, err error) {
	found := false
	for _, m := range p.current().all {
		if m.Info.Name == name && m.Status() == StatusOK {
			used += m.Used()
			capacity = saturate(capacity, m.Capacity())
			found = true
		}
	}
	if !found {
		return 0, 0, ErrNotFound
	}
	return used, capacity, nil
}

// StatusByName returns the status of the segment mounted last with this name. It fails with
// ErrNotFound when there is none.
func (p *Pool) StatusByName(name string) (Status, error) { return statusOf(p.ByName(name)) }

// StatusByID returns the status of the segment mounted with this id. It fails with ErrNotFound
// when there is none.
func (p *Pool) StatusByID(id UUID) (Status, error) { return statusOf(p.ByID(id)) }

func statusOf(m *Mounted) (Status, error) {
	if m == nil {
		return StatusUndefined, ErrNotFound
	}
	return m.Status(), nil
}

// Names returns the names with a segment in status OK, silent ones included, each once, in
// mount order.
func (p *Pool) Names() []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range p.current().all {
		if m.Status() == StatusOK && !seen[m.Info.Name] {
			seen[m.Info.Name] = true
			names = append(names, m.Info.Name)
		}
	}
	return names
}

// NameCount returns how many names take allocations now.
func (p *Pool) NameCount() int { return len(p.current().groups) }

// Len returns how many segments are in the registry, in any status.
func (p *Pool) Len() int { return len(p.current().all) }

// Views returns all segments in the registry, in mount order.
func (p *Pool) Views() []View {
	all := p.current().all
	views := make([]View, len(all))
	for i, m := range all {
		views[i] = View{
			Info:      m.Info,
			Client:    m.Client,
			Status:    m.Status(),
			Suspended: m.Suspended(),
			Used:      m.Used(),
			Capacity:  m.Capacity(),
		}
	}
	return views
}

// OfClient returns the segments of a client in the registry, in any status, in mount order.
func (p *Pool) OfClient(client UUID) []*Mounted {
	var of []*Mounted
	for _, m := range p.current().all {
		if m.Client == client {
			of = append(of, m)
		}
	}
	return of
}

// CapacityBytes returns the size of all segments in the registry, in any status, saturated at
// 2^64-1. A segment being unmounted counts until FinishUnmount.
func (p *Pool) CapacityBytes() uint64 { return p.capacity.Load() }

// UsedBytes returns the bytes handed out in all segments.
func (p *Pool) UsedBytes() uint64 {
	var used uint64
	for _, m := range p.current().all {
		used = saturate(used, m.Used())
	}
	return used
}

// HasFree reports whether so many bytes are free in segments that take allocations now. It looks at
// few segments unless memory is nearly full.
func (p *Pool) HasFree(bytes uint64) bool {
	var free uint64
	for _, g := range p.current().groups {
		for _, m := range g.segs {
			if free += m.Capacity() - min(m.Used(), m.Capacity()); free >= bytes {
				return true
			}
		}
	}
	return bytes == 0
}

// CanEverFit reports whether a replica of size bytes would fit into some segment that takes
// allocations now if that segment were empty. If not, no eviction can help.
func (p *Pool) CanEverFit(size uint64) bool { return size <= p.current().largest }

// MaxFree returns the largest replica in bytes that could be placed now; it takes the lock of
// each segment in turn.
func (p *Pool) MaxFree() uint64 {
	var largest uint64
	for _, g := range p.current().groups {
		for _, m := range g.segs {
			largest = max(largest, m.Stats().LargestFree)
		}
	}
	return largest
}

func saturate(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
