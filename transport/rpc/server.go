package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// DefaultMaxFrame is the largest payload of a request that a server takes unless told
// otherwise.
const DefaultMaxFrame = 256 << 20

// DefaultSlowBody is the length of a body from which on a request counts as long: some 500 keys
// of usual length, which take about as long as ten requests of one.
const DefaultSlowBody = 32 << 10

// Options configure a Server. Only Now is required.
type Options struct {
	// Now is the wall clock. It is used for deadlines on sockets and to limit log lines.
	Now func() time.Time
	// Logger takes refused frames and failing handlers; nil logs nothing.
	Logger hclog.Logger
	// MaxFrame bounds body plus attachment of a request in bytes; 0 means
	// DefaultMaxFrame. A frame that announces more closes its connection.
	MaxFrame uint64
	// IdleTimeout closes a connection that sent nothing for so long; 0 is never.
	IdleTimeout time.Duration
	// WriteTimeout closes a connection whose peer takes no answers for so long; 0 is never.
	WriteTimeout time.Duration
	// Delay leaves Nagle's algorithm on. The zero value sends answers at once.
	Delay bool
	// Portable serves every connection with a goroutine of its own, as systems without epoll
	// do, rather than with event loops.
	Portable bool
	// Loops is how many event loops there may be; 0 means half of the cores, at least one and
	// at most eight. There are more than one only while one is not enough.
	Loops int
	// Workers is how many long requests event loops have handled at once, and as many that
	// are slow by nature; 0 means one less than cores, at least one.
	Workers int
	// SlowBody is the length of a body in bytes from which on a request is long; 0 means
	// DefaultSlowBody.
	SlowBody int
	// Poison overwrites each request with garbage once it is answered. Tests set it to find
	// handlers that keep strings of a request without cloning them.
	Poison bool
}

// Server answers calls. Register handlers with Handle, then Serve.
type Server struct {
	opts   Options
	log    hclog.Logger
	limits limiter

	maxReply uint64 // largest body that the head of a reply can announce

	routes map[uint32]*route // fixed once serving
	byName map[string]*route

	serving atomic.Bool
	closing atomic.Bool
	done    chan struct{} // closed when shutting down begins

	mu        sync.Mutex // guards listeners, conns, loops, and wait.Add against Shutdown
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{} // those with a goroutine of their own
	loops     *group             // nil until there is a connection for them
	workers   workers
	wait      sync.WaitGroup
	cut       atomic.Bool // connections are to be closed without waiting for them

	accepted     atomic.Uint64
	open         atomic.Int64
	panics       atomic.Uint64
	refused      [reasonCount]atomic.Uint64
	bytesRead    atomic.Uint64
	bytesWritten atomic.Uint64
}

// ErrServerClosed is returned by Serve after Shutdown.
var ErrServerClosed = errors.New("rpc server is closed")

// NewServer makes a server without handlers.
func NewServer(opts Options) (*Server, error) {
	if opts.Now == nil {
		return nil, errors.New("rpc server needs a clock")
	}
	if opts.MaxFrame == 0 {
		opts.MaxFrame = DefaultMaxFrame
	}
	if opts.IdleTimeout < 0 || opts.WriteTimeout < 0 {
		return nil, fmt.Errorf("rpc server: timeouts are %v and %v, they must not be negative", opts.IdleTimeout, opts.WriteTimeout)
	}
	if opts.Loops < 0 || opts.Workers < 0 || opts.SlowBody < 0 {
		return nil, fmt.Errorf("rpc server: %d loops, %d workers, bodies of %d bytes: none may be negative", opts.Loops, opts.Workers, opts.SlowBody)
	}
	procs := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if opts.Loops == 0 {
		opts.Loops = min(max(procs/2, 1), 8)
	}
	if opts.Workers == 0 {
		opts.Workers = max(procs-1, 1)
	}
	if opts.SlowBody == 0 {
		opts.SlowBody = DefaultSlowBody
	}
	log := opts.Logger
	if log == nil {
		log = hclog.NewNullLogger()
	}
	s := &Server{
		opts:      opts,
		log:       log,
		limits:    limiter{now: opts.Now},
		maxReply:  math.MaxUint32,
		routes:    map[uint32]*route{},
		byName:    map[string]*route{},
		done:      make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		conns:     map[*conn]struct{}{},
	}
	s.workers.server = s
	return s, nil
}

// Handle registers h for a call. It must not be called once the server serves, nor twice for
// one call; both panic.
//
// req and resp are used again for later requests. Strings and slices in req share the memory
// of the frame, so that h must clone what it keeps. resp comes empty, its slices with the
// capacity of earlier use; h must fill it with memory that nobody else uses, since it is
// emptied in place after the answer is encoded. structpack.Resize makes a slice longer and
// keeps the capacity inside its elements.
//
// An error of h, which is for trouble outside the business of the call, is answered with
// CodeHandlerFailed and its text, and logged.
//
// Traits tell what the server should know about the call.
func Handle[Req, Resp any](s *Server, r *wire.RPC[Req, Resp], h func(c *Call, req *Req, resp *Resp) error, traits ...Trait) {
	if s.serving.Load() {
		panic("rpc: handler for " + r.Name() + " registered while serving")
	}
	if s.routes[r.ID()] != nil {
		panic("rpc: two handlers for " + r.Name())
	}
	rt := newRoute(r, h)
	rt.slow = slices.Contains(traits, Slow)
	s.routes[r.ID()] = rt
	s.byName[r.Name()] = rt
}

// Registered reports whether the call of that name has a handler.
func (s *Server) Registered(name string) bool { return s.byName[name] != nil }

// Serve accepts connections from l until Shutdown or until l fails. It owns l. After
// Shutdown it returns ErrServerClosed, at once and not when the connections have ended.
func (s *Server) Serve(l net.Listener) error {
	s.serving.Store(true)
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		l.Close()
		return ErrServerClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		l.Close()
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.start(nc)
			continue
		}
		if s.closing.Load() {
			return ErrServerClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting on %v: %w", l.Addr(), err)
		}
		// Most likely out of file descriptors: connections that end will help.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.trouble("accepting a connection failed", "address", l.Addr().String(), "error", err, "retry_in", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return ErrServerClosed
		}
	}
}

// start serves one connection, which Shutdown waits for, in an event loop or else in a
// goroutine of its own.
func (s *Server) start(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok && s.opts.Delay {
		// The default of net is off; failing to switch it on costs nothing but packets.
		_ = tc.SetNoDelay(false)
	}
	number := s.accepted.Add(1)
	if s.attach(nc, number) {
		return
	}
	c := &conn{server: s, nc: nc, session: newSession(s, nc.RemoteAddr().String(), number)}
	c.session.sort = true
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.open.Add(1)
	s.wait.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.open.Add(-1)
	})
	s.mu.Unlock()
}

// Shutdown stops accepting, lets every connection answer what it has read completely, and
// waits for all of them. When ctx ends first, the connections that are left are cut and its
// error is returned; handlers are waited for in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closing.CompareAndSwap(false, true) {
		close(s.done)
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.wake()
	}
	if s.loops != nil {
		s.loops.wake()
	}
	s.mu.Unlock()

	finished := make(chan struct{})
	go func() {
		s.wait.Wait()
		s.mu.Lock()
		if s.loops != nil {
			s.loops.close()
		}
		s.mu.Unlock()
		close(finished)
	}()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.cut.Store(true)
	for c := range s.conns {
		c.nc.Close()
	}
	if s.loops != nil {
		s.loops.wake()
	}
	s.mu.Unlock()
	<-finished
	return fmt.Errorf("rpc connections were cut: %w", ctx.Err())
}

// Counters returns the outcomes of every registered call by its name.
func (s *Server) Counters() map[string]Counters {
	all := make(map[string]Counters, len(s.byName))
	for name, r := range s.byName {
		all[name] = sum(&r.tallies)
	}
	return all
}

// Stats returns the counts of the server itself.
func (s *Server) Stats() Stats {
	st := Stats{
		Accepted: s.accepted.Load(), Open: s.open.Load(), Panics: s.panics.Load(),
		Refused:   make(map[string]uint64, reasonCount),
		BytesRead: s.bytesRead.Load(), BytesWritten: s.bytesWritten.Load(),
	}
	s.mu.Lock()
	g := s.loops
	s.mu.Unlock()
	if g != nil {
		g.count(&st)
	}
	for r := range reasonCount {
		st.Refused[r.String()] = s.refused[r].Load()
	}
	return st
}

// refuse counts a refused frame and logs it, unless there were many of late.
func (s *Server) refuse(reason Reason, peer string, fields ...any) {
	s.refused[reason].Add(1)
	suppressed, ok := s.limits.allow(int(reason))
	if !ok {
		return
	}
	s.log.Warn("request refused", append([]any{"reason", reason.String(), "peer", peer, "suppressed", suppressed}, fields...)...)
}

// trouble logs what went wrong with a connection, unless there was much of late.
func (s *Server) trouble(message string, fields ...any) {
	if suppressed, ok := s.limits.allow(int(reasonCount) + 1); ok {
		s.log.Warn(message, append(fields, "suppressed", suppressed)...)
	}
}
