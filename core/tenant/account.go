package tenant

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// MaxBytes is the largest quota and the largest charge of an account.
const MaxBytes = math.MaxInt64

// closedBit shares a word with the charge, so that closing and charging are ordered by that
// word alone: no charge can slip in behind a close.
const closedBit = uint64(1) << 63

// Reason says why a charge was refused.
type Reason uint8

// The outcomes of a charge. Admitted is zero.
const (
	Admitted      Reason = iota // charged
	NotRegistered               // the account is closed: the tenant has no policy in force
	QuotaExceeded               // it would pass the effective quota
)

// Account is what one tenant has charged against its effective quota. Handles are stable:
// there is one account per name for the life of its Book. All methods are safe for
// concurrent use and take no lock.
type Account struct {
	state     atomic.Uint64 // closedBit | charged bytes
	effective atomic.Uint64 // written by Book.Recompute and when the policy goes
	replaced  atomic.Uint64 // part of the charge held by ledgers' replaced buckets
	requested atomic.Uint64 // 0 = no policy; written with Book.mu held

	rejected     atomic.Uint64
	evictedBytes atomic.Uint64
	attachment   atomic.Value

	name     string
	hash     uint64
	removing bool // guarded by Book.mu: closed for a removal, recomputation must not reopen

	_ [32]byte // keeps the hot words of two accounts on different cache lines
}

// Name returns the normalized name of the tenant.
func (a *Account) Name() string { return a.name }

// Attach stores what the owner of the book keeps for the tenant beside its account, so that one
// lookup finds both. The first value stays for ever; it is returned, whoever stored it. All
// values must be of one type.
func (a *Account) Attach(v any) any {
	a.attachment.CompareAndSwap(nil, v)
	return a.attachment.Load()
}

// Attachment returns what Attach stored, nil if nothing.
func (a *Account) Attachment() any { return a.attachment.Load() }

// TryCharge adds n bytes to the charge if the account is open and n is zero or the sum stays
// within the effective quota. When the quota is exceeded, deficit is the number of bytes that
// must be released before the same charge succeeds (saturated at 2^64-1); otherwise zero.
func (a *Account) TryCharge(n uint64) (reason Reason, deficit uint64) {
	return a.ChargeWithin(n, 0)
}

// ChargeWithin is TryCharge for a write that will release credit bytes, already part of the
// charge, when it ends: the quota is judged as if they were released now, but the charge grows
// by the full n. A credit above the charge counts as the whole charge.
func (a *Account) ChargeWithin(n, credit uint64) (reason Reason, deficit uint64) {
	for {
		old := a.state.Load()
		if old&closedBit != 0 {
			return NotRegistered, 0
		}
		if n == 0 {
			return Admitted, 0
		}
		// Here old is the charge. The sum saturates, which only matters for the deficit.
		sum, carry := bits.Add64(old, n, 0)
		if carry != 0 {
			sum = math.MaxUint64
		}
		limit := a.effective.Load()
		if judged := sum - min(credit, old); judged > limit {
			return QuotaExceeded, judged - limit
		}
		if sum > MaxBytes {
			return QuotaExceeded, sum - MaxBytes
		}
		if a.state.CompareAndSwap(old, sum) {
			return Admitted, 0
		}
	}
}

// Release takes n bytes off the charge, open or closed. It reports false and changes nothing
// when n is more than is charged, which means that the accounting is wrong.
func (a *Account) Release(n uint64) bool {
	for {
		old := a.state.Load()
		if n > old&^closedBit {
			return false
		}
		if n == 0 || a.state.CompareAndSwap(old, old-n) {
			return true
		}
	}
}

// Charged returns the bytes charged: committed, in flight and about to be replaced.
func (a *Account) Charged() uint64 { return a.state.Load() &^ closedBit }

// Replaced returns the part of the charge that belongs to old values of size-changing
// upserts in flight; it goes when those writes end. It may lag Charged for a moment.
func (a *Account) Replaced() uint64 { return a.replaced.Load() }

// Effective returns the effective quota in bytes. Zero means that nothing can be charged.
func (a *Account) Effective() uint64 { return a.effective.Load() }

// Requested returns the quota of the policy in force, zero without one.
func (a *Account) Requested() uint64 { return a.requested.Load() }

// HasPolicy reports whether a policy is in force for the tenant.
func (a *Account) HasPolicy() bool { return a.requested.Load() != 0 }

// Closed reports whether every charge is refused.
func (a *Account) Closed() bool { return a.state.Load()&closedBit != 0 }

// OverQuota reports whether more is charged than the effective quota allows.
func (a *Account) OverQuota() bool { return a.Charged() > a.Effective() }

// CountRejected adds one write refused for its quota.
func (a *Account) CountRejected() { a.rejected.Add(1) }

// Rejected returns how many writes were refused for their quota.
func (a *Account) Rejected() uint64 { return a.rejected.Load() }

// CountEvicted adds bytes evicted to keep the tenant within its quota.
func (a *Account) CountEvicted(n uint64) { a.evictedBytes.Add(n) }

// EvictedBytes returns how many bytes were evicted to keep the tenant within its quota.
func (a *Account) EvictedBytes() uint64 { return a.evictedBytes.Load() }

// Snapshot returns the account as the admin interface shows it. The charge and the closed
// state belong together; the rest is read beside them.
func (a *Account) Snapshot() Snapshot {
	state, effective, requested := a.state.Load(), a.effective.Load(), a.requested.Load()
	charged := state &^ closedBit
	return Snapshot{
		TenantID:            a.name,
		RequestedQuotaBytes: requested,
		EffectiveQuotaBytes: effective,
		ChargedBytes:        charged,
		AdmissionClosed:     state&closedBit != 0,
		OverQuota:           charged > effective,
		HasExplicitPolicy:   requested != 0,
	}
}

// open admits charges again.
func (a *Account) open() { a.state.And(^closedBit) }

// close refuses every charge from now on.
func (a *Account) close() { a.state.Or(closedBit) }

// closeIfEmpty closes the account if nothing is charged, in one step, so that a tenant in use
// never sees a refusal because somebody tried to remove it.
func (a *Account) closeIfEmpty() bool {
	return a.state.CompareAndSwap(0, closedBit) || a.state.Load() == closedBit
}

// setCharged replaces the charge and keeps the closed state.
func (a *Account) setCharged(n uint64) {
	for {
		old := a.state.Load()
		if a.state.CompareAndSwap(old, old&closedBit|n) {
			return
		}
	}
}
