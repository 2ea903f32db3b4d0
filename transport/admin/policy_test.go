package admin

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

const noRevision = `{"success":false,"error_code":-600,"error_message":"missing expected_revision: the revision GET answered with, or empty to create the document","reason":"invalid"}`

func TestPolicyRoutes(t *testing.T) {
	f := loaded()
	f.current = policy.Current{
		Document: policy.Document{Content: []byte("version: 1\ntenants: []\n"), Revision: "r1"}, ContentHash: "cc",
		Origin: policy.FromStore, Since: start, Tenants: 2,
	}
	f.plan = policy.Plan{
		Revision: "r1", BaseHash: "cc", ContentHash: "dd", Tenants: 2, Warnings: []policydoc.Warning{{Line: 3, Message: "w"}, {Line: 4, Message: "x"}},
		Added: 1, Removed: 1, Changed: 1, Unchanged: 1, Held: true, Removal: policy.RemovalError{Removed: 1, Of: 3, Most: 20},
		Preview: tenant.Preview{CapacityBytes: 200, RequestedBefore: 300, RequestedAfter: 100, Tenants: []tenant.Outlook{
			{TenantID: "a", RequestedBefore: 100, RequestedAfter: 50, EffectiveBefore: 66, EffectiveAfter: 50, ChargedBytes: 70, Objects: 3},
			{TenantID: "b", RequestedAfter: 7, EffectiveAfter: 7},
			{TenantID: "c", RequestedBefore: 100, EffectiveBefore: 67, Objects: 1},
			{TenantID: "d", RequestedBefore: 5, RequestedAfter: 5, EffectiveBefore: 5, EffectiveAfter: 5},
		}},
	}
	s, _ := newTestServer(t, f)
	const (
		a   = `{"tenant_id":"a","change":"changed","requested_before":100,"requested_after":50,"effective_before":66,"effective_after":50,"charged_bytes":70,"objects":3,"over_quota_before":true,"over_quota_after":true,"over_by_bytes":20}`
		b   = `{"tenant_id":"b","change":"added","requested_before":0,"requested_after":7,"effective_before":0,"effective_after":7,"charged_bytes":0,"objects":0,"over_quota_before":false,"over_quota_after":false,"over_by_bytes":0}`
		c   = `{"tenant_id":"c","change":"removed","requested_before":100,"requested_after":0,"effective_before":67,"effective_after":0,"charged_bytes":0,"objects":1,"over_quota_before":false,"over_quota_after":false,"over_by_bytes":0}`
		d   = `{"tenant_id":"d","change":"unchanged","requested_before":5,"requested_after":5,"effective_before":5,"effective_after":5,"charged_bytes":0,"objects":0,"over_quota_before":false,"over_quota_after":false,"over_by_bytes":0}`
		one = `{"success":true,"data":{"base":{"revision":"r1","content_hash":"cc"},"document":{"content_hash":"dd","tenants":2,"warnings":[{"line":3,"message":"w"},{"line":4,"message":"x"}]},` +
			`"same":false,"added":1,"removed":1,"changed":1,"unchanged":1,"tenants":[`
		two = `],"removed_not_empty":["c"],"pool":{"capacity_bytes":200,"requested_before":300,"requested_after":100,"oversubscription_before":1.5,"oversubscription_after":0.5},` +
			`"guard":{"removed_percent":33.333333333333336,"max_removal_percent":20,"held":true}}}`
	)
	for _, tt := range []struct {
		request, body string
		want          reply
		said          string
	}{
		{"GET /api/v1/tenant_quota_policy", "", okJSON(`{"success":true,"data":{"revision":"r1","content_hash":"cc","origin":"stored","in_force_since":"2026-08-09T10:11:12.000Z","tenants":2,"document":"version: 1\ntenants: []\n"}}`), ""},
		{"GET /api/v1/tenant_quota_policy?at=source", "", okJSON(`{"success":true,"data":{"revision":"r9","content_hash":"ef","error":"line 1: no map","document":"bad"}}`), ""},
		{"GET /api/v1/tenant_quota_policy?raw=true", "", reply{200, typePlain, "version: 1\ntenants: []\n"}, ""},
		{"GET /api/v1/tenant_quota_policy?at=x", "", reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"at=x: want source, or nothing for what is in force","reason":"invalid"}`}, ""},
		{"PUT /api/v1/tenant_quota_policy", "text", reply{400, typeJSON, noRevision}, ""},
		{
			"PUT /api/v1/tenant_quota_policy?expected_revision=r%201", "text",
			okJSON(`{"success":true,"data":{"revision":"r2","content_hash":"ab","tenants":3,"added":1,"removed":2,"changed":4,"same":false}}`), `replace "text" "r 1" false`,
		},
		{
			"PUT /api/v1/tenant_quota_policy?expected_revision=&confirm_removal=true", "",
			okJSON(`{"success":true,"data":{"revision":"r2","content_hash":"ab","tenants":3,"added":1,"removed":2,"changed":4,"same":false}}`), `replace "" "" true`,
		},
		{"POST /api/v1/tenant_quota_policy/confirm?revision=r8", "", okJSON(`{"success":true,"data":{"revision":"r8","content_hash":"","tenants":0,"added":0,"removed":0,"changed":0,"same":true}}`), `confirm "r8"`},
		{"POST /api/v1/tenant_quota_policy/confirm", "", reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"missing revision: the one held back, see /api/v1/tenant_quota_connector","reason":"invalid"}`}, ""},
		{"POST /api/v1/tenant_quota_policy/plan", "doc", okJSON(one + a + "," + b + "," + c + two), `plan "doc"`},
		{"POST /api/v1/tenant_quota_policy/plan?all=true", "doc", okJSON(one + a + "," + b + "," + c + "," + d + two), `plan "doc"`},
		{"GET /api/v1/tenant_quota_policy/history", "", okJSON(
			`{"success":true,"data":[{"revision":"r2","content_hash":"ab","time":"2026-08-09T10:11:12.000Z","why":"watch","tenants":3,"added":1,"removed":2,"changed":4,"what":"a +1"},` +
				`{"revision":"","content_hash":"","time":null,"why":"start","tenants":0,"added":0,"removed":0,"changed":0,"what":""}]}`), ""},
		{"POST /api/v1/tenant_quota_policy", "", reply{404, typeJSON, `{"success":false,"error_code":-600,"error_message":"there is no POST /api/v1/tenant_quota_policy, use GET or PUT"}`}, ""},
	} {
		f.said = nil
		check(t, tt.request, ask(t, s.Handler(), tt.request, tt.body), tt.want)
		if got := strings.Join(f.said, "; "); got != tt.said {
			t.Errorf("%s: said %s, want %s", tt.request, got, tt.said)
		}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/tenant_quota_policy?raw=true", nil))
	if w.Header().Get("X-Policy-Revision") != "r1" || w.Header().Get("X-Policy-Content-Hash") != "cc" {
		t.Errorf("%v", w.Header())
	}
}

// TestPolicyRefusals has every route answer with every failure it can have.
func TestPolicyRefusals(t *testing.T) {
	f := loaded()
	s, _ := newTestServer(t, f)
	fails := func(code int, message, reason string) string {
		return fmt.Sprintf(`{"success":false,"error_code":%d,"error_message":"%s","reason":"%s"}`, code, message, reason)
	}
	const put, plan, read = "PUT /api/v1/tenant_quota_policy?expected_revision=r", "POST /api/v1/tenant_quota_policy/plan", "GET /api/v1/tenant_quota_policy?at=source"
	for _, tt := range []struct {
		request string
		err     error
		status  int
		body    string
	}{
		{plan, &policy.InvalidError{Err: errors.New("line 4: bad")}, 400, fails(-600, "line 4: bad", "invalid")},
		{put, &policy.InvalidError{Err: errors.New("line 4: bad")}, 400, fails(-600, "line 4: bad", "invalid")},
		{put, &policy.RemovalError{Removed: 2, Of: 3, Most: 50}, 409, fails(-1010, "it removes 2 of 3 tenants (66.67 %), more than --tenant_quota_max_removal_percent=50; it is saved with confirm_removal=true", "removal")},
		{put, &policy.ConflictError{Current: "r7", Err: policy.ErrConflict}, 409, strings.TrimSuffix(fails(-1010, "the source holds another revision", "conflict"), "}") + `,"current_revision":"r7"}`},
		{"POST /api/v1/tenant_quota_policy/confirm?revision=r", &policy.ConflictError{Err: errors.New("nothing is held back")}, 409, strings.TrimSuffix(fails(-1010, "nothing is held back", "conflict"), "}") + `,"current_revision":""}`},
		{put, &policy.Failure{Code: errcode.PersistentFail, Err: policy.ErrReadOnly}, 500, fails(-1503, "PERSISTENT_FAIL (-1503): the source is read-only", "read_only")},
		{put, &policy.Failure{Code: errcode.PersistentFail, Err: &policy.Unavailable{Kind: policy.Absent, Reason: "gone"}}, 500, fails(-1503, "PERSISTENT_FAIL (-1503): gone", "unavailable")},
		{read, &policy.Unavailable{Kind: policy.Absent, Reason: "no file"}, 404, fails(-704, "no file", "absent")},
		{read, &policy.Unavailable{Kind: policy.Auth, Reason: "locked"}, 500, fails(-1503, "locked", "unavailable")},
	} {
		f.policyErr = tt.err
		check(t, tt.request+" "+tt.err.Error(), ask(t, s.Handler(), tt.request, "x"), reply{tt.status, typeJSON, tt.body})
	}
	f.policyErr = nil
	for _, request := range []string{
		"GET /api/v1/tenant_quota_policy", put, plan, "POST /api/v1/tenant_quota_policy/confirm?revision=r", "GET /api/v1/tenant_quota_policy/history",
	} {
		f.service, f.strict = ServiceState{Role: "standby"}, true
		check(t, "inactive "+request, ask(t, s.Handler(), request, ""), inactive)
		f.service, f.strict = Serving(), false
		check(t, "not strict "+request, ask(t, s.Handler(), request, ""), wrongMode)
	}
}
