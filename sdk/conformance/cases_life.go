package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/internal/identity"
)

var lifeCases = []testCase{
	{name: "life/stop", about: "it ends within 5 s of Stop, with status 0, its children with it, although a Watch is under way", run: stops},
	{name: "life/parent-killed", about: "it ends within 5 s, its children with it, when the process that started it is killed", run: parentKilled},
	{name: "life/logs", about: "what it writes to standard error is lines of text, or JSON objects with @level and @message", run: logs},
}

func stops(ctx context.Context, k *kit) error {
	p, err := k.begun(ctx)
	if err != nil {
		return err
	}
	defer p.kill()
	if k.uri != "" {
		w, err := k.watch(ctx, p, "")
		if err != nil {
			return err
		}
		defer w.close()
		if _, err := w.first(ctx, k.limit(eventLimit)); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, k.limit(stopLimit))
	defer cancel()
	if _, err := p.rpc.Stop(limited, &connectorv1.StopRequest{}); err != nil {
		return k.callError("Stop", err)
	}
	select {
	case <-p.exited:
	case <-limited.Done():
		return fmt.Errorf("it still runs %s after Stop", k.limit(stopLimit))
	}
	if status := p.cmd.ProcessState.ExitCode(); status != 0 {
		return fmt.Errorf("after Stop it ended with %s, want status 0%s", p.cmd.ProcessState, p.said())
	}
	return k.groupGone(ctx, p.cmd.Process.Pid, "after Stop")
}

// begun starts the connector, and configures it if there is something to configure it with.
func (k *kit) begun(ctx context.Context) (*child, error) {
	if k.uri == "" {
		return k.start(ctx)
	}
	if _, err := k.current(ctx); err != nil {
		return nil, err
	}
	return k.configured(ctx)
}

// groupGone waits until nobody of a process group lives.
func (k *kit) groupGone(ctx context.Context, group int, when string) error {
	for begin := time.Now(); ; time.Sleep(settleStep / 4) {
		left, known := members(group)
		switch {
		case !known || len(left) == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(begin) >= k.limit(stopLimit):
			return fmt.Errorf("%s %s processes of its group still run: %v", k.limit(stopLimit), when, left)
		}
	}
}

// wrapper runs the connector as its child and tells its process id. The connector takes the
// wrapper for its host.
const wrapper = sdk.HostPIDKey + `=$$ "$@" & echo pid $! >&2; wait`

func parentKilled(ctx context.Context, k *kit) error {
	if _, known := members(0); !known {
		return skipf("on this system the kit can't list processes")
	}
	own, trust, err := identity.New(time.Now())
	if err != nil {
		return err
	}
	p, err := k.spawn(k.environment(
		sdk.CookieKey+"="+sdk.CookieValue, "PLUGIN_PROTOCOL_VERSIONS="+strconv.Itoa(sdk.ProtocolVersion), "PLUGIN_UNIX_SOCKET_DIR="+k.folder,
		"PLUGIN_CLIENT_CERT="+string(trust),
	), "/bin/sh", append([]string{"-c", wrapper, "sh", k.path}, k.opts.Args...)...)
	if err != nil {
		return err
	}
	defer p.kill()
	if p.hand, err = k.shake(ctx, p); err != nil {
		return err
	}
	if p.conn, err = p.dial(own); err != nil {
		return err
	}
	p.rpc = connectorv1.NewConnectorClient(p.conn)
	if k.uri != "" {
		if err := k.configure(ctx, p, k.uri); err != nil {
			return err
		}
		w, err := k.watch(ctx, p, "")
		if err != nil {
			return err
		}
		defer w.close()
		if _, err := w.first(ctx, k.limit(eventLimit)); err != nil {
			return err
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return k.groupGone(ctx, p.cmd.Process.Pid, "after the process that started it was killed")
}

// levels are what "@level" may say.
var levels = map[string]bool{"trace": true, "debug": true, "info": true, "warn": true, "error": true}

func logs(ctx context.Context, k *kit) error {
	p, err := k.begun(ctx)
	if err != nil {
		return err
	}
	if k.uri != "" {
		if w, err := k.watch(ctx, p, ""); err == nil {
			_, _ = w.first(ctx, k.limit(eventLimit))      // other cases judge what comes
			_ = k.source.Set(ctx, []byte("tenants: [\n")) // something to complain about
			_, _ = w.first(ctx, k.limit(cancelLimit))
			w.close()
		}
	}
	p.end(k)
	p.settle()
	lines := p.log.all()
	for i, line := range lines {
		if err := checkLine(line); err != nil {
			return fmt.Errorf("line %d on standard error: %w: %q", i+1, err, shorten(line))
		}
	}
	if len(lines) == 0 {
		return skipf("it wrote nothing to standard error")
	}
	return nil
}

func checkLine(line string) error {
	switch {
	case len(line) > bufio.MaxScanTokenSize:
		return fmt.Errorf("%d bytes long; a host reads %d at most", len(line), bufio.MaxScanTokenSize)
	case !utf8.ValidString(line):
		return errors.New("not UTF-8")
	case !strings.HasPrefix(strings.TrimSpace(line), "{"):
		return nil
	}
	var entry map[string]any
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return fmt.Errorf("begins like a JSON object but is none (%w)", err)
	}
	if text, ok := entry["@message"].(string); !ok || text == "" {
		return errors.New(`a JSON object without "@message"`)
	}
	if level, ok := entry["@level"].(string); !ok || !levels[level] {
		return fmt.Errorf(`"@level" is %v, want one of trace, debug, info, warn, error`, entry["@level"])
	}
	return nil
}
