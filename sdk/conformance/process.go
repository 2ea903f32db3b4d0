package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/internal/identity"
)

// child is one process of the connector.
type child struct {
	cmd    *exec.Cmd
	out    *recorder
	log    *lineLog
	exited chan struct{} // closed when it has been waited for
	read   chan struct{} // closed when its pipes are closed, after exited
	own    tls.Certificate

	hand handshake
	conn *grpc.ClientConn
	rpc  connectorv1.ConnectorClient
}

// handshake is what the line on standard output says.
type handshake struct {
	version int
	address string
	cert    []byte // DER
}

// recorder keeps what a process writes to standard output; a waiter sees it grow.
type recorder struct {
	mu    sync.Mutex
	text  []byte        // guarded by mu; the first recordMost bytes
	ended bool          // guarded by mu
	more  chan struct{} // guarded by mu; closed and replaced when text or ended changes
}

const recordMost = 64 << 10

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, b[:min(len(b), recordMost-len(r.text))]...)
	close(r.more)
	r.more = make(chan struct{})
	return len(b), nil
}

func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	close(r.more)
	r.more = make(chan struct{})
}

func (r *recorder) state() (text string, ended bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.text), r.ended, r.more
}

// lineLog keeps the beginning of what a process writes to standard error, by lines.
type lineLog struct {
	mu    sync.Mutex
	lines []string // guarded by mu; the first lineMost
	tail  string   // guarded by mu; the last line
	also  io.Writer
}

const lineMost = 10000

func (l *lineLog) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.mu.Lock()
			if len(l.lines) < lineMost {
				l.lines = append(l.lines, line)
			}
			l.tail = strings.TrimSpace(line)
			l.mu.Unlock()
			if l.also != nil {
				_, _ = io.WriteString(l.also, line) // only to be looked at
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *lineLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *lineLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail
}

// environment is what a master gives: a few variables, the caller's, and the contract's.
func (k *kit) environment(contract ...string) []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ"} {
		if value, set := os.LookupEnv(key); set {
			env = append(env, key+"="+value)
		}
	}
	return append(append(env, k.opts.Env...), contract...)
}

// spawn starts a command in a process group of its own and follows what it writes.
func (k *kit) spawn(env []string, name string, args ...string) (*child, error) {
	p := &child{
		cmd: exec.Command(name, args...), exited: make(chan struct{}), read: make(chan struct{}),
		out: &recorder{more: make(chan struct{})}, log: &lineLog{also: k.logs},
	}
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Pipes of our own: the library's would be closed by Wait while something is in them.
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outR.Close(), outW.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	err = p.cmd.Start()
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		_, _ = outR.Close(), errR.Close()
		return nil, fmt.Errorf("it can't be run: %w", err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(p.out, outR) // ends with the pipe
		p.out.end()
	})
	reading.Go(func() { p.log.read(errR) })
	k.running.Go(func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.exited)
		// Somebody it started may hold the pipes; nobody waits for that.
		hold := time.AfterFunc(time.Second, func() { _, _ = outR.Close(), errR.Close() })
		reading.Wait()
		hold.Stop()
		_, _ = outR.Close(), errR.Close()
		close(p.read)
	})
	return p, nil
}

// launch starts the connector for a host that speaks the given protocol versions, and waits
// for its handshake line. The caller must end the child, which is nil with an error.
func (k *kit) launch(ctx context.Context, versions string) (*child, error) {
	own, trust, err := identity.New(time.Now())
	if err != nil {
		return nil, err
	}
	p, err := k.spawn(k.environment(
		sdk.CookieKey+"="+sdk.CookieValue, "PLUGIN_PROTOCOL_VERSIONS="+versions, "PLUGIN_UNIX_SOCKET_DIR="+k.folder,
		"PLUGIN_CLIENT_CERT="+string(trust), sdk.HostPIDKey+"="+strconv.Itoa(os.Getpid()),
	), k.path, k.opts.Args...)
	if err != nil {
		return nil, err
	}
	p.own = own
	if p.hand, err = k.shake(ctx, p); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// shake waits for the handshake line of a process.
func (k *kit) shake(ctx context.Context, p *child) (handshake, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit(startLimit))
	defer cancel()
	for {
		text, ended, more := p.out.state()
		if line, _, whole := strings.Cut(text, "\n"); whole || len(text) >= recordMost {
			return parseHandshake(line)
		}
		if ended {
			<-p.exited
			p.settle()
			return handshake{}, &endedError{
				text:   fmt.Sprintf("it ended without a handshake line (%s)%s", p.cmd.ProcessState, p.said()),
				status: p.cmd.ProcessState.ExitCode(), spoke: p.log.last() != "",
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return handshake{}, fmt.Errorf("no handshake line within %s%s", k.limit(startLimit), p.said())
		}
	}
}

// endedError says that a process ended before it showed a handshake line.
type endedError struct {
	text   string
	status int
	spoke  bool // on standard error
}

func (e *endedError) Error() string { return e.text }

// settle waits until everything a process wrote before its end has been read.
func (p *child) settle() { <-p.read }

// said is the end of a message: the last line of standard error, if there is one.
func (p *child) said() string {
	if last := p.log.last(); last != "" {
		return "; its last line: " + shorten(last)
	}
	return ""
}

func parseHandshake(line string) (handshake, error) {
	bad := func(format string, args ...any) (handshake, error) {
		return handshake{}, fmt.Errorf("the first line on standard output must be the handshake 1|<version>|unix|<socket>|grpc|<certificate>, "+
			"and nothing else may be written there: got %q: %w", shorten(line), fmt.Errorf(format, args...))
	}
	fields := strings.Split(line, "|")
	if len(fields) < 6 {
		return bad("%d fields of 6", len(fields))
	}
	version, err := strconv.Atoi(fields[1])
	switch {
	case fields[0] != "1":
		return bad("core protocol %q, want 1", fields[0])
	case err != nil:
		return bad("connector protocol %q is no number", fields[1])
	case fields[2] != "unix":
		return bad("network %q, want unix", fields[2])
	case fields[4] != "grpc":
		return bad("protocol %q, want grpc", fields[4])
	case fields[5] == "":
		return bad("no certificate in the sixth field: mutual TLS is part of the contract")
	}
	der, err := base64.RawStdEncoding.DecodeString(fields[5])
	if err != nil {
		return bad("the certificate is not base64 without padding: %w", err)
	}
	return handshake{version: version, address: fields[3], cert: der}, nil
}

// dial connects to a process that has shown its handshake.
func (p *child) dial(own ...tls.Certificate) (*grpc.ClientConn, error) {
	var mine tls.Certificate
	if len(own) > 0 {
		mine = own[0]
	}
	config, err := identity.Client(mine, p.hand.cert)
	if err != nil {
		return nil, fmt.Errorf("the certificate in the handshake: %w", err)
	}
	return grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.hand.address)
		}),
		// A little more than the contract allows, to be able to say by how much it is exceeded.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*sdk.MaxMessage), grpc.MaxCallSendMsgSize(2*sdk.MaxMessage)))
}

// start launches the connector and connects to it, as a master of this version does.
func (k *kit) start(ctx context.Context) (*child, error) {
	p, err := k.launch(ctx, strconv.Itoa(sdk.ProtocolVersion))
	if err != nil {
		return nil, err
	}
	if p.hand.version != sdk.ProtocolVersion {
		p.kill()
		return nil, fmt.Errorf("it chose connector protocol %d, the host offered %d only", p.hand.version, sdk.ProtocolVersion)
	}
	if p.conn, err = p.dial(p.own); err != nil {
		p.kill()
		return nil, err
	}
	p.rpc = connectorv1.NewConnectorClient(p.conn)
	return p, nil
}

// configured starts a connector and gives it its configuration.
func (k *kit) configured(ctx context.Context) (*child, error) {
	if err := k.needURI(); err != nil {
		return nil, err
	}
	p, err := k.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.configure(ctx, p, k.uri); err != nil {
		p.end(k)
		return nil, err
	}
	return p, nil
}

func (k *kit) configure(ctx context.Context, p *child, uri string) error {
	ctx, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	answer, err := p.rpc.Configure(ctx, &connectorv1.ConfigureRequest{Uri: uri, ClusterId: k.opts.ClusterID, Options: k.opts.Options})
	if err != nil {
		return k.callError("Configure", err)
	}
	var notes []string
	for _, n := range answer.GetNotes() {
		notes = append(notes, n.GetField()+": "+n.GetMessage())
	}
	if len(notes) > 0 {
		return fmt.Errorf("it refuses the configuration the kit was given: %s", strings.Join(notes, "; "))
	}
	return nil
}

// end asks the process to stop and kills what is left of its group.
func (p *child) end(k *kit) {
	if p.conn != nil && p.conn.GetState() != connectivity.Shutdown {
		ctx, cancel := context.WithTimeout(context.Background(), k.limit(stopLimit))
		if _, err := p.rpc.Stop(ctx, &connectorv1.StopRequest{}); err == nil {
			select {
			case <-p.exited:
			case <-ctx.Done():
			}
		}
		cancel()
	}
	p.kill()
}

// kill ends the process and those of its group, and waits for it.
func (p *child) kill() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone already when it fails
	<-p.exited
}

// alive reports whether the process has not ended.
func (p *child) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// shorten makes one line of at most 200 bytes of a text.
func shorten(s string) string {
	s = string(bytes.ToValidUTF8([]byte(strings.Join(strings.Fields(s), " ")), []byte("?")))
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
