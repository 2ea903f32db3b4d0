package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// TestEmbeddedNode tries a master out that lends memory itself.
func TestEmbeddedNode(t *testing.T) {
	path := policyFile(t, "version: 1\ntenants:\n  - name: a\n    quota: 4MB\n")
	m := runMaster(t, "--embedded_node=16MB", "--enable_multi_tenants", "--tenant_quota_connector_uri="+path)
	if status, names := m.request(t, "GET", "/get_all_segments", ""); status != 200 || strings.TrimSpace(names) != "127.0.0.1:50052" {
		t.Errorf("when it serves the segments are %q", names)
	}
	c, err := client.Dial(t.Context(), client.Config{Master: m.rpc, Metadata: segment.P2P, Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := []byte(strings.Repeat("x", 3<<20))
	if err := c.Put(t.Context(), "k", text); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "k"); err != nil || string(got) != string(text) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := c.Put(t.Context(), "big", make([]byte, 5<<20)); !errors.Is(err, errcode.TenantQuotaExceeded) {
		t.Errorf("more than the quota: %v", err)
	}
	if !strings.Contains(m.stderr.String(), "for trying things out") {
		t.Error("the log does not say what it is for")
	}
	if code := m.stop(); code != 0 {
		t.Errorf("ends with %d: %s", code, m.stderr)
	}
}

// TestEmbeddedNodeInTheStore is found where the master's clients look.
func TestEmbeddedNodeInTheStore(t *testing.T) {
	m := runMaster(t, "--embedded_node=1048576", "--enable_http_metadata_server", "--http_metadata_server_host=127.0.0.1", "--http_metadata_server_port=0")
	c, err := client.Dial(t.Context(), client.Config{Master: m.rpc, Metadata: "http://" + m.metadata + "/metadata", Tenant: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "k"); err != nil || string(got) != "v" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEmbeddedNodeIsRefused(t *testing.T) {
	for value, want := range map[string]string{
		"1GiB":                fmt.Sprint("--embedded_node=1GiB: ", "unsupported quota unit 'GiB'"),
		"-1GB":                "want a number of bytes, optionally with B, KB, MB, GB or TB, or nothing for no node",
		"2000000TB":           "--embedded_node=2000000TB: there is no memory to lend",
		"1152921504606846976": "--embedded_node=1152921504606846976: there is no memory to lend",
	} {
		var stdout, stderr syncBuffer
		args := []string{"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0", "--minloglevel=3", "--embedded_node=" + value}
		if code := Main(t.Context(), args, System("test"), &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: %d, %q", value, code, stderr.String())
		}
	}
}
