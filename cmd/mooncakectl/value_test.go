package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// store is a master with a node in it, and tenants a, of four megabytes, and b.
func store(t *testing.T) (run func(stdin string, args ...string) result) {
	t.Helper()
	rpc, admin, _ := tenantMaster(t, "version: 1\ntenants:\n  - name: a\n    quota: 4MB\n  - name: b\n    quota: 1MB\n", "--embedded_node=64MB")
	return func(stdin string, args ...string) result {
		t.Helper()
		return ctl(t, stdin, append(args, "--rpc", rpc, "--master", admin)...)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	run, dir := store(t), t.TempDir()
	page := bytes.Repeat([]byte{0, 1, 0xff, '\n'}, 500_000)
	file := write(t, "page.bin", string(page))
	run("", "put", "page", file, "--tenant", "a").want(t, exitOK, "", "1.91MB is stored as page of tenant a")
	run("hello\n", "put", "greeting", "-t", "a").want(t, exitOK, "", "6B is stored")
	run("hi\n", "put", "greeting", "-", "-t", "a").want(t, exitFailed, "", `there is a value "greeting" of tenant "a" already`)
	run("hi\n", "put", "greeting", "-", "-t", "a", "--replace").want(t, exitOK, "", "3B is stored")
	run("", "get", "greeting", "-t", "a").want(t, exitOK, "hi\n", "")

	// To standard output, to a new file, over an old one.
	if r := run("", "get", "page", "-t", "a"); r.code != exitOK || r.stdout != string(page) {
		t.Errorf("status %d, %d bytes: %s", r.code, len(r.stdout), r.stderr)
	}
	for _, old := range []bool{false, true} {
		name := filepath.Join(dir, fmt.Sprint("page", old))
		if old {
			if err := os.WriteFile(name, bytes.Repeat([]byte("old"), 1_000_000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run("", "get", "page", name, "-t", "a").want(t, exitOK, "", "of page of tenant a are in "+name)
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, page) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}

	run("", "ls", "-t", "a").want(t, exitOK, "greeting      3B  127.0.0.1:", "")
	run("", "ls", "^p", "-t", "a").want(t, exitOK, "page", "")
	if all := decode[[]listed](t, run("", "ls", "^p", "-t", "a", "-o", "json")); len(all) != 1 || all[0].Key != "page" || all[0].Bytes != 2_000_000 || len(all[0].Replicas) != 1 {
		t.Errorf("%+v", all)
	}
	if all := decode[[]listed](t, run("", "ls", "-t", "b", "-o", "json")); len(all) != 0 {
		t.Errorf("tenant b has %+v", all)
	}
	run("", "stat", "page", "-t", "a").want(t, exitOK, "page of tenant a: 1.91MB (2000000 bytes)", "")
	one := decode[listed](t, run("", "stat", "page", "-t", "a", "-o", "json"))
	if one.Tenant != "a" || one.Bytes != 2_000_000 || len(one.Replicas) != 1 || one.Replicas[0].Kind != "memory" || one.Replicas[0].Status != "complete" || !strings.HasPrefix(one.Replicas[0].Where, "127.0.0.1:") {
		t.Errorf("%+v", one)
	}

	// What was read a moment ago is protected.
	run("", "rm", "page", "-t", "a").want(t, exitFailed, "", "was read a moment ago")
	r := run("", "rm", "page", "nope", "greeting", "nope2", "-t", "a", "--force")
	r.want(t, exitFailed, "page is removed\ngreeting is removed\n", `there is no value "nope" of tenant "a"`)
	r.want(t, exitFailed, "", `there is no value "nope2" of tenant "a"`)
	run("", "get", "page", "-t", "a").want(t, exitFailed, "", `there is no value "page" of tenant "a"`)
	run("", "ls", "-t", "a").want(t, exitOK, "KEY", "")
}

func TestValuesInJSON(t *testing.T) {
	t.Parallel()
	run, name := store(t), filepath.Join(t.TempDir(), "v")
	if got := decode[stored](t, run("12345", "put", "k", "-t", "a", "-o", "json")); got != (stored{"a", "k", 5}) {
		t.Errorf("%+v", got)
	}
	got := decode[struct {
		stored
		File string `json:"file"`
	}](t, run("", "get", "k", name, "-t", "a", "-o", "json"))
	if got.Bytes != 5 || got.File != name {
		t.Errorf("%+v", got)
	}
	run("", "get", "k", "-t", "a", "-o", "json").want(t, exitUsage, "", "the value itself goes to standard output")
	removed := decode[struct {
		Tenant  string   `json:"tenant_id"`
		Removed []string `json:"removed"`
	}](t, run("", "rm", "-f", "k", "-t", "a", "-o", "json"))
	if removed.Tenant != "a" || !slices.Equal(removed.Removed, []string{"k"}) {
		t.Errorf("%+v", removed)
	}
}

func TestValuesThatCanNotBe(t *testing.T) {
	t.Parallel()
	run, dir := store(t), t.TempDir()
	run(strings.Repeat("x", 2<<20), "put", "k", "-t", "b").want(t, exitFailed, "", `the value "k" of tenant "b" does not fit into the tenant's quota`)
	run("x", "put", "k", "-t", "nobody").want(t, exitFailed, "", `tenant "nobody" is not registered`)
	run("x", "put", "k").want(t, exitFailed, "", `tenant "default" is not registered`)
	run("", "put", "k", "-t", "a").want(t, exitFailed, "", "standard input: it is empty")
	run("", "put", "k", filepath.Join(dir, "nope"), "-t", "a").want(t, exitFailed, "", "no such file")
	run("", "put", "k", dir, "-t", "a").want(t, exitFailed, "", "it is a folder")
	run("x", "put", "k", "--replicas", "0").want(t, exitUsage, "", "want 1 or more")
	run("", "ls", "(", "-t", "a").want(t, exitUsage, "", `"(" is no regular expression`)
	run("x", "put", "").want(t, exitFailed, "", "the key is empty")
	run("", "stat", "k", "-t", "a").want(t, exitFailed, "", "there is no value")
	run("", "get", "k", dir, "-t", "a").want(t, exitFailed, "", "it is a folder")

	// Nothing of a value that is not there is left beside a file that is.
	name := filepath.Join(dir, "v")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("", "get", "k", name, "-t", "a").want(t, exitFailed, "", "there is no value")
	files, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(name); string(text) != "old" || err != nil || len(files) != 1 {
		t.Errorf("%q, %v, %v", text, files, err)
	}
}

func TestValuesWithoutAMaster(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"ls --rpc 127.0.0.1:1":                    "127.0.0.1:1",
		"ls --rpc here":                           "--rpc=here: want HOST:PORT",
		"ls --master here":                        "--master=here: want HOST:PORT",
		"ls --rpc 127.0.0.1:1 --metadata ftp://x": "ftp://x",
		"get k": "no active master",
		"put":   "want: mooncakectl put KEY [FILE]",
		"rm":    "want: mooncakectl rm KEY...",
	} {
		code := exitUsage
		if strings.Contains(want, "127.0.0.1:1") || strings.HasPrefix(want, "no active") {
			code = exitUnreachable
		}
		env := map[string]string{"MOONCAKE_MASTER": "127.0.0.2:1"}
		ctlEnv(t, env, "", append(strings.Fields(args), "--timeout", "2s")...).want(t, code, "", want)
	}
	// The RPC is looked for on the host of the admin interface.
	ctlEnv(t, map[string]string{"MOONCAKE_MASTER": "127.0.0.2:1"}, "", "get", "k").want(t, exitUnreachable, "", "127.0.0.2:50051")
	// A port that answers in another way.
	_, admin := master(t)
	ctl(t, "", "ls", "--rpc", admin, "--timeout", "3s").want(t, exitUnreachable, "", "no active master")
}

// TestValuesAtATerminal shows text, and keeps what is none from a person's terminal.
func TestValuesAtATerminal(t *testing.T) {
	for text, want := range map[string]bool{
		"hello, wörld\n\t€": true, "\x1b[31m": false, "a\x00b": false, "\xff\xfe\xff\xfe": false, "": true,
	} {
		var b bytes.Buffer
		n, err := (&readable{Writer: &b}).Write([]byte(text))
		if (err == nil) != want || err == nil && (n != len(text) || b.String() != text) || err != nil && b.Len() > 0 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	r := &readable{Writer: io.Discard}
	for i, piece := range []string{"cut \xe2\x82", "\xac", "\xac"} {
		if _, err := io.WriteString(r, piece); (err == nil) != (i < 2) {
			t.Errorf("a character that is cut, piece %d: %v", i, err)
		}
	}
}

// TestFlow shows a person how far a large value is, and takes the line away.
func TestFlow(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(1000, 0)
	tl := &tool{surroundings: surroundings{now: func() time.Time { return now }}, screen: screen{err: &b, live: true}}
	for _, c := range []struct {
		total uint64
		want  string
	}{{4 << 30, "put k: 25% of 4GB, 512MB/s"}, {0, "put k: 1GB, 512MB/s"}} {
		b.Reset()
		f := tl.flow("put k", c.total)
		f.Write(make([]byte, 1<<20)) // too soon
		if b.Len() > 0 {
			t.Errorf("at once it shows %q", b.String())
		}
		now = now.Add(2 * time.Second)
		f.done = 1<<30 - 1
		f.Write([]byte{0})
		f.Write(nil) // too soon after that
		if got := b.String(); got != "\r\x1b[K"+c.want {
			t.Errorf("it shows %q, want %q", got, c.want)
		}
		f.end()
		if !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("at the end it shows %q", b.String())
		}
	}
}
