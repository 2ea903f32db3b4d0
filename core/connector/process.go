package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// process is one run of an executable, as the plugin library wants to see it. The library's
// own has the host's standard input, kills only the process itself, and shows nothing of what
// went wrong at the start.
type process struct {
	cmd    *exec.Cmd
	stdout *headed
	stderr *ending
	out    io.ReadCloser
	err    io.ReadCloser
	pid    atomic.Int64 // 0 until it is started
	killed atomic.Bool
	guard  *guard                 // may be nil
	memory uint64                 // limit in bytes, 0 for none
	over   atomic.Pointer[string] // set when it was killed for using more
	exited chan struct{}          // closed when the process has been waited for
}

var _ runner.Runner = (*process)(nil)

// newProcess makes one that starts with cmd. start is how long it has to show its handshake.
func newProcess(cmd *exec.Cmd, memory uint64, g *guard, start time.Duration) (*process, error) {
	p := &process{cmd: cmd, memory: memory, guard: g, exited: make(chan struct{})}
	var err error
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if p.err, err = cmd.StderrPipe(); err != nil {
		return nil, err
	}
	p.stderr = &ending{ReadCloser: p.err, ended: make(chan struct{})}
	p.stdout = &headed{ReadCloser: p.out, last: p.stderr.ended, patience: min(lastWords, start/2)}
	return p, nil
}

// Start implements runner.Runner. It must be called on a thread that outlives the process.
func (p *process) Start(context.Context) error {
	p.cmd.Stdin = nil // the library sets the host's
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.pid.Store(int64(p.cmd.Process.Pid))
	p.guard.watch(p.cmd.Process.Pid)
	prefer(p.cmd.Process.Pid)
	if p.memory > 0 {
		go watchMemory(p.cmd.Process.Pid, p.memory, p.exited, p.tooMuch)
	}
	if p.killed.Load() { // between the decision and now
		return p.Kill(context.Background())
	}
	return nil
}

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error {
	defer close(p.exited)
	return p.cmd.Wait()
}

// Kill implements runner.Runner: it kills the process and those it started.
func (p *process) Kill(context.Context) error {
	p.killed.Store(true)
	pid := int(p.pid.Load())
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// tooMuch kills the process for what it uses.
func (p *process) tooMuch(used uint64) {
	text := fmt.Sprintf("it used %d MB of memory, more than %s allows (%d MB), and was killed", used>>20, flagMemory, p.memory>>20)
	p.over.Store(&text)
	_ = p.Kill(context.Background())
}

// death says how the process ended, after it has.
func (p *process) death() string {
	if why := p.over.Load(); why != nil {
		return *why
	}
	return "it died: " + p.cmd.ProcessState.String()
}

// abandon closes our ends of the pipes. A process outside the group may hold the others open;
// without this the library would wait for it.
func (p *process) abandon() {
	_ = p.out.Close()
	_ = p.err.Close()
}

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr implements runner.Runner.
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Name implements runner.Runner.
func (p *process) Name() string { return p.cmd.Path }

// ID implements runner.Runner.
func (p *process) ID() string {
	pid := p.pid.Load()
	if pid == 0 {
		return ""
	}
	return fmt.Sprint(pid)
}

// Diagnose implements runner.Runner.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner: both see the same addresses.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// ending tells when nothing more comes.
type ending struct {
	io.ReadCloser
	once  sync.Once
	ended chan struct{} // closed at the end
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil {
		e.once.Do(func() { close(e.ended) })
	}
	return n, err
}

// headed remembers the beginning of what was read. The library ends a process whose output
// does not begin with a handshake at once; the process first gets to say why on its standard
// error.
type headed struct {
	io.ReadCloser
	last     <-chan struct{} // closed at the end of standard error
	patience time.Duration   // to wait for it
	odd      bool            // it has been waited for; only the reader's

	mu   sync.Mutex
	head []byte // guarded by mu
}

const (
	// handshakeBegin is how the line that a connector writes to standard output begins.
	handshakeBegin = "1|"
	// headMost is how much of the standard output is kept for messages.
	headMost = 200
	// lastWords is how long at most a process whose start has failed may go on telling why.
	lastWords = time.Second
)

func (h *headed) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	h.mu.Lock()
	h.head = append(h.head, b[:min(n, headMost-len(h.head))]...)
	begin := string(h.head[:min(len(h.head), len(handshakeBegin))])
	h.mu.Unlock()
	if !h.odd && (!strings.HasPrefix(handshakeBegin, begin) || begin == "" && err != nil) {
		h.odd = true
		select {
		case <-h.last:
		case <-time.After(h.patience):
		}
	}
	return n, err
}

func (h *headed) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.head)
}

// environment is what a process gets besides the contract's variables.
func environment(extra []string) []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ"} {
		if value, set := os.LookupEnv(key); set {
			env = append(env, key+"="+value)
		}
	}
	return append(env, extra...)
}

// relay repeats a process's standard error in our log, line by line, and keeps the end of it.
type relay struct {
	logger hclog.Logger
	mu     sync.Mutex
	tail   []string // guarded by mu; the last lines, oldest first
}

// tailMost is how many lines are kept for the message of a failed start.
const tailMost = 5

// Write takes lines with their breaks, as the plugin library hands them out. What a connector
// in Go prints comes here too: the library carries it over the connection.
func (r *relay) Write(line []byte) (int, error) {
	for text := range strings.Lines(string(line)) {
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			r.line(text)
		}
	}
	return len(line), nil
}

func (r *relay) line(text string) {
	level, message, args := parseLine(text)
	shown := message
	if len(args) > 0 {
		shown += " " + strings.TrimSpace(fmt.Sprintln(args...))
	}
	r.mu.Lock()
	if level >= hclog.Info {
		r.tail = append(r.tail, shown)
		r.tail = r.tail[max(0, len(r.tail)-tailMost):]
	}
	r.mu.Unlock()
	r.logger.Log(level, message, args...)
}

// end returns the last lines in one.
func (r *relay) end() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.tail, "; ")
}
