package policy

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Applied tells of a policy that was put in force.
type Applied struct {
	Revision    string
	ContentHash string // SHA-256 in hexadecimal, "" for the empty policy of an absent document
	Time        time.Time
	Why         string // "start", "stored", "watch", ...
	Tenants     int
	// Added, Removed and Changed count tenants; What names the first few.
	Added, Removed, Changed int
	What                    string
	// Same: it was in force already.
	Same bool
}

// historyMost is how many policies are remembered.
const historyMost = 100

func newApplied(revision string, sum [sha256.Size]byte, at time.Time, why string, set []tenant.Policy, changes []Change) Applied {
	a := Applied{Revision: revision, ContentHash: hexOf(sum), Time: at, Why: why, Tenants: len(set), What: excerpt(changes)}
	a.Added, a.Removed, a.Changed = summary(changes)
	return a
}

// remember adds to the history. Callers hold mu.
func (m *Manager) remember(a Applied) {
	if len(m.history) == historyMost {
		m.history = slices.Delete(m.history, 0, 1)
	}
	m.history = append(m.history, a)
}

// History returns what was put in force since the start, newest first.
func (m *Manager) History() []Applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.history)
	slices.Reverse(all)
	return all
}
