package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// stopTimeout bounds how long stopping waits for requests that are being answered.
const stopTimeout = 5 * time.Second

// Server is a whole master: the core and everything through which it is reached. Build binds
// every listener, Start serves them, Close stops in the reverse order.
type Server struct {
	cfg    *Config
	log    hclog.Logger
	master *core.Master
	rpc    *rpc.Server

	listeners listeners
	failed    chan error
	cancel    context.CancelFunc // of the background work
	wg        sync.WaitGroup
}

// listeners are bound before any is served, so that a port that is taken stops the start
// before anybody is answered.
type listeners struct {
	rpc net.Listener
}

// monotonic is the core's clock: nanoseconds since shortly before the process started.
type monotonic struct{ base time.Time }

func (c monotonic) Now() int64 { return int64(time.Since(c.base)) + int64(time.Second) }

// process is the randomness of the process.
type process struct{}

func (process) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

func tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// Build makes a master that is ready to be started.
func Build(cfg *Config, version string, log hclog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log, failed: make(chan error, 4)}
	master, err := core.New(cfg.core(), core.Deps{
		Clock: monotonic{time.Now()},
		Rand:  process{},
		Log:   log.Named("core"),
	})
	if err != nil {
		return nil, err
	}
	s.master = master
	s.rpc, err = rpc.NewServer(rpc.Options{
		Now:         time.Now,
		Logger:      log.Named("rpc"),
		MaxFrame:    cfg.RPC.MaxFrameBytes,
		IdleTimeout: cfg.RPC.IdleTimeout,
		Delay:       !cfg.RPC.NoDelay,
	})
	if err != nil {
		return nil, err
	}
	transport.Bind(s.rpc, master)
	if err := s.bind(); err != nil {
		return nil, errors.Join(err, s.listeners.close())
	}
	return s, nil
}

// bind opens all listeners.
func (s *Server) bind() (err error) {
	s.listeners.rpc, err = listen("rpc_port", s.cfg.RPC.Host, s.cfg.RPC.Port)
	return err
}

// listen opens one listener; an error names the flag that chose it.
func listen(flag, host string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("--%s=%d: %w; choose a free port, or 0 for any", flag, port, err)
	}
	return l, nil
}

func (l *listeners) close() error {
	var errs []error
	for _, x := range []net.Listener{l.rpc} {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}

// Start serves everything.
func (s *Server) Start(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.wg.Go(func() { s.master.Run(work, tick) })
	s.serve("rpc", func() error { return s.rpc.Serve(s.listeners.rpc) })
	return nil
}

// serve runs one server until it ends; ending other than by Close is a failure of the master.
func (s *Server) serve(what string, run func() error) {
	s.wg.Go(func() {
		if err := run(); err != nil && !errors.Is(err, rpc.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s server: %w", what, err)
		}
	})
}

// Failed delivers the error of a server that has stopped by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// RPCAddr returns the address the clients talk to.
func (s *Server) RPCAddr() net.Addr { return s.listeners.rpc.Addr() }

// Master returns the core.
func (s *Server) Master() *core.Master { return s.master }

// Addresses is one line that says where the master listens.
func (s *Server) Addresses() string {
	return "mooncake_master is serving: rpc " + s.RPCAddr().String()
}

// Close stops serving; requests that have arrived whole are answered first.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.rpc.Shutdown(ctx)
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	return err
}

// core returns the part of the configuration that is the core's.
func (c *Config) core() core.Config {
	k := core.Default()
	k.MultiTenant = c.Tenants.Enabled
	k.QuotaExceeded = core.QuotaExceeded(c.Tenants.Exceeded)
	k.LeaseTTL = c.Objects.LeaseTTL
	k.SoftPinTTL = c.Objects.SoftPinTTL
	k.MaxSoftPinTTL = c.Objects.MaxSoftPinTTL
	k.PutDiscardTimeout = c.Objects.PutStartDiscard
	k.PutReleaseTimeout = c.Objects.PutStartRelease
	k.AllowEvictSoftPins = c.Eviction.AllowSoftPinned
	k.EvictionRatio = c.Eviction.Ratio
	k.EvictionWatermark = c.Eviction.HighWatermark
	k.TenantWatermark = c.Eviction.TenantHighWatermark
	k.ClientActiveTTL = c.Clients.ActiveTTL
	k.ClientSuspicionTTL = c.Clients.SuspicionTTL
	k.AllocationStrategy = c.Placement.Strategy
	k.EnableDiskEviction = c.Storage.DiskEviction
	k.DiskQuotaBytes = c.Storage.QuotaBytes
	if c.Storage.RootDir != "" {
		k.FSDir = strings.TrimRight(c.Storage.RootDir, "/") + "/" + c.ClusterID
	}
	return k
}

var _ segment.Rand = process{}
