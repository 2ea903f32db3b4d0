package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

const twoTenants = "version: 1\ntenants:\n  - name: a # the first\n    quota: 1GB\n  - name: b\n    quota: 512MB\n"

func TestTenants(t *testing.T) {
	t.Parallel()
	_, admin, file := tenantMaster(t, twoTenants)
	env := map[string]string{"MOONCAKE_MASTER": admin}
	golden(t, "tenant-list", ctlEnv(t, env, "", "tenant", "list"))
	golden(t, "tenant-list-bytes", ctlEnv(t, env, "", "tenant", "list", "--bytes"))
	if all := decode[[]tenant.Snapshot](t, ctlEnv(t, env, "", "tenant", "list", "-o", "json")); len(all) != 2 || all[1].RequestedQuotaBytes != 512<<20 {
		t.Errorf("list: %+v", all)
	}
	if one := decode[tenant.Snapshot](t, ctlEnv(t, env, "", "tenant", "set", "c d", "3MB", "-o", "json")); one.TenantID != "c d" || one.RequestedQuotaBytes != 3<<20 {
		t.Errorf("set: %+v", one)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "# the first") || !strings.Contains(string(text), `"c d"`) {
		t.Errorf("the file reads %q, %v", text, err)
	}
	ctlEnv(t, env, "", "tenant", "get", "c d").want(t, exitOK, "3MB", "")
	ctlEnv(t, env, "", "tenant", "delete", "c d").want(t, exitOK, "tenant c d is deleted", "")
	ctlEnv(t, env, "", "tenant", "get", "c d").want(t, exitFailed, "", `there is no tenant "c d"`)
	ctlEnv(t, env, "", "tenant", "delete", "c d", "-o", "json").want(t, exitFailed, "", `"exit_code":1`)
}

func TestMasterWithoutTenants(t *testing.T) {
	t.Parallel()
	rpc, admin := master(t)
	ctl(t, "", "tenant", "list", "--master", admin).want(t, exitFailed, "", "start it with --enable_multi_tenants")
	ctl(t, "", "policy", "history", "--master", admin).want(t, exitFailed, "", "start it with --enable_multi_tenants")
	ctl(t, "", "connector", "status", "--master", admin).want(t, exitFailed, "", "start it with --enable_multi_tenants")
	ctl(t, "", "version", "--server", "--master", admin).want(t, exitOK, "master test", "")
	ctl(t, "", "tenant", "list", "--master", rpc).want(t, exitUnreachable, "", "is it the --rpc_port?")
}

// TestTheActiveMasterIsUsed has a dead address, a standby and the active one in the list.
func TestTheActiveMasterIsUsed(t *testing.T) {
	t.Parallel()
	_, admin, _ := tenantMaster(t, twoTenants)
	waiting := httptest.NewServer(http.HandlerFunc(standby))
	defer waiting.Close()
	second := strings.TrimPrefix(waiting.URL, "http://")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	ctl(t, "", "tenant", "set", "a", "2GB", "--master", dead+","+second+", http://"+admin+"/").want(t, exitOK, "2GB", "")
	r := ctl(t, "", "tenant", "set", "a", "3GB", "--master", dead+","+second)
	r.want(t, exitUnreachable, "", dead+": connection refused")
	r.want(t, exitUnreachable, "", second+" is not active (standby, standby, the leader serves clients at 10.0.0.7:50051)")
	ctl(t, "", "tenant", "get", "a", "--master", admin).want(t, exitOK, "2GB", "")
}

// TestASilentMaster does not answer in time; a change is not sent to anybody else then.
func TestASilentMaster(t *testing.T) {
	t.Parallel()
	var first, second atomic.Int64
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is noticed
		first.Add(1)
		<-r.Context().Done()
	}))
	defer silent.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { second.Add(1) }))
	defer other.Close()
	begin := time.Now()
	ctl(t, "", "tenant", "list", "--timeout", "50ms", "--master", silent.URL).want(t, exitUnreachable, "", "--timeout gives it more")
	ctl(t, "", "tenant", "set", "a", "1GB", "--timeout", "50ms", "--master", silent.URL+","+other.URL).want(t, exitUnreachable, "", "it may have done what it was asked, or not")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("two times 50 ms took %s", took)
	}
	if first.Load() != 2 || second.Load() != 0 {
		t.Errorf("the first was asked %d times, want 2, the other %d times, want 0", first.Load(), second.Load())
	}
}

func TestAnotherKindOfMaster(t *testing.T) {
	t.Parallel()
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	ctl(t, "", "policy", "history", "--master", old.URL).want(t, exitFailed, "", "does not know GET /api/v1/tenant_quota_policy/history")
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer odd.Close()
	ctl(t, "", "tenant", "list", "--master", odd.URL).want(t, exitFailed, "", "not answered in JSON")
}
