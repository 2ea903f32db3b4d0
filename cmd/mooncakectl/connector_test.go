package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/sdk"
)

func TestConnectorList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"mooncake-connector-good": 0o755, "mooncake-connector-open": 0o777, "mooncake-connector-plain": 0o644, "mooncake-connector-file": 0o755, "other": 0o755, "mooncake-connector-": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "connector-list", ctl(t, "", "connector", "list", "--dir", dir))
	all := decode[[]found](t, ctl(t, "", "connector", "list", "--dir", dir, "-o", "json"))
	if want := len(app.Stock()) + 4; len(all) != want || !all[0].Stock {
		t.Errorf("%d connectors, want %d: %+v", len(all), want, all)
	}
	ctl(t, "", "connector", "list", "--dir", dir+"/nope").want(t, exitFailed, "", "no such folder")
}

func TestConnectorChecksum(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o755); err != nil {
		t.Fatal(err)
	}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	ctl(t, "", "connector", "checksum", path).want(t, exitOK, sum+"  "+path+"\n--tenant_quota_connector_sha256="+sum+"\n", "")
	if got := decode[map[string]string](t, ctl(t, "", "connector", "checksum", "-o", "json", path)); got["sha256"] != sum {
		t.Errorf("%v", got)
	}
	ctl(t, "", "connector", "checksum", write(t, "y", "")).want(t, exitFailed, "", "is not executable")
	ctl(t, "", "connector", "checksum", t.TempDir()).want(t, exitFailed, "", "is not a file")
}

func TestConnectorInfo(t *testing.T) {
	t.Parallel()
	golden(t, "connector-info", ctl(t, "", "connector", "info", "file"))
	a := decode[about](t, ctl(t, "", "connector", "info", "file", "-o", "json"))
	if a.Name != "file" || a.Protocol != sdk.ProtocolVersion || !a.Writable || !json.Valid(a.OptionsSchema) || a.AbsentMeans != "error" {
		t.Errorf("%+v", a)
	}
	ctl(t, "", "connector", "info", "./nope").want(t, exitFailed, "", "no such file")
	ctl(t, "", "connector", "info", "nope").want(t, exitFailed, "", "by the path of its executable")
	script := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctl(t, "", "connector", "info", script).want(t, exitFailed, "", `it printed "hello`)
}

// TestConnectorPinned gives the hash that an executable must have.
func TestConnectorPinned(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := decode[map[string]string](t, ctl(t, "", "connector", "checksum", "-o", "json", script))["sha256"]
	other := strings.Repeat("0", 64)
	for _, verb := range []string{"info", "exec"} {
		args := []string{"connector", verb, script, "--sha256"}
		if verb == "exec" {
			args = []string{"connector", verb, script, "describe", "--sha256"}
		}
		ctl(t, "", append(args, other)...).want(t, exitFailed, "", "--sha256="+other+": "+script+" has another SHA-256: expected "+other+", found "+sum)
		ctl(t, "", append(args, "abc")...).want(t, exitFailed, "", "--sha256=abc: want 64 hexadecimal digits, got 3 characters")
		ctl(t, "", append(args, sum)...).want(t, exitFailed, "", `it printed "hello`) // it was run
	}
	own := decode[map[string]string](t, ctl(t, "", "connector", "checksum", "-o", "json", os.Args[0]))["sha256"]
	ctl(t, "", "connector", "info", "file", "--sha256", own).want(t, exitOK, "file", "")
	ctl(t, "", "connector", "info", "file", "--sha256", other).want(t, exitFailed, "", "--sha256="+other+": ")
}

func TestConnectorExecOnce(t *testing.T) {
	t.Parallel()
	path := write(t, "tenants.yaml", twoTenants)
	r := ctl(t, "", "connector", "exec", "file", "--uri", path, "load")
	if r.code != exitOK || r.stdout != twoTenants || !strings.Contains(r.stderr, "valid: 2 tenants") {
		t.Errorf("load: %+v", r)
	}
	got := decode[struct {
		loaded
		Document string `json:"document"`
	}](t, ctl(t, "", "connector", "exec", "file", "--uri", path, "load", "-o", "json"))
	if got.Document != twoTenants || !got.Valid || got.Tenants != 2 || got.Revision == "" {
		t.Errorf("load: %+v", got)
	}
	ctl(t, "", "connector", "exec", "file", "--uri", path, "--option", "poll=1s", "configure").want(t, exitOK, "accepted", "")
	ctl(t, "", "connector", "exec", "file", "--uri", path, "--option", "pol=1s", "configure").want(t, exitFailed, "", "options.pol: unknown option")
	ctl(t, "", "connector", "exec", "file", "load").want(t, exitFailed, "", "--uri says where the document is")
	ctl(t, "", "connector", "exec", "file", "--uri", path+".nope", "load").want(t, exitFailed, "", "no document: absent: ")
	ctl(t, "", "connector", "exec", "file", "describe").want(t, exitOK, "poll", "")

	next := write(t, "next.yaml", "version: 1\ntenants: []\n")
	ctl(t, "", "connector", "exec", "file", "--uri", path, "save", next, "--expected", "old").want(t, exitConflict, "", "not saved, expected revision old")
	ctl(t, "", "connector", "exec", "file", "--uri", path, "save", next).want(t, exitOK, "saved: revision ", "")
	if text, err := os.ReadFile(path); err != nil || string(text) != "version: 1\ntenants: []\n" {
		t.Errorf("the file reads %q, %v", text, err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh.yaml")
	ctl(t, "", "connector", "exec", "file", "--uri", fresh, "save", next, "--expected", "").want(t, exitOK, "in place of (none)", "")
	ctl(t, "", "connector", "exec", "file", "--uri", fresh, "watch", "--count", "1").want(t, exitOK, "valid: 0 tenants", "")
	begin := time.Now()
	ctl(t, "", "connector", "exec", "file", "--uri", fresh, "watch", "--for", "300ms").want(t, exitOK, "heartbeat", "")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("--for 300ms took %s", took)
	}
}

// TestConnectorExecWatch reads the events as a program would, while the source changes.
func TestConnectorExecWatch(t *testing.T) {
	t.Parallel()
	path := write(t, "tenants.yaml", twoTenants)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	read, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"connector", "exec", "file", "--uri", path, "watch", "-o", "json"},
			surroundings{stdin: strings.NewReader(""), stdout: out, stderr: io.Discard, env: os.Getenv, now: time.Now})
		out.Close()
	}()
	events := json.NewDecoder(read)
	type one struct { // embedded fields can't be decoded as they are encoded
		Time        time.Time
		Event       string
		Valid       bool
		Tenants     int
		Error, Kind string
		Retryable   *bool
	}
	next := func() (e one) {
		t.Helper()
		for e.Event = "heartbeat"; e.Event == "heartbeat"; {
			e = one{}
			if err := events.Decode(&e); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	if e := next(); e.Event != "snapshot" || e.Tenants != 2 || !e.Valid || e.Time.IsZero() {
		t.Errorf("first: %+v", e)
	}
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	change("version: 1\ntenants: 7\n")
	if e := next(); e.Event != "snapshot" || e.Valid || !strings.Contains(e.Error, "line 2") {
		t.Errorf("second: %+v", e)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Event != "unavailable" || e.Kind != "absent" || e.Retryable == nil || !*e.Retryable {
		t.Errorf("third: %+v", e)
	}
	interrupt()
	go io.Copy(io.Discard, read) // until the command has ended
	if code := <-ended; code != exitOK {
		t.Errorf("an interrupted watch ends with %d", code)
	}
}

// TestConnectorExecConversation gives commands line by line.
func TestConnectorExecConversation(t *testing.T) {
	t.Parallel()
	path := write(t, "tenants.yaml", twoTenants)
	next := write(t, "next.yaml", "version: 1\ntenants: []\n")
	in, typed := io.Pipe()
	defer typed.Close()
	var out, errs syncBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"connector", "exec", "file", "--uri", path},
			surroundings{stdin: in, stdout: &out, stderr: &errs, env: func(string) string { return "" }, now: time.Now})
	}()
	say := func(line string, seen *syncBuffer, want string) {
		t.Helper()
		if _, err := io.WriteString(typed, line+"\n"); err != nil {
			t.Fatal(err)
		}
		eventually(t, line+" gives "+want, func() bool { return strings.Contains(seen.String(), want) })
	}
	say("help", &out, "watch [REVISION]")
	say("describe", &out, "poll")
	say("load", &out, "# the first")
	say("watch", &out, "valid: 2 tenants")
	say("save "+next, &out, "valid: 0 tenants")
	say("save "+next+" ''", &errs, "not saved, expected revision (none)")
	say("unwatch", &out, "")
	say("dance", &errs, `"dance" is no command`)
	say("configure "+path+".nope", &out, "accepted")
	say("load", &errs, "no document: absent")
	say("quit", &out, "")
	if code := <-ended; code != exitFailed {
		t.Errorf("it ends with %d; commands had failed", code)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	if r := ctl(t, "", "connector", "conformance", "--list"); r.code != exitOK || strings.Count(r.stdout, "\n") < 10 {
		t.Errorf("list: %+v", r)
	}
	args := []string{"connector", "conformance", "file", "--case", "handshake/*", "--case", "describe/*"}
	ctl(t, "", args...).want(t, exitOK, " 0 failed", "")
	ctl(t, "", append(args, "-o", "tap")...).want(t, exitOK, "TAP version 13", "")
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	r := ctl(t, "", append(args, "-o", "junit")...)
	if err := xml.Unmarshal([]byte(r.stdout), &suite); err != nil || r.code != exitOK || suite.Tests == 0 || suite.Failures != 0 {
		t.Errorf("junit: %+v, %v: %+v", suite, err, r)
	}
	silent := filepath.Join(t.TempDir(), "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r = ctl(t, "", "connector", "conformance", silent, "--case", "handshake/*", "-o", "json")
	var report struct {
		Failed  bool
		Results []conformanceResult
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.code != exitFailed || !report.Failed || len(report.Results) == 0 {
		t.Errorf("a script that only says hello: %+v, %v", r, err)
	}
	ctl(t, "", "connector", "conformance", "./nope").want(t, exitFailed, "", "no such file")
	ctl(t, "", "connector", "conformance", "nope").want(t, exitFailed, "", `there is no connector "nope"`)
}
