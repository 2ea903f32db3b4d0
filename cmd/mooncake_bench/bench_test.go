package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
	"github.com/mooncake-go/mooncake-master/transport/transporttest"
)

// serveMaster serves a master whose time passes, or new objects would stay protected.
func serveMaster(t *testing.T, change ...func(*core.Config)) (*core.Master, string) {
	t.Helper()
	return transporttest.Serve(t, time.Now, change...)
}

// runJSON runs a command line against an address and returns its results.
func runJSON(t *testing.T, addr string, args ...string) []result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	var out, errOut bytes.Buffer
	args = append([]string{"run", "--addr", addr, "--json", path, "--pid", itoa(os.Getpid())}, args...)
	if code := bench(t.Context(), args, &out, &errOut); code != 0 {
		t.Fatalf("%v: exit status %d: %s", args, code, errOut.String())
	}
	var all []result
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if got := strings.Count(out.String(), "\n"); got != len(all)+1 {
		t.Errorf("table of %d lines for %d results:\n%s", got, len(all), out.String())
	}
	return all
}

func TestOperations(t *testing.T) {
	tests := []struct {
		name string
		args []string
	}{
		{"single", []string{"--work", "ping,exist,get,put,upsert,remove,mixed", "--conns", "2"}},
		{"batches", []string{"--work", "exist:16,get:300,put:16,upsert:16,remove:16,mixed:7", "--conns", "3", "--outstanding", "3"}},
		{"threads", []string{"--work", "exist:4,remove:3,mixed:5", "--mix", "exist:1,get:1,put:2,upsert:1,ping:1", "--conns", "4", "--threads", "2"}},
		{"come and go", []string{"--work", "mixed:3", "--mix", "put:2,remove:3"}},
		{"compact 0.3.14", []string{"--work", "exist,get:8,put:8,upsert,remove:8", "--client", "0.3.14", "--literal=false"}},
		{"open loop", []string{"--work", "exist,put:4", "--rate", "2000"}},
		{"beside", []string{"--work", "ping", "--beside", "exist:500x1,put:8x2", "--conns", "1"}},
		{"odd lengths", []string{"--work", "exist:3,get,put:3", "--key_length", "16", "--keys", "1001", "--fill_batch", "10"}},
		{"huge batch", []string{"--work", "exist:2000,put:1000", "--key_length", "300", "--conns", "1", "--duration", "400ms"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, addr := serveMaster(t)
			args := append([]string{"--keys", "6000", "--warmup", "20ms", "--duration", "80ms", "--segments", "3", "--segment_size", "4GiB"}, test.args...)
			for _, r := range runJSON(t, addr, args...) {
				if r.Ops == 0 || r.FailedOps != 0 || len(r.Failures) != 0 || r.Misses != 0 && !strings.HasPrefix(r.Setting.Work, "mixed") || len(r.FillFailed) != 0 || r.FailedPings != 0 {
					t.Errorf("%s: %d operations, %d failed, %s", r.Setting.title(), r.Ops, r.FailedOps, r.troubles())
				}
				for _, f := range []string{figOps, figKeys, figP50, figMax, figCPU, figOwn, figRSS} {
					if r.Figures[f] <= 0 {
						t.Errorf("%s: %s is %v", r.Setting.title(), f, r.Figures[f])
					}
				}
				if w, err := parseWork(r.Setting.Work); err != nil || w.op != opMixed && w.op != opRemove && r.Figures[figKeys] < r.Figures[figOps]*float64(w.batch)*0.999 {
					t.Errorf("%s: %v keys/s of %v ops/s, %v", r.Setting.title(), r.Figures[figKeys], r.Figures[figOps], err)
				}
				for _, b := range r.Beside {
					if b.Ops <= 0 || len(b.Failures) != 0 {
						t.Errorf("beside: %+v", b)
					}
				}
			}
		})
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	m, addr := serveMaster(t)
	runJSON(t, addr, "--work", "put:4", "--keys", "100", "--warmup", "0s", "--duration", "20ms")
	if s := m.Stats(); s.Keys != 0 || s.CapacityBytes != 0 {
		t.Errorf("%d keys and %d bytes of capacity are left", s.Keys, s.CapacityBytes)
	}
}

func TestRemoveEndsWithItsKeys(t *testing.T) {
	_, addr := serveMaster(t)
	r := runJSON(t, addr, "--work", "remove:7", "--keys", "1000", "--tenants", "3", "--duration", "1m", "--conns", "2")[0]
	if r.Figures[figKeys]*r.Seconds < 1000 || r.Figures[figKeys]*r.Seconds > 1004 || r.Seconds > 30 {
		t.Errorf("%v keys in %v s", r.Figures[figKeys]*r.Seconds, r.Seconds)
	}
}

func TestTenants(t *testing.T) {
	m, addr := serveMaster(t, mastertest.Strict)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	var out bytes.Buffer
	if code := bench(t.Context(), []string{"run", "--write_policy", policy, "--tenants", "5", "--tenant_quota", "1MiB"}, &out, &out); code != 0 {
		t.Fatal(out.String())
	}
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policydoc.Parse(text)
	if err != nil || len(doc.Tenants) != 5 {
		t.Fatalf("%s: %v", text, err)
	}
	var set []tenant.Policy
	for _, x := range doc.Tenants {
		set = append(set, tenant.Policy{Name: x.Name, Quota: x.Quota})
	}
	m.ApplyPolicies(set)
	for _, r := range runJSON(t, addr, "--work", "exist:4,put:4,mixed:4", "--tenants", "5", "--keys", "500", "--warmup", "0s", "--duration", "50ms") {
		if r.Ops == 0 || len(r.Failures) != 0 {
			t.Errorf("%s: %d operations, %s", r.Setting.title(), r.Ops, r.troubles())
		}
	}
	// A tenant that nobody gave a policy may not write.
	r := runJSON(t, addr, "--work", "put:4", "--tenants", "20", "--warmup", "0s", "--duration", "50ms")[0]
	if r.FailedOps == 0 || r.Failures["-1701"] == 0 || r.Figures[figFailed] <= 0 {
		t.Errorf("%d failed operations, %s", r.FailedOps, r.troubles())
	}
}

func TestRefusedFill(t *testing.T) {
	_, addr := serveMaster(t, mastertest.Strict)
	var out bytes.Buffer
	code := bench(t.Context(), []string{"run", "--addr", addr, "--work", "exist", "--duration", "10ms"}, &out, &out)
	if code != exitFailed || !strings.Contains(out.String(), "storing objects: none of 100000 was accepted: map[-1701:100000]") {
		t.Errorf("exit status %d: %s", code, out.String())
	}
}

func TestFullMemory(t *testing.T) {
	_, addr := serveMaster(t, mastertest.NoPoolEviction)
	r := runJSON(t, addr, "--work", "put:8", "--segments", "1", "--segment_size", "16MiB", "--object_size", "64KiB", "--keys", "250", "--warmup", "0s", "--duration", "60ms")[0]
	if r.Failures["-200"] == 0 || r.FailedOps == 0 {
		t.Errorf("%s", r.troubles())
	}
	// A slot pauses after a refusal, so that at most 8 slots fail some 60 times each.
	if r.FailedOps > 8*70 {
		t.Errorf("%d refused operations in 60 ms", r.FailedOps)
	}
}

func TestBadPeers(t *testing.T) {
	tests := []struct {
		name   string
		answer string // to whatever comes; "" closes
		want   string
	}{
		{"closes", "", "connection is closed"},
		{"http", "HTTP/1.1 400 Bad Request\r\n\r\n", "another protocol"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					c.Read(make([]byte, 100))
					c.Write([]byte(test.answer))
					c.Close()
				}
			}()
			var out bytes.Buffer
			code := bench(t.Context(), []string{"run", "--addr", l.Addr().String(), "--work", "ping"}, &out, &out)
			if code != exitFailed || !strings.Contains(out.String(), test.want) {
				t.Errorf("exit status %d: %s", code, out.String())
			}
			l.Close()
			<-done
		})
	}
}

func TestCancelledRun(t *testing.T) {
	_, addr := serveMaster(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	var out bytes.Buffer
	start := time.Now()
	code := bench(ctx, []string{"run", "--addr", addr, "--work", "exist", "--keys", "100", "--duration", "1h"}, &out, &out)
	if code != exitFailed || time.Since(start) > 20*time.Second {
		t.Errorf("exit status %d after %v: %s", code, time.Since(start), out.String())
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		args string
		want string
	}{
		{"", "want run, compare, table, report, echo or segment"},
		{"measure", `"measure" is no command`},
		{"run", "--addr"},
		{"run --addr nowhere", "--addr"},
		{"run --addr h:1 --conns 0", "--conns"},
		{"run --addr h:1 --conns 1,x", "--conns"},
		{"run --addr h:1 --work fly", "--work"},
		{"run --addr h:1 --work fill:3", "--work"},
		{"run --addr h:1 --work exist:0", "--work"},
		{"run --addr h:1 --work ping:2", "--work"},
		{"run --addr h:1 --mix get", "--mix"},
		{"run --addr h:1 --mix mixed:1", "--mix"},
		{"run --addr h:1 --beside exist:5", "--beside"},
		{"run --addr h:1 --beside x", "--beside"},
		{"run --addr h:1 --outstanding 0", "--outstanding"},
		{"run --addr h:1 --threads 9", "--threads"},
		{"run --addr h:1 --rate -1", "--rate"},
		{"run --addr h:1 --warmup -1s", "--warmup"},
		{"run --addr h:1 --duration 0s", "--duration"},
		{"run --addr h:1 --duration 2", "--duration"},
		{"run --addr h:1 --keys 0", "--keys"},
		{"run --addr h:1 --keys -2", "--keys"},
		{"run --addr h:1 --keys 10 --work upsert:8", "--keys"},
		{"run --addr h:1 --work ping --keys 0 --beside get:1x1", "--keys"},
		{"run --addr h:1 --key_length 15", "--key_length"},
		{"run --addr h:1 --object_size 0", "--object_size"},
		{"run --addr h:1 --object_size 4Q", "--object_size"},
		{"run --addr h:1 --tenants 0", "--tenants"},
		{"run --addr h:1 --segments 0", "--segments"},
		{"run --addr h:1 --segment_size 99999999TiB", "--segment_size"},
		{"run --addr h:1 --client 0.2", "--client"},
		{"run --addr h:1 --pin 5000", "--pin"},
		{"run --addr h:1 --pid 999999999", "--pid"},
		{"run --addr h:1 --json /nowhere/x", "--json"},
		{"run --addr h:1 --fill_batch 0", "--fill_batch"},
		{"run --addr h:1 --fill_conns 0", "--fill_conns"},
		{"run --addr h:1 exist", `"exist" is no flag`},
		{"run --nosuch", "-nosuch"},
		{"compare --b {rpc_port}", "--a"},
		{"compare --a {rpc_port}", "--b"},
		{"compare --a x --b {rpc_port}", "--a"},
		{"compare --a {rpc_port} --b {rpc_port} --rounds 0", "--rounds"},
		{"report", "no files"},
		{"report /nowhere/file", "/nowhere/file"},
		{"echo --rpc_port 70000", "--rpc_port"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := bench(t.Context(), strings.Fields(test.args), &out, &errOut)
			if code != exitUsage || !strings.Contains(errOut.String(), test.want) || out.Len() != 0 {
				t.Errorf("exit status %d, %q, %q; want it to say %q", code, out.String(), errOut.String(), test.want)
			}
		})
	}
	for _, args := range []string{"--help", "run --help", "compare -h", "report --help", "echo --help"} {
		var out, errOut bytes.Buffer
		if code := bench(t.Context(), strings.Fields(args), &out, &errOut); code != 0 || out.Len() == 0 || errOut.Len() != 0 {
			t.Errorf("%s: exit status %d, %q, %q", args, code, out.String(), errOut.String())
		}
	}
}
