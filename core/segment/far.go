package segment

// farBase is where the memory that segments over CXL share begins.
const farBase = 1 << 32

// farProtocol is the protocol of segments over CXL.
const farProtocol = "cxl"

// RankByDisk tells StrategyDiskFreeRatioFirst which share of a client's disk is free, 1 where that
// isn't known. It is called before the pool is used; the function must be cheap and safe for
// concurrent use.
func (p *Pool) RankByDisk(free func(client UUID) float64) { p.diskFree = free }

// diskFreeRatio is the share that is free on the disk of the client that has mounted the name last.
func (p *Pool) diskFreeRatio(g *group) float64 {
	if p.diskFree == nil {
		return 1
	}
	return p.diskFree(g.segs[len(g.segs)-1].Client)
}

// ShareFar adds size bytes of memory that every segment of protocol "cxl" hands out instead of its
// own; name is what it is called in figures. It is called before the pool is used.
func (p *Pool) ShareFar(name string, size uint64) {
	p.far = newMounted(Info{Name: name, Base: farBase, Size: size, Protocol: farProtocol}, UUID{})
	p.publish()
}

// Far returns the memory that segments over CXL share; its Used is what all of them have handed out. It is
// nil without such.
func (p *Pool) Far() *Mounted { return p.far }

// borrows reports whether a segment hands out the memory that is shared.
func (p *Pool) borrows(i *Info) bool { return p.far != nil && i.Protocol == farProtocol }

// newMounted makes a segment of this pool.
func (p *Pool) newMounted(info Info, client UUID) *Mounted {
	if !p.borrows(&info) {
		m := newMounted(info, client)
		if p.strategy == StrategyCXL {
			m.Protocol = farProtocol
		}
		return m
	}
	m := &Mounted{Info: info, Client: client, Protocol: farProtocol, lender: p.far}
	m.place = directory.enter(m)
	m.status.Store(int32(StatusOK))
	return m
}

// allocator is what hands out the segment's memory.
func (m *Mounted) allocator() *allocator {
	if m.lender != nil {
		return &m.lender.alloc
	}
	return &m.alloc
}

// borrow is allocate for a segment that hands out shared memory; mu is held.
func (m *Mounted) borrow(size uint64) (Allocation, bool) {
	f := m.lender
	f.mu.Lock()
	offset, index, ok := f.alloc.allocate(size)
	if ok {
		f.used.Store(f.used.Load() + size)
		f.count++
	}
	f.mu.Unlock()
	if !ok {
		return Allocation{}, false
	}
	m.used.Store(m.used.Load() + size)
	m.count++
	return Allocation{Address: f.Info.Base + offset, Size: size, seg: m.place, node: index}, true
}

// giveBack is free for such a segment; mu is held. The memory outlives the segment: it is given back
// after the segment's end, too, as long as the segment has not left the registry.
func (m *Mounted) giveBack(a Allocation) bool {
	f := m.lender
	f.mu.Lock()
	ok := f.alloc.free(a.Address-f.Info.Base, a.node)
	if ok {
		f.used.Store(f.used.Load() - a.Size)
		f.count--
	}
	f.mu.Unlock()
	if ok && m.Alive() {
		m.used.Store(m.used.Load() - a.Size)
		m.count--
	}
	return ok
}

// largestFree is the largest request that succeeds now; mu is held.
func (m *Mounted) largestFree() uint64 {
	if f := m.lender; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.alloc.largestFree()
	}
	return m.alloc.largestFree()
}
