package tenant

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func capacity(n uint64) func() uint64 { return func() uint64 { return n } }

// bookOf returns a book with the given policies in force on a pool of c bytes.
func bookOf(t *testing.T, c uint64, set ...Policy) *Book {
	t.Helper()
	b := NewBook()
	if err := b.ApplyPolicies(set); err != nil {
		t.Fatal(err)
	}
	b.Recompute(capacity(c))
	return b
}

func charge(t *testing.T, b *Book, name string, n uint64) {
	t.Helper()
	if reason, deficit := b.Lookup(name).TryCharge(n); reason != Admitted {
		t.Fatalf("charge of %d to %q refused: reason %d, deficit %d", n, name, reason, deficit)
	}
}

func snapshot(t *testing.T, b *Book, name string) Snapshot {
	t.Helper()
	s, ok := b.Snapshot(name)
	if !ok {
		t.Fatalf("no snapshot of %q", name)
	}
	return s
}

func names(list []Snapshot) string {
	var s []string
	for i := range list {
		s = append(s, list[i].TenantID)
	}
	return strings.Join(s, " ")
}

func TestNormalizesEmptyExplicitTenantIdToDefault(t *testing.T) {
	b := NewBook()
	if err := b.SetPolicy("", 5); err != nil {
		t.Fatal(err)
	}
	if got := b.Policies(); !slices.Equal(got, []Policy{{Default, 5}}) {
		t.Errorf("policies %v", got)
	}
	if b.Lookup("") == nil || b.Lookup("") != b.Lookup(Default) {
		t.Error("the empty name and default must be one account")
	}
}

func TestRejectsZeroExplicitQuotaWithoutChangingState(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	for _, quota := range []uint64{0, MaxBytes + 1, math.MaxUint64} {
		for _, name := range []string{"a", "b"} {
			if err := b.SetPolicy(name, quota); !errors.Is(err, ErrRange) {
				t.Errorf("SetPolicy(%s, %d) = %v", name, quota, err)
			}
		}
	}
	if b.Lookup("b") != nil {
		t.Error("a refused policy created an account")
	}
	if s := snapshot(t, b, "a"); s.RequestedQuotaBytes != 100 || s.EffectiveQuotaBytes != 100 {
		t.Errorf("changed: %+v", s)
	}
}

func TestRejectsPolicyAboveAtomicAccountingRange(t *testing.T) {
	b := NewBook()
	if err := b.SetPolicy("a", MaxBytes); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy("a", 1<<63); !errors.Is(err, ErrRange) {
		t.Errorf("2^63: %v", err)
	}
	if got := b.Policies(); !slices.Equal(got, []Policy{{"a", MaxBytes}}) {
		t.Errorf("policies %v", got)
	}
}

func TestApplyPoliciesCreatesOrphanState(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 100})
	charge(t, b, "a", 40)
	if err := b.ApplyPolicies([]Policy{{"b", 100}}); err != nil {
		t.Fatal(err)
	}
	want := Snapshot{TenantID: "a", ChargedBytes: 40, AdmissionClosed: true, OverQuota: true}
	if s := snapshot(t, b, "a"); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	b.Recompute(capacity(1000))
	if s := snapshot(t, b, "a"); s != want {
		t.Errorf("after recompute got %+v, want %+v", s, want)
	}
}

func TestClosedOrphanAccountCanDrain(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	charge(t, b, "a", 40)
	if err := b.ApplyPolicies(nil); err != nil {
		t.Fatal(err)
	}
	if !b.Lookup("a").Release(40) {
		t.Error("release refused")
	}
	if _, ok := b.Snapshot("a"); ok || len(b.Snapshots()) != 0 {
		t.Error("a drained orphan must vanish")
	}
}

func TestApplyPoliciesReplacesCanonicalPolicySet(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 1}, Policy{"c", 3}, Policy{"e", 5})
	if err := b.ApplyPolicies([]Policy{{"d", 4}, {"c", 30}, {"b", 2}, {"", 9}}); err != nil {
		t.Fatal(err)
	}
	want := []Policy{{"b", 2}, {"c", 30}, {"d", 4}, {Default, 9}}
	if got := b.Policies(); !slices.Equal(got, want) {
		t.Errorf("policies %v, want %v", got, want)
	}
	for _, gone := range []string{"a", "e"} {
		if a := b.Lookup(gone); !a.Closed() || a.HasPolicy() || a.Effective() != 0 {
			t.Errorf("%s keeps its policy", gone)
		}
	}
}

func TestDisableMissingPolicyDoesNotCreateLazyState(t *testing.T) {
	b := NewBook()
	if err := b.DropPolicy("a"); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("unknown: %v", err)
	}
	if b.Lookup("a") != nil {
		t.Error("an account was created")
	}
	b.Ensure("b")
	if err := b.DropPolicy("b"); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("without policy: %v", err)
	}
}

func TestPolicyMutationDoesNotRecomputeEffectiveQuota(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	if err := b.SetPolicy("a", 200); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy("b", 50); err != nil {
		t.Fatal(err)
	}
	if s := snapshot(t, b, "a"); s.RequestedQuotaBytes != 200 || s.EffectiveQuotaBytes != 100 || s.AdmissionClosed {
		t.Errorf("changed policy: %+v", s)
	}
	if s := snapshot(t, b, "b"); s.EffectiveQuotaBytes != 0 || !s.AdmissionClosed {
		t.Errorf("new policy: %+v", s)
	}
	b.Recompute(capacity(1000))
	if s := snapshot(t, b, "a"); s.EffectiveQuotaBytes != 200 {
		t.Errorf("after recompute: %+v", s)
	}
	if s := snapshot(t, b, "b"); s.EffectiveQuotaBytes != 50 || s.AdmissionClosed {
		t.Errorf("after recompute: %+v", s)
	}
}

func TestListSnapshotsSortedAndCleansLazyEmptyTenants(t *testing.T) {
	b := bookOf(t, 1000, Policy{"zeta", 1}, Policy{"Alpha", 1}, Policy{"über", 1}, Policy{"alpha", 10})
	b.Ensure("lazy")
	if err := b.Rebuild(map[string]uint64{"orphan": 3}); err != nil {
		t.Fatal(err)
	}
	if got := names(b.Snapshots()); got != "Alpha alpha orphan zeta über" {
		t.Errorf("snapshots %q", got)
	}
}

func TestLazyEmptyOrphansDoNotAppearInList(t *testing.T) {
	b := NewBook()
	a := b.Ensure("lazy")
	if _, ok := b.Snapshot("lazy"); ok || len(b.Snapshots()) != 0 {
		t.Error("an empty account without policy is listed")
	}
	if !a.Closed() || a != b.Ensure("lazy") || a != b.Lookup("lazy") || a.Name() != "lazy" {
		t.Error("Ensure must return the one closed account")
	}
}

func TestExplicitTenantsReceiveRequestedWhenCapacityFits(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 200})
	if got := b.Totals(); got != (Totals{CapacityBytes: 1000, RequestedBytes: 300, EffectiveBytes: 300}) {
		t.Errorf("totals %+v", got)
	}
	if b.Lookup("a").Effective() != 100 || b.Lookup("b").Effective() != 200 {
		t.Error("effective differs from requested")
	}
}

func TestOverCapacityScalesOnlyExplicitTenants(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 200}, Policy{"orphan", 700})
	charge(t, b, "orphan", 7)
	if err := b.ApplyPolicies([]Policy{{"a", 100}, {"b", 200}}); err != nil {
		t.Fatal(err)
	}
	b.Recompute(capacity(150))
	if b.Lookup("a").Effective() != 50 || b.Lookup("b").Effective() != 100 || b.Lookup("orphan").Effective() != 0 {
		t.Errorf("effective %d %d %d", b.Lookup("a").Effective(), b.Lookup("b").Effective(), b.Lookup("orphan").Effective())
	}
}

func TestNoCapacityKeepsTenantsOpen(t *testing.T) {
	b := bookOf(t, 0, Policy{"a", 100})
	want := Snapshot{TenantID: "a", RequestedQuotaBytes: 100, HasExplicitPolicy: true}
	if s := snapshot(t, b, "a"); s != want {
		t.Errorf("got %+v", s)
	}
	if reason, deficit := b.Lookup("a").TryCharge(10); reason != QuotaExceeded || deficit != 10 {
		t.Errorf("reason %d, deficit %d", reason, deficit)
	}
}

func TestChargeRequiresRegisteredTenantIncludingZeroBytes(t *testing.T) {
	b := NewBook()
	if b.Lookup("nobody") != nil {
		t.Error("an account without policy exists")
	}
	a := b.Ensure("nobody")
	for _, n := range []uint64{0, 1} {
		if reason, _ := a.TryCharge(n); reason != NotRegistered {
			t.Errorf("charge of %d: reason %d", n, reason)
		}
	}
}

func TestChargeAndReleaseUpdateSingleCounter(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	charge(t, b, "a", 30)
	charge(t, b, "a", 20)
	if s := snapshot(t, b, "a"); s.ChargedBytes != 50 {
		t.Errorf("charged %d", s.ChargedBytes)
	}
	if !b.Lookup("a").Release(50) || snapshot(t, b, "a").ChargedBytes != 0 {
		t.Error("not released")
	}
}

func TestAccountingMismatchDoesNotMutateState(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	charge(t, b, "a", 30)
	before := snapshot(t, b, "a")
	if b.Lookup("a").Release(31) || snapshot(t, b, "a") != before {
		t.Error("a release above the charge changed something")
	}
}

func TestDisablePolicyRejectsNonEmptyTenant(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	charge(t, b, "a", 30)
	if err := b.DropPolicy("a"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("drop: %v", err)
	}
	if s := snapshot(t, b, "a"); s.AdmissionClosed || !s.HasExplicitPolicy {
		t.Errorf("must stay open: %+v", s)
	}
	charge(t, b, "a", 1)
}

func TestDisabledPolicyRejectsRegularAndZeroByteCharges(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 100}, Policy{"c", 100})
	if err := b.DropPolicy("b"); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 1} {
		if reason, _ := b.Lookup("b").TryCharge(n); reason != NotRegistered {
			t.Errorf("charge of %d: reason %d", n, reason)
		}
	}
	if _, ok := b.Snapshot("b"); ok {
		t.Error("a tenant without policy and charge is listed")
	}
	if got := b.Policies(); !slices.Equal(got, []Policy{{"a", 100}, {"c", 100}}) {
		t.Errorf("policies %v", got)
	}
}

func TestHandleRemainsStableAcrossPolicyLifecycle(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	a := b.Lookup("a")
	charge(t, b, "a", 10)
	if err := b.ApplyPolicies(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 { // makes the table grow
		b.Ensure(fmt.Sprint("other", i))
	}
	if err := b.SetPolicy("a", 50); err != nil {
		t.Fatal(err)
	}
	b.Recompute(capacity(1000))
	if b.Lookup("a") != a || a.Charged() != 10 || a.Effective() != 50 || a.Closed() {
		t.Error("the account did not survive")
	}
	if err := b.DropPolicy("a"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("drop: %v", err)
	}
	if !a.Release(10) || b.DropPolicy("a") != nil || b.Lookup("a") != a {
		t.Error("the account did not survive its removal")
	}
}

func TestRebuildUsageCreatesAndRemovesOrphans(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	charge(t, b, "a", 30)
	if err := b.Rebuild(map[string]uint64{"b": 20, "": 4, Default: 1}); err != nil {
		t.Fatal(err)
	}
	b.Recompute(capacity(1000))
	if got := names(b.Snapshots()); got != "a b default" {
		t.Errorf("snapshots %q", got)
	}
	if s := snapshot(t, b, "a"); s.ChargedBytes != 0 || s.AdmissionClosed {
		t.Errorf("a: %+v", s)
	}
	want := Snapshot{TenantID: "b", ChargedBytes: 20, AdmissionClosed: true, OverQuota: true}
	if s := snapshot(t, b, "b"); s != want {
		t.Errorf("b: %+v", s)
	}
	if s := snapshot(t, b, ""); s.ChargedBytes != 5 {
		t.Errorf("default: %+v", s)
	}
	if err := b.Rebuild(map[string]uint64{"a": 1, "b": MaxBytes + 1}); !errors.Is(err, ErrRange) {
		t.Errorf("beyond the range: %v", err)
	}
	if err := b.Rebuild(map[string]uint64{"": 1, Default: MaxBytes}); !errors.Is(err, ErrRange) {
		t.Errorf("beyond the range in sum: %v", err)
	}
	if snapshot(t, b, "a").ChargedBytes != 0 || snapshot(t, b, "b").ChargedBytes != 20 {
		t.Error("a refused rebuild changed something")
	}
	if err := b.Rebuild(nil); err != nil || names(b.Snapshots()) != "a" {
		t.Errorf("after an empty rebuild: %q, %v", names(b.Snapshots()), err)
	}
}

func TestCrossShardMutationsValidateEverythingBeforeUpdating(t *testing.T) {
	tests := []struct {
		name string
		set  []Policy
		err  error
	}{
		{"zero quota", []Policy{{"a", 5}, {"c", 0}}, ErrRange},
		{"quota above range", []Policy{{"a", 5}, {"c", 1 << 63}}, ErrRange},
		{"invalid name", []Policy{{"a", 5}, {"_c", 1}}, ErrInvalidName},
		{"control byte", []Policy{{"a", 5}, {"c\n", 1}}, ErrInvalidName},
		{"twice", []Policy{{"c", 5}, {"a", 5}, {"c", 5}}, ErrDuplicateName},
		{"twice by normalization", []Policy{{"", 5}, {Default, 5}}, ErrDuplicateName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 200})
			before := b.Snapshots()
			set := slices.Clone(tt.set)
			if err := b.ApplyPolicies(set); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if !slices.Equal(b.Snapshots(), before) || b.Lookup("c") != nil || b.Lookup(Default) != nil {
				t.Error("a refused set changed something")
			}
			if !slices.Equal(set, tt.set) {
				t.Error("the caller's set was changed")
			}
		})
	}
}

func TestRemoval(t *testing.T) {
	begin := func(t *testing.T) (*Book, *Account) {
		b := bookOf(t, 1000, Policy{"a", 100}, Policy{"b", 100})
		if err := b.BeginRemoval("a"); err != nil {
			t.Fatal(err)
		}
		a := b.Lookup("a")
		b.Recompute(capacity(500)) // a mount meanwhile must not open it
		if reason, _ := a.TryCharge(0); reason != NotRegistered || !a.HasPolicy() {
			t.Fatalf("not closed while being removed: reason %d", reason)
		}
		return b, a
	}
	t.Run("finished", func(t *testing.T) {
		b, a := begin(t)
		b.FinishRemoval("a")
		if a.HasPolicy() || !a.Closed() || len(b.Policies()) != 1 {
			t.Error("not removed")
		}
		b.CancelRemoval("a")
		if !a.Closed() {
			t.Error("a removal that has ended was cancelled")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		b, a := begin(t)
		b.CancelRemoval("a")
		b.FinishRemoval("a")
		if a.Closed() || !a.HasPolicy() || a.Effective() != 100 {
			t.Error("not restored")
		}
	})
	t.Run("ended by a set without it", func(t *testing.T) {
		b, a := begin(t)
		if err := b.ApplyPolicies([]Policy{{"b", 100}}); err != nil {
			t.Fatal(err)
		}
		b.CancelRemoval("a")
		b.FinishRemoval("b")
		if a.HasPolicy() || !a.Closed() || len(b.Policies()) != 1 {
			t.Error("not removed")
		}
	})
	t.Run("ended by a set with it", func(t *testing.T) {
		b, a := begin(t)
		if err := b.ApplyPolicies([]Policy{{"a", 70}}); err != nil {
			t.Fatal(err)
		}
		b.FinishRemoval("a")
		if a.Closed() || a.Requested() != 70 {
			t.Error("the set is the truth")
		}
	})
	t.Run("ended by a policy", func(t *testing.T) {
		b, a := begin(t)
		if err := b.SetPolicy("a", 70); err != nil {
			t.Fatal(err)
		}
		b.FinishRemoval("a")
		if a.Closed() || a.Requested() != 70 {
			t.Error("the new policy is the truth")
		}
	})
}

func TestCapacityIsSampledInsideRecompute(t *testing.T) {
	b := bookOf(t, 0, Policy{"a", 1000})
	var mounted atomic.Uint64
	var wg sync.WaitGroup
	for _, size := range []uint64{100, 50} {
		wg.Go(func() {
			mounted.Add(size)
			b.Recompute(mounted.Load)
		})
	}
	wg.Wait()
	if got := b.Lookup("a").Effective(); got != 150 {
		t.Errorf("effective %d after mounts of 100 and 50", got)
	}
}

func TestDifferentTenantsUpdateIndependently(t *testing.T) {
	b := bookOf(t, MaxBytes, Policy{"a", 1000}, Policy{"b", 500})
	var wg sync.WaitGroup
	for name, n := range map[string]int{"a": 1000, "b": 500} {
		for range n {
			wg.Go(func() { b.Lookup(name).TryCharge(1) })
		}
	}
	wg.Wait()
	if b.Lookup("a").Charged() != 1000 || b.Lookup("b").Charged() != 500 {
		t.Errorf("charged %d and %d", b.Lookup("a").Charged(), b.Lookup("b").Charged())
	}
}

// Charging goes on while policies, capacity and removals change under it; what is admitted and
// what is charged must agree in the end.
func TestRecomputeCanRunWithAccounting(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 500}, Policy{"b", 500})
	stop := make(chan struct{})
	var workers, movers sync.WaitGroup
	held := make([]uint64, 8)
	for w := range held {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(5, uint64(w)))
			a := b.Lookup("a")
			for range 5000 {
				n := rnd.Uint64N(20)
				if reason, _ := a.TryCharge(n); reason == Admitted {
					held[w] += n
				}
				if n = rnd.Uint64N(held[w] + 1); !a.Release(n) {
					t.Error("release refused")
					return
				}
				held[w] -= n
			}
		})
	}
	for _, move := range []func(i int){
		func(i int) { b.Recompute(capacity(uint64(500 + i%1000))) },
		func(i int) {
			set := []Policy{{"a", 500}, {"b", 500}, {fmt.Sprint("n", i%50), 10}}
			if i%3 == 0 {
				set = set[1:]
			}
			if err := b.ApplyPolicies(set); err != nil {
				t.Error(err)
			}
		},
		func(int) {
			if b.BeginRemoval("a") == nil {
				b.CancelRemoval("a")
			}
		},
		func(int) {
			if list := b.Snapshots(); !slices.IsSortedFunc(list, func(s, u Snapshot) int { return strings.Compare(s.TenantID, u.TenantID) }) {
				t.Error("snapshots not sorted")
			}
		},
	} {
		movers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					move(i)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	movers.Wait()
	var sum uint64
	for _, n := range held {
		sum += n
	}
	if got := b.Lookup("a").Charged(); got != sum {
		t.Errorf("charged %d, holders have %d", got, sum)
	}
}

func TestManyTenants(t *testing.T) {
	const count = 20000
	set := make([]Policy, count)
	for i := range set {
		set[i] = Policy{fmt.Sprintf("tenant-%05d", i), uint64(1 + i)}
	}
	b := bookOf(t, 1<<20, set...)
	first := b.Lookup("tenant-00000")
	rand.New(rand.NewPCG(6, 6)).Shuffle(count, func(i, j int) { set[i], set[j] = set[j], set[i] })
	if err := b.ApplyPolicies(set[:count/2]); err != nil {
		t.Fatal(err)
	}
	b.Recompute(capacity(1 << 20))
	if got := b.Totals(); got.EffectiveBytes != 1<<20 {
		t.Errorf("effective sum %d", got.EffectiveBytes)
	}
	for i, p := range set {
		if a := b.Lookup(p.Name); a == nil || a.HasPolicy() != (i < count/2) || a.Closed() == (i < count/2) {
			t.Fatalf("tenant %q is wrong", p.Name)
		}
	}
	if b.Lookup("tenant-00000") != first || len(b.Snapshots()) != count/2 {
		t.Error("accounts were lost or listed wrongly")
	}
	seen := 0
	for range b.All() {
		seen++
	}
	if seen != count {
		t.Errorf("All yields %d accounts", seen)
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	b := bookOf(t, 1000, Policy{"a", 100})
	name := []byte("a")
	if n := testing.AllocsPerRun(100, func() {
		if b.Lookup(string(name)) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	book, set := manyPolicies(b)
	i := 0
	for b.Loop() {
		if book.Lookup(set[i].Name) == nil {
			b.Fatal("not found")
		}
		if i++; i == len(set) {
			i = 0
		}
	}
}

func BenchmarkApplyAndRecompute(b *testing.B) {
	book, set := manyPolicies(b)
	for b.Loop() {
		if err := book.ApplyPolicies(set); err != nil {
			b.Fatal(err)
		}
		book.Recompute(capacity(1 << 40))
	}
}

func BenchmarkApplyToEmptyBook(b *testing.B) {
	_, set := manyPolicies(b)
	for b.Loop() {
		book := NewBook()
		if err := book.ApplyPolicies(set); err != nil {
			b.Fatal(err)
		}
		book.Recompute(capacity(1 << 40))
	}
}

// manyPolicies returns a book of 100,000 tenants whose requests pass any capacity, and the set.
func manyPolicies(b *testing.B) (*Book, []Policy) {
	set := make([]Policy, 100_000)
	rnd := rand.New(rand.NewPCG(7, 7))
	for i := range set {
		set[i] = Policy{fmt.Sprintf("tenant-%06d", i), 1<<30 + rnd.Uint64N(1<<30)}
	}
	rnd.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
	book := NewBook()
	if err := book.ApplyPolicies(set); err != nil {
		b.Fatal(err)
	}
	return book, set
}
