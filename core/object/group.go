package object

import "sync"

// Group is a set of objects of one tenant that are leased and evicted together.
type Group struct {
	ID      string
	members []*Object
	changed bool // membership changed since the leases were last refreshed
}

// groups are a space's groups; one lock guards them all.
type groups struct {
	mu   sync.Mutex
	byID map[string]*Group
}

// Join puts the object into the group with that id, which is made if needed. A group that is
// leased lends its lease to the newcomer.
func (s *Space) Join(o *Object, id string) {
	if id == "" {
		return
	}
	gs := &s.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.byID[id]
	if g == nil {
		if gs.byID == nil {
			gs.byID = make(map[string]*Group)
		}
		g = &Group{ID: id}
		gs.byID[id] = g
	}
	o.ExtendLease(g.rank())
	g.members = append(g.members, o)
	g.changed = true
	o.more().group = g
}

func (gs *groups) leave(o *Object) {
	g := o.Group()
	if g == nil {
		return
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for i, m := range g.members {
		if m == o {
			last := len(g.members) - 1
			g.members[i] = g.members[last]
			g.members[last] = nil
			g.members = g.members[:last]
			break
		}
	}
	g.changed = true
	if len(g.members) == 0 {
		delete(gs.byID, g.ID)
	}
}

func (gs *groups) doomed(o *Object) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return o.extra.doomed
}

// Lease grants the object a lease of ttl nanoseconds from now. For a grouped object all
// members get it, but only when this member's lease is half used up or the membership has
// changed, so that a hot group isn't walked on every read. The shard is locked for reading.
func (s *Space) Lease(o *Object, now, ttl int64) {
	g := o.Group()
	if g == nil {
		o.ExtendLease(now + ttl)
		return
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	if left := o.Lease() - now; left > ttl/2 && !g.changed {
		o.ExtendLease(now + ttl)
		return
	}
	for _, m := range g.members {
		m.ExtendLease(now + ttl)
	}
	g.changed = false
}

// Rank is the instant the object is ordered by when room has to be made: the end of its
// lease, and for a member of a group the latest end among the members.
func (s *Space) Rank(o *Object) int64 {
	g := o.Group()
	if g == nil {
		return o.Lease()
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return g.rank()
}

func (g *Group) rank() int64 {
	var rank int64
	for _, m := range g.members {
		rank = max(rank, m.Lease())
	}
	return rank
}

// Members returns the members of the object's group, the object itself included; for an
// ungrouped object that is the object alone.
func (s *Space) Members(o *Object) []*Object {
	g := o.Group()
	if g == nil {
		return []*Object{o}
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return append([]*Object(nil), g.members...)
}

// Doom marks the given members of one group as given up, unless a member of the group is
// leased at now: from then on lookups miss them, so that no reader sees half a group.
func (s *Space) Doom(g *Group, members []*Object, now int64) bool {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	if g.rank() > now {
		return false
	}
	for _, m := range members {
		m.extra.doomed = true
	}
	return true
}

// Spare takes Doom back for a member that could not be evicted after all.
func (s *Space) Spare(o *Object) {
	s.groups.mu.Lock()
	o.extra.doomed = false
	s.groups.mu.Unlock()
}
