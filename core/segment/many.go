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
		for _, head := range lists.heads {
			var locked *Mounted
			for ; head != 0; head = lists.next[head-1] {
				a := some[head-1]
				m := a.Seg()
				if m != locked {
					if locked != nil {
						locked.mu.Unlock()
					}
					if locked = m; m != nil {
						m.mu.Lock()
					}
				}
				if m != nil {
					m.freeLocked(a)
				}
			}
			if locked != nil {
				locked.mu.Unlock()
			}
		}
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
		for _, head := range lists.heads {
			var locked *Mounted
			for ; head != 0; head = lists.next[head-1] {
				m := segs[head-1]
				if m != locked {
					if locked != nil {
						locked.mu.Unlock()
					}
					locked = m
					m.mu.Lock()
				}
				if size := sizes[head-1]; size > 0 {
					out[head-1], _ = m.allocateLocked(size)
				}
			}
			if locked != nil {
				locked.mu.Unlock()
			}
		}
		sizes, out = sizes[some:], out[some:]
	}
}
