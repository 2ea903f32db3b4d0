package tenant

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// account returns an open account with the given effective quota and charge.
func account(effective, charged uint64) *Account {
	a := &Account{name: "t"}
	a.requested.Store(max(effective, 1))
	a.effective.Store(effective)
	a.state.Store(charged)
	return a
}

func TestTryCharge(t *testing.T) {
	tests := []struct {
		name                string
		effective, charged  uint64
		closed              bool
		n, credit           uint64
		reason              Reason
		deficit, chargedNow uint64
	}{
		{"fits", 100, 40, false, 60, 0, Admitted, 0, 100},
		{"one over", 100, 40, false, 61, 0, QuotaExceeded, 1, 40},
		{"zero bytes within", 100, 40, false, 0, 0, Admitted, 0, 40},
		{"zero bytes over quota", 100, 140, false, 0, 0, Admitted, 0, 140},
		{"over quota", 100, 140, false, 1, 0, QuotaExceeded, 41, 140},
		{"nothing in effect", 0, 0, false, 7, 0, QuotaExceeded, 7, 0},
		{"closed", 100, 0, true, 1, 0, NotRegistered, 0, 0},
		{"closed zero bytes", 100, 40, true, 0, 0, NotRegistered, 0, 40},
		{"closed and over", 100, 140, true, 500, 0, NotRegistered, 0, 140},
		{"deficit saturates", 100, 40, false, math.MaxUint64, 0, QuotaExceeded, math.MaxUint64 - 100, 40},
		{"credit makes room", 100, 100, false, 60, 60, Admitted, 0, 160},
		{"credit falls short", 100, 100, false, 61, 60, QuotaExceeded, 1, 100},
		{"credit above charge", 100, 40, false, 100, 1000, Admitted, 0, 140},
		{"credit above charge, too large", 100, 40, false, 101, 1000, QuotaExceeded, 1, 40},
		{"credit while over quota", 100, 150, false, 20, 60, QuotaExceeded, 10, 150},
		{"credit on closed", 100, 100, true, 10, 60, NotRegistered, 0, 100},
		{"range of the charge", MaxBytes, MaxBytes, false, 10, 20, QuotaExceeded, 10, MaxBytes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := account(tt.effective, tt.charged)
			if tt.closed {
				a.close()
			}
			reason, deficit := a.ChargeWithin(tt.n, tt.credit)
			if reason != tt.reason || deficit != tt.deficit || a.Charged() != tt.chargedNow || a.Closed() != tt.closed {
				t.Errorf("got reason %d deficit %d charged %d closed %v, want %d %d %d %v", reason, deficit, a.Charged(), a.Closed(), tt.reason, tt.deficit, tt.chargedNow, tt.closed)
			}
			if tt.credit == 0 && reason == QuotaExceeded && deficit <= tt.charged {
				if !a.Release(deficit) {
					t.Fatal("deficit could not be released")
				}
				if again, _ := a.TryCharge(tt.n); again != Admitted {
					t.Errorf("refused again after the deficit was released: %d", again)
				}
			}
		})
	}
}

func TestOverflowChecksDoNotWrapAccounting(t *testing.T) {
	a := account(MaxBytes, MaxBytes-5)
	if reason, deficit := a.TryCharge(10); reason != QuotaExceeded || deficit != 5 {
		t.Errorf("+10: got %d, deficit %d", reason, deficit)
	}
	if reason, _ := a.TryCharge(5); reason != Admitted || a.Charged() != MaxBytes {
		t.Errorf("+5: got %d, charged %d", reason, a.Charged())
	}
	if a.Closed() {
		t.Error("a full charge closed the account")
	}
	if !a.Release(MaxBytes) || a.Charged() != 0 {
		t.Error("full charge not released")
	}
}

func TestRelease(t *testing.T) {
	for _, closed := range []bool{false, true} {
		a := account(100, 40)
		if closed {
			a.close()
		}
		if a.Release(41) || a.Charged() != 40 || a.Closed() != closed {
			t.Errorf("closed %v: released more than charged", closed)
		}
		if !a.Release(0) || !a.Release(40) || a.Charged() != 0 || a.Closed() != closed {
			t.Errorf("closed %v: not released", closed)
		}
	}
}

func TestOverQuotaIsStrict(t *testing.T) {
	if account(100, 100).OverQuota() || !account(100, 101).OverQuota() || !account(0, 1).OverQuota() {
		t.Error("over quota must mean more charged than effective")
	}
}

func TestCounters(t *testing.T) {
	a := account(1, 0)
	a.CountRejected()
	a.CountRejected()
	a.CountEvicted(7)
	a.CountEvicted(5)
	if a.Rejected() != 2 || a.EvictedBytes() != 12 {
		t.Errorf("rejected %d, evicted %d", a.Rejected(), a.EvictedBytes())
	}
}

func TestAttachKeepsTheFirst(t *testing.T) {
	a := account(1, 0)
	if a.Attachment() != nil {
		t.Error("attachment without Attach")
	}
	if a.Attach("first") != "first" || a.Attach("second") != "first" || a.Attachment() != "first" {
		t.Error("the first attachment must stay")
	}
}

func TestSizes(t *testing.T) {
	if s := unsafe.Sizeof(Ledger{}); s != 24 {
		t.Errorf("a ledger takes %d bytes, one is in every object", s)
	}
	if s := unsafe.Sizeof(Account{}); s%128 != 0 {
		t.Errorf("an account takes %d bytes, neighbours would share a cache line", s)
	}
}

// A charge must not succeed once close has returned, however it races.
func TestNoChargeSucceedsAfterClose(t *testing.T) {
	for range 200 {
		a := account(MaxBytes, 0)
		var closed atomic.Bool
		var late atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range uint64(200) {
					before := closed.Load()
					reason, _ := a.TryCharge(i % 3)
					if before && reason != NotRegistered {
						late.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			a.close()
			closed.Store(true)
		})
		wg.Wait()
		if late.Load() != 0 {
			t.Fatalf("%d charges succeeded behind the close", late.Load())
		}
	}
}

// closeIfEmpty and a charge exclude each other: exactly one of them wins.
func TestCloseIfEmptyRacesCharge(t *testing.T) {
	for range 2000 {
		a := account(10, 0)
		var charged, closed bool
		var wg sync.WaitGroup
		wg.Go(func() { reason, _ := a.TryCharge(1); charged = reason == Admitted })
		wg.Go(func() { closed = a.closeIfEmpty() })
		wg.Wait()
		if charged == closed {
			t.Fatalf("charged %v and closed %v", charged, closed)
		}
	}
}

func TestConcurrentChargeNeverExceedsQuota(t *testing.T) {
	a := account(1000, 0)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if reason, _ := a.TryCharge(100); reason == Admitted {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 10 || a.Charged() != 1000 {
		t.Errorf("%d charges admitted, %d bytes charged", admitted.Load(), a.Charged())
	}
}

func BenchmarkTryChargeRelease(b *testing.B) {
	a := account(MaxBytes, 0)
	for b.Loop() {
		a.TryCharge(4096)
		a.Release(4096)
	}
}
