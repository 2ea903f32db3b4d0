package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// commandLine is how a master is started: words, with variables of the environment before
// them.
type commandLine struct {
	env   []string
	words []string
}

// parseCommand splits a command line at blanks; quotes keep blanks together, a backslash
// outside single quotes takes the next character as it is. No shell is involved.
func parseCommand(text string) (commandLine, error) {
	var c commandLine
	var word strings.Builder
	begun, quote := false, rune(0)
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == '\\' && quote != '\'' && i+1 < len(runes):
			i++
			word.WriteRune(runes[i])
			begun = true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t\n", r):
			if begun {
				c.words = append(c.words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return c, fmt.Errorf("%c is not closed in %q", quote, text)
	}
	if begun {
		c.words = append(c.words, word.String())
	}
	for len(c.words) > 0 && isAssignment(c.words[0]) {
		c.env, c.words = append(c.env, c.words[0]), c.words[1:]
	}
	if len(c.words) == 0 {
		return c, errors.New("no command, want the command line of a master")
	}
	return c, nil
}

// isAssignment reports whether a word is NAME=value.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "-/.{}")
}

// fill replaces the placeholders in all words.
func (c commandLine) fill(values map[string]string) (env, words []string) {
	var pairs []string
	for name, v := range values {
		pairs = append(pairs, "{"+name+"}", v)
	}
	r := strings.NewReplacer(pairs...)
	for _, e := range c.env {
		env = append(env, r.Replace(e))
	}
	for _, w := range c.words {
		words = append(words, r.Replace(w))
	}
	return env, words
}

// uses reports whether a placeholder occurs.
func (c commandLine) uses(name string) bool {
	return strings.Contains(strings.Join(append(c.env, c.words...), " "), "{"+name+"}")
}

// master is a master that was started, in a directory of its own.
type master struct {
	cmd     *exec.Cmd
	dir     string
	place   place
	started time.Duration // from exec to the first answer
	exited  chan error
}

// startTimeout bounds the start of a master, stopTimeout its end after SIGTERM.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 10 * time.Second
)

// startMaster starts a master with fresh ports and a fresh directory and waits until it
// answers.
func startMaster(ctx context.Context, c commandLine, cfg *settings, quota uint64) (m *master, err error) {
	dir, err := os.MkdirTemp("", "mooncake_bench-")
	if err != nil {
		return nil, err
	}
	m = &master{dir: dir, exited: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	rpcPort, metricsPort, err := freePorts()
	if err != nil {
		return nil, err
	}
	values := map[string]string{
		"rpc_port": strconv.Itoa(rpcPort), "metrics_port": strconv.Itoa(metricsPort),
		"policy": filepath.Join(dir, "policy.yaml"), "dir": dir,
	}
	if c.uses("policy") {
		if err := writePolicy(values["policy"], cfg, quota); err != nil {
			return nil, err
		}
	}
	env, words := c.fill(values)
	log, err := os.Create(filepath.Join(dir, "master.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	m.cmd = exec.Command(words[0], words[1:]...)
	m.cmd.Env = append(os.Environ(), env...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	begun := time.Now()
	if err := startPinned(m.cmd, cfg.pin); err != nil {
		return nil, fmt.Errorf("starting %s: %w", words[0], err)
	}
	go func() { m.exited <- m.cmd.Wait() }()
	m.place = place{addr: net.JoinHostPort("127.0.0.1", values["rpc_port"]), pid: m.cmd.Process.Pid}
	if err := m.await(ctx, cfg.dialect); err != nil {
		err = fmt.Errorf("%s: %w%s", words[0], err, m.lastWords())
		m.kill()
		return nil, err
	}
	m.started = time.Since(begun)
	if c.uses("metrics_port") {
		hostPort := net.JoinHostPort("127.0.0.1", values["metrics_port"])
		if series, err := scrape(ctx, hostPort); err == nil && series.found() {
			m.place.metrics = hostPort
		}
	}
	return m, nil
}

// freePorts finds two ports that nobody listens on.
func freePorts() (a, b int, err error) {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], nil
}

// await waits until the master answers.
func (m *master) await(ctx context.Context, d dialect) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %v", startTimeout))
	defer cancel()
	for {
		if err := ready(ctx, m.place.addr, d); err == nil {
			return nil
		}
		select {
		case err := <-m.exited:
			m.exited <- err
			return fmt.Errorf("ended before it served: %w", cmpErr(err, errors.New("exit status 0")))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// cmpErr returns err, or other if that is nil.
func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// ready asks a master whether it serves.
func ready(ctx context.Context, addr string, d dialect) error {
	c, err := rpc.Dial(ctx, addr, d.rpcOptions()...)
	if err != nil {
		return err
	}
	var version errcode.Result[string]
	err = rpc.Invoke(ctx, c, wire.ServiceReady, &wire.ServiceReadyRequest{}, &version)
	return errors.Join(err, c.Close())
}

// lastWords is the end of what the master printed, for an error message.
func (m *master) lastWords() string {
	text, err := os.ReadFile(filepath.Join(m.dir, "master.log"))
	if err != nil || len(text) == 0 {
		return ""
	}
	const most = 600
	return "\nit printed: " + strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// stop ends the master and removes its directory. A master that ended by itself is an error.
func (m *master) stop() error {
	var err error
	select {
	case exit := <-m.exited:
		err = fmt.Errorf("the master ended by itself: %w%s", cmpErr(exit, errors.New("exit status 0")), m.lastWords())
	default:
		// A process that is gone already is seen below.
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-m.exited:
		case <-time.After(stopTimeout):
			m.kill()
		}
	}
	return errors.Join(err, os.RemoveAll(m.dir))
}

// kill ends the process and waits for it.
func (m *master) kill() {
	_ = m.cmd.Process.Kill()
	<-m.exited
}

// writePolicy writes a policy document that gives every tenant the same quota; 0 divides the
// capacity among them.
func writePolicy(path string, cfg *settings, quota uint64) error {
	if quota == 0 {
		quota = uint64(cfg.segments) * cfg.segmentSize / uint64(cfg.tenants)
	}
	var list []policydoc.Tenant
	for i := range cfg.tenants {
		list = append(list, policydoc.Tenant{Name: tenantName(i, cfg.tenants), Quota: quota})
	}
	if err := os.WriteFile(path, policydoc.Print(list), 0o644); err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	return nil
}
