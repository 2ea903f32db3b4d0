package sdk

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// PluginName is the name under which the connector is offered to the plugin library.
const PluginName = "connector"

// Handshake is what master and connector show each other before they speak gRPC.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   CookieKey,
	MagicCookieValue: CookieValue,
}

// Serve runs the connector until the master stops it or dies, and does not return: it ends the
// process, with status 0 after a Stop or the end of the master. Run by hand, it explains itself
// and exits with status 1.
func Serve(connector Connector) {
	if !hosted {
		explain(os.Stderr, connector.Describe())
		os.Exit(1)
	}
	logger := Logger()
	service := newService(connector)
	go endWithHost(os.Getppid(), hostPID(), time.NewTicker(500*time.Millisecond).C, func() { os.Exit(0) })
	go func() {
		<-service.stopped
		// The answer to Stop is on its way; the library would end us as hard, and later.
		time.Sleep(100 * time.Millisecond)
		os.Exit(0)
	}()
	out, err := handshakeOnly(contract, stderr)
	if err != nil {
		logger.Error("connector can't be served", "error", err)
		os.Exit(1)
	}
	os.Stdout = out
	if text := mismatch(connector.Describe(), os.Getenv(versionsKey)); text != "" {
		logger.Error(text)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue},
		VersionedPlugins: offered(service),
		Logger:           logger,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))...)
		},
	})
	os.Exit(0)
}

// Logger writes lines the master repeats in its own log, with their levels and keys. The
// master decides which levels are seen.
func Logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: stderr, JSONFormat: true})
}

// hosted, contract and stderr are set before any code of the author can run, main's package
// variables and init functions included: Go initialises an imported package first.
var (
	hosted   = os.Getenv(CookieKey) == CookieValue
	stderr   = os.Stderr
	contract = takeStdout()
)

// takeStdout keeps the real standard output for the handshake line and points descriptor 1
// at standard error, so that a stray print does not break the start. Outside a master nothing
// changes.
func takeStdout() *os.File {
	if !hosted {
		return os.Stdout
	}
	fd, err := syscall.Dup(1)
	if err != nil {
		return os.Stdout
	}
	syscall.CloseOnExec(fd)
	if err := redirect(2, 1); err != nil {
		_ = syscall.Close(fd)
		return os.Stdout
	}
	return os.NewFile(uintptr(fd), "contract")
}

// handshakeOnly returns a file that passes the handshake line on to the contract's output and
// everything else to another. The library prints the line to os.Stdout, and nobody can tell
// what the author's goroutines print there in the same moment.
func handshakeOnly(contract, other io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go passHandshake(r, contract, other) // ends with the process
	return w, nil
}

// handshakeBegin is how the library's line begins: its own protocol, the connector's, and the
// kind of address.
var handshakeBegin = regexp.MustCompile(fmt.Sprintf(`%d\|\d+\|(unix|tcp)\|`, plugin.CoreProtocolVersion))

func passHandshake(r io.Reader, contract, other io.Writer) {
	lines := bufio.NewReader(r)
	for shaken := false; ; {
		line, err := lines.ReadBytes('\n')
		if at := handshakeBegin.FindIndex(line); at != nil && !shaken {
			_, _ = contract.Write(line[at[0]:]) // the master is gone if this fails
			line, shaken = line[:at[0]], true
		}
		_, _ = other.Write(line)
		if err != nil {
			return
		}
	}
}

func hostPID() int {
	pid, err := strconv.Atoi(os.Getenv(HostPIDKey))
	if err != nil {
		return 0
	}
	return pid
}

// endWithHost calls end when the parent is another one than at the start, or when the master
// is gone although a wrapper between us lives on. On Linux the master also asks the kernel for
// a signal; this covers other systems and children of wrappers.
func endWithHost(parent, host int, tick <-chan time.Time, end func()) {
	for range tick {
		if os.Getppid() != parent || host > 0 && syscall.Kill(host, 0) == syscall.ESRCH {
			end()
			return
		}
	}
}

// explain is what a person sees who runs the executable by hand.
func explain(w io.Writer, d Description) {
	fmt.Fprintf(w, "This is the tenant-quota connector %q, version %s (SDK %s, connector protocol %s). It is not run by hand: a Mooncake Store master "+
		"starts it when its flags say --tenant_quota_connector_type=%s and finds it as mooncake-connector-%s in the folder given by "+
		"--tenant_quota_connector_dir, unless it is one of the master's own. It talks to the master over a socket and logs to standard error.\n",
		d.Name, d.Version, Version, numbers(ProtocolVersions()), d.Name, d.Name)
}
