package tenant

import "testing"

// BenchmarkLedgerWrite is what one object's write and removal cost in the books: charge,
// adopt, settle, release.
func BenchmarkLedgerWrite(b *testing.B) {
	a := account(MaxBytes, 0)
	b.ReportAllocs()
	for b.Loop() {
		var l Ledger
		if reason, _ := a.TryCharge(4096); reason != Admitted {
			b.Fatal(reason)
		}
		if err := l.AdoptPending(4096); err != nil {
			b.Fatal(err)
		}
		if err := l.SettlePrimary(a, 4096); err != nil {
			b.Fatal(err)
		}
		if err := l.ReleaseAll(a); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLedgerRefund is a write that is given up.
func BenchmarkLedgerRefund(b *testing.B) {
	a := account(MaxBytes, 0)
	b.ReportAllocs()
	for b.Loop() {
		var l Ledger
		if reason, _ := a.TryCharge(4096); reason != Admitted {
			b.Fatal(reason)
		}
		if err := l.AdoptPending(4096); err != nil {
			b.Fatal(err)
		}
		if err := l.RefundPending(a); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChargeParallel is many writers of one tenant.
func BenchmarkChargeParallel(b *testing.B) {
	a := account(MaxBytes, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if reason, _ := a.TryCharge(4096); reason != Admitted {
				b.Error(reason)
			}
			a.Release(4096)
		}
	})
}
