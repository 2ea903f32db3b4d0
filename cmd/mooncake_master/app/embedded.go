package app

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// embeddedFlags are about the node inside this process.
var embeddedFlags = []Flag{
	{
		Name: "embedded_node", Kind: String, Default: "", Group: GroupGeneral,
		Help: "memory, like 1GB, that a storage node inside this process lends to the pool, for trying things out on one machine: it is reached on the loopback only, and what it holds ends with the master. Clients find it by P2PHANDSHAKE, or in the metadata server of this master if that is enabled. Empty = no node",
		bind: func(c *Config) any { return &c.EmbeddedNode },
	},
}

// EmbeddedBytes is how much memory the node inside this process lends, 0 without one.
func (c *Config) EmbeddedBytes() (uint64, error) {
	if c.EmbeddedNode == "" {
		return 0, nil
	}
	return policydoc.ParseQuota(c.EmbeddedNode)
}

func (c *Config) checkEmbedded() error {
	if _, err := c.EmbeddedBytes(); err != nil {
		return c.bad("embedded_node", "%w; want a number of bytes, optionally with B, KB, MB, GB or TB, or nothing for no node", err)
	}
	return nil
}

// loopback is where the embedded node is reached.
const loopback = "127.0.0.1"

// newEmbedded makes the node inside this process, nil without one.
func (s *Server) newEmbedded() (*node.Node, error) {
	size, err := s.cfg.EmbeddedBytes()
	if err != nil || size == 0 {
		return nil, err
	}
	metadata := segment.P2P
	if l := s.listeners.metadata; l != nil {
		metadata = "http://" + near(l) + "/metadata"
	}
	n, err := node.New(node.Config{
		Version: s.version, Master: near(s.listeners.rpc), Admin: near(s.listeners.admin), Metadata: metadata, Cluster: s.cfg.Metadata.ClusterID,
		Name: net.JoinHostPort(loopback, strconv.Itoa(node.DefaultPort)), Bind: loopback, SegmentBytes: size, Now: time.Now, Log: s.log.Named("node"),
	})
	if err != nil {
		return nil, s.cfg.bad("embedded_node", "%w", err)
	}
	return n, nil
}

// near is how a listener is reached from this machine.
func near(l net.Listener) string {
	a := l.Addr().(*net.TCPAddr)
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

// startEmbedded runs the node inside this process, if any, and returns when its memory is part of the pool.
func (s *Server) startEmbedded(ctx context.Context) error {
	if s.embedded == nil {
		return nil
	}
	s.log.Warn("a node inside this process lends memory, for trying things out: what it holds ends with the master", "flag", "--embedded_node", "value", s.cfg.EmbeddedNode)
	ended := make(chan error, 1)
	s.wg.Go(func() {
		defer close(s.left)
		err := s.embedded.Run(context.WithoutCancel(ctx), s.leave)
		if err != nil {
			err = s.cfg.bad("embedded_node", "%w", err)
		}
		ended <- err
	})
	s.serving = true
	select {
	case <-s.embedded.Mounted():
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// endEmbedded takes the node's memory out of the pool and waits for that.
func (s *Server) endEmbedded() error {
	switch {
	case s.embedded == nil:
	case !s.serving:
		return s.embedded.Discard()
	default:
		close(s.leave)
		<-s.left
	}
	return nil
}
