package policy

import (
	"cmp"
	"maps"
	"time"
)

// Status is what is known about the source and the policy in force. Times are zero and texts
// empty where there is nothing to tell.
type Status struct {
	Type  string // of the connector
	State string // one of the constants
	Since time.Time
	// LastError stays after a recovery, until the next one.
	LastError     string
	LastErrorTime time.Time
	Restarts      uint64

	Revision     string
	ContentHash  string // SHA-256 in hexadecimal
	InForceSince time.Time
	Tenants      int
	Origin       string    // FromSource, FromStore, FromAbsent or FromNobody
	StaleSince   time.Time // of a stored policy: when the source was last known to hold it

	// The document held back by the guard, if any.
	HeldRevision, HeldHash   string
	HeldSince                time.Time
	HeldTenants, HeldRemoved int

	// The copy kept across restarts, if one is kept.
	StoredTime  time.Time
	StoredError string // of the last attempt to store it, or to use what was found at the start; "" if it succeeded

	ReloadOK        bool // what the source said last is in force
	ReloadSuccesses uint64
	// ReloadFailures by reason: absent, unreachable, auth, invalid, permanent (what the source
	// said), empty, invalid_document, held (what it gave).
	ReloadFailures   map[string]uint64
	LastSuccess      time.Time
	OverwrittenSaves uint64 // changes saved by us and taken back by somebody's older copy
}

// Status returns a snapshot that the caller may keep.
func (m *Manager) Status() Status {
	source := m.Source.Status()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{
		Type: source.Type, State: source.State, Since: source.Since, Restarts: source.Restarts,
		LastError: source.LastError, LastErrorTime: source.LastErrorTime,
		Revision: m.force.revision, InForceSince: m.force.since, Tenants: len(m.force.set),
		ReloadSuccesses: m.applied, ReloadFailures: maps.Clone(m.counts), LastSuccess: m.success,
		OverwrittenSaves: m.lost,
		ContentHash:      hexOf(m.force.sum), Origin: m.force.origin, StaleSince: m.force.stale,
		StoredTime: m.saver.saved, StoredError: cmp.Or(m.saver.fault, m.saver.unread),
		ReloadOK: m.force.known && m.force.origin != FromStore && m.trouble.reason == "",
	}
	if h := m.held; h != nil {
		s.HeldRevision, s.HeldHash, s.HeldSince, s.HeldTenants, s.HeldRemoved = h.revision, hexOf(h.sum), h.since, h.tenants, h.why.Removed
	}
	if m.last.at.After(s.LastErrorTime) {
		s.LastError, s.LastErrorTime = m.last.text, m.last.at
	}
	switch {
	case !m.closed.IsZero():
		s.State, s.Since = Stopped, m.closed
	case m.cancel != nil && !m.force.known:
		s.State, s.Since = NoPolicy, m.trouble.since
	case m.held != nil:
		s.State, s.Since = Held, m.held.since
	case m.force.origin == FromStore:
		s.State, s.Since = Stale, m.force.since
	case s.State == Ready && m.trouble.reason != "":
		s.State, s.Since = Degraded, m.trouble.since
	case s.State == Ready && !m.force.known:
		s.State = Starting
	case s.State == Ready && m.well.After(s.Since):
		s.Since = m.well
	}
	return s
}
