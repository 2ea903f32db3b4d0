package core

import (
	"errors"
	"math"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// keeper is everything the master keeps of one tenant: its account and its objects. It is made
// at the tenant's first write and lives as long as the account, which is for ever.
type keeper struct {
	name    string
	acct    *tenant.Account
	free    []*tenant.Account // without limits: what is charged instead, see account
	space   *object.Space
	harvest harvest // guarded by space.Reclaim
	leaving leaving
}

// keep returns the keeper of an account, making it if needed.
func (m *Master) keep(a *tenant.Account) *keeper {
	if k, ok := a.Attachment().(*keeper); ok {
		return k
	}
	k := &keeper{name: a.Name(), acct: a, space: object.NewSpace(m.shards())}
	if m.tier.shared != nil {
		k.space.FilePath = m.filePath(k.name)
	}
	return a.Attach(k).(*keeper)
}

// shards is how many a tenant's objects are divided into. They are there so that cores don't
// wait for each other; where tenants are many, the tenants do that, and most have few objects: more
// shards would be more lines of memory that are cold whenever one is touched, and more small
// pieces for the collector to find.
func (m *Master) shards() int {
	n := m.cfg.ShardsPerTenant
	if m.cfg.MultiTenant {
		for tenants := m.book.Len(); n > leastShards && n*tenants > manyShards; {
			n /= 2
		}
	}
	return n
}

const (
	leastShards = 4   // of a tenant, however many there are
	manyShards  = 256 // of all tenants: from here on each gets fewer
)

// account returns the account that the objects of a shard are charged to. Where there are no
// limits, nobody asks for the sum while writers run, and each shard has a part of it, so that
// cores don't wait for each other's cache lines.
func (k *keeper) account(sh *object.Shard) *tenant.Account {
	if k.free != nil {
		return k.free[sh.Number()]
	}
	return k.acct
}

// sum is what is charged in all.
func (k *keeper) sum() uint64 {
	n := k.acct.Charged()
	for _, a := range k.free {
		n += a.Charged()
	}
	return n
}

// limitless makes the keeper of the one tenant there is when strict tenants are off.
func (m *Master) limitless() (*keeper, error) {
	account := func(b *tenant.Book) (*tenant.Account, error) {
		err := b.SetPolicy(tenant.Default, unlimited)
		b.Recompute(func() uint64 { return math.MaxUint64 })
		return b.Lookup(tenant.Default), err
	}
	a, err := account(m.book)
	if err != nil {
		return nil, err
	}
	k := m.keep(a)
	for range k.space.Shards() {
		a, err := account(tenant.NewBook())
		if err != nil {
			return nil, err
		}
		k.free = append(k.free, a)
	}
	return k, nil
}

// keepers calls f for every tenant that has ever written.
func (m *Master) keepers(f func(*keeper)) {
	for a := range m.book.All() {
		if k, ok := a.Attachment().(*keeper); ok {
			f(k)
		}
	}
}

// request finds the tenant of a call that does not allocate. A nil keeper with OK is a
// tenant that has no objects.
func (m *Master) request(name string) (*keeper, errcode.Code) {
	if m.single != nil {
		return m.single, errcode.OK
	}
	if a := m.book.Lookup(name); a != nil { // which only valid names have
		k, _ := a.Attachment().(*keeper)
		return k, errcode.OK
	}
	if !tenant.Valid(tenant.Normalize(name)) {
		return nil, errcode.InvalidParams
	}
	return nil, errcode.OK
}

// named refuses the names that no write may carry.
func (m *Master) named(name string) errcode.Code {
	if m.single == nil && (name == "" || !tenant.Valid(name)) {
		return errcode.TenantNotRegistered
	}
	return errcode.OK
}

// writer finds the tenant of a call that allocates; it must have a policy.
func (m *Master) writer(name string) (*keeper, errcode.Code) {
	if m.single != nil {
		return m.single, errcode.OK
	}
	if name == "" {
		return nil, errcode.TenantNotRegistered
	}
	a := m.book.Lookup(name)
	if a == nil || a.Closed() {
		return nil, errcode.TenantNotRegistered
	}
	return m.keep(a), errcode.OK
}

// TenantSnapshots returns the quota state of all tenants that have a policy or a charge,
// sorted by name.
func (m *Master) TenantSnapshots() []tenant.Snapshot { return m.book.Snapshots() }

// TenantSnapshot returns the quota state of one tenant, if it has a policy or a charge.
func (m *Master) TenantSnapshot(name string) (tenant.Snapshot, bool) { return m.book.Snapshot(name) }

// TenantTotals returns the pool's capacity and the sums of requested and effective quotas.
func (m *Master) TenantTotals() tenant.Totals { return m.book.Totals() }

// Policies returns the policies in force, sorted by name.
func (m *Master) Policies() []tenant.Policy { return m.book.Policies() }

// ApplyPolicies replaces the whole set of policies, which the caller has validated, and
// fits the effective quotas to it. Tenants that lose their policy keep their objects, readable
// and removable, until those are gone.
func (m *Master) ApplyPolicies(set []tenant.Policy) {
	if err := m.book.ApplyPolicies(set); err != nil {
		m.log.Error("policy not applied: it was not validated", "error", err)
		return
	}
	m.recompute()
	wake(m.wakeTenants)
}

// BeginRemoval closes a tenant to writes because its policy is about to go. It refuses with
// ObjectNotFound when there is no policy and with TenantNotEmpty while the tenant owns
// anything.
func (m *Master) BeginRemoval(name string) errcode.Code {
	switch err := m.book.BeginRemoval(name); {
	case errors.Is(err, tenant.ErrNoPolicy):
		return errcode.ObjectNotFound
	case errors.Is(err, tenant.ErrNotEmpty):
		return errcode.TenantNotEmpty
	case err != nil:
		return errcode.InternalError
	}
	if k, _ := m.request(name); k != nil && k.space.Len() > 0 {
		m.book.CancelRemoval(name)
		return errcode.TenantNotEmpty
	}
	return errcode.OK
}

// CancelRemoval opens a tenant again whose removal could not be saved.
func (m *Master) CancelRemoval(name string) { m.book.CancelRemoval(name) }
