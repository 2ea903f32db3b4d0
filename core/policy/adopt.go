package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// check reads a document: the set sorted by name, and what it is worth a warning about.
func check(content []byte) ([]tenant.Policy, []policydoc.Warning, error) {
	parsed, err := policydoc.Parse(content)
	if err != nil {
		return nil, nil, err
	}
	set := make([]tenant.Policy, len(parsed.Tenants))
	for i, t := range parsed.Tenants {
		set[i] = tenant.Policy{Name: t.Name, Quota: t.Quota}
	}
	byName := func(a, b tenant.Policy) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(set, byName) {
		slices.SortFunc(set, byName)
	}
	return set, parsed.Warnings, nil
}

// adopt puts a document in force unless it is already, or is not valid, or removes so many
// tenants that it takes a person's word, which meant says there is.
func (m *Manager) adopt(doc Document, why string, meant bool) (Applied, error) {
	sum := sha256.Sum256(doc.Content)
	if same, ok := m.confirm(doc, sum); ok {
		return same, nil
	}
	set, warnings, err := check(doc.Content)
	if err != nil {
		reason := "invalid_document"
		if policydoc.Blank(doc.Content) {
			reason = "empty"
		}
		m.failed(reason, err.Error())
		return Applied{}, err
	}
	for _, w := range warnings {
		m.Logger.Warn("tenant quota policy: " + w.String())
	}
	if meant && m.making == nil {
		m.edits.settle(set)
	}
	if !meant {
		if err := m.guard(doc, sum, set); err != nil {
			return Applied{}, err
		}
	}
	return m.apply(doc, sum, set, why, FromSource), nil
}

// confirm notes that a document at the source is the one in force, if it is.
func (m *Manager) confirm(doc Document, sum [sha256.Size]byte) (Applied, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.force.known || m.force.sum != sum || m.force.origin == FromAbsent {
		return Applied{}, false
	}
	news := m.force.revision != doc.Revision || m.force.origin != FromSource
	m.force.revision, m.force.origin, m.force.stale = doc.Revision, FromSource, time.Time{}
	if m.success.IsZero() {
		m.success = m.Clock.Now()
	}
	m.recovered()
	if news {
		m.saver.ring()
	}
	return Applied{Revision: doc.Revision, ContentHash: hex.EncodeToString(sum[:]), Tenants: len(m.force.set), Same: true}, true
}

// apply puts a checked set in force.
func (m *Manager) apply(doc Document, sum [sha256.Size]byte, set []tenant.Policy, why, origin string) Applied {
	now := m.Clock.Now()
	lost := m.edits.undone(set, now, m.making)
	for _, c := range lost {
		m.Logger.Warn("a quota saved through the admin interface was overwritten at the source, probably by somebody who had read the document before",
			"tenant", c.Name, "saved", c.Old, "now", c.New, "revision", doc.Revision)
	}
	m.mu.Lock()
	changes := Diff(m.force.set, set)
	first := !m.force.known
	m.mu.Unlock()
	if first || len(changes) > 0 {
		m.Enforcer.ApplyPolicies(set)
	}
	done := newApplied(doc.Revision, sum, now, why, set, changes)
	m.mu.Lock()
	m.force = inForce{known: true, origin: origin, revision: doc.Revision, sum: sum, since: now, set: set, content: doc.Content}
	if origin == FromStore {
		m.force.stale = m.stored.Time
	} else {
		m.applied++
		m.success = now
		m.recovered()
		m.saver.ring()
	}
	m.lost += uint64(len(lost))
	m.remember(done)
	m.mu.Unlock()
	m.Logger.Info("tenant quota policy in force", "why", why, "revision", doc.Revision, "sha256", hexOf(sum),
		"tenants", len(set), "added", done.Added, "removed", done.Removed, "changed", done.Changed, "what", done.What)
	return done
}

// recovered notes that the document is fine. Callers hold mu.
func (m *Manager) recovered() {
	m.held = nil
	if m.trouble.reason == "" {
		return
	}
	m.well = m.Clock.Now()
	m.Logger.Info("tenant quota policy: the source is fine again", "was", m.trouble.reason, "after", m.well.Sub(m.trouble.since).Round(time.Millisecond))
	m.trouble = trouble{}
}

// failed notes that there is no valid document to be had; the last good one stays in force.
func (m *Manager) failed(reason, text string) {
	now := m.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if reason != reasonHeld {
		m.held = nil
	}
	if m.trouble.reason == reason && m.trouble.text == text {
		return // the same as before is no news
	}
	since := now
	if m.trouble.reason != "" {
		since = m.trouble.since
	}
	m.trouble = trouble{reason: reason, text: text, since: since}
	m.last = fault{text: text, at: now}
	m.counts[reason]++
	if m.force.known {
		m.Logger.Error("tenant quota policy: the last good one stays in force", "reason", reason, "error", text, "in_force", m.force.revision)
	}
}
