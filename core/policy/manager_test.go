package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// TestMain fails when goroutines are left over.
func TestMain(m *testing.M) {
	code := m.Run()
	for deadline := 100; code == 0 && runtime.NumGoroutine() > 1; deadline-- {
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over:\n%s\n", stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(code)
}

// memorySource is a source in memory whose faults the test chooses.
type memorySource struct {
	mu      sync.Mutex
	text    string
	gone    *Unavailable
	loadErr []error      // each used once, before anything else
	saveErr []error      // each used once; ErrInterrupted may follow a save that happened
	saved   []bool       // for each of saveErr: did it happen
	onSave  func(string) // called before a save is looked at
	saves   int
	deliver func(Event)
	ready   chan struct{}
	status  SourceStatus
}

func newSource(text string) *memorySource {
	return &memorySource{text: text, ready: make(chan struct{}), status: SourceStatus{Type: "memory", Origin: "--flag=x", State: Ready}}
}

func rev(text string) string { s := sha256.Sum256([]byte(text)); return fmt.Sprintf("%x", s[:4]) }

func (s *memorySource) Load(context.Context) (Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.loadErr) > 0 {
		err := s.loadErr[0]
		s.loadErr = s.loadErr[1:]
		return Document{}, err
	}
	if s.gone != nil {
		return Document{}, s.gone
	}
	return Document{Content: []byte(s.text), Revision: rev(s.text)}, nil
}

func (s *memorySource) Watch(ctx context.Context, deliver func(Event)) {
	s.mu.Lock()
	s.deliver = deliver
	s.mu.Unlock()
	close(s.ready)
	<-ctx.Done()
}

func (s *memorySource) Save(_ context.Context, document []byte, expected string) (string, error) {
	if s.onSave != nil {
		s.onSave(string(document))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves++
	is := rev(s.text)
	if s.gone != nil {
		is = ""
	}
	if is != expected {
		return "", fmt.Errorf("%w: test", ErrConflict)
	}
	if len(s.saveErr) > 0 {
		err, happened := s.saveErr[0], s.saved[0]
		s.saveErr, s.saved = s.saveErr[1:], s.saved[1:]
		if happened {
			s.text, s.gone = string(document), nil
		}
		return "", err
	}
	s.text, s.gone = string(document), nil
	return rev(s.text), nil
}

func (s *memorySource) Status() SourceStatus { s.mu.Lock(); defer s.mu.Unlock(); return s.status }

// set is a hand edit; tell also delivers it.
func (s *memorySource) set(text string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.gone = text, nil
	return Event{Document: &Document{Content: []byte(text), Revision: rev(text)}}
}

func (s *memorySource) tell(text string) { s.deliver(s.set(text)) }

func (s *memorySource) lose(u *Unavailable) {
	s.mu.Lock()
	s.gone = u
	s.mu.Unlock()
	s.deliver(Event{Unavailable: u})
}

// record is an enforcer that remembers what was asked of it.
type record struct {
	mu       sync.Mutex
	set      []tenant.Policy
	applied  int
	notEmpty map[string]bool
	removing map[string]bool
	log      []string
}

func (r *record) Policies() []tenant.Policy { return r.set }

func (r *record) ApplyPolicies(set []tenant.Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = slices.Clone(set)
	r.applied++
	r.removing = map[string]bool{}
}

func (r *record) BeginRemoval(name string) errcode.Code {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, "begin "+name)
	switch {
	case !slices.ContainsFunc(r.set, func(p tenant.Policy) bool { return p.Name == name }):
		return errcode.ObjectNotFound
	case r.notEmpty[name]:
		return errcode.TenantNotEmpty
	}
	r.removing[name] = true
	return errcode.OK
}

func (r *record) CancelRemoval(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, "cancel "+name)
	delete(r.removing, name)
}

func (r *record) PreviewPolicies(set []tenant.Policy) tenant.Preview {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := tenant.NewBook()
	if err := b.ApplyPolicies(r.set); err != nil {
		panic(err)
	}
	b.Recompute(func() uint64 { return 100 })
	p, err := b.Preview(set, func() uint64 { return 100 })
	if err != nil {
		panic(err)
	}
	return p
}

func (r *record) String() string { r.mu.Lock(); defer r.mu.Unlock(); return fmt.Sprint(r.set) }

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

type fixture struct {
	*Manager
	source *memorySource
	core   *record
	clock  *clock
	log    *strings.Builder
}

func start(t *testing.T, text string) *fixture {
	t.Helper()
	f := &fixture{source: newSource(text), core: &record{notEmpty: map[string]bool{}, removing: map[string]bool{}}, clock: &clock{now: time.Unix(1e9, 0)}, log: &strings.Builder{}}
	f.Manager = New(Deps{
		Source: f.source, Enforcer: f.core, Clock: f.clock, SaveTimeout: 2 * time.Second,
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: f.log, DisableTime: true}),
	})
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-f.source.ready
	t.Cleanup(f.Close)
	return f
}

const one = "version: 1\ntenants:\n- name: a\n  quota: 5 # c\n"

func TestWatch(t *testing.T) {
	f := start(t, one)
	want := func(set string, applied int) {
		t.Helper()
		if f.core.String() != set || f.core.applied != applied {
			t.Errorf("%s after %d calls, want %s after %d", f.core, f.core.applied, set, applied)
		}
	}
	want("[{a 5}]", 1)
	f.source.tell(one)
	want("[{a 5}]", 1)
	f.source.tell("# only a comment\n" + one)
	want("[{a 5}]", 1)
	if s := f.Status(); s.Revision != rev("# only a comment\n"+one) || s.ReloadSuccesses != 2 {
		t.Errorf("%+v", s)
	}
	f.clock.advance(time.Minute)
	f.source.tell("version: 1\ntenants:\n- {name: b, quota: 1KB}\n- {name: a, quota: 6, note: x}\n")
	want("[{a 6} {b 1024}]", 2)
	if s := f.Status(); s.State != Ready || s.Tenants != 2 || !s.InForceSince.Equal(f.clock.now) || len(s.ContentHash) != 64 {
		t.Errorf("%+v", s)
	}
	for _, line := range []string{"added=1 removed=0 changed=1", `what="a 5->6, b +1024"`, "line 4: unknown key 'note' in the entry of tenant 'a' is ignored"} {
		if !strings.Contains(f.log.String(), line) {
			t.Errorf("no %q in the log:\n%s", line, f.log)
		}
	}
	f.source.tell("version: 1\ntenants: []\n")
	want("[]", 3)
}

func TestTrouble(t *testing.T) {
	f := start(t, one)
	f.clock.advance(time.Minute)
	broken := f.clock.now
	f.source.tell("version: 1\ntenants: 5\n")
	f.source.tell("version: 1\ntenants: 5\n")
	f.clock.advance(time.Minute)
	f.source.tell("")
	f.source.lose(&Unavailable{Kind: Absent, Reason: "no file x"})
	f.source.lose(&Unavailable{Kind: Absent, Reason: "no file x"})
	s := f.Status()
	if s.State != Degraded || !s.Since.Equal(broken) || s.LastError != "no file x" || !s.LastErrorTime.Equal(f.clock.now) ||
		fmt.Sprint(s.ReloadFailures) != "map[absent:1 empty:1 invalid_document:1]" || s.ReloadSuccesses != 1 {
		t.Errorf("%+v", s)
	}
	if f.core.String() != "[{a 5}]" || f.core.applied != 1 {
		t.Errorf("in force %s", f.core)
	}
	f.clock.advance(time.Minute)
	f.source.tell(one)
	if s := f.Status(); s.State != Ready || !s.Since.Equal(f.clock.now) || s.LastError != "no file x" || f.core.applied != 1 {
		t.Errorf("%+v", s)
	}
	if line := "the source is fine again: was=absent after=2m0s"; !strings.Contains(f.log.String(), line) {
		t.Errorf("no %q in the log:\n%s", line, f.log)
	}
	f.source.mu.Lock()
	f.source.status.State, f.source.status.LastError, f.source.status.LastErrorTime = Degraded, "it died", f.clock.now
	f.source.mu.Unlock()
	if s := f.Status(); s.State != Degraded || s.LastError != "it died" {
		t.Errorf("%+v", s)
	}
	f.Close()
	if s := f.Status(); s.State != Stopped {
		t.Errorf("%+v", s)
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*memorySource)
		want    string
	}{
		{
			"absent", func(s *memorySource) { s.gone = &Unavailable{Kind: Absent, Reason: "failed to open x"} },
			"--flag=x: failed to load tenant quota policy: failed to open x",
		},
		{
			"empty", func(s *memorySource) { s.text = "" },
			"--flag=x: failed to load tenant quota policy: line 1: tenant quota policy must be a YAML map (expected the keys version and tenants)",
		},
		{
			"bad", func(s *memorySource) { s.text = "version: 2\n" },
			"--flag=x: failed to load tenant quota policy: line 1: unsupported tenant quota policy version: 2 (write version: 1)",
		},
		{"dead", func(s *memorySource) { s.loadErr = []error{ErrInterrupted} }, "--flag=x: failed to load tenant quota policy: the connector was interrupted"},
	}
	for _, tt := range tests {
		s := newSource(one)
		tt.prepare(s)
		r := &record{}
		m := New(Deps{Source: s, Enforcer: r, Clock: &clock{}, Logger: hclog.NewNullLogger()})
		if err := m.Start(t.Context()); err == nil || err.Error() != tt.want || r.applied > 0 {
			t.Errorf("%s: %v", tt.name, err)
		}
		m.Close()
	}
	s := newSource("")
	s.gone, s.status.AbsentIsEmpty = &Unavailable{Kind: Absent, Reason: "no key"}, true
	r := &record{}
	m := New(Deps{Source: s, Enforcer: r, Clock: &clock{}, Logger: hclog.NewNullLogger()})
	if err := m.Start(t.Context()); err != nil || r.applied != 1 || m.Status().State != Ready || m.Status().ContentHash != "" {
		t.Errorf("absent means empty: %v, %+v", err, m.Status())
	}
	// The watch says the same once more, and what comes in between is forgotten.
	m.handle(t.Context(), Event{Unavailable: s.gone})
	if m.Status().State != Ready || len(m.Status().ReloadFailures) != 0 {
		t.Errorf("still absent: %+v", m.Status())
	}
	m.handle(t.Context(), Event{Document: &Document{Content: []byte("["), Revision: "1"}})
	if m.Status().State != Degraded {
		t.Errorf("garbage: %+v", m.Status())
	}
	m.handle(t.Context(), Event{Unavailable: s.gone})
	if m.Status().State != Ready || r.applied != 1 {
		t.Errorf("absent again: %+v, applied %d times", m.Status(), r.applied)
	}
	m.Close()
}

func code(err error) errcode.Code {
	var c errcode.Code
	errors.As(err, &c)
	return c
}

func TestPut(t *testing.T) {
	f := start(t, one)
	if err := f.Put(t.Context(), "b", 7); err != nil {
		t.Fatal(err)
	}
	if want := one + "- name: \"b\"\n  quota: 7\n"; f.source.text != want || f.core.String() != "[{a 5} {b 7}]" || f.Status().Revision != rev(want) {
		t.Errorf("%q, %s", f.source.text, f.core)
	}
	if err := f.Put(t.Context(), "b", 7); err != nil || f.source.saves != 1 {
		t.Errorf("the same again: %v, %d saves", err, f.source.saves)
	}
	for _, tt := range []struct {
		name  string
		quota uint64
	}{{"", 1}, {"_x", 1}, {"a\n", 1}, {"a\xff", 1}, {"a", 0}, {"a", 1 << 63}} {
		if err := f.Put(t.Context(), tt.name, tt.quota); code(err) != errcode.InvalidParams {
			t.Errorf("%q %d: %v", tt.name, tt.quota, err)
		}
	}
	// A conflict: somebody adds c between our load and our save.
	once := sync.OnceFunc(func() { f.source.set(f.source.text + "- name: c\n  quota: 9\n") })
	f.source.onSave = func(string) { once() }
	if err := f.Put(t.Context(), "a", 6); err != nil || f.core.String() != "[{a 6} {b 7} {c 9}]" || !strings.Contains(f.source.text, "6 # c") {
		t.Errorf("after a conflict: %v, %s, %q", err, f.core, f.source.text)
	}
	f.source.onSave = nil
	// Interrupted saves: once it had not happened, once it had.
	f.source.saveErr, f.source.saved = []error{ErrInterrupted, ErrInterrupted}, []bool{false, true}
	if err := f.Put(t.Context(), "a", 8); err != nil || f.core.String() != "[{a 8} {b 7} {c 9}]" {
		t.Errorf("interrupted: %v, %s", err, f.core)
	}
	f.source.loadErr = []error{ErrInterrupted}
	if err := f.Put(t.Context(), "a", 9); err != nil {
		t.Errorf("interrupted load: %v", err)
	}
	// A document in flow style has to be rewritten.
	f.source.tell("{version: 1, tenants: [{name: a, quota: 1}]}")
	if err := f.Put(t.Context(), "z", 2); err != nil || !strings.Contains(f.log.String(), "written anew") {
		t.Errorf("rewrite: %v", err)
	}
	if n := f.Status().OverwrittenSaves; n != 1 { // b is gone from the operator's document; a has a new value
		t.Errorf("%d overwritten", n)
	}
}

func TestPutFails(t *testing.T) {
	f := start(t, one)
	for name, prepare := range map[string]func(){
		"read-only":    func() { f.source.saveErr, f.source.saved = []error{fmt.Errorf("x: %w", ErrReadOnly)}, []bool{false} },
		"unavailable":  func() { f.source.saveErr, f.source.saved = []error{&Unavailable{Kind: Unreachable}}, []bool{false} },
		"no load":      func() { f.source.loadErr = []error{&Unavailable{Kind: Auth, Reason: "locked"}} },
		"unknown load": func() { f.source.loadErr = []error{errors.New("what?")} },
	} {
		prepare()
		before := f.source.text
		if err := f.Put(t.Context(), "b", 7); code(err) != errcode.PersistentFail || f.source.text != before || f.core.String() != "[{a 5}]" {
			t.Errorf("%s: %v, %s", name, err, f.core)
		}
	}
	f.source.set("version: 1\ntenants: broken\n")
	if err := f.Put(t.Context(), "b", 7); code(err) != errcode.PersistentFail || !strings.Contains(err.Error(), "PERSISTENT_FAIL (-1503): line 2: tenants must be") || f.source.saves != 2 {
		t.Errorf("broken document: %v, %d saves", err, f.source.saves)
	}
	if s := f.Status(); s.State != Degraded {
		t.Errorf("%+v", s)
	}
	// Conflicts without end end with the context.
	f.source.set(one)
	n := 0
	f.source.onSave = func(string) { n++; f.source.set(fmt.Sprintf("# %d\n%s", n, one)) }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.Put(ctx, "b", 7); code(err) != errcode.PersistentFail || n < 2 || n > 60 {
		t.Errorf("conflicts: %v, %d", err, n)
	}
}

func TestPutCreates(t *testing.T) {
	f := start(t, one)
	f.source.lose(&Unavailable{Kind: Absent, Reason: "no file"})
	if err := f.Put(t.Context(), "b", 7); err != nil || f.source.text != "version: 1\n\ntenants:\n  - name: \"a\"\n    quota: 5\n  - name: \"b\"\n    quota: 7\n" {
		t.Errorf("%v: %q", err, f.source.text)
	}
	f.source.tell("\n")
	if f.Status().State != Degraded {
		t.Errorf("%+v", f.Status())
	}
	if err := f.Delete(t.Context(), "a"); err != nil || f.source.text != "version: 1\n\ntenants:\n  - name: \"b\"\n    quota: 7\n" || f.core.String() != "[{b 7}]" {
		t.Errorf("%v: %q", err, f.source.text)
	}
	if f.Status().State != Ready {
		t.Errorf("%+v", f.Status())
	}
}

func TestDelete(t *testing.T) {
	f := start(t, one+"- name: b\n  quota: 6\n")
	f.core.notEmpty["b"] = true
	for _, tt := range []struct {
		name string
		want errcode.Code
	}{{"zzz", errcode.ObjectNotFound}, {"b", errcode.TenantNotEmpty}, {"_x", errcode.InvalidParams}} {
		if err := f.Delete(t.Context(), tt.name); code(err) != tt.want || f.source.saves > 0 {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// The order: closed while it is saved, opened again when that fails.
	f.source.onSave = func(string) {
		if !f.core.removing["a"] {
			t.Error("not closed while it is saved")
		}
	}
	f.source.saveErr, f.source.saved = []error{ErrReadOnly}, []bool{false}
	if err := f.Delete(t.Context(), "a"); code(err) != errcode.PersistentFail || f.core.removing["a"] || f.core.String() != "[{a 5} {b 6}]" {
		t.Errorf("failed save: %v", err)
	}
	// An unknown tenant is not found even when the source is away; a known one can't be deleted.
	f.source.gone = &Unavailable{Kind: Unreachable, Reason: "x"}
	if err := f.Delete(t.Context(), "zzz"); code(err) != errcode.ObjectNotFound {
		t.Errorf("%v", err)
	}
	if err := f.Delete(t.Context(), "a"); code(err) != errcode.PersistentFail || f.core.removing["a"] {
		t.Errorf("%v", err)
	}
	f.source.gone = nil
	// Interrupted after it had happened.
	f.source.saveErr, f.source.saved = []error{ErrInterrupted}, []bool{true}
	if err := f.Delete(t.Context(), "a"); err != nil || f.core.String() != "[{b 6}]" || f.source.text != "version: 1\ntenants:\n- name: b\n  quota: 6\n" {
		t.Errorf("%v, %s, %q", err, f.core, f.source.text)
	}
	if f.Status().OverwrittenSaves != 0 {
		t.Errorf("%+v", f.Status())
	}
}

// TestLateEvents delivers, after a change of ours, what a watch had read before it.
func TestLateEvents(t *testing.T) {
	f := start(t, one)
	late := Event{Document: &Document{Content: []byte(one), Revision: rev(one)}}
	if err := f.Put(t.Context(), "b", 7); err != nil {
		t.Fatal(err)
	}
	f.source.deliver(late)
	if f.core.String() != "[{a 5} {b 7}]" || f.Status().OverwrittenSaves != 0 {
		t.Errorf("an old document came back: %s", f.core)
	}
	f.source.deliver(Event{Unavailable: &Unavailable{Kind: Absent, Reason: "before it was made"}})
	if f.Status().State != Ready {
		t.Errorf("%+v", f.Status())
	}
	// A hand edit after it wins, even one that says what an older one said.
	f.source.tell("version: 1\ntenants:\n- name: b\n  quota: 8\n")
	f.source.tell("version: 1\ntenants: []\n")
	f.source.tell("version: 1\ntenants:\n- name: b\n  quota: 8\n")
	if f.core.String() != "[{b 8}]" {
		t.Errorf("%s", f.core)
	}
	// The connector dies while we look: we look again.
	f.source.loadErr = []error{ErrInterrupted, ErrInterrupted}
	f.source.tell("version: 1\ntenants:\n- name: b\n  quota: 9\n")
	if f.core.String() != "[{b 9}]" {
		t.Errorf("%s", f.core)
	}
}

func TestOverwritten(t *testing.T) {
	f := start(t, one)
	put := func(name string, quota uint64) {
		t.Helper()
		if err := f.Put(t.Context(), name, quota); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want uint64) {
		t.Helper()
		if got := f.Status().OverwrittenSaves; got != want {
			t.Errorf("%d overwritten, want %d", got, want)
		}
	}
	old := f.source.text
	put("b", 7)
	f.source.tell(old + "# edited\n")
	count(1)
	f.source.tell(old + "# edited again\n")
	count(1) // once each
	put("a", 6)
	put("a", 7)
	f.source.tell(old)
	count(2) // back to the value before the last two
	put("a", 6)
	f.source.tell(strings.Replace(old, "quota: 5", "quota: 99", 1))
	count(2) // another value: meant
	put("c", 1)
	if err := f.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	put("c", 1)
	count(2) // our own going back and forth
	before := f.source.text
	if err := f.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	f.source.tell(before)
	count(3) // a deletion undone
	put("d", 1)
	f.clock.advance(memory + time.Second)
	f.source.tell(before)
	count(3) // long after: meant
	// Found by the load before the next change, too.
	put("e", 1)
	f.source.set(before)
	put("f", 1)
	count(4)
	if n := strings.Count(f.log.String(), "[WARN]  a quota saved through the admin interface was overwritten"); n != 4 {
		t.Errorf("%d warnings:\n%s", n, f.log)
	}
}

func TestDiff(t *testing.T) {
	p := func(s string) (set []tenant.Policy) {
		for _, f := range strings.Fields(s) {
			set = append(set, tenant.Policy{Name: f[:1], Quota: uint64(f[1] - '0')})
		}
		return set
	}
	for _, tt := range []struct{ old, new, want string }{
		{"", "", "[]"},
		{"", "a1 b2", "[{a 0 1} {b 0 2}]"},
		{"a1 b2", "", "[{a 1 0} {b 2 0}]"},
		{"a1 b2 d4", "b3 c1 d4", "[{a 1 0} {b 2 3} {c 0 1}]"},
	} {
		if got := fmt.Sprint(Diff(p(tt.old), p(tt.new))); got != tt.want {
			t.Errorf("%q -> %q: %s", tt.old, tt.new, got)
		}
	}
	many := Diff(nil, p("a1 b1 c1 d1 e1 f1 g1 h1 i1"))
	if got := excerpt(many); got != "a +1, b +1, c +1, d +1, e +1, f +1, g +1, h +1, ..." {
		t.Error(got)
	}
	if got := excerpt([]Change{{Name: "x", Old: 1}}); got != "x removed" {
		t.Error(got)
	}
}
