package segment

// manyChunk is how many allocations are sorted at a time, manyLists into how many lists.
const (
	manyChunk = 128
	manyLists = 64
)

// bySegment is a few things in lists by their segment, so that a lock is taken once for all of
// a segment, and its allocator comes to the core once.
type bySegment struct {
	heads [manyLists]uint8 // 1 + index of the first; 0 = none
	next  [manyChunk]uint8
}

func (b *bySegment) add(i int, key uint32) {
	head := &b.heads[key%manyLists]
	b.next[i] = *head
	*head = uint8(i + 1)
}

// locked calls f for each thing with its segment, which is locked; things of no segment are left
// out.
func (b *bySegment) locked(of func(i int) *Mounted, f func(m *Mounted, i int)) {
	for _, head := range b.heads {
		var last *Mounted
		for ; head != 0; head = b.next[head-1] {
			i := int(head - 1)
			m := of(i)
			if m == nil {
				continue
			}
			if m != last {
				if last != nil {
					last.mu.Unlock()
				}
				last = m
				m.mu.Lock()
			}
			f(m, i)
		}
		if last != nil {
			last.mu.Unlock()
		}
	}
}

// FreeAll is Free for each of many allocations.
func FreeAll(all []Allocation) {
	for len(all) > 0 {
		some := all[:min(manyChunk, len(all))]
		all = all[len(some):]
		if len(some) == 1 {
			some[0].Free()
			return
		}
		var lists bySegment
		for i := range some {
			lists.add(i, some[i].seg)
		}
		lists.locked(func(i int) *Mounted { return some[i].Seg() }, func(m *Mounted, i int) { m.freeLocked(some[i]) })
	}
}

// PlaceMany is Place for one replica of each size where any segment will do: it fills out, which is
// as long as sizes, and leaves the zero Allocation where Place has to be asked: for all of them, if
// the strategy is another one than StrategyRandom.
func (p *Pool) PlaceMany(sizes []uint64, out []Allocation) {
	clear(out)
	l := p.current()
	n := uint64(len(l.groups))
	if p.strategy != StrategyRandom || n < 2 {
		return
	}
	for len(sizes) > 0 {
		some := min(manyChunk, len(sizes))
		var lists bySegment
		var segs [manyChunk]*Mounted
		for i := range some {
			g := l.groups[p.rnd.Uint64N(n)]
			m := g.segs[0]
			if len(g.segs) > 1 {
				m = g.segs[p.rnd.Uint64N(uint64(len(g.segs)))]
			}
			segs[i] = m
			lists.add(i, m.place)
		}
		lists.locked(func(i int) *Mounted { return segs[i] }, func(m *Mounted, i int) {
			if size := sizes[i]; size > 0 {
				out[i], _ = m.allocateLocked(size)
			}
		})
		sizes, out = sizes[some:], out[some:]
	}
}
