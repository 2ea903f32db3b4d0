package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	transport "github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// lender is a client that lends memory over TCP, pings, and does nothing it is asked to.
type lender struct {
	name   string
	memory *transport.Memory
	quiet  func() // stops the pings
	close  func() // and lends nothing any more
}

func newLender(t *testing.T, m *running, n uint64, name string, size int) *lender {
	t.Helper()
	metadata := "http://" + m.metadata + "/metadata"
	if m.metadata == "" {
		metadata, name = transport.P2P, "127.0.0.1:1"
	}
	host, err := transport.NewHost(t.Context(), transport.HostConfig{Name: name, Metadata: metadata, Bind: "127.0.0.1", Advertise: "127.0.0.1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := transport.NewMemory(size)
	if err == nil {
		err = host.Register(t.Context(), memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	id := segment.UUID{First: n, Second: n}
	info := segment.Info{ID: id, Name: host.Name(), Base: memory.Address(), Size: uint64(size), Endpoint: host.Name(), Protocol: "tcp"}
	c := dial(t, m)
	if code := call(t, c, wire.MountSegment, wire.MountSegmentRequest{Segment: info, ClientID: id}).Code; code != errcode.OK {
		t.Fatal(code)
	}
	if code := call(t, c, wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{info}, ClientID: id}).Code; code != errcode.OK {
		t.Fatal(code)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				var a errcode.Result[wire.PingReply]
				_ = rpc.Invoke(ctx, c, wire.Ping, &wire.PingRequest{ClientID: id}, &a)
			}
		}
	})
	l := &lender{name: host.Name(), memory: memory, quiet: sync.OnceFunc(func() { cancel(); wg.Wait() })}
	l.close = sync.OnceFunc(func() {
		l.quiet()
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := memory.Free(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.close)
	return l
}

// pool is a master and three lenders, with which tenant a keeps values.
type pool struct {
	*running
	rpc     *rpc.Client
	client  *client.Client
	lenders []*lender
	values  map[string][]byte
}

func newPool(t *testing.T, args ...string) *pool {
	t.Helper()
	path := policyFile(t, "version: 1\ntenants:\n  - name: a\n    quota: 64MB\n")
	p := &pool{values: make(map[string][]byte)}
	p.running = runMaster(t, append(args, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path)...)
	p.rpc = dial(t, p.running)
	for i := range 3 {
		p.lenders = append(p.lenders, newLender(t, p.running, uint64(i+1), fmt.Sprint("lender", i, ":12345"), 32<<20))
	}
	metadata := transport.P2P
	if p.metadata != "" {
		metadata = "http://" + p.metadata + "/metadata"
	}
	c, err := client.Dial(t.Context(), client.Config{Master: p.running.rpc, Metadata: metadata, Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	p.client = c
	t.Cleanup(func() { c.Close() })
	return p
}

// put keeps random bytes at lenders.
func (p *pool) put(t *testing.T, key string, size int, at ...int) {
	t.Helper()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	var names []string
	for _, i := range at {
		names = append(names, p.lenders[i].name)
	}
	if err := p.client.Put(t.Context(), key, value, client.Replicas(uint64(len(at))), client.Prefer(names...), client.Checksum); err != nil {
		t.Fatal(err)
	}
	p.values[key] = value
}

// want compares where a value lies, byte by byte in the lenders' memory, and reads it as a client does.
func (p *pool) want(t *testing.T, key string, at ...int) {
	t.Helper()
	list := call(t, p.rpc, wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: "a"})
	on := make(map[string]bool)
	for i := range list.Value.Replicas {
		r := &list.Value.Replicas[i]
		b := &r.Location.Memory.Buffer
		for _, l := range p.lenders {
			if l.name == b.Endpoint && r.Status == object.ReplicaComplete {
				on[l.name] = true
				if got := l.memory.Bytes()[b.Address-l.memory.Address():][:b.Size]; !bytes.Equal(got, p.values[key]) {
					t.Errorf("%s has other bytes at %s", key, l.name)
				}
			}
		}
	}
	for _, i := range at {
		if !on[p.lenders[i].name] {
			t.Errorf("%s is not at lender %d; it is at %v", key, i, on)
		}
	}
	if len(on) != len(at) {
		t.Errorf("%s is at %v, want it at lenders %v", key, on, at)
	}
	if got, err := p.client.Get(t.Context(), key); err != nil || !bytes.Equal(got, p.values[key]) {
		t.Errorf("%s reads as %d bytes, %v", key, len(got), err)
	}
}

// charged is what the tenant is charged, in bytes.
func (p *pool) charged(t *testing.T) uint64 {
	t.Helper()
	_, body := p.request(t, "GET", "/api/v1/tenant_quotas?tenant_id=a", "")
	var answer struct {
		Data struct {
			Charged uint64 `json:"charged_bytes"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.Data.Charged
}

// ended waits for a task to end.
func (p *pool) ended(t *testing.T, id segment.UUID) task.View {
	t.Helper()
	for {
		v := call(t, p.rpc, wire.QueryTask, wire.QueryTaskRequest{TaskID: id})
		if v.Code != errcode.OK {
			t.Fatal(v.Code)
		}
		if v.Value.Status.Final() {
			return v.Value
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// drain drains a lender's segment and waits for the end.
func (p *pool) drain(t *testing.T, i int) string {
	t.Helper()
	status, body := p.request(t, "POST", "/api/v1/drain_jobs", fmt.Sprintf(`{"segments":[%q],"max_concurrency":8}`, p.lenders[i].name))
	var made struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for {
		_, body := p.request(t, "GET", "/api/v1/drain_jobs/query?job_id="+made.ID, "")
		if !strings.Contains(body, `"CREATED"`) && !strings.Contains(body, `"RUNNING"`) {
			return body
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestMasterCarriesOverTCP is a whole master that copies, moves and drains what real hosts lend over TCP, none of which
// does anything itself; found in the master's own store and by the owners themselves.
func TestMasterCarriesOverTCP(t *testing.T) {
	for _, args := range [][]string{
		{"--transfer_executor=master", "--enable_http_metadata_server", "--http_metadata_server_host=127.0.0.1", "--http_metadata_server_port=0"},
		{"--transfer_executor=auto", "--transfer_takeover_ms=1", "--transfer_bandwidth=200MB", "--transfer_memory=1MB"},
	} {
		t.Run(args[0], func(t *testing.T) {
			p := newPool(t, append(args, "--default_kv_lease_ttl=1ms")...)
			p.put(t, "copied", 9<<20+3, 0)
			p.put(t, "moved", 100, 0)
			made := call(t, p.rpc, wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "copied", TenantID: "a", Targets: []string{p.lenders[1].name, p.lenders[2].name}})
			if v := p.ended(t, made.Value); made.Code != errcode.OK || v.Status != task.Success || !strings.Contains(v.Message, "carried by the master") {
				t.Fatalf("%v, %+v\n%s", made.Code, v, p.stderr)
			}
			p.want(t, "copied", 0, 1, 2)
			if got := p.charged(t); got != 3*(9<<20+3)+100 {
				t.Errorf("%d bytes are charged after the copy", got)
			}
			made = call(t, p.rpc, wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "moved", TenantID: "a", Source: p.lenders[0].name, Target: p.lenders[2].name})
			if v := p.ended(t, made.Value); v.Status != task.Success {
				t.Fatalf("%+v", v)
			}
			p.want(t, "moved", 2)
			if status, _ := p.request(t, "DELETE", "/api/v1/transfers/"+made.Value.String(), ""); status != 404 {
				t.Errorf("canceling what has ended is answered %d", status)
			}
			if err := p.client.Remove(t.Context(), "copied", true); err != nil {
				t.Fatal(err)
			}
			for i := range 30 {
				p.put(t, fmt.Sprint("k", i), 1+i*30_000, 1)
			}
			before := p.charged(t)
			if job := p.drain(t, 1); !strings.Contains(job, `"SUCCEEDED"`) || !strings.Contains(job, `"succeeded_units":30`) {
				t.Errorf("the drain ends as %s", job)
			}
			if got := p.charged(t); got != before {
				t.Errorf("%d bytes are charged after the drain, before it were %d", got, before)
			}
			for i := range 30 {
				key := fmt.Sprint("k", i)
				if got, err := p.client.Get(t.Context(), key); err != nil || !bytes.Equal(got, p.values[key]) {
					t.Errorf("%s reads as %d bytes, %v", key, len(got), err)
				}
			}
			_, page := p.request(t, "GET", "/metrics", "")
			if !strings.Contains(page, "\nmooncake_transfers_done_total 32\n") {
				t.Error("the metrics don't count 32 transfers")
			}
			for _, l := range p.lenders {
				l.close()
			}
			if code := p.stop(); code != 0 {
				t.Errorf("ends with %d: %s", code, p.stderr)
			}
		})
	}
}

// TestDrainOfASilentLender drains the segment of a client that says nothing any more, while its memory still answers.
func TestDrainOfASilentLender(t *testing.T) {
	p := newPool(t, "--client_active_ttl_sec=1", "--client_suspicion_ttl_sec=60")
	for i := range 5 {
		p.put(t, fmt.Sprint("k", i), 1<<20, 0)
	}
	p.lenders[0].quiet()
	for !strings.Contains(p.stderr.String(), "client is silent") {
		time.Sleep(10 * time.Millisecond)
	}
	if job := p.drain(t, 0); !strings.Contains(job, `"SUCCEEDED"`) || !strings.Contains(job, `"succeeded_units":5`) {
		t.Errorf("the drain ends as %s", job)
	}
	for i := range 5 {
		key := fmt.Sprint("k", i)
		if got, err := p.client.Get(t.Context(), key); err != nil || !bytes.Equal(got, p.values[key]) {
			t.Errorf("%s reads as %d bytes, %v", key, len(got), err)
		}
	}
}
