package admin

import (
	"slices"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

func TestTransferRoutes(t *testing.T) {
	f := loaded()
	f.transfers = []core.TransferView{
		{
			ID: segment.UUID{First: 7, Second: 8}, Tenant: "t", Key: "k\xff\"", Type: task.Move, Source: "a", Targets: []string{"b"},
			Bytes: 10, Done: 4, SinceMs: 5, Executor: core.ExecutorMaster, Client: segment.UUID{First: 1, Second: 2},
		},
		{ID: segment.UUID{First: 1, Second: 1}, Tenant: "default", Key: "l", Source: "c", Targets: []string{"d", "e"}, Executor: core.ExecutorClient},
	}
	s, _ := newTestServer(t, f)
	for _, c := range []struct {
		request string
		status  int
		want    string
	}{
		{"GET /api/v1/transfers", 200, `{"success":true,"data":[{"id":"7-8","tenant_id":"t","key":"k\uFFFD\"","type":"MOVE","source":"a","targets":["b"],"bytes_total":10,"bytes_done":4,"since_ms_epoch":5,"executor":"master","client_id":"1-2"},` +
			`{"id":"1-1","tenant_id":"default","key":"l","type":"COPY","source":"c","targets":["d","e"],"bytes_total":0,"bytes_done":0,"since_ms_epoch":0,"executor":"client","client_id":"0-0"}]}`},
		{"DELETE /api/v1/transfers/1-8", 200, `{"success":true,"id":"1-8","error_code":0,"error_message":""}`},
		{"DELETE /api/v1/transfers/2-8", 409, `{"success":false,"error_code":-1010,"error_message":"UNAVAILABLE_IN_CURRENT_STATUS"}`},
		{"DELETE /api/v1/transfers/3-8", 404, `{"success":false,"error_code":-1400,"error_message":"TASK_NOT_FOUND"}`},
		{"DELETE /api/v1/transfers/x", 400, `{"success":false,"error_code":-600,"error_message":"the id of a transfer is two numbers with a - between them"}`},
		{"POST /api/v1/transfers", 404, `{"success":false,"error_code":-600,"error_message":"there is no POST /api/v1/transfers, use GET"}`},
	} {
		check(t, c.request, ask(t, s.Handler(), c.request, ""), reply{c.status, typeJSON, c.want})
	}
	if want := []string{"cancel 1-8", "cancel 2-8", "cancel 3-8"}; !slices.Equal(f.said, want) {
		t.Errorf("the master was told %q, want %q", f.said, want)
	}
}
