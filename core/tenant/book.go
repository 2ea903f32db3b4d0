package tenant

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
)

// The errors of a Book. Nothing has changed when one is returned.
var (
	// ErrInvalidName is returned for a policy whose tenant name is not Valid.
	ErrInvalidName = errors.New("invalid tenant name")
	// ErrDuplicateName is returned for a set that names a tenant twice.
	ErrDuplicateName = errors.New("duplicate tenant name")
	// ErrRange is returned for a quota outside 1..MaxBytes or a usage above MaxBytes.
	ErrRange = errors.New("bytes out of range")
	// ErrNoPolicy is returned when the tenant to be removed has no policy.
	ErrNoPolicy = errors.New("tenant has no policy")
	// ErrNotEmpty is returned when the tenant to be removed has bytes charged.
	ErrNotEmpty = errors.New("tenant is not empty")
)

// Book holds the accounts of all tenants and the policies in force.
//
// A policy change alone leaves effective quotas as they were, and a tenant new to the set
// closed, until Recompute is called.
type Book struct {
	accounts index // read without a lock, written with mu held

	mu       sync.Mutex
	explicit []*Account // those with a policy, ascending by name
	capacity uint64     // what the last Recompute saw
}

// NewBook returns a book without tenants.
func NewBook() *Book {
	b := &Book{}
	b.accounts.init()
	return b
}

// Lookup returns the account of a tenant, nil when the tenant never had one; no charge may be
// made then. It takes no lock and does not keep name.
func (b *Book) Lookup(name string) *Account {
	name = Normalize(name)
	return b.accounts.find(name, b.accounts.hash(name))
}

// Len returns the number of tenants with a policy.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.explicit)
}

// Ensure returns the account of a tenant and creates it, closed and empty, if need be. Such an
// account is not listed until it has a policy or a charge.
func (b *Book) Ensure(name string) *Account {
	if a := b.Lookup(name); a != nil {
		return a
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ensure(Normalize(name))
}

func (b *Book) ensure(name string) *Account {
	hash := b.accounts.hash(name)
	if a := b.accounts.find(name, hash); a != nil {
		return a
	}
	return b.create(new(Account), name, hash)
}

// create makes the zero account a that of name, which has none yet.
func (b *Book) create(a *Account, name string, hash uint64) *Account {
	a.name = strings.Clone(name)
	a.hash = hash
	a.close()
	b.accounts.add(a)
	return a
}

// All iterates over every account ever created, in no order and without a lock; accounts
// created meanwhile may be missed.
func (b *Book) All() iter.Seq[*Account] {
	return func(yield func(*Account) bool) {
		table := *b.accounts.table.Load()
		for i := range table {
			if a := table[i].Load(); a != nil && !yield(a) {
				return
			}
		}
	}
}

// ApplyPolicies replaces the whole set of policies, in any order. Names are normalized. It
// fails with ErrInvalidName, ErrDuplicateName or ErrRange before anything is changed. Tenants
// no longer in the set are closed with nothing requested and nothing in effect, but keep
// their charge. The set is the truth: a removal under way is ended by it, either way.
func (b *Book) ApplyPolicies(set []Policy) error {
	sorted, err := prepare(set)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	explicit := make([]*Account, len(sorted))
	hashes := make([]uint64, len(sorted))
	missing := 0
	for i := range sorted {
		hashes[i] = b.accounts.hash(sorted[i].Name)
		if explicit[i] = b.accounts.find(sorted[i].Name, hashes[i]); explicit[i] == nil {
			missing++
		}
	}
	b.accounts.reserve(missing)
	fresh := make([]Account, missing) // accounts live for ever, so they may share an array
	for i := range sorted {
		if explicit[i] == nil {
			explicit[i] = b.create(&fresh[0], sorted[i].Name, hashes[i])
			fresh = fresh[1:]
		}
	}
	// Both lists ascend by name: whoever is in the old one only has lost its policy.
	next := 0
	for _, old := range b.explicit {
		for next < len(explicit) && explicit[next].name < old.name {
			next++
		}
		if next == len(explicit) || explicit[next] != old {
			old.orphan()
		}
	}
	for i, a := range explicit {
		a.requested.Store(sorted[i].Quota)
		if a.removing {
			a.removing = false
			a.open()
		}
	}
	b.explicit = explicit
	return nil
}

// prepare returns a set checked, its names normalized, in ascending order.
func prepare(set []Policy) ([]Policy, error) {
	sorted := slices.Clone(set)
	for i := range sorted {
		p := &sorted[i]
		p.Name = Normalize(p.Name)
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	byName := func(p, q Policy) int { return strings.Compare(p.Name, q.Name) }
	if !slices.IsSortedFunc(sorted, byName) {
		slices.SortFunc(sorted, byName)
	}
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].Name == sorted[i].Name {
			return nil, fmt.Errorf("%w: %q", ErrDuplicateName, sorted[i].Name)
		}
	}
	return sorted, nil
}

// SetPolicy adds or changes the policy of one tenant. It fails with ErrInvalidName or ErrRange.
// A removal of the tenant under way is ended.
func (b *Book) SetPolicy(name string, quota uint64) error {
	p := Policy{Name: Normalize(name), Quota: quota}
	if err := p.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.ensure(p.Name)
	if !a.HasPolicy() {
		b.explicit = slices.Insert(b.explicit, b.position(p.Name), a)
	}
	a.requested.Store(quota)
	if a.removing {
		a.removing = false
		a.open()
	}
	return nil
}

// DropPolicy removes the policy of one tenant. It fails with ErrNoPolicy, or with ErrNotEmpty
// when something is charged; the tenant stays open then.
func (b *Book) DropPolicy(name string) error {
	if err := b.BeginRemoval(name); err != nil {
		return err
	}
	b.FinishRemoval(name)
	return nil
}

// BeginRemoval closes a tenant whose policy is about to be removed; not even Recompute opens
// it until the removal ends, by FinishRemoval, CancelRemoval, SetPolicy or ApplyPolicies. It
// fails with ErrNoPolicy, or with ErrNotEmpty when something is charged.
func (b *Book) BeginRemoval(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.Lookup(name)
	if a == nil || !a.HasPolicy() {
		return fmt.Errorf("%w: %q", ErrNoPolicy, Normalize(name))
	}
	if !a.closeIfEmpty() {
		return fmt.Errorf("%w: %q", ErrNotEmpty, a.name)
	}
	a.removing = true
	return nil
}

// CancelRemoval opens a tenant that BeginRemoval closed, unless the removal has ended already.
func (b *Book) CancelRemoval(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.Lookup(name); a != nil && a.removing {
		a.removing = false
		a.open()
	}
}

// FinishRemoval removes the policy of a tenant that BeginRemoval closed, unless the removal has
// ended already.
func (b *Book) FinishRemoval(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.Lookup(name)
	if a == nil || !a.removing {
		return
	}
	at := b.position(a.name)
	b.explicit = slices.Delete(b.explicit, at, at+1)
	a.orphan()
}

// orphan takes the policy from an account. Closing comes first: whoever still sees the old
// quota can't charge any more.
func (a *Account) orphan() {
	a.close()
	a.removing = false
	a.requested.Store(0)
	a.effective.Store(0)
}

// Recompute sets the effective quotas of all tenants from their policies and the capacity of
// the pool, and opens those with a policy, zero capacity included, except while they are being
// removed. Capacity is called with the book's lock held, so that of two racing recomputations
// the later one has the later capacity; it must not call the book.
func (b *Book) Recompute(capacity func() uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.capacity = capacity()
	requested := make([]uint64, len(b.explicit))
	for i, a := range b.explicit {
		requested[i] = a.requested.Load()
	}
	effective := apportion(b.capacity, requested)
	for i, a := range b.explicit {
		a.effective.Store(effective[i])
		if !a.removing && a.Closed() {
			a.open()
		}
	}
}

// Rebuild replaces the charges of all tenants by usage, in bytes by tenant name; tenants it
// does not name have nothing charged afterwards. It fails with ErrRange when a usage is above
// MaxBytes. Nothing may be charged or released meanwhile.
func (b *Book) Rebuild(usage map[string]uint64) error {
	merged := make(map[string]uint64, len(usage))
	for name, n := range usage {
		name = Normalize(name)
		if n > MaxBytes || merged[name] > MaxBytes-n {
			return fmt.Errorf("%w: tenant %q would have more than %d bytes charged", ErrRange, name, uint64(MaxBytes))
		}
		merged[name] += n
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.All() {
		a.replaced.Store(0)
		a.setCharged(merged[a.name])
	}
	for name, n := range merged {
		if b.Lookup(name) == nil {
			b.ensure(name).setCharged(n)
		}
	}
	return nil
}

// Policies returns the policies in force, ascending by name.
func (b *Book) Policies() []Policy {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := make([]Policy, len(b.explicit))
	for i, a := range b.explicit {
		set[i] = Policy{Name: a.name, Quota: a.requested.Load()}
	}
	return set
}

// Snapshot returns the state of one tenant; it exists if the tenant has a policy or a charge.
func (b *Book) Snapshot(name string) (Snapshot, bool) {
	a := b.Lookup(name)
	if a == nil {
		return Snapshot{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := a.Snapshot()
	return s, s.HasExplicitPolicy || s.ChargedBytes > 0
}

// Snapshots returns the state of all tenants that have a policy or a charge, ascending by
// name.
func (b *Book) Snapshots() []Snapshot {
	b.mu.Lock()
	list := make([]Snapshot, 0, len(b.explicit))
	for _, a := range b.explicit {
		list = append(list, a.Snapshot())
	}
	for a := range b.All() {
		if s := a.Snapshot(); !s.HasExplicitPolicy && s.ChargedBytes > 0 {
			list = append(list, s)
		}
	}
	b.mu.Unlock()
	byName := func(s, t Snapshot) int { return strings.Compare(s.TenantID, t.TenantID) }
	if !slices.IsSortedFunc(list, byName) {
		slices.SortFunc(list, byName)
	}
	return list
}

// Totals returns the sums over all tenants with a policy.
func (b *Book) Totals() Totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Totals{CapacityBytes: b.capacity}
	for _, a := range b.explicit {
		t.RequestedBytes = saturate(t.RequestedBytes, a.requested.Load())
		t.EffectiveBytes = saturate(t.EffectiveBytes, a.effective.Load())
	}
	return t
}

// position returns where name is, or belongs, among the tenants with a policy.
func (b *Book) position(name string) int {
	at, _ := slices.BinarySearchFunc(b.explicit, name, func(a *Account, name string) int {
		return strings.Compare(a.name, name)
	})
	return at
}

func (p *Policy) check() error {
	if !Valid(p.Name) {
		return fmt.Errorf("%w: %q", ErrInvalidName, p.Name)
	}
	if p.Quota == 0 || p.Quota > MaxBytes {
		return fmt.Errorf("%w: quota of tenant %q is %d, must be 1 to %d", ErrRange, p.Name, p.Quota, uint64(MaxBytes))
	}
	return nil
}

func saturate(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
