package sdk

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// Protocol 2 exists in these tests only: Describe alone, under another service's name.
const serviceV2 = "mooncake.connector.v2.Connector"

var describeV2 = grpc.ServiceDesc{
	ServiceName: serviceV2,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Describe",
		Handler: func(server any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			req := &connectorv1.DescribeRequest{}
			if err := decode(req); err != nil {
				return nil, err
			}
			d, err := server.(*service).Describe(ctx, req)
			if err == nil {
				d.Version += " by protocol 2"
			}
			return d, err
		},
	}},
}

// connectorOf serves the protocols of a comma-separated list, as a connector with another SDK
// would. It is run as a process of its own, see TestMain.
func connectorOf(versions string) {
	v1 := protocols[1]
	protocols = map[int]func(grpc.ServiceRegistrar, *service){}
	for v := range strings.SplitSeq(versions, ",") {
		switch v {
		case "1":
			protocols[1] = v1
		case "2":
			protocols[2] = func(server grpc.ServiceRegistrar, s *service) { server.RegisterService(&describeV2, s) }
		}
	}
	Serve(&scripted{describe: Description{Name: "tested", Version: "3.4"}})
}

// hostOf is the host's side of a protocol: it asks for a description over it.
type hostOf struct {
	plugin.NetRPCUnsupportedPlugin
	version int
}

func (hostOf) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (h hostOf) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	name := connectorv1.Connector_ServiceDesc.ServiceName
	if h.version == 2 {
		name = serviceV2
	}
	return func(ctx context.Context) (string, error) {
		d := &connectorv1.DescribeResponse{}
		err := conn.Invoke(ctx, "/"+name+"/Describe", &connectorv1.DescribeRequest{}, d)
		return d.GetVersion(), err
	}, nil
}

// TestVersions runs old connectors with new hosts and the reverse, each in its own process.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		connector, host string
		version         string // of the connector, as the host sees it; "" when they have nothing in common
		says            string // on standard error
	}{
		{"1", "1", "3.4", ""},
		{"1", "1,2", "3.4", ""},                 // an old connector, a new host
		{"1,2", "1", "3.4", ""},                 // a new connector, an old host
		{"1,2", "1,2", "3.4 by protocol 2", ""}, // both new: the newest in common
		{"1,2", "2,3", "3.4 by protocol 2", ""},
		{"1", "2,3", "", `the master speaks connector protocol 2, 3, the connector "tested" 3.4 (SDK ` + Version + `) speaks 1: install a newer version of the connector`},
		{"2", "1", "", `the master speaks connector protocol 1, the connector "tested" 3.4 (SDK ` + Version + `) speaks 2: install a newer version of the master`},
	} {
		t.Run(fmt.Sprintf("connector %s host %s", tt.connector, tt.host), func(t *testing.T) {
			sets := map[int]plugin.PluginSet{}
			for text := range strings.SplitSeq(tt.host, ",") {
				v, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(err)
				}
				sets[v] = plugin.PluginSet{PluginName: hostOf{version: v}}
			}
			var said bytes.Buffer
			client := plugin.NewClient(&plugin.ClientConfig{
				HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue},
				VersionedPlugins: sets, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
				Cmd: exec.Command(os.Args[0], "connector-of", tt.connector), Stderr: &said, Logger: hclog.NewNullLogger(),
			})
			defer client.Kill()
			protocol, err := client.Client()
			if tt.version == "" {
				client.Kill() // waits for the process, and so for what it says
				if err == nil || !strings.Contains(err.Error(), "incompatible API version") || !strings.Contains(strings.ReplaceAll(said.String(), `\"`, `"`), tt.says) {
					t.Errorf("%v; it said %q, want %q", err, said.String(), tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			describe, err := protocol.Dispense(PluginName)
			if err != nil {
				t.Fatal(err)
			}
			if version, err := describe.(func(context.Context) (string, error))(t.Context()); err != nil || version != tt.version {
				t.Errorf("%q, %v, want %q", version, err, tt.version)
			}
		})
	}
}

func TestMismatch(t *testing.T) {
	for offer, want := range map[string]bool{"": false, "1": false, "2,1": false, "x,1": false, "x": false, "2": true, "0": true} {
		if got := mismatch(Description{}, offer) != ""; got != want {
			t.Errorf("%q: %t", offer, got)
		}
	}
}

// TestByHand runs a connector as a person would.
func TestByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "connector-of", "1,2")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || out.Len() > 0 {
		t.Errorf("%v, printed %q", err, out.String())
	}
	for _, want := range []string{`"tested", version 3.4`, "SDK " + Version, "connector protocol 2, 1", "--tenant_quota_connector_type=tested"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q does not say %s", said.String(), want)
		}
	}
}

// TestImports keeps the server and etcd out of what third parties import.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	own := 0
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if inside, ours := strings.CutPrefix(path, "github.com/mooncake-go/mooncake-master/"); ours {
			own++
			if inside != "sdk" && !strings.HasPrefix(inside, "sdk/") && inside != "proto/connector/v1" {
				t.Errorf("package sdk needs %s", path)
			}
		}
		for _, heavy := range []string{"go.etcd.io/", "github.com/prometheus/", "github.com/spf13/", "go.uber.org/", "k8s.io/"} {
			if strings.HasPrefix(path, heavy) {
				t.Errorf("package sdk needs %s", path)
			}
		}
	}
	if own < 5 {
		t.Errorf("only %d packages of ours were looked at:\n%s", own, out)
	}
}
