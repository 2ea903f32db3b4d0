// This program is a connector made without the SDK, which takes the standard output of whatever
// it is part of. It speaks the versions of the contract that its name asks for.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// later is the name of the service in version 2 of the contract, which exists in tests only.
const later = "mooncake.connector.v2test.Connector"

func main() {
	serveVersions(strings.TrimPrefix(filepath.Base(os.Args[0]), "mooncake-connector-"))
}

// serveVersions serves a connector of a document that says which version was spoken.
func serveVersions(kind string) {
	sets := map[int]plugin.PluginSet{}
	if kind != "v2" {
		sets[1] = plugin.PluginSet{"connector": &versioned{said: "one", large: kind == "large"}}
	}
	if strings.HasSuffix(kind, "v2") {
		sets[2] = plugin.PluginSet{"connector": &versioned{said: "two", name: later}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "MOONCAKE_CONNECTOR_PLUGIN", MagicCookieValue: "policy-connector-v1"},
		VersionedPlugins: sets,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxSendMsgSize(1<<30), grpc.MaxRecvMsgSize(1<<30))...)
		},
	})
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
