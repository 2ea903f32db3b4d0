//go:build rdma

package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// devices are those that conformance/verbs.sh provides.
func devices(t *testing.T) *rdma.Options {
	t.Helper()
	if os.Getenv("SOFTVERBS_DIR") == "" {
		t.Skip("SOFTVERBS_DIR is not set: run this by conformance/verbs.sh")
	}
	return &rdma.Options{Sysfs: filepath.Join(os.Getenv("SOFTVERBS_DIR"), "sys"), Now: time.Now}
}

// TestRDMA lends by RDMA, moves a value from node to node, and drains.
func TestRDMA(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(fmt.Sprint("store=", store), func(t *testing.T) {
			m := newMaster(t)
			cfg := m.config()
			if store {
				cfg.Metadata = m.store()
			}
			cfg.RDMA = devices(t)
			a := lend(t, cfg)
			adapter, err := rdma.Open(*devices(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { adapter.Close() })
			c, err := client.Dial(t.Context(), client.Config{Master: m.rpc, Metadata: cfg.Metadata, RDMA: adapter})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			for _, size := range []int{1, 4096, 5<<20 + 1} {
				key, v := fmt.Sprint("k", size), value(size, 1)
				mustPut(t, c, key, v)
				mustHold(t, c, key, v)
			}
			b := lend(t, cfg)
			id := ask(t, m, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "k4096", TenantID: "default", Source: a.Name(), Target: b.Name()})
			if got := ended(t, m, id); got.Status != task.Success {
				t.Fatalf("%+v", got)
			}
			mustHold(t, c, "k4096", value(4096, 1))
			if got := a.metric(t, `mooncake_node_device_active{device="softrdma0"}`); got != "1" {
				t.Errorf("the device is not active: %s", got)
			}
			if _, page := a.get(t, "/metrics"); !strings.Contains(page, `protocol="rdma"`) {
				t.Error("the metrics don't say that it is RDMA")
			}
			if err := a.stop(); err != nil {
				t.Error(err)
			}
			for _, size := range []int{1, 4096, 5<<20 + 1} {
				mustHold(t, c, fmt.Sprint("k", size), value(size, 1))
				if got := owners(t, c, fmt.Sprint("k", size)); len(got) != 1 || got[0] != b.Endpoint() {
					t.Errorf("%d bytes are at %v", size, got)
				}
			}
		})
	}
}
