package connector

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/policy"
)

// TestMemoryLimit runs a connector that takes more than it may.
func TestMemoryLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	dir, _ := installed(t, "hungry")
	var log logged
	c, err := Start(t.Context(), Spec{Type: "hungry", URI: path, Dir: dir, MemoryLimit: 300 << 20}, deps(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "it is killed for it and started again", func() bool {
		return c.Status().Restarts > 0 && strings.Contains(log.String(), " MB of memory, more than --tenant_quota_connector_memory_limit allows (300 MB), and was killed")
	})
}

// TestP4Versions negotiates with connectors of version 1 and of a version 2 that exists in
// tests only, from hosts that know the one, the other, or both.
func TestP4Versions(t *testing.T) {
	only := func(vs ...int) map[int]Dialect {
		by := map[int]Dialect{}
		for _, v := range vs {
			by[v] = map[int]Dialect{1: dialects[1], 2: second, 3: second}[v]
		}
		return by
	}
	for _, tt := range []struct {
		name, kind string
		host       map[int]Dialect
		said       string
		err        string
	}{
		{"old and old", "v1", only(1), "one", ""},
		{"old connector, new host", "v1", only(1, 2), "one", ""},
		{"connector of both, old host", "v1v2", only(1), "one", ""},
		{"connector of both, new host", "v1v2", only(1, 2), "two", ""},
		{"new connector, new host", "v2", only(1, 2), "two", ""},
		{"new connector, old host", "v2", only(1), "", "it speaks connector protocol 2, this master (version 9.9) speaks 1: install a newer version of the master, or an older one of the connector"},
		{"old connector, much newer host", "v1", only(2, 3), "", "it speaks connector protocol 1, this master (version 9.9) speaks 2, 3: install a newer version of the connector"},
		{"old connector of the SDK, much newer host", "sdk", only(2, 3), "", "it speaks connector protocol 1, this master (version 9.9) speaks 2, 3: install a newer version of the connector; its last lines: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, path, "one")
			var dir string
			if tt.kind == "sdk" {
				dir, _ = installed(t, tt.kind)
			} else {
				dir = versioned(t, tt.kind)
			}
			var log logged
			d := deps(&log)
			d.Dialects, d.Version = tt.host, "9.9"
			c, err := Start(t.Context(), Spec{Type: tt.kind, URI: path, Dir: dir}, d)
			if tt.err != "" {
				if err == nil {
					c.Close()
				}
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v\nwant %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
			if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != tt.said {
				t.Errorf("%q, %v", doc.Content, err)
			}
		})
	}
}

// TestP15LimitIsNamed loads a document beyond the limit of a message.
func TestP15LimitIsNamed(t *testing.T) {
	dir := versioned(t, "large")
	var log logged
	c, err := Start(t.Context(), Spec{Type: "large", Dir: dir}, deps(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err = c.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than the 67174400 bytes the contract allows, for a document of at most 67108864") {
		t.Errorf("%v", err)
	}
}
