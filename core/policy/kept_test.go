package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
)

// startWith starts a manager whose dependencies a test has changed; the source may be bad.
func startWith(t *testing.T, source *memorySource, change func(*Deps)) (*fixture, error) {
	t.Helper()
	f := &fixture{source: source, core: &record{notEmpty: map[string]bool{}, removing: map[string]bool{}}, clock: &clock{now: time.Unix(1e9, 0)}, log: &strings.Builder{}}
	d := Deps{
		Source: f.source, Enforcer: f.core, Clock: f.clock, SaveTimeout: 2 * time.Second,
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &locked{b: f.log}, DisableTime: true}),
	}
	change(&d)
	f.Manager = New(d)
	err := f.Start(t.Context())
	if err == nil {
		<-f.source.ready
	}
	t.Cleanup(f.Close)
	return f, err
}

// locked is a log that the saver writes to as well.
type locked struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func many(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\ntenants:\n")
	for i := range n {
		fmt.Fprintf(&b, "- name: t%02d\n  quota: %d\n", i, i+1)
	}
	return b.String()
}

func TestFileStore(t *testing.T) {
	dir := t.TempDir()
	s := &FileStore{Dir: dir, Type: "file", URI: "/a", ClusterID: "c"}
	if got, err := s.Load(); got != nil || err != nil {
		t.Fatalf("nothing: %v, %v", got, err)
	}
	want := Stored{Document: Document{Content: []byte("a\nb\x00\n"), Revision: "r\n1"}, Time: time.Unix(5, 0).UTC()}
	for range 2 {
		if err := s.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Load()
	if err != nil || string(got.Content) != string(want.Content) || got.Revision != want.Revision || !got.Time.Equal(want.Time) {
		t.Errorf("%+v, %v", got, err)
	}
	path := filepath.Join(dir, StoreName)
	if err := os.WriteFile(filepath.Join(dir, "."+StoreName+"-123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	for _, other := range []*FileStore{{Type: "etcd", URI: "/a", ClusterID: "c"}, {Type: "file", URI: "/b", ClusterID: "c"}, {Type: "file", URI: "/a", ClusterID: "d"}} {
		other.Dir = dir
		if got, err := other.Load(); got != nil || err == nil || !strings.Contains(err.Error(), "the policy of another source (") {
			t.Errorf("%+v, %v", got, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range text {
		if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(); got != nil || err == nil {
			t.Fatalf("cut at %d: %+v", cut, got)
		}
		damaged := append([]byte(nil), text...)
		damaged[cut] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(); got != nil || err == nil {
			t.Fatalf("damaged at %d: %+v", cut, got)
		}
	}
	if err := (&FileStore{Dir: filepath.Join(dir, "none")}).Save(want); err == nil {
		t.Error("saved into nothing")
	}
}

// TestF8LastGoodAcrossRestarts stops and starts with the source in every state.
func TestF8LastGoodAcrossRestarts(t *testing.T) {
	store := &FileStore{Dir: t.TempDir(), Type: "x"}
	optional := func(d *Deps) { d.Store, d.Optional = store, true }
	f, err := startWith(t, newSource(one), optional)
	if err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Minute)
	f.source.tell(many(3))
	f.clock.advance(time.Minute)
	f.Close() // the source was fine until now
	seen := f.clock.now

	for name, source := range map[string]*memorySource{
		"unreachable": {gone: &Unavailable{Kind: Unreachable, Reason: "no route"}},
		"invalid":     {text: "version: 2\n"},
		"empty":       {text: ""},
		"absent":      {gone: &Unavailable{Kind: Absent, Reason: "no key"}},
		"dead":        {loadErr: []error{ErrInterrupted}},
	} {
		source.ready = make(chan struct{})
		source.status = SourceStatus{Type: "memory", Origin: "--flag=x", State: Ready}
		f, err := startWith(t, source, optional)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := f.Status()
		if s.State != Stale || s.Origin != FromStore || !s.StaleSince.Equal(seen) || !s.StoredTime.Equal(seen) || s.StoredError != "" || s.Tenants != 3 || s.ReloadOK || s.LastError == "" || f.core.String() != "[{t00 1} {t01 2} {t02 3}]" {
			t.Errorf("%s: %+v, %s", name, s, f.core)
		}
		if h := f.History(); len(h) != 1 || h[0].Why != "stored" || h[0].Added != 3 {
			t.Errorf("%+v", h)
		}
		// The source comes back, with the same or with another document.
		f.source.tell(many(3))
		if s := f.Status(); s.State != Ready || s.Origin != FromSource || !s.StaleSince.IsZero() || !s.ReloadOK || f.core.applied != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		f.source.tell(many(4))
		if s := f.Status(); s.State != Ready || s.Tenants != 4 {
			t.Errorf("%s: %+v", name, s)
		}
		f.source.tell(many(3))
		f.Close()
		if err := store.Save(Stored{Document: Document{Content: []byte(many(3)), Revision: "r"}, Time: seen}); err != nil {
			t.Fatal(err)
		}
	}

	// A bad source stops a master that requires it, whatever is stored; a good one is used.
	bad := newSource("version: 2\n")
	if _, err := startWith(t, bad, func(d *Deps) { d.Store = store }); err == nil || !strings.Contains(err.Error(), "unsupported tenant quota policy version") {
		t.Errorf("%v", err)
	}
	if f, err = startWith(t, newSource(one), func(d *Deps) { d.Store = store }); err != nil || f.core.String() != "[{a 5}]" {
		t.Errorf("%v, %s", err, f.core)
	}
	f.Close()
	if err := store.Save(Stored{Document: Document{Content: []byte(many(3)), Revision: "r"}, Time: seen}); err != nil {
		t.Fatal(err)
	}

	// Where absent means empty, a key that is gone now but was there before is not an empty policy.
	gone := newSource("")
	gone.gone, gone.status.AbsentIsEmpty = &Unavailable{Kind: Absent, Reason: "no key"}, true
	if f, err = startWith(t, gone, func(d *Deps) { d.Store = store }); err != nil || f.Status().State != Stale || f.Status().Tenants != 3 {
		t.Errorf("%v, %+v", err, f.Status())
	}
	f.Close()

	// What is stored is damaged: as if there were nothing.
	if err := os.WriteFile(filepath.Join(store.Dir, StoreName), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dead := newSource("")
	dead.gone = &Unavailable{Kind: Unreachable, Reason: "no route"}
	if f, err = startWith(t, dead, optional); err != nil {
		t.Fatal(err)
	}
	if s := f.Status(); s.State != NoPolicy || s.Origin != FromNobody || !strings.Contains(s.StoredError, "not a stored policy, or damaged") || f.core.applied != 0 || !strings.Contains(f.log.String(), "the stored one is not used") || !strings.Contains(f.log.String(), "all writes are refused") {
		t.Errorf("%+v, %s", s, f.log)
	}
	f.source.tell(one)
	if s := f.Status(); s.State != Ready || f.core.String() != "[{a 5}]" {
		t.Errorf("%+v", s)
	}
	f.Close()
	got, err := store.Load()
	if err != nil || string(got.Content) != one {
		t.Errorf("%+v, %v", got, err)
	}
	// Started without a policy, one that is absent where that means empty is an empty one.
	late := newSource("")
	late.gone, late.status.AbsentIsEmpty = &Unavailable{Kind: Unreachable, Reason: "no route"}, true
	if f, err = startWith(t, late, func(d *Deps) { d.Optional = true }); err != nil {
		t.Fatal(err)
	}
	f.source.lose(&Unavailable{Kind: Absent, Reason: "no key"})
	if s := f.Status(); s.State != Ready || s.Origin != FromAbsent || s.Tenants != 0 || f.core.applied != 1 {
		t.Errorf("%+v", s)
	}
}

// failingStore can't save.
type failingStore struct{ FileStore }

func (*failingStore) Save(Stored) error { return errors.New("disk full") }

func TestStoreFailureIsShown(t *testing.T) {
	f, err := startWith(t, newSource(one), func(d *Deps) { d.Store = &failingStore{FileStore{Dir: t.TempDir()}} })
	if err != nil {
		t.Fatal(err)
	}
	f.source.tell(many(2))
	f.Close()
	if s := f.Status(); s.StoredError != "disk full" || !s.StoredTime.IsZero() || strings.Count(f.log.String(), "could not be stored") != 1 {
		t.Errorf("%+v, %s", s, f.log)
	}
}

// TestF6MassRemovalIsHeldBack walks the guard through its life.
func TestF6MassRemovalIsHeldBack(t *testing.T) {
	store := &FileStore{Dir: t.TempDir(), Type: "x"}
	guarded := func(d *Deps) { d.Keep, d.Store = 50, store } // at most half may go
	f, err := startWith(t, newSource(many(10)), guarded)
	if err != nil {
		t.Fatal(err)
	}
	in := func(n int, state string) {
		t.Helper()
		if s := f.Status(); len(f.core.set) != n || s.Tenants != n || s.State != state || s.ReloadOK != (state == Ready) {
			t.Errorf("%d in force, want %d; %+v", len(f.core.set), n, s)
		}
	}
	f.source.tell(many(5))
	in(5, Ready) // exactly half
	f.clock.advance(time.Minute)
	since := f.clock.now
	f.source.tell(many(2))
	in(5, Held)
	s := f.Status()
	if s.HeldRevision != rev(many(2)) || len(s.HeldHash) != 64 || s.HeldTenants != 2 || s.HeldRemoved != 3 || !s.HeldSince.Equal(since) || s.ReloadFailures["held"] != 1 ||
		s.LastError != "revision "+rev(many(2))+" is held back: it removes 3 of 5 tenants (60 %), more than --tenant_quota_max_removal_percent=50; confirm it with POST /api/v1/tenant_quota_policy/confirm, or change it at the source" {
		t.Errorf("%+v", s)
	}
	f.clock.advance(time.Minute)
	f.source.tell(many(2)) // told again: no news
	if s := f.Status(); !s.HeldSince.Equal(since) || s.ReloadFailures["held"] != 1 {
		t.Errorf("%+v", s)
	}
	// A change of one tenant would put it in force by the back door.
	if err := f.Put(t.Context(), "new", 1); code(err) != errcode.PersistentFail || f.source.text != many(2) {
		t.Errorf("%v", err)
	}
	in(5, Held)
	// The source thinks better of it.
	f.source.tell(many(4))
	in(4, Ready)
	if s := f.Status(); s.HeldRevision != "" || !s.HeldSince.IsZero() {
		t.Errorf("%+v", s)
	}
	var conflict *ConflictError
	if _, err := f.Confirm(t.Context(), "x"); !errors.As(err, &conflict) || err.Error() != "nothing is held back" {
		t.Errorf("%v", err)
	}
	// An explicit empty list is legal, and held as any other.
	const none = "version: 1\ntenants: []\n"
	f.source.tell(none)
	in(4, Held)
	if _, err := f.Confirm(t.Context(), rev(many(2))); !errors.As(err, &conflict) || conflict.Current != rev(none) {
		t.Errorf("%v", err)
	}
	// The source goes away with it: there is nothing to confirm.
	f.source.lose(&Unavailable{Kind: Unreachable, Reason: "gone"})
	in(4, Degraded)
	if _, err := f.Confirm(t.Context(), rev(none)); code(err) != errcode.PersistentFail {
		t.Errorf("%v", err)
	}
	f.source.set(none)
	done, err := f.Confirm(t.Context(), rev(none))
	if err != nil || done.Removed != 4 || done.Revision != rev(none) {
		t.Errorf("%+v, %v", done, err)
	}
	in(0, Ready)

	// A restart does not get it past the guard.
	f.source.tell(many(10))
	in(10, Ready)
	f.source.tell(many(1))
	in(10, Held)
	f.Close()
	if f, err = startWith(t, newSource(many(1)), guarded); err != nil {
		t.Fatal(err)
	}
	in(10, Held)
	if _, err = f.Confirm(t.Context(), rev(many(1))); err != nil {
		t.Error(err)
	}
	in(1, Ready)
	// Deleting a tenant by name is a person's word already.
	if err := f.Delete(t.Context(), "t00"); err != nil {
		t.Error(err)
	}
	in(0, Ready)
}

func TestReplace(t *testing.T) {
	f, err := startWith(t, newSource(many(4)), func(d *Deps) { d.Keep = 50 })
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var invalid *InvalidError
	var removal *RemovalError
	var conflict *ConflictError
	if _, err := f.Replace(ctx, []byte("version: 1\n"), rev(many(4)), false); !errors.As(err, &invalid) || err.Error() != "line 1: tenants must be a YAML sequence (write tenants: [] for none)" {
		t.Errorf("%v", err)
	}
	if _, err := f.Replace(ctx, []byte(many(1)), rev(many(4)), false); !errors.As(err, &removal) || removal.Removed != 3 || removal.Of != 4 {
		t.Errorf("%v", err)
	}
	if f.source.saves != 0 {
		t.Errorf("%d saves", f.source.saves)
	}
	done, err := f.Replace(ctx, []byte(many(5)), rev(many(4)), false)
	if err != nil || done.Added != 1 || done.Revision != rev(many(5)) || f.source.text != many(5) || len(f.core.set) != 5 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err = f.Replace(ctx, []byte(many(5)), rev(many(5)), false); err != nil || !done.Same || done.Tenants != 5 {
		t.Errorf("%+v, %v", done, err)
	}
	// Somebody was faster: told, with what is there now, which is in force by then.
	f.source.set(many(6))
	before := f.source.saves
	if _, err := f.Replace(ctx, []byte(many(7)), rev(many(5)), false); !errors.As(err, &conflict) || conflict.Current != rev(many(6)) || !errors.Is(err, ErrConflict) ||
		f.source.text != many(6) || len(f.core.set) != 6 || f.source.saves != before+1 {
		t.Errorf("%v, %d saves", err, f.source.saves-before)
	}
	// Interrupted: once it had not happened, once it had.
	f.source.saveErr, f.source.saved = []error{ErrInterrupted, ErrInterrupted}, []bool{false, true}
	f.source.loadErr = []error{ErrInterrupted}
	if done, err := f.Replace(ctx, []byte(many(7)), rev(many(6)), false); err != nil || f.source.text != many(7) || done.Revision != rev(many(7)) || len(f.core.set) != 7 {
		t.Errorf("%+v, %v", done, err)
	}
	f.source.saveErr, f.source.saved = []error{fmt.Errorf("x: %w", ErrReadOnly)}, []bool{false}
	if _, err := f.Replace(ctx, []byte(many(9)), rev(f.source.text), true); code(err) != errcode.PersistentFail || !errors.Is(err, ErrReadOnly) {
		t.Errorf("%v", err)
	}
	// With confirm, and where there is no document.
	f.source.gone = &Unavailable{Kind: Absent, Reason: "no file"}
	if _, err := f.Replace(ctx, []byte(many(1)), "other", true); !errors.As(err, &conflict) || conflict.Current != "" {
		t.Errorf("%v", err)
	}
	if done, err := f.Replace(ctx, []byte(many(1)), "", true); err != nil || f.source.text != many(1) || done.Tenants != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	// What is replaced on purpose was not overwritten by mistake.
	if err := f.Put(ctx, "x", 9); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Replace(ctx, []byte(many(1)), f.Status().Revision, true); err != nil {
		t.Fatal(err)
	}
	if n := f.Status().OverwrittenSaves; n != 0 {
		t.Errorf("%d overwritten:\n%s", n, f.log)
	}
}

func TestInForceAndAtSource(t *testing.T) {
	f := start(t, one)
	c := f.InForce()
	if string(c.Content) != one || c.Revision != rev(one) || c.Origin != FromSource || c.Tenants != 1 || len(c.ContentHash) != 64 {
		t.Errorf("%+v", c)
	}
	f.source.tell("version: 2\n")
	if c := f.InForce(); string(c.Content) != one {
		t.Errorf("%+v", c)
	}
	c, err := f.AtSource(context.Background())
	if err != nil || string(c.Content) != "version: 2\n" || c.Invalid == nil || c.Revision != rev("version: 2\n") {
		t.Errorf("%+v, %v", c, err)
	}
	f.source.gone = &Unavailable{Kind: Auth, Reason: "locked"}
	if _, err := f.AtSource(context.Background()); err == nil || err.Error() != "locked" {
		t.Errorf("%v", err)
	}
}

// TestPlanIsWhatHappens plans documents and then puts them in force.
func TestPlanIsWhatHappens(t *testing.T) {
	f, err := startWith(t, newSource(many(4)), func(d *Deps) { d.Keep = 50 })
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		many(4), "# x\n" + many(4), many(6), "version: 1\ntenants:\n- {name: t05, quota: 90}\n- {name: t00, quota: 80, note: x}\n- {name: t01, quota: 2}\n", many(1), "version: 1\ntenants: []\n",
	} {
		before := f.core.String()
		p, err := f.Plan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if f.core.String() != before || f.source.saves != i {
			t.Fatal("the plan changed something")
		}
		if p.Held {
			if _, err := f.Replace(t.Context(), []byte(text), f.Status().Revision, false); err == nil {
				t.Errorf("%d: planned to be held, but was not", i)
			}
			f.source.saves--
		}
		f.source.saves = i
		done, err := f.Replace(t.Context(), []byte(text), f.Status().Revision, true)
		if err != nil {
			t.Fatal(err)
		}
		if p.Added != done.Added || p.Removed != done.Removed || p.Changed != done.Changed || p.Same != done.Same || p.ContentHash != f.Status().ContentHash || p.Tenants != f.Status().Tenants {
			t.Errorf("%d: planned %+v, done %+v", i, p, done)
		}
		var sum uint64
		for _, o := range p.Preview.Tenants {
			sum += o.EffectiveAfter
		}
		if want := min(uint64(100), p.Preview.RequestedAfter); sum != want || p.Preview.CapacityBytes != 100 {
			t.Errorf("%d: %d in effect, want %d", i, sum, want)
		}
	}
	if p, _ := f.Plan([]byte("version: 1\ntenants:\n- {name: a, quota: 1, note: x}\n")); len(p.Warnings) != 1 {
		t.Errorf("%+v", p.Warnings)
	}
	var invalid *InvalidError
	if _, err := f.Plan([]byte("version: 3\n")); !errors.As(err, &invalid) {
		t.Errorf("%v", err)
	}
	if h := f.History(); len(h) != 6 || h[0].Why != "document through the admin interface" || h[0].Removed != 1 || h[5].Why != "start" {
		t.Errorf("%+v", h)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	f := start(t, one)
	for i := range historyMost + 5 {
		f.source.tell(many(1 + i%7))
	}
	h := f.History()
	if len(h) != historyMost || h[0].Tenants != 1+(historyMost+4)%7 || h[0].Revision != f.Status().Revision {
		t.Errorf("%d, %+v", len(h), h[0])
	}
}
