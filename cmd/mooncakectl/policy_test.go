package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	golden(t, "check-good", ctl(t, "", "policy", "check", "testdata/good.yaml"))
	golden(t, "check-bad", ctl(t, "", "policy", "check", "testdata/good.yaml", "testdata/bad.yaml"))
	golden(t, "check-strict", ctl(t, "", "policy", "check", "--strict", "testdata/warned.yaml"))
	golden(t, "check-json", ctl(t, "", "policy", "check", "-o", "json", "testdata/bad.yaml"))
	ctl(t, "version: 1\ntenants: [\n", "policy", "check", "-").want(t, exitFailed, "-:2: error: invalid YAML", "")
	ctl(t, "", "policy", "check", "testdata/nope.yaml").want(t, exitFailed, "", "testdata/nope.yaml: no such file")
	r := ctl(t, "version: 1\ntenants:\n- name: \"a\\e[2J\"\n  quota: 1\n", "policy", "check", "-", "--color", "never")
	if r.code != exitFailed || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("escape sequences of a document reach the screen: %q", r.stdout)
	}
}

// fill mounts memory and gives a tenant objects.
func fill(t *testing.T, address, tenant string, memory uint64, objects ...uint64) {
	t.Helper()
	c, err := rpc.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id := segment.UUID{First: 1, Second: 2}
	must := func(code errcode.Code, what string) {
		t.Helper()
		if code != errcode.OK {
			t.Fatalf("%s: %v", what, code)
		}
	}
	info := segment.Info{ID: id, Name: "seg", Base: 1 << 32, Size: memory, Endpoint: "seg", Protocol: "tcp"}
	must(call(t, c, wire.MountSegment, wire.MountSegmentRequest{Segment: info, ClientID: id}).Code, "mount")
	for i, size := range objects {
		key := string(rune('k' + i))
		q := wire.PutStartRequest{ClientID: id, Key: key, SliceLength: size, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: tenant}
		must(call(t, c, wire.PutStart, q).Code, "put")
		must(call(t, c, wire.PutEnd, wire.PutEndRequest{ClientID: id, ObjectMeta: object.Meta{Key: key}, ReplicaType: object.ReplicaAll, TenantID: tenant}).Code, "put end")
	}
}

func call[Q, A any](t *testing.T, c *rpc.Client, row *wire.RPC[Q, A], q Q) (a A) {
	t.Helper()
	if err := rpc.Invoke(t.Context(), c, row, &q, &a); err != nil {
		t.Fatalf("%s: %v", row.Name(), err)
	}
	return a
}

// TestPlanAndApply takes one policy through its life at a real master.
func TestPlanAndApply(t *testing.T) {
	t.Parallel()
	rpcAddress, admin, file := tenantMaster(t, "version: 1\ntenants:\n  - name: a # the first\n    quota: 64MB\n  - name: b\n    quota: 64MB\n  - name: c\n    quota: 32MB\n")
	fill(t, rpcAddress, "a", 256<<20, 16<<20, 16<<20)
	env := map[string]string{"MOONCAKE_MASTER": admin}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := write(t, "next.yaml", "version: 1\ntenants:\n  - name: a\n    quota: 16MB\n  - name: c\n    quota: 32MB\n  - name: d\n    quota: 1GB\n    qota: 2\n")
	golden(t, "plan", ctlEnv(t, env, "", "policy", "plan", next))
	golden(t, "plan-bytes", ctlEnv(t, env, "", "policy", "plan", "--bytes", "--all", next))
	p := decode[plan](t, ctlEnv(t, env, "", "policy", "plan", "-o", "json", next))
	if p.Added != 1 || p.Removed != 1 || p.Changed != 1 || p.Pool.After == nil || *p.Pool.After <= 1 {
		t.Errorf("plan: %+v", p)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
		t.Errorf("plan changed the source: %q, %v", now, err)
	}

	ctlEnv(t, env, "", "policy", "apply", next, "--expected-revision", "other").want(t, exitConflict, "", "the source holds revision "+p.Base.Revision)
	golden(t, "apply", ctlEnv(t, env, "", "policy", "apply", next, "--expected-revision", p.Base.Revision))
	golden(t, "apply-same", ctlEnv(t, env, "", "policy", "apply", next))
	ctlEnv(t, env, "", "tenant", "get", "a").want(t, exitOK, "over quota by", "")
	want, err := os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	if shown := ctlEnv(t, env, "", "policy", "show"); shown.code != exitOK || shown.stdout != string(want) || !strings.Contains(shown.stderr, "from source") {
		t.Errorf("show: %+v", shown)
	}
	ctlEnv(t, env, "", "policy", "show", "--source").want(t, exitOK, string(want), "revision ")
	if p := decode[policyInForce](t, ctlEnv(t, env, "", "policy", "show", "-o", "json")); p.Document != string(want) || p.Tenants == nil || *p.Tenants != 3 {
		t.Errorf("show: %+v", p)
	}
	golden(t, "history", ctlEnv(t, env, "", "policy", "history"))
	if events := decode[[]event](t, ctlEnv(t, env, "", "policy", "history", "-o", "json", "--limit", "1")); len(events) != 1 || events[0].Removed != 1 {
		t.Errorf("history: %+v", events)
	}
	s := decode[saved](t, ctlEnv(t, env, string(before), "policy", "apply", "-o", "json", "-"))
	if s.Same || s.Added != 1 || s.Removed != 1 || s.Changed != 1 {
		t.Errorf("apply: %+v", s)
	}
	// What is in force is put back where the source has lost it.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	same := write(t, "same.yaml", string(before))
	ctlEnv(t, env, "", "policy", "apply", next).want(t, exitConflict, "", "--expected-revision '' creates it")
	ctlEnv(t, env, "", "policy", "apply", same).want(t, exitOK, "the same as before", "it is created again")
	if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
		t.Errorf("put back: %q, %v", now, err)
	}

	bad := write(t, "bad.yaml", "version: 1\ntenants:\n  - name: a\n    quota: 5GiB\n")
	for _, verb := range []string{"plan", "apply"} {
		ctlEnv(t, env, "", "policy", verb, bad).want(t, exitFailed, bad+":4:12: error: invalid quota for tenant 'a'", "")
		ctlEnv(t, env, "", "policy", verb, bad, "-o", "json").want(t, exitFailed, "", bad+":4:12: invalid quota for tenant 'a'")
	}
}

// TestRemovalGuard removes most tenants at a master that wants to be asked first.
func TestRemovalGuard(t *testing.T) {
	t.Parallel()
	_, admin, file := tenantMaster(t, "version: 1\ntenants:\n  - name: a\n    quota: 1MB\n  - name: b\n    quota: 1MB\n  - name: c\n    quota: 1MB\n", "--tenant_quota_max_removal_percent=50")
	env := map[string]string{"MOONCAKE_MASTER": admin}
	few := write(t, "few.yaml", "version: 1\ntenants:\n  - name: a\n    quota: 1MB\n")
	ctlEnv(t, env, "", "policy", "plan", few).want(t, exitOK, "held back: it removes 66.67% of the tenants", "")
	ctlEnv(t, env, "", "policy", "apply", few).want(t, exitHeld, "", "--confirm-removal applies it all the same")

	// Written at the source it is held back until somebody confirms it.
	text, err := os.ReadFile(few)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var status struct {
		State string
		Held  *struct{ Revision string }
	}
	eventually(t, "the state is degraded: held", func() bool {
		r := ctlEnv(t, env, "", "connector", "status", "-o", "json")
		return r.code == exitOK && json.Unmarshal([]byte(r.stdout), &status) == nil && status.State == "degraded: held" && status.Held != nil
	})
	ctlEnv(t, env, "", "connector", "status").want(t, exitOK, "mooncakectl policy confirm "+status.Held.Revision, "")
	ctlEnv(t, env, "", "policy", "confirm", "other").want(t, exitConflict, "", "it is held no more")
	ctlEnv(t, env, "", "policy", "confirm", status.Held.Revision).want(t, exitOK, "in force: revision "+status.Held.Revision+", 1 tenant: 0 added, 0 changed, 2 removed", "")

	none := write(t, "none.yaml", "version: 1\ntenants: []\n")
	ctlEnv(t, env, "", "policy", "apply", none, "--confirm-removal").want(t, exitOK, "0 tenants: 0 added, 0 changed, 1 removed", "")
}
