package admin

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

var (
	unknownRoute = reply{404, "", "404 Not Found"}
	inactive     = reply{503, typeJSON, `{"success":false,"error_code":-1011,"error_message":"service plane is not active"}`}
	wrongMode    = reply{409, typeJSON, `{"success":false,"error_code":-1011,"error_message":"UNAVAILABLE_IN_CURRENT_MODE"}`}
	noObject     = reply{404, typeJSON, `{"success":false,"error_code":-704,"error_message":"OBJECT_NOT_FOUND"}`}
	noTenantID   = reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Missing or invalid tenant_id"}`}
	badTenantID  = reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Invalid tenant_id"}`}
)

// loaded is a master with one segment, two tenants and a few objects.
func loaded() *fake {
	memory := object.ReplicaDescriptor{Location: object.Location{Memory: object.MemoryDescriptor{Buffer: object.BufferDescriptor{
		Size: 100000, Address: 139830226845696, Protocol: "tcp", Endpoint: "127.0.0.1:15466",
	}}}}
	disk := object.ReplicaDescriptor{Location: object.Location{Index: object.LocationDisk, Disk: &object.DiskDescriptor{FilePath: "/x/y", ObjectSize: 7}}}
	local := object.ReplicaDescriptor{Location: object.Location{Index: object.LocationLocalDisk, LocalDisk: &object.LocalDiskDescriptor{
		ClientID: segment.UUID{First: 12, Second: 34}, ObjectSize: 9, Endpoint: "h:1",
	}}}
	nof := object.ReplicaDescriptor{Location: object.Location{Index: object.LocationNoF, NoF: &object.NoFDescriptor{Buffer: object.BufferDescriptor{Size: 1, Protocol: "nvmf", Endpoint: "e"}}}}
	return &fake{
		service: Serving(), strict: true,
		objects: map[string]object.ReplicaList{
			"default\x00k":     {Replicas: []object.ReplicaDescriptor{memory, memory, disk}},
			"default\x00d":     {Replicas: []object.ReplicaDescriptor{disk, local, nof}},
			"default\x00a b/c": {Replicas: []object.ReplicaDescriptor{memory}},
			"default\x00a+b":   {Replicas: []object.ReplicaDescriptor{memory}},
			"ta\x00k":          {Replicas: []object.ReplicaDescriptor{memory}},
		},
		codes: map[string]errcode.Code{"busy": errcode.ReplicaIsNotReady},
		keys:  map[string][]string{"default": {"k", "d\x01", "é"}, "ta": {"k"}},
		segments: []segment.View{
			{
				Info:   segment.Info{ID: segment.UUID{First: 6, Second: 6}, Name: "10.0.0.6:1", Base: 0x7e0000000000, Size: 536870912, Endpoint: "10.0.0.6:1", Protocol: "tcp"},
				Client: segment.UUID{First: 5, Second: 6}, Status: segment.StatusOK, Used: 2097152, Capacity: 536870912,
			},
			{
				Info:   segment.Info{ID: segment.UUID{First: math.MaxUint64, Second: 1}, Name: "a b", Size: 33554432, Endpoint: "e", Protocol: "rdma"},
				Status: segment.StatusDraining, Used: 600000, Capacity: 33554432,
			},
		},
		tenants: []tenant.Snapshot{
			{TenantID: "ta", RequestedQuotaBytes: 10485760, EffectiveQuotaBytes: 10485760, ChargedBytes: 1048576, HasExplicitPolicy: true},
			{TenantID: "tenant b", RequestedQuotaBytes: 20971520, ChargedBytes: 1, AdmissionClosed: true, OverQuota: true},
		},
		totals: tenant.Totals{CapacityBytes: 1000, RequestedBytes: 1500, EffectiveBytes: 1000},
	}
}

const (
	snapshotA = `{"tenant_id":"ta","requested_quota_bytes":10485760,"effective_quota_bytes":10485760,"charged_bytes":1048576,"admission_closed":false,"over_quota":false,"has_explicit_policy":true}`
	snapshotB = `{"tenant_id":"tenant b","requested_quota_bytes":20971520,"effective_quota_bytes":0,"charged_bytes":1,"admission_closed":true,"over_quota":true,"has_explicit_policy":false}`
	replicaD  = `{"size_":100000,"buffer_address_":139830226845696,"protocol_":"tcp","transport_endpoint_":"127.0.0.1:15466"}`
	absent    = `{"ok":false,"error":"OBJECT_NOT_FOUND","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}`
)

func okJSON(body string) reply { return reply{200, typeJSON, body} }

func TestRoutes(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	tests := []struct {
		request string
		want    reply
	}{
		{"GET /health", okJSON(`{"status":"ok","role":"leader","ha_state":"serving","service_ready":true,"leader_address":null,"view_version":null}`)},
		{"GET /%68ealth?x=1", okJSON(`{"status":"ok","role":"leader","ha_state":"serving","service_ready":true,"leader_address":null,"view_version":null}`)},
		{"GET /role", reply{200, typePlain, "leader"}},
		{"GET /ha_status", reply{200, typePlain, "serving"}},
		{"GET /leader", okJSON(`{"present":false,"leader_address":null,"view_version":null}`)},
		{"GET /version", okJSON(`{"version":"2.0.0","display_version":"1.2.3 (git: abc)"}`)},
		{"GET /kv_events/status", okJSON(`{"enabled":false,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_keyless_events":0}`)},
		{"GET /api/v1/dfs/shard_count", wrongMode},

		{"GET /query_key?key=k", okJSON(`{"success":true,"data":[` + replicaD + `,` + replicaD + `]}`)},
		{"GET /query_key?key=d", okJSON(`{"success":true,"data":[]}`)},
		{"GET /query_key?key=a%20b%2fc", okJSON(`{"success":true,"data":[` + replicaD + `]}`)},
		{"GET /query_key?key=a+b", okJSON(`{"success":true,"data":[` + replicaD + `]}`)},
		{"GET /query_key?key=k&tenant_id=ta", okJSON(`{"success":true,"data":[` + replicaD + `]}`)},
		{"GET /query_key?key=k&tenant_id=tb", noObject},
		{"GET /query_key?key=k&tenant_id=_x", badTenantID},
		{"GET /query_key?key=zz", noObject},
		{"GET /query_key", noObject},
		{"GET /query_key?key=busy", reply{404, typeJSON, `{"success":false,"error_code":-703,"error_message":"REPLICA_IS_NOT_READY"}`}},
		{"GET /batch_query_keys", reply{400, typeJSON, `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`}},
		{"GET /batch_query_keys?keys=", reply{400, typeJSON, `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`}},
		{"GET /batch_query_keys?Keys=k", reply{400, typeJSON, `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`}},
		{"GET /batch_query_keys?keys=k,a,k", okJSON(`{"success":true,"data":{"a":` + absent +
			`,"k":{"ok":true,"error":null,"values":[` + replicaD + `,` + replicaD + `],"disk_values":[{"file_path":"/x/y","object_size":7}],"local_disk_values":null,"nof_values":null}}}`)},
		{"GET /batch_query_keys?keys=d", okJSON(`{"success":true,"data":{"d":{"ok":true,"error":null,"values":[],"disk_values":[{"file_path":"/x/y","object_size":7}],` +
			`"local_disk_values":[{"client_id":"12-34","object_size":9,"transport_endpoint":"h:1"}],` +
			`"nof_values":[{"size_":1,"buffer_address_":0,"protocol_":"nvmf","transport_endpoint_":"e"}]}}}`)},
		{"GET /batch_query_keys?keys=a,", okJSON(`{"success":true,"data":{"":` + absent + `,"a":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=a%2Cb", okJSON(`{"success":true,"data":{"a":` + absent + `,"b":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=x+y,c%2bd,e%zz", okJSON(`{"success":true,"data":{"c+d":` + absent + `,"e%zz":` + absent + `,"x y":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=q%22%5Cb%0a%c3%a9%01", okJSON(`{"success":true,"data":{"q\"\\b\n\u00E9\u0001":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=%f0%9f%98%80%7f%08%0c%0d%09%1f", okJSON("{\"success\":true,\"data\":{\"\\uD83D\\uDE00\x7f\\b\\f\\r\\t\\u001F\":" + absent + `}}`)},
		{"GET /batch_query_keys?keys=h%c3%28", okJSON(`{"success":true,"data":{"h\uFFFD(":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=busy", okJSON(`{"success":true,"data":{"busy":{"ok":false,"error":"REPLICA_IS_NOT_READY","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}}}`)},
		{"GET /batch_query_keys?keys=k&tenant_id=tb", okJSON(`{"success":true,"data":{"k":` + absent + `}}`)},
		{"GET /batch_query_keys?keys=k&tenant_id=%01", badTenantID},
		{"GET /get_all_keys", reply{200, typeScrape, "k\nd\x01\né\n"}},
		{"GET /get_all_keys?tenant_id=ta", reply{200, typeScrape, "k\n"}},
		{"GET /get_all_keys?tenant_id=tb", reply{200, typeScrape, ""}},
		{"GET /get_all_keys?tenant_id=_x", badTenantID},

		{"GET /get_all_segments", reply{200, typeScrape, "10.0.0.6:1\n"}},
		{"GET /get_segments_detail", okJSON(`{"total_segments":2,"segments":[{"segment_name":"10.0.0.6:1","segment_id":"6-6","client_id":"5-6","base_address":"0x7e0000000000",` +
			`"size_bytes":536870912,"size_human":"0.5 GiB","te_endpoint":"10.0.0.6:1","protocol":"tcp","status":"OK","allocator_used_bytes":2097152,` +
			`"allocator_capacity_bytes":536870912,"allocator_usage_percent":3.90625E-1},{"segment_name":"a b","segment_id":"18446744073709551615-1","client_id":"0-0",` +
			`"base_address":"0x0","size_bytes":33554432,"size_human":"0.03125 GiB","te_endpoint":"e","protocol":"rdma","status":"DRAINING","allocator_used_bytes":0,` +
			`"allocator_capacity_bytes":0,"allocator_usage_percent":0E0}]}`)},
		{"GET /query_segment?segment=10.0.0.6:1", reply{200, typeScrape, "10.0.0.6:1\nUsed(bytes): 2097152\nCapacity(bytes) : 536870912\n"}},
		{"GET /query_segment?segment=a%20b", reply{200, typeScrape, "a b\nUsed(bytes): 600000\nCapacity(bytes) : 33554432\n"}},
		{"GET /query_segment?segment=x", reply{500, typeScrape, "Failed to query segment"}},
		{"GET /query_segment", reply{500, typeScrape, "Failed to query segment"}},
		{"GET /api/v1/segments/status?segment=10.0.0.6:1", okJSON(`{"success":true,"segment":"10.0.0.6:1","status":1,"status_name":"OK","error_code":0,"error_message":""}`)},
		{"GET /api/v1/segments/status?segment=a+b", okJSON(`{"success":true,"segment":"a b","status":2,"status_name":"DRAINING","error_code":0,"error_message":""}`)},
		{"GET /api/v1/segments/status?segment=x", reply{404, typeJSON, `{"success":false,"error_code":-101,"error_message":"SEGMENT_NOT_FOUND"}`}},
		{"GET /api/v1/segments/status", reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Missing segment query parameter"}`}},
		{"GET /api/v1/segments/status?segment=", reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Missing segment query parameter"}`}},

		{"GET /api/v1/tenant_quotas", okJSON(`{"success":true,"data":[` + snapshotA + `,` + snapshotB + `]}`)},
		{"GET /api/v1/tenant_quotas?tenant_id=", okJSON(`{"success":true,"data":[` + snapshotA + `,` + snapshotB + `]}`)},
		{"GET /api/v1/tenant_quotas?tenant_id", okJSON(`{"success":true,"data":[` + snapshotA + `,` + snapshotB + `]}`)},
		{"GET /api/v1/tenant_quotas?x;tenant_id=ta", okJSON(`{"success":true,"data":[` + snapshotA + `,` + snapshotB + `]}`)},
		{"GET /api/v1/tenant_quotas?a=1&&tenant_id=ta", okJSON(`{"success":true,"data":` + snapshotA + `}`)},
		{"GET /api/v1/tenant_quotas?tenant_id=tenant%20b", okJSON(`{"success":true,"data":` + snapshotB + `}`)},
		{"GET /api/v1/tenant_quotas?tenant_id=ta&tenant_id=x", okJSON(`{"success":true,"data":` + snapshotA + `}`)},
		{"GET /api/v1/tenant_quotas?tenant_id=x&tenant_id=ta", noObject},
		{"GET /api/v1/tenant_quotas?tenant_id=%zz", noObject},
		{"GET /api/v1/tenant_quotas?tenant_id=ta=b", noObject},
		{"GET /api/v1/tenant_quotas?tenant_id=nope", noObject},
		{"GET /api/v1/tenant_quotas?tenant_id=_x", badTenantID},
		{"GET /api/v1/tenant_quotas?tenant_id=%0a", badTenantID},
		{"PUT /api/v1/tenant_quotas", noTenantID},
		{"PUT /api/v1/tenant_quotas?tenant_id=", noTenantID},
		{"PUT /api/v1/tenant_quotas?tenant_id=_x", noTenantID},
		{"DELETE /api/v1/tenant_quotas", noTenantID},
		{"DELETE /api/v1/tenant_quotas?tenant_id=", noTenantID},
		{"DELETE /api/v1/tenant_quotas?tenant_id=%7f", noTenantID},
		{"DELETE /api/v1/tenant_quotas?tenant_id=ta", okJSON(`{"success":true,"data":null}`)},
		{"GET /api/v1/tenant_quota_connector", wrongMode},

		{"GET /", unknownRoute},
		{"GET /nope", unknownRoute},
		{"GET //health", unknownRoute},
		{"GET /Health", unknownRoute},
		{"GET /health/", unknownRoute},
		{"GET /metrics/", unknownRoute},
		{"GET /api/v1/tenant_quotas/", unknownRoute},
		{"HEAD /health", unknownRoute},
		{"HEAD /metrics", unknownRoute},
		{"OPTIONS /health", unknownRoute},
		{"POST /health", unknownRoute},
		{"POST /metrics", unknownRoute},
		{"PATCH /api/v1/tenant_quotas?tenant_id=ta", unknownRoute},
		{"POST /api/v1/tenant_quotas?tenant_id=ta", unknownRoute},
		{"GET /api/v1/remove_all", unknownRoute},
		{"GET /api/v1/soft_pin", unknownRoute},
		{"POST /get_all_keys", unknownRoute},
		{"POST /api/v1/dfs/shard_count", unknownRoute},
	}
	for _, test := range tests {
		check(t, test.request, ask(t, s.Handler(), test.request, ""), test.want)
	}
}

func TestEmptyMaster(t *testing.T) {
	s, _ := newTestServer(t, &fake{service: Serving(), strict: true})
	check(t, "tenants", ask(t, s.Handler(), "GET /api/v1/tenant_quotas", ""), okJSON(`{"success":true,"data":[]}`))
	check(t, "segments", ask(t, s.Handler(), "GET /get_segments_detail", ""), okJSON(`{"total_segments":0,"segments":[]}`))
	check(t, "names", ask(t, s.Handler(), "GET /get_all_segments", ""), reply{200, typeScrape, ""})
	check(t, "keys", ask(t, s.Handler(), "GET /get_all_keys", ""), reply{200, typeScrape, ""})
}

func TestChanges(t *testing.T) {
	tests := []struct {
		request, body string
		want          reply
		said          string
	}{
		{"POST /api/v1/remove_all", "", okJSON(`{"success":true,"removed_count":6}`), `remove "" force=false`},
		{"POST /api/v1/remove_all?force=true&tenant_id=ta", "", okJSON(`{"success":true,"removed_count":6}`), `remove "ta" force=true`},
		{"POST /api/v1/remove_all?force=1&tenant_id=a%20b", "", okJSON(`{"success":true,"removed_count":6}`), `remove "a b" force=true`},
		{"POST /api/v1/remove_all?force=yes", "", okJSON(`{"success":true,"removed_count":6}`), `remove "" force=false`},
		{
			"POST /api/v1/soft_pin", `{"keys":["here","a"],"tenant_id":"ta","ttl_ms":1000}`,
			okJSON(`{"results":[{"key":"here","error_code":0},{"key":"a","error_code":-704}]}`), `pin "ta" ["here" "a"] for 1000`,
		},
		{"POST /api/v1/soft_unpin", `{"keys":["here"]}`, okJSON(`{"results":[{"key":"here","error_code":0}]}`), `unpin "" ["here"]`},
		{"POST /api/v1/soft_unpin", `{"keys":["here"],"ttl_ms":5}`, reply{
			400, typeJSON,
			`{"success":false,"error_code":-600,"error_message":"Expected 1..4096 keys, a valid tenant, and ttl_ms only for soft_pin"}`,
		}, ""},
		{"POST /api/v1/soft_unpin", `{"keys":["here"],"ttl_ms":null}`, okJSON(`{"results":[{"key":"here","error_code":0}]}`), `unpin "" ["here"]`},
		{"POST /api/v1/soft_pin", `{"keys":["\ud83d\ude00"],"ttl_ms":5}`, okJSON(`{"results":[{"key":"\uD83D\uDE00","error_code":-704}]}`), `pin "" ["😀"] for 5`},
		{
			"PUT /api/v1/tenant_quotas?tenant_id=a%22%5C%c3%a9/b%20c", `{"requested_quota_bytes":5}`,
			okJSON(`{"success":true,"data":{"tenant_id":"a\"\\\u00E9/b c","requested_quota_bytes":5,"effective_quota_bytes":0,"charged_bytes":0,"admission_closed":false,"over_quota":false,"has_explicit_policy":true}}`),
			`put "a\"\\é/b c" 5`,
		},
		{"DELETE /api/v1/tenant_quotas?tenant_id=tenant+b", "", okJSON(`{"success":true,"data":null}`), `delete "tenant b"`},
	}
	for _, test := range tests {
		f := loaded()
		s, _ := newTestServer(t, f)
		check(t, test.request+" "+test.body, ask(t, s.Handler(), test.request, test.body), test.want)
		if said := strings.Join(f.said, "; "); said != test.said {
			t.Errorf("%s %s: %s, want %s", test.request, test.body, said, test.said)
		}
	}
}

func TestPinLimits(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	for _, n := range []int{1, 4096, 4097} {
		keys := strings.TrimSuffix(strings.Repeat(`"a",`, n), ",")
		got := ask(t, s.Handler(), "POST /api/v1/soft_pin", `{"ttl_ms":1,"keys":[`+keys+`]}`)
		want := http.StatusOK
		if n > 4096 {
			want = http.StatusBadRequest
		}
		if got.status != want {
			t.Errorf("%d keys: %d, want %d", n, got.status, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	tests := []struct {
		err  error
		want reply
	}{
		{errcode.ObjectNotFound, noObject},
		{fmt.Errorf("tenant ta: %w", errcode.TenantNotEmpty), reply{409, typeJSON, `{"success":false,"error_code":-1702,"error_message":"TENANT_NOT_EMPTY"}`}},
		{errcode.PersistentFail, reply{500, typeJSON, `{"success":false,"error_code":-1503,"error_message":"PERSISTENT_FAIL"}`}},
		{errors.New("disk full"), reply{500, typeJSON, `{"success":false,"error_code":-1503,"error_message":"PERSISTENT_FAIL"}`}},
		{errcode.InvalidParams, reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"INVALID_PARAMS"}`}},
		{errcode.UnavailableInStatus, reply{409, typeJSON, `{"success":false,"error_code":-1010,"error_message":"UNAVAILABLE_IN_CURRENT_STATUS"}`}},
		{errcode.TenantNotRegistered, reply{404, typeJSON, `{"success":false,"error_code":-1701,"error_message":"TENANT_NOT_REGISTERED"}`}},
		{errcode.JobNotFound, reply{404, typeJSON, `{"success":false,"error_code":-1402,"error_message":"JOB_NOT_FOUND"}`}},
	}
	for _, test := range tests {
		f := loaded()
		f.policyErr = test.err
		s, _ := newTestServer(t, f)
		check(t, fmt.Sprintf("PUT %v", test.err), ask(t, s.Handler(), "PUT /api/v1/tenant_quotas?tenant_id=ta", `{"requested_quota_bytes":5}`), test.want)
		check(t, fmt.Sprintf("DELETE %v", test.err), ask(t, s.Handler(), "DELETE /api/v1/tenant_quotas?tenant_id=ta", ""), test.want)
	}
}

// Without strict tenants a bad request is still 400, and the mode is looked at last.
func TestNotStrict(t *testing.T) {
	f := loaded()
	f.strict = false
	s, _ := newTestServer(t, f)
	for _, test := range []struct {
		request, body string
		want          reply
	}{
		{"GET /api/v1/tenant_quotas", "", wrongMode},
		{"GET /api/v1/tenant_quotas?tenant_id=ta", "", wrongMode},
		{"GET /api/v1/tenant_quotas?tenant_id=_x", "", badTenantID},
		{"PUT /api/v1/tenant_quotas?tenant_id=ta", `{"requested_quota_bytes":5}`, wrongMode},
		{"PUT /api/v1/tenant_quotas?tenant_id=ta", `{}`, reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Tenant quota must be in [1, 2^63 - 1] bytes"}`}},
		{"PUT /api/v1/tenant_quotas?tenant_id=ta", `[]`, reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Invalid JSON body: Expected these: {"}`}},
		{"PUT /api/v1/tenant_quotas", `{}`, noTenantID},
		{"DELETE /api/v1/tenant_quotas?tenant_id=ta", "", wrongMode},
		{"DELETE /api/v1/tenant_quotas", "", noTenantID},
	} {
		check(t, test.request+" "+test.body, ask(t, s.Handler(), test.request, test.body), test.want)
	}
	if len(f.said) != 0 {
		t.Errorf("something was changed: %q", f.said)
	}
}

// On a standby only what needs no objects answers, and what is wrong with the request itself
// is said first by some routes.
func TestStandby(t *testing.T) {
	f := loaded()
	f.service = ServiceState{Role: "standby", HAState: "candidate", LeaderAddress: "127.0.0.1:53011", ViewVersion: 2}
	f.connector = &ConnectorStatus{Type: "file", State: ConnectorReady}
	s, _ := newTestServer(t, f)
	for _, test := range []struct {
		request, body string
		want          reply
	}{
		{"GET /health", "", okJSON(`{"status":"ok","role":"standby","ha_state":"candidate","service_ready":false,"leader_address":"127.0.0.1:53011","view_version":2}`)},
		{"GET /role", "", reply{200, typePlain, "standby"}},
		{"GET /ha_status", "", reply{200, typePlain, "candidate"}},
		{"GET /leader", "", okJSON(`{"present":true,"leader_address":"127.0.0.1:53011","view_version":2}`)},
		{"GET /version", "", okJSON(`{"version":"2.0.0","display_version":"1.2.3 (git: abc)"}`)},
		{"GET /query_key?key=k", "", inactive},
		{"GET /query_key", "", inactive},
		{"GET /batch_query_keys", "", inactive},
		{"GET /get_all_keys", "", inactive},
		{"GET /get_all_segments", "", inactive},
		{"GET /get_segments_detail", "", inactive},
		{"GET /query_segment", "", inactive},
		{"GET /kv_events/status", "", inactive},
		{"GET /api/v1/dfs/shard_count", "", inactive},
		{"POST /api/v1/remove_all", "", inactive},
		{"GET /api/v1/segments/status", "", reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Missing segment query parameter"}`}},
		{"GET /api/v1/segments/status?segment=a", "", inactive},
		{"POST /api/v1/soft_pin", `{}`, reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Expected 1..4096 keys, a valid tenant, and ttl_ms only for soft_pin"}`}},
		{"POST /api/v1/soft_pin", `{"keys":["a"],"ttl_ms":5}`, inactive},
		{"GET /api/v1/tenant_quotas", "", inactive},
		{"GET /api/v1/tenant_quotas?tenant_id=_x", "", inactive},
		{"PUT /api/v1/tenant_quotas?tenant_id=ta", `{"requested_quota_bytes":5}`, inactive},
		{"PUT /api/v1/tenant_quotas?tenant_id=ta", `{`, reply{400, typeJSON, `{"success":false,"error_code":-600,"error_message":"Invalid JSON body: Unexpected end of buffer. Expected:"}`}},
		{"DELETE /api/v1/tenant_quotas?tenant_id=ta", "", inactive},
		{"DELETE /api/v1/tenant_quotas?tenant_id=_x", "", noTenantID},
	} {
		check(t, test.request+" "+test.body, ask(t, s.Handler(), test.request, test.body), test.want)
	}
	if got := ask(t, s.Handler(), "GET /metrics", ""); got.status != 200 || strings.Contains(got.body, "mooncake_tenant_quota_requested") {
		t.Errorf("metrics of a standby: %d %s", got.status, got.body)
	}
	if got := ask(t, s.Handler(), "GET /api/v1/tenant_quota_connector", ""); got.status != 200 {
		t.Errorf("connector of a standby: %+v", got)
	}
	if got := ask(t, s.Handler(), "GET /metrics/summary", ""); !strings.HasPrefix(got.body, "role=standby, state=candidate, service_ready=false, master={Mem Storage: 0 B / 0 B | ") ||
		!strings.HasSuffix(got.body, "}, leader=127.0.0.1:53011, view_version=2") {
		t.Errorf("summary of a standby: %s", got.body)
	}
}

func TestConnector(t *testing.T) {
	f := loaded()
	f.connector = &ConnectorStatus{
		Type: "file", State: ConnectorDegraded, Since: start, LastError: "line 3: bad \"quota\"", LastErrorTime: start.Add(1500 * time.Millisecond),
		Restarts: 2, Revision: "r7", ContentHash: "sha256:ab", InForceSince: start.Add(-time.Hour), Tenants: 3,
		ReloadSuccesses: 4, ReloadFailures: map[string]uint64{"invalid": 5, "absent": 1}, LastSuccess: start.Add(-time.Hour), OverwrittenSaves: 6,
		Origin: policy.FromSource, HeldRevision: "r8", HeldHash: "cd", HeldSince: start, HeldTenants: 1, HeldRemoved: 2, StoredTime: start, StoredError: "disk full",
	}
	s, _ := newTestServer(t, f)
	check(t, "degraded", ask(t, s.Handler(), "GET /api/v1/tenant_quota_connector", ""), okJSON(
		`{"success":true,"data":{"type":"file","state":"degraded","since":"2026-08-09T10:11:12.000Z","last_error":"line 3: bad \"quota\"","last_error_time":"2026-08-09T10:11:13.500Z",`+
			`"restarts":2,"policy":{"revision":"r7","content_hash":"sha256:ab","in_force_since":"2026-08-09T09:11:12.000Z","tenants":3,"origin":"source","stale_since":null},`+
			`"held":{"revision":"r8","content_hash":"cd","since":"2026-08-09T10:11:12.000Z","tenants":1,"removed":2},"stored":{"time":"2026-08-09T10:11:12.000Z","error":"disk full"},`+
			`"reloads":{"last_ok":false,"success":4,"failure":{"absent":1,"invalid":5},"last_success":"2026-08-09T09:11:12.000Z"},"overwritten_saves":6}}`))
	f.connector = &ConnectorStatus{Type: "etcd", State: ConnectorStarting, Since: start, Origin: policy.FromNobody, StaleSince: start, ReloadOK: true}
	check(t, "starting", ask(t, s.Handler(), "GET /api/v1/tenant_quota_connector", ""), okJSON(
		`{"success":true,"data":{"type":"etcd","state":"starting","since":"2026-08-09T10:11:12.000Z","last_error":null,"last_error_time":null,`+
			`"restarts":0,"policy":{"revision":null,"content_hash":null,"in_force_since":null,"tenants":0,"origin":"none","stale_since":"2026-08-09T10:11:12.000Z"},`+
			`"held":null,"stored":{"time":null,"error":null},"reloads":{"last_ok":true,"success":0,"failure":{},"last_success":null},"overwritten_saves":0}}`))
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0E0", 1: "1E0", 0.390625: "3.90625E-1", 0.5960464477539062: "5.960464477539062E-1", 1.7881393432617188: "1.7881393432617188E0",
		100: "1E2", 12.5: "1.25E1", 1e-10: "1E-10", 1e10: "1E10", 99.99999: "9.999999E1",
	} {
		if got := string(floatField([]byte{'{'}, "x", v)); got != `{"x":`+want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KB", 1000044: "976.61 KB", 33554432: "32.00 MB", 5 << 30: "5.00 GB", 7 << 40: "7.00 TB", math.MaxUint64: "16.00 EB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestOwnRoutesSayWhatIsWrong: a wrong method on a route that the original does not have is
// answered in JSON, and names the right one.
func TestOwnRoutesSayWhatIsWrong(t *testing.T) {
	s, _ := newTestServer(t, loaded())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, "/api/v1/tenant_quota_connector", nil))
		want := `{"success":false,"error_code":-600,"error_message":"there is no ` + method + ` /api/v1/tenant_quota_connector, use GET"}`
		if w.Code != http.StatusNotFound || w.Body.String() != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}
