package connector

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

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
		withChild()
	case "deaf":
		withChild()
		sdk.Serve(deaf{file.New(sdk.Logger())})
	}
	sdk.Serve(file.New(sdk.Logger()))
}

// withChild starts a process and writes its number beside the executable.
func withChild() {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
	if err := os.WriteFile(os.Args[0]+".child", fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
		panic(err)
	}
}

// deaf does not stop when it is asked to.
type deaf struct{ sdk.Connector }

func (deaf) Stop(context.Context) error {
	if err := os.WriteFile(os.Args[0]+".asked", nil, 0o600); err != nil {
		panic(err)
	}
	select {}
}

// later is the name of the service in version 2 of the contract, which exists in tests only.
const later = "mooncake.connector.v2test.Connector"

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

// versioned makes a folder with a connector of a type that is made without the SDK.
func versioned(t *testing.T, kind string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "mooncake-connector-"+kind)
	if err := os.Link(builtVersioned(t), program); err != nil {
		t.Fatal(err)
	}
	return dir
}

// builtVersioned builds that program once.
func builtVersioned(t *testing.T) string {
	t.Helper()
	buildVersioned.Do(func() {
		path := filepath.Join(os.TempDir(), "versioned")
		out, err := exec.Command("go", "build", "-o", path, "./testdata/versioned").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		versionedPath = path
	})
	return versionedPath
}

var (
	buildVersioned sync.Once
	versionedPath  string
)

func hashOf(t *testing.T, path string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(mustRead(t, path)))
	return fmt.Sprintf("%x", sum)
}
