package segment

import "fmt"

// check walks all regions and returns the first thing found wrong: regions that overlap or
// leave gaps, free neighbours that were not merged, a free region that is in the wrong bin or
// in none, counts that do not add up.
func (a *allocator) check() error {
	if a.chunks == nil {
		return nil // dropped
	}
	first, live, free := noNode, uint32(0), 0
	for i := range a.made {
		n := a.at(i)
		if n.binPrev == recycled {
			continue
		}
		live++
		if n.binPrev != inUse {
			free++
		}
		if n.left == noNode {
			if first != noNode {
				return fmt.Errorf("regions %d and %d both begin the segment", first, i)
			}
			first = i
		}
	}
	if live != a.live || live > a.nodeCap {
		return fmt.Errorf("%d live regions, counted %d, cap %d", live, a.live, a.nodeCap)
	}
	spare := uint32(0)
	for i := a.spare; i != noNode; i = a.at(i).binNext {
		spare++
	}
	if live+spare != a.made {
		return fmt.Errorf("%d live and %d spare nodes of %d", live, spare, a.made)
	}
	left, at, walked, lastFree := noNode, uint64(0), uint32(0), false
	for i := first; i != noNode; i = a.at(i).right {
		n := a.at(i)
		isFree := n.binPrev != inUse
		switch {
		case n.left != left:
			return fmt.Errorf("region %d has left neighbour %d, want %d", i, n.left, left)
		case uint64(n.offset) != at:
			return fmt.Errorf("region %d begins at %d, the one before ends at %d", i, n.offset, at)
		case n.units == 0:
			return fmt.Errorf("region %d is empty", i)
		case isFree && lastFree:
			return fmt.Errorf("free regions %d and %d are neighbours", left, i)
		case !isFree && binUnits(binBelow(n.units)) != n.units:
			return fmt.Errorf("allocated region %d has %d units, no bin size", i, n.units)
		}
		at += uint64(n.units)
		left, lastFree = i, isFree
		walked++
	}
	if at != uint64(a.total) || walked != live {
		return fmt.Errorf("%d regions cover %d units, want %d and %d", walked, at, live, a.total)
	}
	filed, top := 0, int32(-1)
	for bin := range uint32(binCount) {
		head := a.heads[bin]
		if set := a.occupied[bin/64]>>(bin%64)&1 == 1; set != (head != noNode) {
			return fmt.Errorf("bin %d occupied: %v, head %d", bin, set, head)
		}
		prev := noNode
		for i := head; i != noNode; i = a.at(i).binNext {
			n := a.at(i)
			if n.binPrev != prev || binBelow(n.units) != bin {
				return fmt.Errorf("region %d of %d units is wrong in bin %d", i, n.units, bin)
			}
			prev, top = i, int32(bin)
			filed++
		}
	}
	if filed != free || top != a.top.Load() {
		return fmt.Errorf("%d of %d free regions filed, highest bin %d, counted %d", filed, free, top, a.top.Load())
	}
	return nil
}

// check looks into every segment of the pool and compares what is handed out with want, given
// by segment.
func (p *Pool) check(want map[*Mounted]uint64) error {
	for _, m := range p.current().all {
		m.mu.Lock()
		err := m.alloc.check()
		used := m.used.Load()
		m.mu.Unlock()
		if err != nil {
			return fmt.Errorf("segment %s: %w", m.Info.Name, err)
		}
		if m.Alive() && used != want[m] {
			return fmt.Errorf("segment %s: %d bytes used, want %d", m.Info.Name, used, want[m])
		}
	}
	return nil
}
