package etcd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

func TestEndpoints(t *testing.T) {
	for list, want := range map[string]string{
		"127.0.0.1:2379": "127.0.0.1:2379",
		"http://B:2379/, a:2379;HTTPS://a:2379//,b": "a:2379 b:2379",
		" h ;; ,h:2379,H.:02379":                    "h:2379",
		"[::1]:2379,[0:0::1],::1,http://[::1]/":     "[::1]:2379",
		"::ffff:10.0.0.1,10.0.0.1":                  "10.0.0.1:2379",
		"etcd-0.etcd:4001;etcd-1.etcd:4001":         "etcd-0.etcd:4001 etcd-1.etcd:4001",
		"":                                          "! names no endpoint",
		" ;,":                                       "! names no endpoint",
		"a:2379,ftp://b":                            "! 'ftp://b' is no etcd endpoint: unknown scheme ftp",
		"a:0":                                       "! no port",
		"a:65536":                                   "! no port",
		"a:x":                                       "! not readable",
		":2379":                                     "! no host",
		"http://a:2379/v3":                          "! nothing may follow the port",
		"http://root:secret@a:2379":                 "! user name or password",
		"FE80::1":                                   "[fe80::1]:2379",
		"http://a:2379?x":                           "! nothing may follow the port",
		"a b:2379":                                  "! not readable",
	} {
		got, err := Endpoints(list)
		if says, bad := strings.CutPrefix(want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v, %v, want an error that says %q", list, got, err, says)
			}
		} else if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
}

func TestConfigure(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty := file("secret", "x\n"), file("empty", "\n")
	for _, tc := range []struct {
		name, uri, cluster, options, want string
	}{
		{"default cluster", "h:1", "", "", "key mooncake-store/mooncake_cluster/tenant_quota_policy"},
		{"slashes at the end", "h:1", "prod.eu-1_a///", "", "key mooncake-store/prod.eu-1_a/tenant_quota_policy"},
		{"longest id", "h:1", strings.Repeat("a", 128), "", "key mooncake-store/" + strings.Repeat("a", 128) + "/tenant_quota_policy"},
		{"id too long", "h:1", strings.Repeat("a", 129), "reconcile=1s,request_timeout=1s", "cluster_id: the cluster id has 129 characters, at most 128 are allowed"},
		{"slash in the id", "h:1", "a/b", "", `cluster_id: the cluster id "a/b" holds '/', allowed are letters, digits, '_', '.' and '-'`},
		{"umlaut in the id", "h:1", "ä", "", "cluster_id: "},
		{"no uri", " ", "c", "", "uri: tenant quota etcd connector requires a non-empty uri"},
		{"mixed", "http://a,https://b", "c", "", "uri: some endpoints begin with http:// and some with https://"},
		{"http with TLS", "http://a", "c", "server_name=x", "uri: endpoints begin with http:// although options ask for TLS"},
		{"unknown option", "h:1", "c", "colour=red", "options.colour: unknown option; the etcd connector has user, password_file,"},
		{"user alone", "h:1", "c", "user=u", "options.password_file: is missing"},
		{"password alone", "h:1", "c", "password_file=" + secret, "options.user: is missing"},
		{"empty password", "h:1", "c", "user=u,password_file=" + empty, "options.password_file: the password file '" + empty + "' is empty"},
		{"no password file", "h:1", "c", "user=u,password_file=" + dir + "/none", "options.password_file: open " + dir + "/none: no such file or directory"},
		{"user", "h:1", "c", "user=u,password_file=" + secret, "key mooncake-store/c/tenant_quota_policy"},
		{"no certificate", "h:1", "c", "ca_file=" + secret, "options.ca_file: '" + secret + "' holds no PEM certificate"},
		{"no ca", "h:1", "c", "ca_file=/none", "options.ca_file: open /none: no such file or directory"},
		{"certificate without key", "h:1", "c", "cert_file=" + secret, "options.key_file: cert_file and key_file need each other"},
		{"bad pair", "h:1", "c", "cert_file=" + secret + ",key_file=" + secret, "options.cert_file: '" + secret + "' with '" + secret + "': tls: failed to find any PEM data"},
		{"timeout", "h:1", "c", "request_timeout=1", `options.request_timeout: "1" is not a duration between 100ms and 1m0s, like 5s`},
		{"two wrongs", "", "a/b", "reconcile=never", "cluster_id: .*; options.reconcile: .*; uri: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := map[string]string{}
			for _, pair := range strings.FieldsFunc(tc.options, func(r rune) bool { return r == ',' }) {
				name, value, _ := strings.Cut(pair, "=")
				options[name] = value
			}
			c := New(hclog.NewNullLogger())
			err := c.Configure(t.Context(), sdk.Config{URI: tc.uri, ClusterID: tc.cluster, Options: options})
			if key, ok := strings.CutPrefix(tc.want, "key "); ok {
				if err != nil {
					t.Fatal(err)
				}
				if c.link.key != key {
					t.Errorf("key is %q, want %q", c.link.key, key)
				}
				if err := c.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				return
			}
			var refused *sdk.ConfigError
			if !errors.As(err, &refused) {
				t.Fatalf("error %v, want a *sdk.ConfigError", err)
			}
			text := err.Error()
			if want := strings.Count(tc.want, ".*; ") + 1; len(refused.Notes) != want {
				t.Errorf("%d notes, want %d: %s", len(refused.Notes), want, text)
			}
			for part := range strings.SplitSeq(tc.want, ".*; ") {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
		})
	}
}

// TestSchema compares the options that are described with those that are known.
func TestSchema(t *testing.T) {
	var s struct {
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal([]byte(New(hclog.NewNullLogger()).Describe().OptionsSchema), &s); err != nil {
		t.Fatal(err)
	}
	var described []string
	for name, p := range s.Properties {
		described = append(described, name)
		if p.Type != "string" || p.Description == "" {
			t.Errorf("option %s: type %q, description %q", name, p.Type, p.Description)
		}
	}
	slices.Sort(described)
	known := slices.Sorted(slices.Values(names))
	if !slices.Equal(described, known) {
		t.Errorf("described are %v, known are %v", described, known)
	}
}
