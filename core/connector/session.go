package connector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// session is one process that has been started and configured.
type session struct {
	client *plugin.Client
	proc   *process
	rpc    connectorv1.ConnectorClient
	about  *connectorv1.DescribeResponse
	// ctx ends with the session; calls end with it.
	ctx    context.Context
	cancel context.CancelFunc
}

// launch starts a process, and describes and configures it. It must be called on the
// supervisor's thread. An error is one line without the process's name.
func (c *Connector) launch(ctx context.Context) (*session, error) {
	return c.begin(ctx, func(s *session) error {
		if err := s.describe(c.deps.Timing.Call); err != nil {
			return err
		}
		return s.configure(c.spec, c.deps.Timing.Call)
	})
}

// begin starts a process and greets it once it is healthy; an error of greet ends it, and
// comes with what the process had to say.
func (c *Connector) begin(ctx context.Context, greet func(*session) error) (_ *session, err error) {
	lines := &relay{logger: c.deps.Logger}
	s := &session{}
	prog, err := c.find()
	if err != nil {
		return nil, err
	}
	defer prog.close()
	var running atomic.Pointer[process]
	config, trust, err := certificate(c.deps.Clock.Now())
	if err != nil {
		return nil, err
	}
	s.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		VersionedPlugins: offers(c.deps.Dialects),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        config,
		SkipHostEnv:      true,
		StartTimeout:     c.deps.Timing.Start,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: c.sockets.folder},
		Stderr:           lines,
		SyncStdout:       lines,
		SyncStderr:       lines,
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(sdk.MaxMessage), grpc.MaxCallSendMsgSize(sdk.MaxMessage))},
		RunnerFunc: func(_ hclog.Logger, contract *exec.Cmd, _ string) (runner.Runner, error) {
			cmd := prog.command()
			cmd.Env = append(environment(c.deps.Env), contract.Env...)
			cmd.Env = append(cmd.Env, "PLUGIN_CLIENT_CERT="+string(trust), sdk.HostPIDKey+"="+strconv.Itoa(os.Getpid()))
			p, err := newProcess(cmd, c.spec.MemoryLimit, c.guard, c.deps.Timing.Start)
			s.proc = p
			running.Store(p)
			return p, err
		},
	})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer func() {
		if err == nil {
			return
		}
		s.kill()
		text := oneLine(err.Error())
		if s.proc != nil {
			head := s.proc.stdout.String()
			if mismatch := c.deps.protocolMismatch(head); mismatch != "" {
				text = mismatch
			} else if head != "" && !strings.HasPrefix(head, handshakeBegin) {
				text += fmt.Sprintf("; it printed %q: plugins must not write to stdout", head)
			}
			if why := s.proc.over.Load(); why != nil {
				text = *why
			}
		}
		if end := lines.end(); end != "" {
			text += "; its last lines: " + oneLine(end)
		}
		err = &launchError{program: prog.shown(), text: text}
	}()
	// Closing the Connector must not wait for a process that does not answer.
	giveUp := context.AfterFunc(ctx, func() {
		s.cancel()
		if p := running.Load(); p != nil {
			_ = p.Kill(context.Background())
		}
	})
	defer giveUp()
	protocol, err := s.client.Client()
	if err != nil {
		return nil, fmt.Errorf("it did not start: %w", c.explain(err, prog))
	}
	raw, err := protocol.Dispense(sdk.PluginName)
	if err != nil {
		return nil, fmt.Errorf("it did not start: %w", err)
	}
	s.rpc = raw.(connectorv1.ConnectorClient)
	if err := protocol.Ping(); err != nil {
		return nil, fmt.Errorf("it is not healthy: %s", statusText(err))
	}
	if err := greet(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) describe(limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	if s.about, err = s.rpc.Describe(ctx, &connectorv1.DescribeRequest{}); err != nil {
		return fmt.Errorf("it does not describe itself: %s", statusText(err))
	}
	return nil
}

func (s *session) configure(spec Spec, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	answer, err := s.rpc.Configure(ctx, &connectorv1.ConfigureRequest{Uri: spec.URI, ClusterId: spec.ClusterID, Options: spec.Options})
	if err != nil {
		return fmt.Errorf("it can't be configured: %s", statusText(err))
	}
	if len(answer.GetNotes()) == 0 {
		return nil
	}
	var notes []string
	for _, n := range answer.GetNotes() {
		notes = append(notes, n.GetField()+": "+n.GetMessage())
	}
	return fmt.Errorf("it refuses its configuration: %s", strings.Join(notes, "; "))
}

// end asks the process to stop, waits a little, and kills it with its children.
func (s *session) end(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-s.proc.exited:
	default:
		if _, err := s.rpc.Stop(ctx, &connectorv1.StopRequest{}); err == nil {
			select {
			case <-s.proc.exited:
			case <-ctx.Done():
			}
		}
	}
	s.kill()
}

// kill ends the process if it lives, and its group in any case, and frees everything.
func (s *session) kill() {
	s.cancel()
	if s.proc != nil && s.proc.pid.Load() != 0 {
		_ = s.proc.Kill(context.Background())
		pipes := time.AfterFunc(time.Second, s.proc.abandon)
		defer pipes.Stop()
		s.proc.guard.watch(0)
	}
	s.client.Kill()
}

// launchError is why a process could not be used.
type launchError struct {
	program string // what to put after "connector", see program.shown
	text    string
}

func (e *launchError) Error() string { return e.text }

// introduced is an error as it follows the word connector: which program, a colon, and why.
func introduced(err error) error {
	var l *launchError
	if errors.As(err, &l) {
		return errors.New(l.program + ": " + oneLine(l.text))
	}
	return errors.New(": " + oneLine(err.Error()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
