package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// httpServer is an http.Server that doesn't wait at its end for connections that have never asked for anything.
// The library's Shutdown gives each of them five seconds.
type httpServer struct {
	*http.Server

	mu      sync.Mutex
	silent  map[net.Conn]bool
	stopped bool
}

// watch is the server's ConnState.
func (s *httpServer) watch(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(s.silent, conn)
	case s.stopped:
		conn.Close()
	default:
		s.silent[conn] = true
	}
}

func (s *httpServer) serve(l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdown lets requests under way finish, and cuts them when the context ends.
func (s *httpServer) shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	for conn := range s.silent {
		conn.Close()
	}
	s.mu.Unlock()
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
