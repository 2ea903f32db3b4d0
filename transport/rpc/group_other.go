//go:build !linux

package rpc

import "net"

// There are no event loops on this system: every connection has a goroutine of its own.

type group struct{}

type workers struct{ server *Server }

func (s *Server) attach(net.Conn, uint64) bool { return false }
func yield()                                   {}
func (g *group) wake()                         {}
func (g *group) close()                        {}
func (g *group) count(*Stats)                  {}
