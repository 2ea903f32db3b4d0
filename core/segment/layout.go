package segment

import (
	"cmp"
	"slices"
)

// layout is an immutable picture of the registry, made anew after a segment has come, gone or
// changed what it may be used for.
type layout struct {
	all     []*Mounted        // the whole registry in mount order
	groups  []*group          // names that take allocations, in mount order
	byName  map[string]*group // the same by name
	hosts   []host            // the same by host, ascending; names without a host left out
	largest uint64            // the largest request that some group could serve when empty
}

// group is the segments of one name that take allocations, in mount order.
type group struct {
	name string
	segs []*Mounted
}

// host is the names with a segment on one host, ascending.
type host struct {
	id     string
	groups []*group
}

func newLayout(all []*Mounted) *layout {
	l := &layout{all: slices.Clone(all), byName: make(map[string]*group, len(all))}
	hosts := make(map[string][]*group)
	for _, m := range all {
		if !m.placeable() {
			continue
		}
		g := l.byName[m.Info.Name]
		if g == nil {
			g = &group{name: m.Info.Name}
			l.byName[g.name] = g
			l.groups = append(l.groups, g)
		}
		g.segs = append(g.segs, m)
		l.largest = max(l.largest, m.allocator().largestWhenEmpty())
		if id := m.Info.HostID; id != "" && !slices.Contains(hosts[id], g) {
			hosts[id] = append(hosts[id], g)
		}
	}
	for id, groups := range hosts {
		slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
		l.hosts = append(l.hosts, host{id, groups})
	}
	slices.SortFunc(l.hosts, func(a, b host) int { return cmp.Compare(a.id, b.id) })
	return l
}

// freeRatio returns the share of the group's memory that is not handed out.
func (g *group) freeRatio() float64 {
	var used, capacity float64
	for _, m := range g.segs {
		used += float64(m.Used())
		capacity += float64(m.Capacity())
	}
	return (capacity - used) / capacity
}

// allocate takes size bytes from one of the group's segments, beginning at a random one.
func (g *group) allocate(size uint64, rnd Rand) (Allocation, bool) {
	n := uint64(len(g.segs))
	if n == 1 {
		return g.segs[0].allocate(size)
	}
	start := rnd.Uint64N(n)
	for i := range n {
		if a, ok := g.segs[(start+i)%n].allocate(size); ok {
			return a, true
		}
	}
	return Allocation{}, false
}
