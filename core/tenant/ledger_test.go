package tenant

import (
	"errors"
	"testing"
)

// state is a ledger and its account's charge at one moment.
type state struct {
	pending, committed, replaced, charged uint64
}

func stateOf(l *Ledger, a *Account) state {
	return state{l.Pending(), l.Committed(), l.Replaced(), a.Charged()}
}

func TestLedger(t *testing.T) {
	tests := []struct {
		name  string
		start state
		do    func(l *Ledger, a *Account) error
		err   error
		want  state // on an error the start is expected
	}{
		{"AdoptsPending", state{0, 0, 0, 100}, func(l *Ledger, _ *Account) error { return l.AdoptPending(100) }, nil, state{100, 0, 0, 100}},
		{"AdoptTwice", state{100, 0, 0, 100}, func(l *Ledger, _ *Account) error { return l.AdoptPending(1) }, ErrOccupied, state{}},
		{"AdoptBeyondRange", state{0, 5, 0, 5}, func(l *Ledger, _ *Account) error { return l.AdoptPending(MaxBytes - 4) }, ErrMismatch, state{}},
		{"PendingFullyCommits", state{100, 0, 0, 100}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 100) }, nil, state{0, 100, 0, 100}},
		{"PendingPartiallyCommits", state{100, 0, 0, 100}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 60) }, nil, state{0, 60, 0, 60}},
		{"PendingFullyRefunds", state{100, 0, 0, 100}, func(l *Ledger, a *Account) error { return l.RefundPending(a) }, nil, state{0, 0, 0, 0}},
		{"RefundKeepsTheRest", state{100, 30, 20, 150}, func(l *Ledger, a *Account) error { return l.RefundPending(a) }, nil, state{0, 30, 20, 50}},
		{"ReleasesPendingBytesPartially", state{100, 30, 20, 150}, func(l *Ledger, a *Account) error { return l.ReleasePending(a, 40) }, nil, state{60, 30, 20, 110}},
		{"ReleasesNoPendingBytes", state{0, 30, 0, 30}, func(l *Ledger, a *Account) error { return l.ReleasePending(a, 0) }, nil, state{0, 30, 0, 30}},
		{"ReleasesMoreThanPending", state{100, 30, 0, 130}, func(l *Ledger, a *Account) error { return l.ReleasePending(a, 101) }, ErrMismatch, state{}},
		{"RefundNothing", state{0, 30, 0, 30}, func(l *Ledger, a *Account) error { return l.RefundPending(a) }, ErrNothing, state{}},
		{"RefundMoreThanCharged", state{100, 0, 0, 99}, func(l *Ledger, a *Account) error { return l.RefundPending(a) }, ErrMismatch, state{}},
		{"SettlesAdditionalCharge", state{0, 40, 0, 100}, func(l *Ledger, a *Account) error { return l.SettleAdditional(a, 60, 35) }, nil, state{0, 75, 0, 75}},
		{"AdditionalAboveItsCharge", state{0, 40, 0, 100}, func(l *Ledger, a *Account) error { return l.SettleAdditional(a, 60, 61) }, ErrMismatch, state{}},
		{"AdditionalAccountTooSmall", state{0, 40, 0, 10}, func(l *Ledger, a *Account) error { return l.SettleAdditional(a, 60, 0) }, ErrMismatch, state{}},
		{"AdditionalBeyondRange", state{0, 40, 0, 40}, func(l *Ledger, a *Account) error { return l.SettleAdditional(a, MaxBytes, MaxBytes-39) }, ErrMismatch, state{}},
		{"ReleasesCommittedBytesPartially", state{0, 100, 0, 100}, func(l *Ledger, a *Account) error { return l.ReleaseCommitted(a, 40) }, nil, state{0, 60, 0, 60}},
		{"ReleaseZeroCommitted", state{0, 0, 0, 0}, func(l *Ledger, a *Account) error { return l.ReleaseCommitted(a, 0) }, nil, state{0, 0, 0, 0}},
		{"ReleaseMoreThanCommitted", state{50, 100, 0, 150}, func(l *Ledger, a *Account) error { return l.ReleaseCommitted(a, 101) }, ErrMismatch, state{}},
		{"ReleaseCommittedAccountTooSmall", state{0, 100, 0, 99}, func(l *Ledger, a *Account) error { return l.ReleaseCommitted(a, 100) }, ErrMismatch, state{}},
		{"PrimaryWriteSettlementReleasesReplacementCharge", state{120, 0, 80, 200}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 100) }, nil, state{0, 100, 0, 100}},
		{"PrimaryWriteMismatchPreservesPendingAndReplacementCharge/above pending", state{120, 0, 80, 200}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 121) }, ErrMismatch, state{}},
		{"PrimaryWriteMismatchPreservesPendingAndReplacementCharge/account too small", state{120, 0, 80, 99}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 100) }, ErrMismatch, state{}},
		{"SettleCountsWhatIsCommitted", state{60, 40, 0, 100}, func(l *Ledger, a *Account) error { return l.SettlePrimary(a, 100) }, nil, state{0, 100, 0, 100}},
		{"RollsBackReplacementChargeOnFailure", state{0, 0, 80, 80}, func(l *Ledger, a *Account) error { return l.ReleaseReplacement(a) }, nil, state{0, 0, 0, 0}},
		{"ReleaseReplacementKeepsTheRest", state{10, 20, 80, 110}, func(l *Ledger, a *Account) error { return l.ReleaseReplacement(a) }, nil, state{10, 20, 0, 30}},
		{"ReleaseReplacementOfNothing", state{10, 20, 0, 30}, func(l *Ledger, a *Account) error { return l.ReleaseReplacement(a) }, ErrNothing, state{}},
		{"ReleaseReplacementAccountTooSmall", state{0, 0, 80, 79}, func(l *Ledger, a *Account) error { return l.ReleaseReplacement(a) }, ErrMismatch, state{}},
		{"ReleasesAll", state{10, 20, 30, 65}, func(l *Ledger, a *Account) error { return l.ReleaseAll(a) }, nil, state{0, 0, 0, 5}},
		{"ReleaseAllOfNothing", state{0, 0, 0, 5}, func(l *Ledger, a *Account) error { return l.ReleaseAll(a) }, ErrNothing, state{}},
		{"ReleaseAllAccountTooSmall", state{10, 20, 30, 59}, func(l *Ledger, a *Account) error { return l.ReleaseAll(a) }, ErrMismatch, state{}},
		{"RebuildLeavesAccount", state{10, 20, 30, 7}, func(l *Ledger, _ *Account) error { l.Rebuild(90); return nil }, nil, state{0, 90, 0, 7}},
		{"TransferToItself", state{0, 80, 0, 80}, func(l *Ledger, a *Account) error { return l.TransferReplacement(a, l) }, ErrSameLedger, state{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := account(MaxBytes, tt.start.charged)
			a.replaced.Store(tt.start.replaced)
			l := &Ledger{pending: tt.start.pending, committed: tt.start.committed, replaced: tt.start.replaced}
			want := tt.want
			if tt.err != nil {
				want = tt.start
			}
			if err := tt.do(l, a); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if got := stateOf(l, a); got != want {
				t.Errorf("state %+v, want %+v", got, want)
			}
			if l.Total() != l.Pending()+l.Committed()+l.Replaced() {
				t.Errorf("total %d", l.Total())
			}
			if tt.name != "RebuildLeavesAccount" && a.Replaced() != l.Replaced() {
				t.Errorf("account counts %d bytes being replaced, ledger %d", a.Replaced(), l.Replaced())
			}
		})
	}
}

func TestTransferReplacement(t *testing.T) {
	tests := []struct {
		name              string
		dst, src          Ledger
		err               error
		wantDst, wantSrc  Ledger
		replacedOfAccount uint64
	}{
		{"takes committed", Ledger{}, Ledger{committed: 80}, nil, Ledger{replaced: 80}, Ledger{}, 80},
		{"takes committed and replaced", Ledger{}, Ledger{committed: 80, replaced: 20}, nil, Ledger{replaced: 100}, Ledger{}, 100},
		{"keeps pending of the new", Ledger{pending: 120}, Ledger{committed: 80}, nil, Ledger{pending: 120, replaced: 80}, Ledger{}, 80},
		{"old has a write pending", Ledger{}, Ledger{pending: 1, committed: 80}, ErrOccupied, Ledger{}, Ledger{pending: 1, committed: 80}, 0},
		{"new replaces already", Ledger{replaced: 1}, Ledger{committed: 80}, ErrOccupied, Ledger{replaced: 1}, Ledger{committed: 80}, 1},
		{"old holds nothing", Ledger{}, Ledger{}, ErrNothing, Ledger{}, Ledger{}, 0},
		{"beyond the range", Ledger{pending: MaxBytes}, Ledger{committed: 1}, ErrMismatch, Ledger{pending: MaxBytes}, Ledger{committed: 1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := account(MaxBytes, 500)
			a.replaced.Store(tt.dst.replaced + tt.src.replaced)
			dst, src := tt.dst, tt.src
			if err := dst.TransferReplacement(a, &src); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if dst != tt.wantDst || src != tt.wantSrc || a.Charged() != 500 || a.Replaced() != tt.replacedOfAccount {
				t.Errorf("dst %+v src %+v charged %d replaced %d", dst, src, a.Charged(), a.Replaced())
			}
		})
	}
}

func TestDuplicateReplacementOperationsAreRejected(t *testing.T) {
	a := account(MaxBytes, 80)
	src, dst := Ledger{committed: 80}, Ledger{}
	if err := dst.TransferReplacement(a, &src); err != nil {
		t.Fatal(err)
	}
	if err := dst.TransferReplacement(a, &src); !errors.Is(err, ErrOccupied) {
		t.Errorf("second transfer: %v", err)
	}
	if err := dst.ReleaseReplacement(a); err != nil {
		t.Fatal(err)
	}
	if err := dst.ReleaseReplacement(a); !errors.Is(err, ErrNothing) || a.Charged() != 0 {
		t.Errorf("second release: %v, charged %d", err, a.Charged())
	}
}

func TestDoubleReleaseAllIsRejected(t *testing.T) {
	a := account(MaxBytes, 100)
	l := Ledger{committed: 60}
	if err := l.ReleaseAll(a); err != nil {
		t.Fatal(err)
	}
	if err := l.ReleaseAll(a); !errors.Is(err, ErrNothing) || a.Charged() != 40 {
		t.Errorf("second release: %v, charged %d", err, a.Charged())
	}
}

func TestRebuildMatchesGlobalChargedBytes(t *testing.T) {
	b := NewBook()
	var l Ledger
	l.Rebuild(90)
	if err := b.Rebuild(map[string]uint64{"a": l.Total()}); err != nil {
		t.Fatal(err)
	}
	if got := b.Lookup("a").Charged(); got != 90 || l.Committed() != 90 {
		t.Errorf("charged %d, committed %d", got, l.Committed())
	}
	if err := l.ReleaseAll(b.Lookup("a")); err != nil || b.Lookup("a").Charged() != 0 {
		t.Errorf("release after rebuild: %v", err)
	}
}
