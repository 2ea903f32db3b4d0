package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// reasonHeld is the trouble of a document that the guard holds back.
const reasonHeld = "held"

// RemovalError says that a document removes more tenants than may go without a person's word.
type RemovalError struct {
	Removed, Of int // tenants
	Most        int // percent
}

// Error names the numbers, the flag and the way out.
func (e *RemovalError) Error() string {
	return fmt.Sprintf("it removes %d of %d tenants (%.4g %%), more than --tenant_quota_max_removal_percent=%d", e.Removed, e.Of, e.Percent(), e.Most)
}

// Percent is the share of tenants removed.
func (e *RemovalError) Percent() float64 { return 100 * float64(e.Removed) / float64(max(1, e.Of)) }

// held is a valid document that waits for a person.
type held struct {
	revision string
	sum      [sha256.Size]byte
	since    time.Time
	tenants  int
	why      *RemovalError
}

// removal judges the step from one set to another; nil lets it pass.
func (m *Manager) removal(before, after []tenant.Policy) *RemovalError {
	if m.Keep <= 0 || len(before) == 0 {
		return nil
	}
	_, removed, _ := summary(Diff(before, after))
	if 100*removed <= (100-m.Keep)*len(before) {
		return nil
	}
	return &RemovalError{Removed: removed, Of: len(before), Most: 100 - m.Keep}
}

// guard holds a document of the source back that removes too much.
func (m *Manager) guard(doc Document, sum [sha256.Size]byte, set []tenant.Policy) error {
	before := m.policies()
	if m.stored != nil {
		before = m.stored.set
	}
	why := m.removal(before, set)
	if why == nil {
		return nil
	}
	m.failed(reasonHeld, fmt.Sprintf("revision %s is held back: %s; confirm it with POST /api/v1/tenant_quota_policy/confirm, or change it at the source", doc.Revision, why))
	now := m.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != nil && m.held.sum == sum {
		now = m.held.since
	}
	m.held = &held{revision: doc.Revision, sum: sum, since: now, tenants: len(set), why: why}
	return why
}

// Confirm puts the document in force that is held back, if it has the given revision and is
// still what the source holds. Errors: *ConflictError when another is held or none, and those
// of the source.
func (m *Manager) Confirm(ctx context.Context, revision string) (Applied, error) {
	ctx, cancel := context.WithTimeout(ctx, m.SaveTimeout)
	defer cancel()
	if err := m.acquire(ctx); err != nil {
		return Applied{}, persistent(fmt.Errorf("waiting for another change: %w", err))
	}
	defer m.release()
	doc, err := m.reload(ctx, "reload before a confirmation")
	var why *RemovalError
	switch {
	case err == nil:
		return Applied{}, &ConflictError{Err: errors.New("nothing is held back")}
	case !errors.As(err, &why):
		return Applied{}, persistent(err)
	case doc.Revision != revision:
		return Applied{}, &ConflictError{Current: doc.Revision, Err: fmt.Errorf("revision %s is held back, not %s", doc.Revision, revision)}
	}
	done, err := m.adopt(doc, "confirmed through the admin interface", true)
	if err != nil {
		return Applied{}, persistent(err)
	}
	return done, nil
}

func hexOf(sum [sha256.Size]byte) string {
	if sum == [sha256.Size]byte{} {
		return ""
	}
	return hex.EncodeToString(sum[:])
}
