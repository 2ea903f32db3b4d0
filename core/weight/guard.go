package weight

import (
	"maps"
	"sync/atomic"
)

// guard says what others may do with the objects of one revision's group.
type guard struct {
	open    atomic.Bool  // objects may be written
	written atomic.Int64 // when one was, or when the import began
}

func (g *guard) begin(now int64) {
	g.written.Store(now)
	g.open.Store(true)
}

func (g *guard) close()  { g.open.Store(false) }
func (g *guard) reopen() { g.open.Store(true) }

// setGuard puts a group under guard.
func (s *Store) setGuard(group string, g *guard) {
	next := map[string]*guard{group: g}
	if old := s.guards.Load(); old != nil {
		maps.Copy(next, *old)
	}
	s.guards.Store(&next)
}

func (s *Store) guard(group string) *guard {
	if group == "" {
		return nil
	}
	all := s.guards.Load()
	if all == nil {
		return nil
	}
	return (*all)[group]
}

// Any reports whether there is any revision. It takes no lock.
func (s *Store) Any() bool { return s.guards.Load() != nil }

// Managed reports whether the objects of a group belong to a revision. They are neither evicted nor
// removed but by the store. It takes no lock.
func (s *Store) Managed(group string) bool { return s.guard(group) != nil }

// Writable reports whether an object of a group may be written. It takes no lock; who calls it holds that
// of the object's shard until the object is in the group, so that Commit either refuses it or sees it.
func (s *Store) Writable(group string) bool {
	g := s.guard(group)
	return g == nil || g.open.Load()
}

// Wrote keeps the import that a group belongs to, if any, from being given up: an object of it was
// written at the instant now, on the clock. It takes no lock.
func (s *Store) Wrote(group string, now int64) {
	if g := s.guard(group); g != nil {
		g.written.Store(now)
	}
}
