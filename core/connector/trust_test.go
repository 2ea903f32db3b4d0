package connector

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/policy"
)

// TestP11ChecksumIsLookedAtBeforeEachStart pins a connector, replaces its executable while it
// runs, and puts it back.
func TestP11ChecksumIsLookedAtBeforeEachStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	dir, program := installed(t, "pinned")
	good := hashOf(t, program)
	var log logged
	spec := Spec{Type: "pinned", URI: path, Dir: dir, SHA256: strings.ToUpper(good)}
	c, err := Start(t.Context(), spec, deps(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
	pid := c.pid()
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe != program {
		t.Errorf("it is %s", exe)
	}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, fd := range fds {
		if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); to == program {
			t.Errorf("descriptor %s of the connector is its executable", fd.Name())
		}
	}
	install(t, program, "another")
	bad := hashOf(t, program)
	kill(t, pid, syscall.SIGKILL)
	want := "expected " + good + ", found " + bad
	eventually(t, "the other executable is refused", func() bool { return strings.Contains(c.Status().LastError, want) })
	if s := c.Status(); s.State != policy.Degraded || c.pid() != 0 || !strings.Contains(s.LastError, "sha256sum "+program) {
		t.Errorf("%+v", s)
	}
	install(t, program, "")
	eventually(t, "ready again", func() bool { return c.Status().State == policy.Ready })
	if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != "one" {
		t.Errorf("%q, %v", doc.Content, err)
	}
}

// TestP11WhatWasVerifiedIsExecuted swaps the executable between the two.
func TestP11WhatWasVerifiedIsExecuted(t *testing.T) {
	if !executesDescriptors() {
		t.Skip("no /proc: the folder has to be closed to others instead, see TestP11Permissions")
	}
	dir, program := installed(t, "pinned")
	p, err := Spec{Type: "pinned", Dir: dir, SHA256: hashOf(t, program)}.find(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	evil := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(evil, program); err != nil {
		t.Fatal(err)
	}
	out, _ := p.command().CombinedOutput() // by hand: it explains itself and exits with 1
	if !strings.HasPrefix(string(out), "This is the tenant-quota connector") {
		t.Errorf("%s", out)
	}
}

// TestP11Permissions looks for executables that others could have changed or could change.
func TestP11Permissions(t *testing.T) {
	dir, program := installed(t, "x")
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	pin := hashOf(t, program)
	check := func(name string, s Spec, want string) {
		t.Helper()
		p, err := s.find(nil)
		p.close()
		switch {
		case want == "" && err != nil, want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	free, pinned := Spec{Type: "x", Dir: dir}, Spec{Type: "x", Dir: dir, SHA256: pin}
	prefix := "--tenant_quota_connector_dir=" + dir + ": "
	check("closed to others", free, "")
	const may = "may be written by others than its owner (mode %s), which would let them run code as the master: chmod go-w"
	chmod(program, 0o775)
	file := prefix + "unsupported tenant quota connector type 'x': " + program + " " + fmt.Sprintf(may, "0775")
	check("file of the group", free, file)
	check("file of the group, pinned", pinned, file)
	chmod(program, 0o755)
	chmod(dir, 0o777)
	folder := prefix + "the folder " + dir + " " + fmt.Sprintf(may, "0777")
	check("folder of everybody", free, folder)
	check("folder of everybody, pinned", pinned, "")
	chmod(dir, 0o777|os.ModeSticky)
	check("sticky folder", free, "")
	chmod(dir, 0o755)

	// A pinned script is executed by its path, so its folder has to be closed as well.
	name := filepath.Join(dir, "mooncake-connector-script")
	if err := os.WriteFile(name, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	chmod(name, 0o755)
	chmod(dir, 0o777)
	check("pinned script", Spec{Type: "script", Dir: dir, SHA256: hashOf(t, name)}, folder)
	chmod(dir, 0o755)
	check("pinned script, closed", Spec{Type: "script", Dir: dir, SHA256: hashOf(t, name)}, "")

	// Links are followed within the folder.
	outside := filepath.Join(t.TempDir(), "outside")
	install(t, outside, "")
	if err := os.Symlink(outside, filepath.Join(dir, "mooncake-connector-out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mooncake-connector-x", filepath.Join(dir, "mooncake-connector-in")); err != nil {
		t.Fatal(err)
	}
	check("link inside", Spec{Type: "in", Dir: dir}, "")
	check("link outside", Spec{Type: "out", Dir: dir}, prefix+"unsupported tenant quota connector type 'out': "+
		dir+"/mooncake-connector-out is a link to "+outside+", which is outside the folder; put the executable itself there")

	// The text of a hash.
	for text, digits := range map[string]int{"abc": 3, strings.Repeat("g", 64): 64, pin + "00": 66} {
		check("hash of "+text, Spec{Type: "x", Dir: dir, SHA256: text}, fmt.Sprintf(
			"--tenant_quota_connector_sha256=%s: want 64 hexadecimal digits, got %d characters; compute them with: sha256sum %s", text, digits, program))
	}
	check("the master's own", Spec{Type: "file", Stock: []string{"file"}, SHA256: hashOf(t, os.Args[0])}, "")
}

// TestP6ChildrenOfTheConnectorDieWithTheMaster kills a host whose connector has a child.
func TestP6ChildrenOfTheConnectorDieWithTheMaster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	dir, program := installed(t, "parent")
	t.Run("a master", func(t *testing.T) { diesWithHost(t, program, "host", path, dir) })
	t.Run("a person", func(t *testing.T) { diesWithHost(t, program, "person", program) })
}

// diesWithHost runs a host of this test's executable, which starts the program, and kills it.
func diesWithHost(t *testing.T, program string, args ...string) {
	t.Helper()
	host := exec.Command(os.Args[0], args...)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("%q: %v", line, err)
	}
	child, err := strconv.Atoi(mustRead(t, program+".child"))
	if err != nil || !alive(child) {
		t.Fatalf("child %d: %v", child, err)
	}
	guards := children(host.Process.Pid)
	kill(t, host.Process.Pid, syscall.SIGKILL)
	begun := time.Now()
	_ = host.Wait() // killed, as it should be
	eventually(t, "all are gone", func() bool {
		for _, g := range guards {
			if alive(g) {
				return false
			}
		}
		return !alive(pid) && !alive(child)
	})
	if took := time.Since(begun); took > 5*time.Second || len(guards) != 2 {
		t.Errorf("%s for %v", took, guards)
	}
}

// TestP8AConnectorThatIgnoresStopIsKilled closes a connector that answers no Stop and has a
// child.
func TestP8AConnectorThatIgnoresStopIsKilled(t *testing.T) {
	if limit := (Timing{}).withDefaults().Stop; limit != 5*time.Second {
		t.Errorf("a process has %s to stop, the contract says 5 s", limit)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	dir, program := installed(t, "deaf")
	var log logged
	d := deps(&log)
	d.Timing.Stop = 400 * time.Millisecond
	c, err := Start(t.Context(), Spec{Type: "deaf", URI: path, Dir: dir}, d)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
	pid := c.pid()
	child, err := strconv.Atoi(mustRead(t, program+".child"))
	if err != nil || !alive(child) || !alive(pid) {
		t.Errorf("process %d, child %d: %v", pid, child, err)
	}
	begun := time.Now()
	c.Close()
	if took := time.Since(begun); took < d.Timing.Stop {
		t.Errorf("it had only %s to stop", took)
	}
	if alive(pid) {
		t.Errorf("%d lives", pid)
	}
	eventually(t, "its child is gone", func() bool { return !alive(child) })
	if _, err := os.Stat(program + ".asked"); err != nil {
		t.Errorf("it was not asked to stop: %v", err)
	}
}

// TestP10AnOptionalConnectorStartsLater starts without an executable, then with a bad one,
// then with a good one.
func TestP10AnOptionalConnectorStartsLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	dir := t.TempDir()
	program := filepath.Join(dir, "mooncake-connector-late")
	var log logged
	d := deps(&log)
	d.Optional, d.Timing.RetryMost = true, 50*time.Millisecond
	c, err := Start(t.Context(), Spec{Type: "late", URI: path, Dir: dir}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s := c.Status(); s.State != policy.Degraded || !strings.Contains(s.LastError, "there is no "+program+";") {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho oh no >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another reason", func() bool { return strings.HasSuffix(c.Status().LastError, "; its last lines: oh no") })
	install(t, program, "")
	eventually(t, "ready", func() bool { return c.Status().State == policy.Ready })
	if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != "one" {
		t.Errorf("%q, %v", doc.Content, err)
	}
}
