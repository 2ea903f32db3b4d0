package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/kvevent"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// fake is a master small enough to say anything a test wants.
type fake struct {
	service   ServiceState
	strict    bool
	objects   map[string]object.ReplicaList // by tenant, NUL, key
	codes     map[string]errcode.Code       // of keys that are not in objects
	keys      map[string][]string           // by tenant
	segments  []segment.View
	drains    []drain.Report
	transfers []core.TransferView
	tenants   []tenant.Snapshot
	totals    tenant.Totals
	stats     core.Stats
	calls     map[string]rpc.Counters
	listener  rpc.Stats
	events    kvevent.Status
	release   wire.Release
	most      int // tenants with metrics of their own
	connector *ConnectorStatus
	policyErr error
	current   policy.Current
	plan      policy.Plan

	mu   sync.Mutex // guards said
	said []string   // the calls that change something
}

func (f *fake) say(format string, args ...any) {
	f.mu.Lock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
	f.mu.Unlock()
}

func (f *fake) AdminReplicas(tenantName, key string, out *object.ReplicaList) errcode.Code {
	if list, ok := f.objects[tenantName+"\x00"+key]; ok {
		*out = list
		return errcode.OK
	}
	if code, ok := f.codes[key]; ok {
		return code
	}
	return errcode.ObjectNotFound
}

func (f *fake) AllKeys(tenantName string) []string { return f.keys[tenantName] }

func (f *fake) RemoveAll(tenantName string, force bool) int64 {
	f.say("remove %q force=%t", tenantName, force)
	return 6
}

func (f *fake) SetSoftPins(tenantName string, keys []string, ttlMs *uint64) []errcode.Code {
	f.say("pin %q %q for %d", tenantName, keys, *ttlMs)
	return f.pinCodes(keys)
}

func (f *fake) ClearSoftPins(tenantName string, keys []string) []errcode.Code {
	f.say("unpin %q %q", tenantName, keys)
	return f.pinCodes(keys)
}

func (f *fake) pinCodes(keys []string) []errcode.Code {
	codes := make([]errcode.Code, len(keys))
	for i, key := range keys {
		if key != "here" {
			codes[i] = errcode.ObjectNotFound
		}
	}
	return codes
}

func (f *fake) SegmentViews() []segment.View { return f.segments }

func (f *fake) QuerySegment(name string) (used, capacity uint64, code errcode.Code) {
	for _, v := range f.segments {
		if v.Info.Name == name {
			return v.Used, v.Capacity, errcode.OK
		}
	}
	return 0, 0, errcode.SegmentNotFound
}

func (f *fake) QuerySegmentStatus(name string) (segment.Status, errcode.Code) {
	for _, v := range f.segments {
		if v.Info.Name == name {
			return v.Status, errcode.OK
		}
	}
	return 0, errcode.SegmentNotFound
}

func (f *fake) MultiTenant() bool                  { return f.strict }
func (f *fake) TenantSnapshots() []tenant.Snapshot { return f.tenants }
func (f *fake) TenantTotals() tenant.Totals        { return f.totals }

func (f *fake) TenantSnapshot(name string) (tenant.Snapshot, bool) {
	for _, t := range f.tenants {
		if t.TenantID == name {
			return t, true
		}
	}
	return tenant.Snapshot{}, false
}

func (f *fake) Put(_ context.Context, name string, quota uint64) error {
	f.say("put %q %d", name, quota)
	if f.policyErr != nil {
		return f.policyErr
	}
	f.tenants = append(f.tenants, tenant.Snapshot{TenantID: name, RequestedQuotaBytes: quota, HasExplicitPolicy: true})
	return nil
}

func (f *fake) Delete(_ context.Context, name string) error {
	f.say("delete %q", name)
	return f.policyErr
}

func (f *fake) InForce() policy.Current { return f.current }

func (f *fake) AtSource(context.Context) (policy.Current, error) {
	return policy.Current{Document: policy.Document{Content: []byte("bad"), Revision: "r9"}, ContentHash: "ef", Invalid: errors.New("line 1: no map")}, f.policyErr
}

func (f *fake) Plan(document []byte) (policy.Plan, error) {
	f.say("plan %q", document)
	return f.plan, f.policyErr
}

func (f *fake) Replace(_ context.Context, document []byte, expected string, confirm bool) (policy.Applied, error) {
	f.say("replace %q %q %t", document, expected, confirm)
	return policy.Applied{Revision: "r2", ContentHash: "ab", Tenants: 3, Added: 1, Removed: 2, Changed: 4}, f.policyErr
}

func (f *fake) Confirm(_ context.Context, revision string) (policy.Applied, error) {
	f.say("confirm %q", revision)
	return policy.Applied{Revision: revision, Same: true}, f.policyErr
}

func (f *fake) History() []policy.Applied {
	return []policy.Applied{
		{Revision: "r2", ContentHash: "ab", Time: start, Why: "watch", Tenants: 3, Added: 1, Removed: 2, Changed: 4, What: "a +1"},
		{Why: "start"},
	}
}

func (f *fake) state() State {
	s := State{
		Service: func() ServiceState { return f.service },
		Objects: f, SoftPins: f, Segments: f, Drains: f, Transfers: f, Tenants: f, Policy: f, Documents: f,
		Stats:    func() core.Stats { return f.stats },
		Calls:    func() map[string]rpc.Counters { return f.calls },
		Listener: func() rpc.Stats { return f.listener },
		Events:   func() kvevent.Status { return f.events },
		Release:  f.release, MaxTenants: f.most,
	}
	if f.connector != nil {
		s.Connector = func() ConnectorStatus { return *f.connector }
	}
	return s
}

// start is when every test's clock begins.
var start = time.Date(2026, 8, 9, 10, 11, 12, 0, time.UTC)

// clock only moves when told to, except that deadlines on real sockets must lie ahead.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

func newTestServer(t *testing.T, f *fake) (*Server, *clock) {
	t.Helper()
	c := &clock{now: start}
	state := f.state()
	s := NewServer(state, NewReporter(state, c.Now()), Options{Version: "1.2.3 (git: abc)", Now: c.Now, Log: hclog.NewNullLogger()})
	return s, c
}

// reply is what a test compares of an answer.
type reply struct {
	status int
	kind   string // content type, "" = no header
	body   string
}

// ask sends "METHOD target" and a body to a handler.
func ask(t *testing.T, h http.Handler, request, body string) reply {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	if length := w.Result().Header.Get("Content-Length"); length != fmt.Sprint(len(got)) {
		t.Errorf("%s: Content-Length %q for %d bytes", request, length, len(got))
	}
	return reply{w.Code, strings.Join(w.Result().Header["Content-Type"], ","), string(got)}
}

func check(t *testing.T, what string, got, want reply) {
	t.Helper()
	if got != want {
		t.Errorf("%s\ngot  %d %q %s\nwant %d %q %s", what, got.status, got.kind, got.body, want.status, want.kind, want.body)
	}
}

func (f *fake) CreateDrainJob(r drain.Request) (segment.UUID, errcode.Code) {
	f.say("drain %q to %q, %d at a time", r.Segments, r.Targets, r.Concurrency)
	if !r.Sound() {
		return segment.UUID{}, errcode.InvalidParams
	}
	return segment.UUID{First: 7, Second: 8}, errcode.OK
}

func (f *fake) QueryDrainJob(id segment.UUID) (drain.Report, errcode.Code) {
	for _, r := range f.drains {
		if r.ID == id {
			return r, errcode.OK
		}
	}
	return drain.Report{}, errcode.JobNotFound
}

func (f *fake) CancelDrainJob(id segment.UUID, patient bool) (bool, errcode.Code) {
	r, code := f.QueryDrainJob(id)
	if code == errcode.OK && r.Active > 0 && !patient {
		code = errcode.UnavailableInStatus
	}
	return r.Active == 0, code
}

func (f *fake) DrainJobs() []drain.Report { return f.drains }

func (f *fake) Transfers() []core.TransferView { return f.transfers }

func (f *fake) CancelTransfer(id segment.UUID) errcode.Code {
	f.say("cancel %v", id)
	switch id.First {
	case 1:
		return errcode.OK
	case 2:
		return errcode.UnavailableInStatus
	}
	return errcode.TaskNotFound
}
