package admin

import (
	"slices"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

func TestDrainRoutes(t *testing.T) {
	const (
		noJob   = `{"success":false,"error_code":-1402,"error_message":"JOB_NOT_FOUND"}`
		badJob  = `{"success":false,"error_code":-600,"error_message":"Missing or invalid job_id"}`
		invalid = `{"success":false,"error_code":-600,"error_message":"INVALID_PARAMS"}`
		busy    = `{"success":false,"error_code":-1010,"error_message":"UNAVAILABLE_IN_CURRENT_STATUS"}`
		created = `{"success":true,"job_id":"7-8","status":"CREATED","error_code":0,"error_message":""}`
		running = `"job_id":"7-8","type":0,"type_name":"DRAIN","status":2,"status_name":"RUNNING","created_at_ms_epoch":5,"last_updated_at_ms_epoch":6,` +
			`"segments":["a","\u00E9"],"succeeded_units":4,"failed_units":1,"blocked_units":2,"active_units":3,"migrated_bytes":400000,"message":"Drain job running"`
	)
	badBody := func(why string) string {
		return `{"success":false,"error_code":-600,"error_message":"Invalid JSON body: ` + why + `"}`
	}
	f := loaded()
	f.drains = []drain.Report{{
		ID: segment.UUID{First: 7, Second: 8}, Status: drain.Running, CreatedMs: 5, UpdatedMs: 6,
		Request:   drain.Request{Segments: []string{"a", "é"}, Targets: []string{"b"}, Concurrency: 3},
		Succeeded: 4, Failed: 1, Blocked: 2, Active: 3, MigratedBytes: 400000, Message: drain.RunningMessage, Total: 10, Remaining: 6, ActiveBytes: 900, ActiveDone: 300,
	}, {ID: segment.UUID{First: 1, Second: 1}, Request: drain.Request{Segments: []string{"c"}, Concurrency: 1}}}
	s, _ := newTestServer(t, f)
	for _, c := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"POST /api/v1/drain_jobs", `{"segments":["a"]}`, 200, created},
		{"POST /api/v1/drain_jobs", `{"segments":["a","b"],"target_segments":["c"],"max_concurrency":16,"x":}`, 200, created},
		{"POST /api/v1/drain_jobs", `{}`, 400, invalid},
		{"POST /api/v1/drain_jobs", `{"segments":["a"],"max_concurrency":0}`, 400, invalid},
		{"POST /api/v1/drain_jobs", ``, 400, badBody("Unexpected end of buffer. Expected:")},
		{"POST /api/v1/drain_jobs", `{"segments":["a"],"max_concurrency":4294967296}`, 400, badBody("Failed to parse number")},
		{"POST /api/v1/drain_jobs", `{"segments":["a"],"max_concurrency":null}`, 400, badBody("Failed to parse number")},
		{"POST /api/v1/drain_jobs", `{"segments":null}`, 400, badBody("Expected these: [")},
		{"GET /api/v1/drain_jobs/query?job_id=7-8", "", 200, `{"success":true,` + running + `,"error_code":0,"error_message":""}`},
		{"GET /api/v1/drain_jobs/query?job_id=+7x-%2B08zz", "", 200, `{"success":true,` + running + `,"error_code":0,"error_message":""}`},
		{"GET /api/v1/drain_jobs/query?job_id=7-9", "", 404, noJob},
		{"GET /api/v1/drain_jobs/query?job_id=7--8", "", 404, noJob},
		{"GET /api/v1/drain_jobs/query", "", 400, badJob},
		{"GET /api/v1/drain_jobs/query?job_id=7", "", 400, badJob},
		{"GET /api/v1/drain_jobs/query?job_id=7-", "", 400, badJob},
		{"GET /api/v1/drain_jobs/query?job_id=-8", "", 400, badJob},
		{"GET /api/v1/drain_jobs/query?job_id=99999999999999999999999-1", "", 400, badJob},
		{"POST /api/v1/drain_jobs/query?job_id=7-8", "", 404, "404 Not Found"},
		{"POST /api/v1/drain_jobs/cancel?job_id=1-1", "", 200, `{"success":true,"job_id":"1-1","status":"CANCELED","error_code":0,"error_message":""}`},
		{"POST /api/v1/drain_jobs/cancel?job_id=7-8", "", 409, busy},
		{"POST /api/v1/drain_jobs/cancel?job_id=7-8&when_idle=true", "", 200, `{"success":true,"job_id":"7-8","status":"CANCELING","error_code":0,"error_message":""}`},
		{"POST /api/v1/drain_jobs/cancel?job_id=7-9", "", 404, noJob},
		{"POST /api/v1/drain_jobs/cancel", `{"job_id":"7-8"}`, 400, badJob},
		{"GET /api/v1/drain_jobs", "", 200, `{"success":true,"data":[{` + running + `,"target_segments":["b"],"max_concurrency":3,"total_units":10,"remaining_units":6,"active_bytes":900,"active_bytes_done":300,"canceling":false},` +
			`{"job_id":"1-1","type":0,"type_name":"DRAIN","status":0,"status_name":"CREATED","created_at_ms_epoch":0,"last_updated_at_ms_epoch":0,"segments":["c"],` +
			`"succeeded_units":0,"failed_units":0,"blocked_units":0,"active_units":0,"migrated_bytes":0,"message":"","target_segments":[],"max_concurrency":1,"total_units":0,"remaining_units":0,"active_bytes":0,"active_bytes_done":0,"canceling":false}]}`},
		{"GET /api/v1/drain_jobs?job_id=7-8", "", 200, `{"success":true,"data":[{` + running + `,"target_segments":["b"],"max_concurrency":3,"total_units":10,"remaining_units":6,"active_bytes":900,"active_bytes_done":300,"canceling":false}]}`},
		{"GET /api/v1/drain_jobs?job_id=7-9", "", 404, noJob},
		{"GET /api/v1/drain_jobs?job_id=", "", 400, badJob},
	} {
		kind := typeJSON
		if c.want == "404 Not Found" {
			kind = ""
		}
		check(t, c.request+" "+c.body, ask(t, s.Handler(), c.request, c.body), reply{c.status, kind, c.want})
	}
	if want := []string{`drain ["a"] to [], 4 at a time`, `drain ["a" "b"] to ["c"], 16 at a time`, `drain [] to [], 4 at a time`, `drain ["a"] to [], 0 at a time`}; !slices.Equal(f.said, want) {
		t.Errorf("asked for %q", f.said)
	}
}

func TestDrainRoutesWhileNotActive(t *testing.T) {
	f := loaded()
	f.service = ServiceState{Role: "standby", HAState: "standby"}
	s, _ := newTestServer(t, f)
	for request, status := range map[string]int{
		"POST /api/v1/drain_jobs":                  400, // the body is read first
		"GET /api/v1/drain_jobs":                   503,
		"GET /api/v1/drain_jobs/query":             400,
		"GET /api/v1/drain_jobs/query?job_id=7-8":  503,
		"POST /api/v1/drain_jobs/cancel":           400,
		"POST /api/v1/drain_jobs/cancel?job_id=7-": 400,
	} {
		if got := ask(t, s.Handler(), request, ""); got.status != status {
			t.Errorf("%s: %d %s, want %d", request, got.status, got.body, status)
		}
	}
	if got := ask(t, s.Handler(), "POST /api/v1/drain_jobs", `{"segments":["a"]}`); got.status != 503 || f.said != nil {
		t.Errorf("%+v, asked for %q", got, f.said)
	}
}
