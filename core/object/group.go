package object

import (
	"strings"
	"sync"
)

// Group is a set of objects of one tenant that are leased and evicted together.
type Group struct {
	ID      string
	members []member
	changed bool // membership changed since the leases were last refreshed
}

// member is an object of a group and what its shard keeps of it, which is good for as long as
// the object is a member.
type member struct {
	o *Object
	x *extra
}

// groups are a space's groups; one lock guards them all.
type groups struct {
	mu   sync.Mutex
	byID map[string]*Group
}

// Join puts the object into the group with that id, which is made if needed. A group that is
// leased lends its lease to the newcomer. The shard is locked for writing.
func (sh *Shard) Join(o *Object, id string) {
	if id == "" {
		return
	}
	gs := &sh.space.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.byID[id]
	if g == nil {
		if gs.byID == nil {
			gs.byID = make(map[string]*Group)
		}
		g = &Group{ID: strings.Clone(id)}
		gs.byID[g.ID] = g
	}
	o.ExtendLease(g.rank())
	x := sh.ensureExtra(o)
	x.group = g
	g.members = append(g.members, member{o, x})
	g.changed = true
}

func (gs *groups) leave(o *Object, x *extra) {
	g := x.group
	if g == nil {
		return
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for i, m := range g.members {
		if m.o == o {
			last := len(g.members) - 1
			g.members[i] = g.members[last]
			g.members[last] = member{}
			g.members = g.members[:last]
			break
		}
	}
	g.changed = true
	if len(g.members) == 0 {
		delete(gs.byID, g.ID)
	}
}

func (gs *groups) doomed(x *extra) bool {
	if x.group == nil {
		return false
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return x.doomed
}

// Lease grants the object a lease of ttl nanoseconds from now. For a grouped object all
// members get it, but only when this member's lease is half used up or the membership has
// changed, so that a hot group isn't walked on every read.
func (sh *Shard) Lease(o *Object, now, ttl int64) {
	g := sh.Group(o)
	if g == nil {
		o.ExtendLease(now + ttl)
		return
	}
	gs := &sh.space.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if left := o.Lease() - now; left > ttl/2 && !g.changed {
		o.ExtendLease(now + ttl)
		return
	}
	for _, m := range g.members {
		m.o.ExtendLease(now + ttl)
	}
	g.changed = false
}

// Rank is the instant the object is ordered by when room has to be made: the end of its
// lease, and for a member of a group the latest end among the members.
func (sh *Shard) Rank(o *Object) int64 {
	g := sh.Group(o)
	if g == nil {
		return o.Lease()
	}
	gs := &sh.space.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return g.rank()
}

func (g *Group) rank() int64 {
	var rank int64
	for _, m := range g.members {
		rank = max(rank, m.o.Lease())
	}
	return rank
}

// Members returns the members of a group.
func (s *Space) Members(g *Group) []Ref {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	refs := make([]Ref, len(g.members))
	for i, m := range g.members {
		refs[i] = m.o.Ref()
	}
	return refs
}

// MembersOf returns the members of the group with that id, if there is one.
func (s *Space) MembersOf(id string) []Ref {
	s.groups.mu.Lock()
	g := s.groups.byID[id]
	s.groups.mu.Unlock()
	if g == nil {
		return nil
	}
	return s.Members(g)
}

// Doom marks the chosen members of a group as given up, unless a member is leased at now:
// from then on lookups miss them, so that no reader sees half of a group.
func (s *Space) Doom(g *Group, chosen []Ref, now int64) bool {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	if g.rank() > now {
		return false
	}
	going := make(map[Ref]bool, len(chosen))
	for _, r := range chosen {
		going[r] = true
	}
	for _, m := range g.members {
		m.x.doomed = going[m.o.Ref()]
	}
	return true
}

// Spare takes Doom back for a member that could not be evicted after all.
func (sh *Shard) Spare(o *Object) {
	if x := sh.extra(o); x != nil {
		sh.space.groups.mu.Lock()
		x.doomed = false
		sh.space.groups.mu.Unlock()
	}
}
