package app

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/admin"
)

// metadata is the store in which transfer engines find each other, where this process serves
// it, and the cleaning up after clients that have vanished, wherever it is.
type metadata struct {
	server  *admin.MetadataServer // nil when off
	remote  *admin.RemoteCleaner  // nil when off
	expired func(segment.Info)    // nil when off
}

func newMetadata(cfg *Config, log hclog.Logger) metadata {
	var m metadata
	c := cfg.Metadata
	log = log.Named("metadata")
	var store *admin.Store
	if c.Enabled {
		store = admin.NewStore()
		m.server = admin.NewMetadataServer(store, log)
	}
	switch {
	case !c.CleanupOnTimeout:
	case store != nil:
		m.expired = func(s segment.Info) {
			ram, rpc := store.Cleanup(s.Name, c.ClusterID)
			log.Info("metadata of a vanished client removed", "segment", s.Name, "ram", ram, "rpc_meta", rpc)
		}
	case c.RemoteURL != "":
		m.remote = admin.NewRemoteCleaner(c.RemoteURL, log)
		m.expired = func(s segment.Info) { m.remote.Cleanup(s.Name, c.ClusterID) }
	}
	return m
}

func (m *metadata) close(ctx context.Context) error {
	if m.remote != nil {
		m.remote.Close(ctx)
	}
	if m.server != nil {
		return m.server.Shutdown(ctx)
	}
	return nil
}
