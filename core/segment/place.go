package segment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Strategy is how segments are chosen for replicas.
type Strategy uint8

// The strategies. StrategyRandom is zero.
const (
	StrategyRandom             Strategy = iota // any, beginning at a random one
	StrategyFreeRatioFirst                     // the emptiest of a few chosen at random
	StrategyLocalFirst                         // the writer's host first when one replica is asked for
	StrategyCXL                                // one replica, on the first name that is preferred
	StrategyDiskFreeRatioFirst                 // of a few chosen at random the one whose owner's disk is emptiest
)

var strategyNames = [...]string{"random", "free_ratio_first", "local_first", "cxl", "ssd_free_ratio_first"}

// String returns the name of the strategy, as the command line spells it.
func (s Strategy) String() string {
	if int(s) < len(strategyNames) {
		return strategyNames[s]
	}
	return "unknown"
}

// ParseStrategy returns the strategy called name. It fails when there is none.
func ParseStrategy(name string) (Strategy, error) {
	i := slices.Index(strategyNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("unknown allocation strategy %q, must be one of %s", name, strings.Join(strategyNames[:], ", "))
	}
	return Strategy(i), nil
}

// Rand is a source of randomness. Uint64N returns a number below n, which is not zero. It is
// called for every placement from many goroutines at once: it must be cheap and safe for
// concurrent use. It need not be good, only even.
type Rand interface{ Uint64N(n uint64) uint64 }

// Request says what to place where.
type Request struct {
	Size     uint64 // bytes of each replica
	Replicas uint64 // how many, on segments of different names; fewer is fine, none is not

	// Preferred are names of segments to try first, in this order. PreferredSegment, when
	// set, is the one to try first instead of them. Names that take no allocations are
	// skipped.
	Preferred        []string
	PreferredSegment string
	// Exclude are names that must not be used.
	Exclude []string

	// SameNode asks for the order of StrategyLocalFirst before the pool's strategy.
	SameNode bool
	// HostID is the writer's host; without it there is no local order. KeyHash spreads
	// objects over the segments of one host.
	HostID  string
	KeyHash uint64
}

const (
	// walkLimit bounds how many names are tried when looking for any that has room.
	walkLimit = 100
	// windowPerReplica is how many names are compared by free ratio for each replica.
	windowPerReplica = 6
)

// Place allocates the replicas of one object and appends them to out, at least one and at most
// as many as asked for. It fails with ErrInvalid when no bytes or no replicas are asked for
// or StrategyCXL knows no preference, and with ErrNoSpace when none could be placed; out is returned as it was then. Place keeps
// neither the request nor anything it points to.
func (p *Pool) Place(req *Request, out []Allocation) ([]Allocation, error) {
	if req.Size == 0 || req.Replicas == 0 {
		return out, ErrInvalid
	}
	l := p.current()
	first := len(out)
	pl := placement{
		pool:  p,
		out:   out,
		first: first,
		want:  first + int(min(req.Replicas, uint64(len(l.groups)))),
	}
	if p.strategy == StrategyCXL {
		if !pl.onFirst(l, req) {
			return out, ErrInvalid
		}
	} else {
		pl.place(l, req)
	}
	if len(pl.out) == first {
		return out, ErrNoSpace
	}
	return pl.out, nil
}

// AllocateOn allocates size bytes on the segment called name, on any of several with this
// name. It fails with ErrInvalid for zero bytes, with ErrNotFound when the name takes no
// allocations (unknown, draining, being unmounted), and with ErrNoSpace when it is full or its
// client is silent.
func (p *Pool) AllocateOn(name string, size uint64) (Allocation, error) {
	if size == 0 {
		return Allocation{}, ErrInvalid
	}
	g := p.current().byName[name]
	if p.strategy == StrategyCXL {
		return Allocation{}, ErrNoSpace // as the released masters have it
	}
	if g == nil {
		if _, _, err := p.QuerySegment(name); err != nil {
			return Allocation{}, err
		}
		return Allocation{}, ErrNoSpace
	}
	a, ok := g.allocate(size, p.rnd)
	if !ok {
		return Allocation{}, ErrNoSpace
	}
	return a, nil
}

// placement is one Place under way. The request is passed beside it, so that it can stay on
// the caller's stack.
type placement struct {
	pool  *Pool
	out   []Allocation
	first int // where this object's replicas begin in out
	want  int // length of out when done
}

func (pl *placement) place(l *layout, req *Request) {
	switch len(l.groups) {
	case 0:
		return
	case 1:
		pl.try(req, l.groups[0])
		return
	}
	if pl.preferred(l, req) || pl.local(l, req) {
		return
	}
	switch pl.pool.strategy {
	case StrategyFreeRatioFirst:
		if pl.emptiest(l, req, (*group).freeRatio) {
			return
		}
	case StrategyDiskFreeRatioFirst:
		if pl.emptiest(l, req, pl.pool.diskFreeRatio) {
			return
		}
	}
	pl.walk(l, req)
}

// preferred tries the names asked for and reports whether all replicas are placed.
func (pl *placement) preferred(l *layout, req *Request) bool {
	if name := req.PreferredSegment; name != "" {
		return pl.try(req, l.byName[name])
	}
	for _, name := range req.Preferred {
		if pl.try(req, l.byName[name]) {
			return true
		}
	}
	return false
}

// local tries all names in the order of hosts, the writer's or the next one first, and inside
// a host in an order that depends on the key.
func (pl *placement) local(l *layout, req *Request) bool {
	if pl.pool.strategy != StrategyLocalFirst && !req.SameNode || req.Replicas != 1 || req.HostID == "" {
		return false
	}
	start, _ := slices.BinarySearchFunc(l.hosts, req.HostID, func(h host, id string) int {
		return cmp.Compare(h.id, id)
	})
	for i := range l.hosts {
		groups := l.hosts[(start+i)%len(l.hosts)].groups
		n := uint64(len(groups))
		for j := range n {
			if pl.try(req, groups[(req.KeyHash%n+j)%n]) {
				return true
			}
		}
	}
	return false
}

// onFirst tries the first name that is preferred, and reports whether there is one.
func (pl *placement) onFirst(l *layout, req *Request) bool {
	name := req.PreferredSegment
	for _, preferred := range req.Preferred {
		if name == "" {
			name = preferred
		}
	}
	if name == "" {
		return false
	}
	if g := l.byName[name]; g != nil {
		if a, ok := g.segs[0].allocate(req.Size); ok {
			pl.out = append(pl.out, a)
		}
	}
	return true
}

// emptiest tries a window of names from a random one on, those of the highest ratio first.
func (pl *placement) emptiest(l *layout, req *Request, ratio func(*group) float64) bool {
	type candidate struct {
		group *group
		ratio float64
	}
	var few [4 * windowPerReplica]candidate // on the stack for up to four replicas
	window := few[:0]
	n := uint64(len(l.groups))
	size := min(uint64(pl.want-len(pl.out))*windowPerReplica, n)
	start := pl.pool.rnd.Uint64N(n)
	for i := range size {
		g := l.groups[(start+i)%n]
		window = append(window, candidate{g, ratio(g)})
	}
	slices.SortStableFunc(window, func(a, b candidate) int { return cmp.Compare(b.ratio, a.ratio) })
	for _, c := range window {
		if pl.try(req, c.group) {
			return true
		}
	}
	return false
}

// walk tries names from a random one on.
func (pl *placement) walk(l *layout, req *Request) {
	n := uint64(len(l.groups))
	start := pl.pool.rnd.Uint64N(n)
	for i := range min(walkLimit, n) {
		if pl.try(req, l.groups[(start+i)%n]) {
			return
		}
	}
}

// try places a replica on a name unless it may not be used or already has one, and reports
// whether all replicas are placed.
func (pl *placement) try(req *Request, g *group) bool {
	if g == nil || slices.Contains(req.Exclude, g.name) {
		return false
	}
	for i := pl.first; i < len(pl.out); i++ {
		if pl.out[i].Seg().Info.Name == g.name {
			return false
		}
	}
	if a, ok := g.allocate(req.Size, pl.pool.rnd); ok {
		pl.out = append(pl.out, a)
	}
	return len(pl.out) == pl.want
}
