package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pair of pseudo terminals.
func terminal(t *testing.T) (person, process *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	return person, process
}

// atTerminal runs the command as a process with a person in front of it, who types something.
func atTerminal(t *testing.T, typed string, env []string, args ...string) (code int, seen string) {
	t.Helper()
	person, process := terminal(t)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "MOONCAKECTL_TEST_MAIN=1", "TERM=xterm", "NO_COLOR="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Close()
	if _, err := io.WriteString(person, typed); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()
	var all bytes.Buffer
	_, _ = io.Copy(&all, person) // ends with an error when the other side is closed
	err := cmd.Wait()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), all.String()
}

func TestColorOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	const colored = "\x1b[32mvalid\x1b[0m"
	if code, seen := atTerminal(t, "", nil, "policy", "check", "testdata/good.yaml"); code != 0 || !strings.Contains(seen, colored) {
		t.Errorf("at a terminal: %d, %q", code, seen)
	}
	for _, c := range []struct {
		env  []string
		args []string
	}{
		{[]string{"NO_COLOR=1"}, nil},
		{[]string{"TERM=dumb"}, nil},
		{nil, []string{"--color=never"}},
		{nil, []string{"--output=json"}},
	} {
		if code, seen := atTerminal(t, "", c.env, append([]string{"policy", "check", "testdata/good.yaml"}, c.args...)...); code != 0 || strings.Contains(seen, "\x1b") {
			t.Errorf("%v %v: %d, %q", c.env, c.args, code, seen)
		}
	}
	if r := ctl(t, "", "policy", "check", "testdata/good.yaml"); strings.Contains(r.stdout+r.stderr, "\x1b") {
		t.Errorf("into a pipe: %q", r.stdout)
	}
	if r := ctl(t, "", "policy", "check", "testdata/good.yaml", "--color=always"); !strings.Contains(r.stdout, colored) {
		t.Errorf("--color=always: %q", r.stdout)
	}
}

func TestProgressOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	args := []string{"connector", "conformance", "file", "--case", "describe/*"}
	if code, seen := atTerminal(t, "", nil, args...); code != 0 || !strings.Contains(seen, "\r\x1b[K") {
		t.Errorf("at a terminal: %d, %q", code, seen)
	}
	if r := ctl(t, "", args...); r.code != 0 || strings.Contains(r.stderr, "\r") {
		t.Errorf("into a pipe: %+v", r)
	}
}

// TestConfirmation asks a person, and nobody else.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	_, admin, file := tenantMaster(t, twoTenants)
	next := write(t, "next.yaml", "version: 1\ntenants: []\n")
	apply := []string{"policy", "apply", next, "--master", admin}
	if code, seen := atTerminal(t, "n\n", nil, apply...); code != exitFailed || !strings.Contains(seen, "Apply? [y/N]") || !strings.Contains(seen, "not confirmed") {
		t.Errorf("no: %d, %q", code, seen)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != twoTenants {
		t.Errorf("the file reads %q, %v", text, err)
	}
	if code, seen := atTerminal(t, "y\n", nil, apply...); code != exitOK || !strings.Contains(seen, "in force") {
		t.Errorf("yes: %d, %q", code, seen)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "version: 1\ntenants: []\n" {
		t.Errorf("the file reads %q, %v", text, err)
	}
	ctl(t, "", "tenant", "set", "x", "1MB", "--master", admin).want(t, exitOK, "1MB", "")
	if code, seen := atTerminal(t, "", nil, "tenant", "delete", "x", "--yes", "--master", admin); code != exitOK || strings.Contains(seen, "[y/N]") {
		t.Errorf("--yes: %d, %q", code, seen)
	}
}
