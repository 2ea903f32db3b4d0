package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running master.
type process struct {
	cmd  *exec.Cmd
	rpc  string // host:port
	http string // http://host:port
	// metadata is the URL of its metadata store, "" when it has none.
	metadata string
	done     chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

var serving = regexp.MustCompile(`is serving: rpc \S*?:(\d+).*? http \S*?:(\d+)(?: metadata (\S+))?`)

// start runs a master on free ports with the given flags and waits until it serves.
func (e *environment) start(ctx context.Context, args ...string) (*process, error) {
	args = append([]string{"--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1", "--rpc_port=0", "--metrics_port=0"}, args...)
	p := &process{cmd: exec.CommandContext(ctx, e.master, args...), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = writerFunc(p.note)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	up := make(chan error, 1)
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.note(append(lines.Bytes(), '\n'))
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				p.rpc, p.http = "127.0.0.1:"+m[1], "http://127.0.0.1:"+m[2]
				if m[3] != "" {
					p.metadata = "http://" + m[3] + "/metadata"
				}
				up <- nil
			}
		}
		err := p.cmd.Wait()
		select {
		case up <- fmt.Errorf("the master ended before it served: %w", errors.Join(err, errors.New(p.tail()))):
		default:
		}
	}()
	select {
	case err := <-up:
		if err != nil {
			return nil, err
		}
		return p, nil
	case <-time.After(20 * time.Second):
		p.kill()
		return nil, fmt.Errorf("the master does not serve after 20 s: %s", p.tail())
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func (p *process) note(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Write(b)
	if p.log.Len() > 1<<20 {
		p.log.Next(p.log.Len() - 64<<10) // only the end is asked for
	}
}

// tail returns the end of what the master has logged.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.log.Bytes()
	return string(b[max(0, len(b)-4000):])
}

// kill ends the master with -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.done
}

// stop ends the master with SIGTERM and reports an exit status that is not 0.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.kill()
		return fmt.Errorf("the master does not stop within 10 s of SIGTERM: %s", p.tail())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the master ends with status %d: %s", code, p.tail())
	}
	return nil
}

// get fetches a JSON document from the admin server.
func (p *process) get(path string, into any) error {
	resp, err := http.Get(p.http + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, resp.Status, body)
	}
	return json.Unmarshal(body, into)
}

// connectorState asks for the state of the connector.
func (p *process) connectorState() (string, error) {
	var reply struct {
		Data struct {
			State string `json:"state"`
		} `json:"data"`
	}
	err := p.get("/api/v1/tenant_quota_connector", &reply)
	return reply.Data.State, err
}

// requested asks for a tenant's requested quota, in bytes.
func (p *process) requested(tenant string) (uint64, error) {
	var reply struct {
		Data struct {
			Requested uint64 `json:"requested_quota_bytes"`
		} `json:"data"`
	}
	err := p.get("/api/v1/tenant_quotas?tenant_id="+tenant, &reply)
	return reply.Data.Requested, err
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// The name in parentheses may hold anything; what follows it does not.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) && fields[0] != "Z" {
			found = append(found, child)
		}
	}
	return found
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}

// await waits until ok or the time is over.
func await(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}
