package connector

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Guard is a process beside a connector that is not the master's own: when the master is gone,
// in whatever way, it kills what is left of the connector's process group. The kernel's death
// signal reaches the connector, but not the children it has started. Guard reads lines with the
// number of the group, 0 for none, and returns at the end of its input, when it has done so.
func Guard(in io.Reader) {
	group := 0
	for lines := bufio.NewScanner(in); lines.Scan(); {
		group, _ = strconv.Atoi(strings.TrimSpace(lines.Text()))
	}
	if group > 1 {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may be gone
	}
}

// guard is our side of a Guard; the zero value guards nothing.
type guard struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// startGuard starts a guard for a connector that is not the master's own; the caller ends it by
// the function.
func (c *Connector) startGuard() (end func()) {
	if c.deps.Guard == nil || slices.Contains(c.spec.Stock, c.spec.Type) {
		return func() {}
	}
	g, err := startGuard(c.deps.Guard)
	if err != nil {
		c.deps.Logger.Error("no guard for the connector's children, they would outlive a master that is killed", "error", err)
		return func() {}
	}
	c.guard = g
	return g.close
}

// startGuard starts a command that runs Guard on its standard input.
func startGuard(command []string) (*guard, error) {
	g := &guard{cmd: exec.Command(command[0], command[1:]...)}
	g.cmd.Env = environment(nil)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return g, g.cmd.Start()
}

// watch names the group to be killed, 0 for none.
func (g *guard) watch(group int) {
	if g != nil && g.in != nil {
		_, _ = io.WriteString(g.in, strconv.Itoa(group)+"\n") // without a guard the kernel's signal still works
	}
}

// close ends the guard, which kills nothing then, and waits for it.
func (g *guard) close() {
	if g != nil && g.in != nil {
		g.watch(0)
		_ = g.in.Close()
		_ = g.cmd.Wait()
	}
}
