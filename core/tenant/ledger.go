package tenant

import "errors"

// The ways a ledger operation fails. Nothing has changed when one is returned; each means
// that the accounting is wrong, except where the caller asks only to learn the state.
var (
	// ErrMismatch is returned when an operation would move more bytes than the ledger or the
	// account holds.
	ErrMismatch = errors.New("ledger and charge do not match")
	// ErrOccupied is returned when the bucket to be filled holds bytes already.
	ErrOccupied = errors.New("ledger bucket is already in use")
	// ErrNothing is returned when the bucket to be emptied holds nothing.
	ErrNothing = errors.New("ledger has nothing to release")
	// ErrSameLedger is returned when a ledger is asked to replace itself.
	ErrSameLedger = errors.New("a ledger cannot replace itself")
)

// Ledger says which part of its tenant's charge one object holds: pending for a write in
// flight, committed for readable replicas, replaced for the old value while a size-changing
// upsert is in flight. The zero value holds nothing. A ledger is guarded by whatever guards
// its object.
type Ledger struct {
	pending   uint64
	committed uint64
	replaced  uint64
}

// Pending returns the bytes of the write in flight.
func (l *Ledger) Pending() uint64 { return l.pending }

// Committed returns the bytes of finished replicas.
func (l *Ledger) Committed() uint64 { return l.committed }

// Replaced returns the bytes of the old value that the write in flight replaces.
func (l *Ledger) Replaced() uint64 { return l.replaced }

// Total returns all bytes held. The operations keep it within MaxBytes.
func (l *Ledger) Total() uint64 { return l.pending + l.committed + l.replaced }

// AdoptPending takes over n bytes that the caller has charged for a write. It fails with
// ErrOccupied when a write is pending already, and with ErrMismatch when the total would pass
// MaxBytes.
func (l *Ledger) AdoptPending(n uint64) error {
	if l.pending != 0 {
		return ErrOccupied
	}
	if n > MaxBytes-l.Total() {
		return ErrMismatch
	}
	l.pending = n
	return nil
}

// SettlePrimary ends a write with actual bytes of finished replicas: they are committed, and
// the rest of the total, the replaced bytes among it, is released. It fails with ErrMismatch
// when actual is more than pending and committed, or the account holds less than is to be
// released.
func (l *Ledger) SettlePrimary(a *Account, actual uint64) error {
	if actual > l.pending+l.committed {
		return ErrMismatch
	}
	if !a.Release(l.Total() - actual) {
		return ErrMismatch
	}
	a.forgetReplaced(l.replaced)
	*l = Ledger{committed: actual}
	return nil
}

// SettleAdditional ends a task that has charged pending bytes on its own, outside this
// ledger: actual of them are committed here and the rest is released. It fails with
// ErrMismatch when actual is more than pending, the committed bytes would pass MaxBytes, or
// the account holds less than is to be released.
func (l *Ledger) SettleAdditional(a *Account, pending, actual uint64) error {
	if actual > pending || actual > MaxBytes-l.Total() {
		return ErrMismatch
	}
	if !a.Release(pending - actual) {
		return ErrMismatch
	}
	l.committed += actual
	return nil
}

// RefundPending releases the bytes of the write in flight. It fails with ErrNothing when there
// are none and with ErrMismatch when the account holds less.
func (l *Ledger) RefundPending(a *Account) error {
	if l.pending == 0 {
		return ErrNothing
	}
	if !a.Release(l.pending) {
		return ErrMismatch
	}
	l.pending = 0
	return nil
}

// ReleasePending releases n of the bytes of the write in flight; zero is fine. It fails with ErrMismatch
// when fewer are pending or charged.
func (l *Ledger) ReleasePending(a *Account, n uint64) error {
	if n > l.pending || !a.Release(n) {
		return ErrMismatch
	}
	l.pending -= n
	return nil
}

// ReleaseCommitted releases n committed bytes; zero is fine. It fails with ErrMismatch when
// fewer are committed or charged.
func (l *Ledger) ReleaseCommitted(a *Account, n uint64) error {
	if n > l.committed || !a.Release(n) {
		return ErrMismatch
	}
	l.committed -= n
	return nil
}

// TransferReplacement takes what old holds, committed and replaced, over as bytes being
// replaced; old is empty afterwards and the charge is unchanged. It fails with ErrSameLedger
// when both are one, with ErrOccupied when old has a write pending or l replaces something
// already, with ErrNothing when old holds nothing, and with ErrMismatch when the total would
// pass MaxBytes.
func (l *Ledger) TransferReplacement(a *Account, old *Ledger) error {
	switch {
	case l == old:
		return ErrSameLedger
	case old.pending != 0 || l.replaced != 0:
		return ErrOccupied
	}
	amount := old.committed + old.replaced
	if amount == 0 {
		return ErrNothing
	}
	if amount > MaxBytes-l.Total() {
		return ErrMismatch
	}
	a.replaced.Add(old.committed) // what old was itself replacing is counted already
	l.replaced = amount
	*old = Ledger{}
	return nil
}

// ReleaseReplacement releases the bytes being replaced. It fails with ErrNothing when there
// are none and with ErrMismatch when the account holds less.
func (l *Ledger) ReleaseReplacement(a *Account) error {
	if l.replaced == 0 {
		return ErrNothing
	}
	if !a.Release(l.replaced) {
		return ErrMismatch
	}
	a.forgetReplaced(l.replaced)
	l.replaced = 0
	return nil
}

// ReleaseAll releases everything. It fails with ErrNothing when nothing is held and with
// ErrMismatch when the account holds less.
func (l *Ledger) ReleaseAll(a *Account) error {
	total := l.Total()
	if total == 0 {
		return ErrNothing
	}
	if !a.Release(total) {
		return ErrMismatch
	}
	a.forgetReplaced(l.replaced)
	*l = Ledger{}
	return nil
}

// Rebuild sets n committed bytes and nothing else, without touching any account: Book.Rebuild
// does that for all ledgers together. Use it only with n up to MaxBytes.
func (l *Ledger) Rebuild(n uint64) { *l = Ledger{committed: n} }

// forgetReplaced takes n bytes off the count of bytes being replaced.
func (a *Account) forgetReplaced(n uint64) {
	if n != 0 {
		a.replaced.Add(^(n - 1))
	}
}
