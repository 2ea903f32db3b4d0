package policy

import (
	"crypto/sha256"

	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// Plan is what a document would change if it were put in force now.
type Plan struct {
	// Revision and BaseHash name the policy in force, which it is compared with.
	Revision, BaseHash string
	ContentHash        string
	Tenants            int // that the document names
	Warnings           []policydoc.Warning
	Same               bool // byte for byte what is in force
	// Added, Removed, Changed and Unchanged count tenants by their requested quota.
	Added, Removed, Changed, Unchanged int
	Preview                            tenant.Preview
	// Removal is the share of tenants that it removes; Held, that it would be held back.
	Removal RemovalError
	Held    bool
}

// Plan works out what a document would change, by the steps of putting it in force, and
// changes nothing. It asks neither the source nor waits for a change under way. The error is
// an *InvalidError.
func (m *Manager) Plan(document []byte) (Plan, error) {
	set, warnings, err := check(document)
	if err != nil {
		return Plan{}, &InvalidError{err}
	}
	sum := sha256.Sum256(document)
	for {
		m.mu.Lock()
		f := m.force
		m.mu.Unlock()
		p := Plan{
			Revision: f.revision, BaseHash: hexOf(f.sum), ContentHash: hexOf(sum), Tenants: len(set), Warnings: warnings,
			Same: f.known && f.sum == sum, Preview: m.Enforcer.PreviewPolicies(set),
			Held: m.removal(f.set, set) != nil,
		}
		p.Added, p.Removed, p.Changed = summary(Diff(f.set, set))
		p.Unchanged = len(f.set) - p.Removed - p.Changed
		p.Removal = RemovalError{Removed: p.Removed, Of: len(f.set), Most: 100 - m.Keep}
		m.mu.Lock()
		same := m.force.sum == f.sum && m.force.known == f.known
		m.mu.Unlock()
		if same {
			return p, nil
		}
	}
}
