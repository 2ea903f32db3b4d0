package policy

import (
	"encoding/hex"
	"maps"
	"time"
)

// Status is what is known about the source and the policy in force. Times are zero and texts
// empty where there is nothing to tell.
type Status struct {
	Type  string // of the connector
	State string // Starting, Ready, Degraded or Stopped
	Since time.Time
	// LastError stays after a recovery, until the next one.
	LastError     string
	LastErrorTime time.Time
	Restarts      uint64

	Revision     string
	ContentHash  string // SHA-256 in hexadecimal
	InForceSince time.Time
	Tenants      int

	ReloadSuccesses uint64
	// ReloadFailures by reason: absent, unreachable, auth, invalid, permanent (what the source
	// said), empty, invalid_document (what it gave).
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
	}
	if m.force.known && m.force.revision != "" {
		s.ContentHash = hex.EncodeToString(m.force.sum[:])
	}
	if m.last.at.After(s.LastErrorTime) {
		s.LastError, s.LastErrorTime = m.last.text, m.last.at
	}
	switch {
	case !m.closed.IsZero():
		s.State, s.Since = Stopped, m.closed
	case s.State == Ready && m.trouble.reason != "":
		s.State, s.Since = Degraded, m.trouble.since
	case s.State == Ready && !m.force.known:
		s.State = Starting
	case s.State == Ready && m.well.After(s.Since):
		s.Since = m.well
	}
	return s
}
