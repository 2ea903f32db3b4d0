package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func policyOf(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\ntenants:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: t%d\n    quota: 1MB\n", i)
	}
	return b.String()
}

// connectorState asks a master for the state of its policy until it is the wanted one.
func (m *running) connectorState(t *testing.T, want string) map[string]any {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var reply struct{ Data map[string]any }
		_, body := m.request(t, http.MethodGet, "/api/v1/tenant_quota_connector", "")
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			t.Fatal(err)
		}
		if reply.Data["state"] == want {
			return reply.Data
		}
		if time.Now().After(end) {
			t.Fatalf("not %s: %s", want, body)
		}
	}
}

// replace writes a file as careful writers do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestAStoredPolicyCarriesAMasterOver stops a master, takes its source away, and starts another.
func TestAStoredPolicyCarriesAMasterOver(t *testing.T) {
	path, state := policyFile(t, policyOf(3)), filepath.Join(t.TempDir(), "made", "on the way")
	flags := []string{"--enable_multi_tenants", "--tenant_quota_connector_uri=" + path, "--state_dir=" + state, "--tenant_quota_connector_required=false"}
	first := runMaster(t, flags...)
	first.connectorState(t, "ready")
	if code := first.stop(); code != 0 {
		t.Fatal(code)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := runMaster(t, flags...)
	got := second.connectorState(t, "stale")
	policy := got["policy"].(map[string]any)
	if policy["origin"] != "stored" || policy["tenants"] != 3.0 || policy["stale_since"] == nil {
		t.Errorf("%v", got)
	}
	if status, body := second.request(t, http.MethodGet, "/api/v1/tenant_quotas?tenant_id=t2", ""); status != 200 || !strings.Contains(body, `"requested_quota_bytes":1048576`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := second.request(t, http.MethodGet, "/metrics", ""); !strings.Contains(body, "\nmooncake_tenant_quota_policy_stale{type=\"file\"} 1\n") {
		t.Error("no metric says so")
	}
	replace(t, path, policyOf(4))
	second.connectorState(t, "ready")
	second.stop()

	// With nothing stored and a source that is bad, there is a master that refuses writes.
	replace(t, path, "version: 2\n")
	third := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path, "--tenant_quota_connector_required=false")
	third.connectorState(t, "degraded: no policy")
	c, id := dial(t, third), segment.UUID{First: 1}
	q := wire.PutStartRequest{ClientID: id, Key: "k", SliceLength: 10, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: "t0"}
	if code := call(t, c, wire.PutStart, q).Code; code != errcode.TenantNotRegistered {
		t.Errorf("%v", code)
	}
	replace(t, path, policyOf(1))
	third.connectorState(t, "ready")
	third.stop()

	// The same with a connector whose program is not there.
	fourth := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_type=none", "--tenant_quota_connector_dir="+t.TempDir(),
		"--tenant_quota_connector_uri=x", "--tenant_quota_connector_required=false")
	if got := fourth.connectorState(t, "degraded: no policy"); !strings.Contains(fmt.Sprint(got["last_error"]), "mooncake-connector-none; the folder") {
		t.Errorf("%v", got)
	}
	fourth.stop()
}

// TestAPolicyPlannedAppliedAndHeld goes through the routes about whole policies.
func TestAPolicyPlannedAppliedAndHeld(t *testing.T) {
	path := policyFile(t, policyOf(4))
	m := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path, "--tenant_quota_max_removal_percent=50")
	m.connectorState(t, "ready")
	c, id := dial(t, m), segment.UUID{First: 1, Second: 2}
	info := segment.Info{ID: id, Name: "seg", Base: 1 << 32, Size: 16 << 20, Endpoint: "seg", Protocol: "tcp"}
	if code := call(t, c, wire.MountSegment, wire.MountSegmentRequest{Segment: info, ClientID: id}).Code; code != errcode.OK {
		t.Fatal(code)
	}
	q := wire.PutStartRequest{ClientID: id, Key: "k", SliceLength: 1000, Config: object.ReplicateConfig{ReplicaNum: 1}, TenantID: "t0"}
	if code := call(t, c, wire.PutStart, q).Code; code != errcode.OK {
		t.Fatal(code)
	}
	ask := func(method, route, body string, status int) map[string]any {
		t.Helper()
		got, text := m.request(t, method, "/api/v1/tenant_quota_policy"+route, body)
		var reply struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(text), &reply); err != nil || got != status {
			t.Fatalf("%s %s: %d %s", method, route, got, text)
		}
		if status != http.StatusOK {
			reply.Data = map[string]any{}
			if err := json.Unmarshal([]byte(text), &reply.Data); err != nil {
				t.Fatal(err)
			}
		}
		return reply.Data
	}
	const next = "# planned\nversion: 1\ntenants:\n  - name: t1\n    quota: 500B\n  - name: t2\n    quota: 20MB\n"
	plan := ask(http.MethodPost, "/plan", next, http.StatusOK)
	if fmt.Sprint(plan["removed_not_empty"]) != "[t0]" || plan["removed"] != 2.0 || plan["changed"] != 2.0 || plan["guard"].(map[string]any)["held"] != false {
		t.Errorf("%v", plan)
	}
	if over := plan["pool"].(map[string]any)["oversubscription_after"].(float64); over < 1.25 || over > 1.26 {
		t.Errorf("%v", plan["pool"])
	}
	rev := url.QueryEscape(ask(http.MethodGet, "", "", http.StatusOK)["revision"].(string))
	if done := ask(http.MethodPut, "?expected_revision="+rev, next, http.StatusOK); done["tenants"] != 2.0 || done["removed"] != 2.0 {
		t.Errorf("%v", done)
	}
	// What was planned has come true.
	for _, o := range plan["tenants"].([]any) {
		o := o.(map[string]any)
		_, body := m.request(t, http.MethodGet, "/api/v1/tenant_quotas?tenant_id="+o["tenant_id"].(string), "")
		if want := fmt.Sprintf(`"effective_quota_bytes":%d,`, int64(o["effective_after"].(float64))); o["requested_after"] != 0.0 && !strings.Contains(body, want) {
			t.Errorf("%v, then %s", o, body)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != next {
		t.Errorf("%q, %v", text, err)
	}
	if lost := ask(http.MethodPut, "?expected_revision="+rev, policyOf(3), http.StatusConflict); lost["reason"] != "conflict" || lost["current_revision"] == "" {
		t.Errorf("%v", lost)
	}
	if bad := ask(http.MethodPost, "/plan", "version: 1\ntenants:\n- name: x\n  quota: 5GiB\n", http.StatusBadRequest); !strings.Contains(fmt.Sprint(bad["error_message"]), "line 4") {
		t.Errorf("%v", bad)
	}
	// Somebody empties the file.
	replace(t, path, "version: 1\ntenants: []\n")
	held := m.connectorState(t, "degraded: held")["held"].(map[string]any)
	if held["removed"] != 2.0 || held["tenants"] != 0.0 {
		t.Errorf("%v", held)
	}
	if status, _ := m.request(t, http.MethodGet, "/api/v1/tenant_quotas?tenant_id=t1", ""); status != http.StatusOK {
		t.Errorf("t1 is gone: %d", status)
	}
	ask(http.MethodPost, "/confirm?revision=other", "", http.StatusConflict)
	ask(http.MethodPost, "/confirm?revision="+url.QueryEscape(held["revision"].(string)), "", http.StatusOK)
	m.connectorState(t, "ready")
	_, history := m.request(t, http.MethodGet, "/api/v1/tenant_quota_policy/history", "")
	if strings.Count(history, `"why"`) != 3 || !strings.Contains(history, "confirmed through the admin interface") {
		t.Errorf("%s", history)
	}
}

// TestAStormOfChangesEndsOnTheLast saves the file a thousand times in ten seconds.
func TestAStormOfChangesEndsOnTheLast(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	path := policyFile(t, policyOf(1))
	m := runMaster(t, "--enable_multi_tenants", "--tenant_quota_connector_uri="+path)
	m.connectorState(t, "ready")
	text := func(i int) string { return fmt.Sprintf("version: 1\ntenants:\n- name: t0\n  quota: %d\n", i+1) }
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 1000 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("too slow")
		}
		replace(t, path, text(i))
	}
	ended := time.Now()
	for {
		_, body := m.request(t, http.MethodGet, "/api/v1/tenant_quotas?tenant_id=t0", "")
		if strings.Contains(body, `"requested_quota_bytes":1000,`) {
			break
		}
		if time.Since(ended) > 5*time.Second {
			t.Fatalf("5 s after the last change: %s", body)
		}
		time.Sleep(time.Millisecond)
	}
	got := m.connectorState(t, "ready")
	t.Logf("in force %s after the last change; %v of 1000 put in force", time.Since(ended).Round(time.Millisecond), got["reloads"].(map[string]any)["success"])
}
