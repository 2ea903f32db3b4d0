package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// versionsKey is the environment variable in which a master lists the protocols it speaks.
const versionsKey = "PLUGIN_PROTOCOL_VERSIONS"

// protocols are the versions of the contract that this SDK speaks, each with what offers it on
// a server. All stand before the same Connector: an author does not see the difference.
var protocols = map[int]func(grpc.ServiceRegistrar, *service){
	1: func(server grpc.ServiceRegistrar, s *service) { connectorv1.RegisterConnectorServer(server, s) },
}

// ProtocolVersions lists the connector protocols that this SDK speaks, the newest first. With
// a master that speaks several it chooses the newest they have in common.
func ProtocolVersions() []int {
	var versions []int
	for v := range protocols {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	return versions
}

// offered puts the service into the plugin library's terms, once for each protocol.
func offered(s *service) map[int]plugin.PluginSet {
	sets := map[int]plugin.PluginSet{}
	for version, register := range protocols {
		sets[version] = plugin.PluginSet{PluginName: &grpcPlugin{register: register, service: s}}
	}
	return sets
}

// grpcPlugin hooks the service into the plugin library.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	register func(grpc.ServiceRegistrar, *service)
	service  *service
}

func (p *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	p.register(s, p.service)
	return nil
}

func (p *grpcPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this side serves")
}

// mismatch says that a master and this connector have no protocol in common, and who is to be
// upgraded; "" when they have one. The library then shows our oldest, which the master refuses.
func mismatch(d Description, offer string) string {
	ours := ProtocolVersions()
	var theirs []int
	for text := range strings.SplitSeq(offer, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			continue
		}
		if slices.Contains(ours, v) {
			return ""
		}
		theirs = append(theirs, v)
	}
	if len(theirs) == 0 {
		return ""
	}
	slices.Sort(theirs) // the library offers them in any order
	upgrade := "install a newer version of the connector"
	if theirs[len(theirs)-1] < ours[len(ours)-1] {
		upgrade = "install a newer version of the master"
	}
	return fmt.Sprintf("the master speaks connector protocol %s, the connector %q %s (SDK %s) speaks %s: %s",
		numbers(theirs), d.Name, d.Version, Version, numbers(ours), upgrade)
}

// numbers lists versions for people.
func numbers(versions []int) string {
	var text []string
	for _, v := range versions {
		text = append(text, strconv.Itoa(v))
	}
	return strings.Join(text, ", ")
}
