package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const flagData = "../../../testdata/flags"

// configFiles returns the configuration files of a folder; next to each lies NAME.want.
func configFiles(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(flagData, folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range all {
		if !strings.HasSuffix(f, ".want") {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no files in %s", folder)
	}
	return files
}

func wantText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file + ".want")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "FILE", file)
}

func TestGoodConfigFiles(t *testing.T) {
	for _, file := range configFiles(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out := Load([]string{"--config_path=" + file}, testEnv(nil))
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			if want := "Loading config from: " + file + "\n"; out.Stdout != want {
				t.Errorf("stdout %q, want %q", out.Stdout, want)
			}
			var got []string
			for _, line := range out.Config.Given() {
				if !strings.HasPrefix(line, "config_path=") {
					got = append(got, line)
				}
			}
			want := strings.Split(strings.TrimSuffix(wantText(t, file), "\n"), "\n")
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("settings\n%s\nwant\n%s", g, w)
			}
		})
	}
}

func TestBadConfigFiles(t *testing.T) {
	for _, file := range configFiles(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out := Load([]string{"--config_path=" + file}, testEnv(nil))
			if out.Config != nil || out.ExitCode != 1 {
				t.Fatalf("accepted or exit %d", out.ExitCode)
			}
			if strings.Count(out.Stderr, "\n") != 1 {
				t.Errorf("want one line, got %q", out.Stderr)
			}
			head, tail, star := strings.Cut(wantText(t, file), "*")
			if star && strings.HasPrefix(out.Stderr, head) && strings.HasSuffix(out.Stderr, tail) {
				return
			}
			if star || out.Stderr != head {
				t.Errorf("stderr %q, want %q", out.Stderr, head)
			}
		})
	}
}

// The file gives way to a flag with another value than its default, and to nothing else.
func TestFileAndFlags(t *testing.T) {
	files := map[string][]byte{
		"ttl.yaml":   []byte("client_live_ttl_sec: 33\nrpc_port: 6000\n"),
		"new.yaml":   []byte("client_active_ttl_sec: 15\n"),
		"both.yaml":  []byte("client_active_ttl_sec: 15\nclient_live_ttl_sec: 33\n"),
		"zero.yaml":  []byte("rpc_port: 0\n"),
		"none.yaml":  []byte("cluster_id: x\n"),
		"alias.yaml": []byte("snapshot_catalog_backend_type: redis\n"),
	}
	tests := []struct {
		args      []string
		port, ttl int
		warning   string
	}{
		{[]string{"--config_path=ttl.yaml"}, 6000, 33, ""},
		{[]string{"--config_path=ttl.yaml", "--client_ttl=10", "--rpc_port=0"}, 6000, 33, ""},
		{[]string{"--config_path=ttl.yaml", "--client_ttl=11", "--rpc_port=5"}, 5, 11, ""},
		{[]string{"--config_path=ttl.yaml", "--client_active_ttl_sec=10"}, 6000, 10, ""},
		{[]string{"--config_path=new.yaml", "--client_ttl=33"}, 50051, 33, ""},
		{[]string{"--config_path=both.yaml"}, 50051, 15, "set with different values"},
		{[]string{"--config_path=zero.yaml"}, 0, 10, ""},
		{[]string{"--config_path=zero.yaml", "--port=7000"}, 7000, 10, "--port is deprecated"},
		{[]string{"--config_path=none.yaml"}, 50051, 10, ""},
		{[]string{"--config_path=none.yaml", "--port=7000"}, 7000, 10, "--port is deprecated"},
		{[]string{"--config_path=alias.yaml"}, 50051, 10, "snapshots as in 0.3.13"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			out := Load(test.args, testEnv(files))
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			if out.Config.RPC.Port != test.port || int(out.Config.Clients.ActiveTTL.Seconds()) != test.ttl {
				t.Errorf("port %d ttl %s, want %d %d", out.Config.RPC.Port, out.Config.Clients.ActiveTTL, test.port, test.ttl)
			}
			checkWarning(t, out.Warnings, test.warning)
		})
	}
}

// checkWarning wants one warning with the text, or with "" none but the one about the open
// admin interface.
func checkWarning(t *testing.T, warnings []string, text string) {
	t.Helper()
	n := 0
	for _, w := range warnings {
		if text != "" && strings.Contains(w, text) {
			n++
		} else if text == "" && !strings.Contains(w, "no authentication") {
			n++
		}
	}
	if text == "" && n != 0 || text != "" && n != 1 {
		t.Errorf("warnings %q, want %q once", warnings, text)
	}
}

func TestUnknownSettingsAreNamed(t *testing.T) {
	many := "rpc_port: 1\n"
	for i := range mostUnknown + 5 {
		many += "typo_" + string(rune('a'+i)) + ": 1\n"
	}
	tests := []struct {
		name, file, content string
		want                []string
	}{
		{"none", "c.yaml", "rpc_port: 5\nclient_live_ttl_sec: 9\n", nil},
		{"in order", "c.yaml", "enable_multi_tenant: true\nrpc_port: 5\nport: 6\nexporter:\n  path: x\n", []string{
			`c.yaml:1: unknown setting "enable_multi_tenant" is ignored`,
			`c.yaml:3: unknown setting "port" is ignored, in files it is rpc_port`,
			`c.yaml:5: unknown setting "exporter.path" is ignored`,
		}},
		{"json", "c.json", "{\"rpc_prot\": 5,\n \"metrics_port\": 7}", []string{`c.json:1: unknown setting "rpc_prot" is ignored`}},
		{"many", "c.yaml", many, append(make([]string, mostUnknown), "c.yaml: 5 more settings are unknown and ignored")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out := Load([]string{"--config_path=" + test.file, "--metrics_host=127.0.0.1"}, testEnv(map[string][]byte{test.file: []byte(test.content)}))
			if out.Config == nil {
				t.Fatalf("refused: %s", out.Stderr)
			}
			if len(out.Warnings) != len(test.want) {
				t.Fatalf("warnings %q, want %q", out.Warnings, test.want)
			}
			for i, want := range test.want {
				if want != "" && out.Warnings[i] != want {
					t.Errorf("warning %q, want %q", out.Warnings[i], want)
				}
			}
		})
	}
}
