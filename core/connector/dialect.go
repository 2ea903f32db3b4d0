package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
	"github.com/mooncake-go/mooncake-master/sdk"
)

// Dialect makes the client of one version of the contract, in the terms of the newest.
type Dialect func(grpc.ClientConnInterface) connectorv1.ConnectorClient

// dialects are the versions this build speaks. A new version is added here beside the old
// one, which stays for at least one release.
var dialects = map[int]Dialect{1: connectorv1.NewConnectorClient}

// offers puts dialects into the plugin library's terms.
func offers(by map[int]Dialect) map[int]plugin.PluginSet {
	sets := make(map[int]plugin.PluginSet, len(by))
	for version, dialect := range by {
		sets[version] = plugin.PluginSet{sdk.PluginName: &hostPlugin{dialect: dialect}}
	}
	return sets
}

// hostPlugin makes the plugin library hand out a client of the contract.
type hostPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	dialect Dialect
}

func (*hostPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this side calls")
}

func (h *hostPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return h.dialect(conn), nil
}

// protocolMismatch explains a handshake line that names a protocol we don't speak, or returns
// "". A connector made with the SDK shows its oldest then, and has logged all of them.
func (d *Deps) protocolMismatch(line string) string {
	fields := strings.SplitN(line, "|", 3)
	if len(fields) < 3 || fields[0] != strconv.Itoa(plugin.CoreProtocolVersion) {
		return ""
	}
	theirs, err := strconv.Atoi(fields[1])
	if _, known := d.Dialects[theirs]; err != nil || known {
		return ""
	}
	ours := slices.Sorted(maps.Keys(d.Dialects))
	var names []string
	for _, v := range ours {
		names = append(names, strconv.Itoa(v))
	}
	advice := "install a newer version of the connector"
	if theirs > ours[len(ours)-1] {
		advice = "install a newer version of the master, or an older one of the connector"
	}
	version := d.Version
	if version != "" {
		version = " (version " + version + ")"
	}
	return fmt.Sprintf("it speaks connector protocol %d, this master%s speaks %s: %s", theirs, version, strings.Join(names, ", "), advice)
}
