package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// Failure is why a Put or Delete did not happen. errors.As finds its Code.
type Failure struct {
	Code errcode.Code
	Err  error // nil when the code says it all
}

// Error reads "PERSISTENT_FAIL (-1503): reason".
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Code.Error()
	}
	return f.Code.Error() + ": " + f.Err.Error()
}

// Unwrap gives the code and the cause.
func (f *Failure) Unwrap() []error {
	if f.Err == nil {
		return []error{f.Code}
	}
	return []error{f.Code, f.Err}
}

func persistent(err error) error { return &Failure{Code: errcode.PersistentFail, Err: err} }

// Put gives a tenant a quota in bytes, at the source first and then in force. Whoever changes
// the document meanwhile is not overwritten: the change is made again on what is there. Codes:
// InvalidParams; PersistentFail when the source can't be read or written, does not hold a valid
// document, or ctx or the time for a save ends.
func (m *Manager) Put(ctx context.Context, name string, quota uint64) error {
	if !policydoc.ValidName(name) || !policydoc.Printable(name) || quota < 1 || quota > policydoc.MaxQuota {
		return &Failure{Code: errcode.InvalidParams}
	}
	return m.carryOut(ctx, &change{name: name, quota: quota})
}

// Delete removes a tenant's policy. The tenant is closed to writes from before the save until
// the policy is gone or the save has failed. Codes: those of Put, ObjectNotFound when there is
// no policy, TenantNotEmpty while the tenant owns anything.
func (m *Manager) Delete(ctx context.Context, name string) error {
	if !policydoc.ValidName(name) {
		return &Failure{Code: errcode.InvalidParams}
	}
	return m.carryOut(ctx, &change{name: name})
}

// change is one Put or Delete.
type change struct {
	name  string
	quota uint64 // 0 removes
	// unsure: a save was interrupted; it may be at the source already, where from was before.
	unsure bool
	from   uint64
}

// carryOut takes the turn and attempts the change until it works, or fails for another reason
// than somebody else being faster or the connector dying on us.
func (m *Manager) carryOut(ctx context.Context, c *change) error {
	ctx, cancel := context.WithTimeout(ctx, m.SaveTimeout)
	defer cancel()
	if err := m.acquire(ctx); err != nil {
		return persistent(fmt.Errorf("waiting for another change: %w", err))
	}
	defer m.release()
	m.making = c
	defer func() { m.making = nil }()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := m.attempt(ctx, c)
		if err == nil || !errors.Is(err, ErrConflict) && !errors.Is(err, ErrInterrupted) {
			return err
		}
		m.Logger.Debug("tenant quota policy: change made again", "because", err)
		select {
		case <-ctx.Done():
			return persistent(fmt.Errorf("given up: %w", err))
		case <-time.After(pause):
		}
	}
}

// attempt changes the document as it is now. Errors are *Failure, but for ErrConflict and
// ErrInterrupted, which ask for another attempt.
func (m *Manager) attempt(ctx context.Context, c *change) error {
	base, err := m.reload(ctx, "reload before a change")
	if errors.Is(err, ErrInterrupted) {
		return err
	}
	var gone *Unavailable
	vanished := errors.As(err, &gone) && gone.Kind == Absent || err != nil && base.Revision != "" && policydoc.Blank(base.Content)
	if c.unsure && m.quota(c.name) == c.quota {
		m.edits.remember(c.name, c.from, c.quota, m.Clock.Now())
		return nil
	}
	if c.quota == 0 {
		if code := m.Enforcer.BeginRemoval(c.name); code != errcode.OK {
			return &Failure{Code: code}
		}
		defer func() {
			if m.quota(c.name) != 0 {
				m.Enforcer.CancelRemoval(c.name)
			}
		}()
	}
	if err != nil && !vanished {
		return persistent(err)
	}
	edited, err := m.edit(base.Content, vanished, c)
	if err != nil {
		return persistent(err)
	}
	if !edited.Changed {
		return nil
	}
	if edited.Warning != "" {
		m.Logger.Warn("tenant quota policy: "+edited.Warning, "tenant", c.name)
	}
	from := m.quota(c.name)
	revision, err := m.Source.Save(ctx, edited.Document, base.Revision)
	switch {
	case errors.Is(err, ErrInterrupted):
		c.unsure, c.from = true, from
		return err
	case errors.Is(err, ErrConflict):
		return err
	case err != nil:
		return persistent(err)
	}
	if _, err := m.adopt(Document{Content: edited.Document, Revision: revision}, "change through the admin interface", true); err != nil {
		return persistent(err)
	}
	m.edits.remember(c.name, from, c.quota, m.Clock.Now())
	return nil
}

// edit changes the text of the source or, where the document has vanished, writes down the
// policy in force with the change.
func (m *Manager) edit(text []byte, vanished bool, c *change) (policydoc.Edit, error) {
	if !vanished {
		if c.quota == 0 {
			return policydoc.Delete(text, c.name)
		}
		return policydoc.Set(text, c.name, c.quota)
	}
	var all []policydoc.Tenant
	for _, p := range m.policies() {
		if p.Name != c.name {
			all = append(all, policydoc.Tenant{Name: p.Name, Quota: p.Quota})
		}
	}
	if c.quota > 0 {
		all = append(all, policydoc.Tenant{Name: c.name, Quota: c.quota})
	}
	return policydoc.Edit{Document: policydoc.Print(all), Changed: true}, nil
}

// policies returns the set in force; it must not be changed.
func (m *Manager) policies() []tenant.Policy {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.force.set
}

// quota returns a tenant's quota in force, 0 for none.
func (m *Manager) quota(name string) uint64 {
	set := m.policies()
	i, found := slices.BinarySearchFunc(set, name, func(p tenant.Policy, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return 0
	}
	return set[i].Quota
}
