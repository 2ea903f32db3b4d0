package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_node/node"
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/admin"
	"github.com/mooncake-go/mooncake-master/transport/kvevent"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// stopTimeout bounds how long stopping waits for requests that are being answered.
const stopTimeout = 5 * time.Second

// Server is a whole master: the core and everything through which it is reached. Build binds
// every listener, Start serves them, Close stops in the reverse order.
type Server struct {
	cfg     *Config
	log     hclog.Logger
	version string
	started time.Time

	listeners listeners
	master    *core.Master
	policy    *source // nil without strict tenants
	metadata  metadata
	carrier   carrier
	events    *kvevent.Publisher // nil without KV events
	rpc       *rpc.Server
	admin     *admin.Server
	reporter  *admin.Reporter

	embedded    *node.Node    // nil without one
	serving     bool          // embedded runs
	leave, left chan struct{} // closed to end embedded, and when it has ended

	ready  atomic.Bool
	failed chan error
	stop   context.CancelFunc // ends the background work
	wg     sync.WaitGroup
}

// Build makes a master that is ready to be started; all its listeners are bound.
func Build(cfg *Config, version string, log hclog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log, version: version, started: time.Now(), failed: make(chan error, 4), leave: make(chan struct{}), left: make(chan struct{})}
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.events.Close(context.Background()), s.carrier.close(), s.listeners.close())
	}
	return s, nil
}

func (s *Server) build() (err error) {
	if s.listeners, err = bind(s.cfg); err != nil {
		return err
	}
	s.metadata = newMetadata(s.cfg, s.log)
	s.events = newEvents(&s.cfg.KVEvents, s.log.Named("events"))
	deps := core.Deps{
		Clock:          monotonic{s.started},
		Rand:           process{},
		Log:            s.log.Named("core"),
		SegmentExpired: s.metadata.expired,
		Yield:          rpc.Yield,
		Wall:           func() int64 { return time.Now().UnixMilli() },
		ProbeNoF:       probeNoF,
	}
	if s.events != nil {
		deps.Events = s.events
	}
	if s.carrier, err = newCarrier(s.cfg, &s.listeners, s.log.Named("transfer")); err != nil {
		return err
	}
	if s.carrier.carrier != nil {
		deps.Carrier = s.carrier.carrier
	}
	if s.master, err = core.New(s.cfg.core(), deps); err != nil {
		return err
	}
	if s.cfg.Tenants.Enabled {
		s.policy = newSource(s.cfg, s.master, s.log, s.version)
	}
	s.rpc, err = rpc.NewServer(rpc.Options{
		Now:         time.Now,
		Logger:      s.log.Named("rpc"),
		MaxFrame:    s.cfg.RPC.MaxFrameBytes,
		IdleTimeout: s.cfg.RPC.IdleTimeout,
		Delay:       !s.cfg.RPC.NoDelay,
	})
	if err != nil {
		return err
	}
	transport.Bind(s.rpc, s.master)
	state := s.state()
	s.reporter = admin.NewReporter(state, s.started)
	if s.embedded, err = s.newEmbedded(); err != nil {
		return err
	}
	s.admin = admin.NewServer(state, s.reporter, admin.Options{Version: s.version, Now: time.Now, Log: s.log.Named("admin")})
	return nil
}

// state is what the admin server reads.
func (s *Server) state() admin.State {
	st := admin.State{
		Service: func() admin.ServiceState {
			if s.ready.Load() {
				return admin.Serving()
			}
			return admin.Starting()
		},
		Objects:   s.master,
		SoftPins:  s.master,
		Segments:  s.master,
		Drains:    s.master,
		Transfers: s.master,
		Tenants:   s.master,
		Stats:     s.master.Stats,
		Calls:     s.rpc.Counters,
		Listener:  s.rpc.Stats,
		Events:    s.events.Status,

		Release:    s.cfg.release(),
		MaxTenants: count(s.cfg.Admin.MaxTenants),
		FileBytes:  s.cfg.fileBytes(),
	}
	if s.policy != nil {
		st.Policy = s.policy
		st.Documents = documents{s.policy}
		st.Connector = s.policy.status
	}
	return st
}

// Start puts the policy in force and serves everything. The admin server answers first, so
// that a start that takes its time can be watched.
func (s *Server) Start(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	s.serve("admin", func() error { return s.admin.Serve(s.listeners.admin) })
	if s.metadata.server != nil {
		s.serve("metadata", func() error { return s.metadata.server.Serve(s.listeners.metadata) })
	}
	if s.policy != nil {
		if err := s.policy.start(ctx); err != nil {
			return err
		}
	}
	s.wg.Go(func() { s.master.Run(work, tick) })
	if s.cfg.Admin.Report {
		s.wg.Go(func() { s.report(work) })
	}
	s.ready.Store(true)
	s.serve("rpc", func() error { return s.rpc.Serve(s.listeners.rpc) })
	return s.startEmbedded(ctx)
}

// reportPeriod is how often the summary line is logged.
const reportPeriod = 10 * time.Second

func (s *Server) report(ctx context.Context) {
	c, stop := tick(reportPeriod)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-c:
			s.log.Info(s.reporter.LogLine(now))
		}
	}
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

// AdminAddr returns the address of the admin interface and the metrics.
func (s *Server) AdminAddr() net.Addr { return s.listeners.admin.Addr() }

// Master returns the core.
func (s *Server) Master() *core.Master { return s.master }

// Addresses is one line that says where the master listens.
func (s *Server) Addresses() string {
	line := "mooncake_master is serving: rpc " + s.RPCAddr().String() + " http " + s.AdminAddr().String()
	if l := s.listeners.metadata; l != nil {
		line += " metadata " + l.Addr().String()
	}
	return line
}

// Close stops serving; requests that have arrived whole are answered first. The admin server
// answers until the end.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := errors.Join(s.endEmbedded(), s.rpc.Shutdown(ctx))
	s.ready.Store(false)
	if s.policy != nil {
		s.policy.close()
	}
	if s.stop != nil {
		s.stop()
	}
	err = errors.Join(err, s.metadata.close(ctx), s.admin.Shutdown(ctx))
	s.wg.Wait()
	return errors.Join(err, s.carrier.close(), s.closeEvents(), s.listeners.close())
}
