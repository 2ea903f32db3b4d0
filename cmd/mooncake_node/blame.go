package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// blame names the flag that an error is about, and what would be right.
func (o *options) blame(err error) error {
	var listen *net.OpError
	var field *node.ConfigError
	switch {
	case errors.As(err, &field):
		return fmt.Errorf("--%s: %w", flagOf[field.Field], field.Err)
	case errors.Is(err, node.ErrHTTP) && errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--metrics_port=%d: %w; choose a free port, or 0 for none", o.metricsPort, err)
	case errors.Is(err, verbs.ErrNotBuilt):
		return fmt.Errorf("--protocol=rdma: %w", verbs.ErrNotBuilt)
	case errors.Is(err, node.ErrDevices):
		return fmt.Errorf("--protocol=rdma --device_names=%s: %w", o.devices, err)
	case errors.Is(err, node.ErrHTTP):
		return fmt.Errorf("--metrics_host=%s --metrics_port=%d: %w", o.metricsHost, o.metricsPort, err)
	case errors.Is(err, node.ErrMemory):
		return fmt.Errorf("--global_segment_size=%s: %w; lend less", &o.size, err)
	case errors.Is(err, segment.ErrNameTaken):
		return fmt.Errorf("--local_hostname=%s: %w", o.name, err)
	case errors.Is(err, node.ErrVersion):
		return fmt.Errorf("--master_server_address=%s: %w", o.master, err)
	case errors.As(err, &listen) && listen.Op == "listen":
		return fmt.Errorf("--bind_address=%s: %w; want an address of this machine", o.bind, err)
	}
	return err
}

// flagOf is the flag that sets a field of the node's configuration.
var flagOf = map[string]string{
	"Master": "master_server_address", "Admin": "master_admin_address", "Name": "local_hostname",
	"Metadata": "metadata_server", "SegmentBytes": "global_segment_size",
}
