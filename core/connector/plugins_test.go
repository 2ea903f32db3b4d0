package connector

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mooncake-go/mooncake-master/plugins/file"
	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// ballast is what the hungry connector does not give back.
var ballast []byte

// serveAs is the connector that an executable's name asks for.
func serveAs(kind string) {
	switch kind {
	case "hungry":
		go func() {
			time.Sleep(300 * time.Millisecond)
			ballast = make([]byte, 700<<20)
			for i := range ballast {
				ballast[i] = byte(i)
			}
		}()
	case "parent":
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
		if err := os.WriteFile(os.Args[0]+".child", fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
			panic(err)
		}
	case "v1", "v2", "v1v2", "large":
		serveVersions(kind)
	}
	sdk.Serve(file.New(sdk.Logger()))
}

// later is the name of the service in version 2 of the contract, which exists in tests only.
const later = "mooncake.connector.v2test.Connector"

// serveVersions serves a connector of a document that says which version was spoken.
func serveVersions(kind string) {
	sets := map[int]plugin.PluginSet{}
	if kind != "v2" {
		sets[1] = plugin.PluginSet{sdk.PluginName: &versioned{said: "one", large: kind == "large"}}
	}
	if strings.HasSuffix(kind, "v2") {
		sets[2] = plugin.PluginSet{sdk.PluginName: &versioned{said: "two", name: later}}
	}
	os.Stdout = realStdout()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  sdk.Handshake,
		VersionedPlugins: sets,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxSendMsgSize(1<<30), grpc.MaxRecvMsgSize(1<<30))...)
		},
	})
	os.Exit(0)
}

// realStdout finds the standard output that the SDK, which is part of this program too, has
// put away before we ran: the one pipe that is not among the standard descriptors.
func realStdout() *os.File {
	now, _ := os.Readlink("/proc/self/fd/1")
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && fd > 2 && strings.HasPrefix(to, "pipe:") && to != now {
			return os.NewFile(uintptr(fd), "stdout")
		}
	}
	panic("no standard output")
}

// versioned is a connector made without the SDK.
type versioned struct {
	plugin.NetRPCUnsupportedPlugin
	connectorv1.UnimplementedConnectorServer
	said, name string
	large      bool
}

func (v *versioned) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	desc := connectorv1.Connector_ServiceDesc
	if v.name != "" {
		desc.ServiceName = v.name
	}
	s.RegisterService(&desc, v)
	return nil
}

func (*versioned) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this side serves")
}

func (v *versioned) Describe(context.Context, *connectorv1.DescribeRequest) (*connectorv1.DescribeResponse, error) {
	return &connectorv1.DescribeResponse{Name: "versioned", Version: "1.2"}, nil
}

func (v *versioned) Configure(context.Context, *connectorv1.ConfigureRequest) (*connectorv1.ConfigureResponse, error) {
	return &connectorv1.ConfigureResponse{}, nil
}

func (v *versioned) Load(context.Context, *connectorv1.LoadRequest) (*connectorv1.LoadResponse, error) {
	document := []byte(v.said)
	if v.large {
		document = make([]byte, 65<<20)
	}
	return &connectorv1.LoadResponse{Present: true, Document: document, Revision: "r"}, nil
}

func (v *versioned) Watch(_ *connectorv1.WatchRequest, stream grpc.ServerStreamingServer[connectorv1.WatchResponse]) error {
	sum := sha256.Sum256([]byte(v.said))
	snapshot := &connectorv1.Snapshot{Document: []byte(v.said), Revision: "r", Sha256: sum[:]}
	if err := stream.Send(&connectorv1.WatchResponse{Event: &connectorv1.WatchResponse_Snapshot{Snapshot: snapshot}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return status.FromContextError(stream.Context().Err()).Err()
}

func (*versioned) Stop(context.Context, *connectorv1.StopRequest) (*connectorv1.StopResponse, error) {
	return nil, status.Error(codes.Unimplemented, "kill me")
}

// renamed speaks to a service of another name.
type renamed struct{ grpc.ClientConnInterface }

func (r renamed) rename(method string) string {
	return "/" + later + method[strings.LastIndexByte(method, '/'):]
}

func (r renamed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return r.ClientConnInterface.Invoke(ctx, r.rename(method), args, reply, opts...)
}

func (r renamed) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return r.ClientConnInterface.NewStream(ctx, desc, r.rename(method), opts...)
}

// second is the dialect of that version.
func second(conn grpc.ClientConnInterface) connectorv1.ConnectorClient {
	return connectorv1.NewConnectorClient(renamed{conn})
}

// installed makes a folder with this test's executable as a connector of a type.
func installed(t *testing.T, kind string) (dir, program string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "mooncake-connector-"+kind)
	install(t, program, "")
	return dir, program
}

// install puts this test's executable at a path, with something appended, at once.
func install(t *testing.T, program, more string) {
	t.Helper()
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(program+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(to, from); err == nil {
		_, err = to.WriteString(more)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(program+".new", 0o755)
	}
	if err == nil {
		err = os.Rename(program+".new", program)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func hashOf(t *testing.T, path string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(mustRead(t, path)))
	return fmt.Sprintf("%x", sum)
}
