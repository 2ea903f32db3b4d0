// Package transporttest serves masters to the tests of those who speak the protocol.
package transporttest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// Serve serves a master with the default configuration as changed, and returns it and its address. now tells
// the time. When the test ends the server stops and the master's invariants are checked.
func Serve(t testing.TB, now func() time.Time, change ...func(*core.Config)) (*core.Master, string) {
	t.Helper()
	cfg := core.Default()
	for _, f := range change {
		f(&cfg)
	}
	m, err := core.New(cfg, core.Deps{Clock: steady{now, now()}, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Check(); err != nil {
			t.Errorf("invariants at the end of the test: %v", err)
		}
	})
	s, err := rpc.NewServer(rpc.Options{Now: now, Poison: true})
	if err != nil {
		t.Fatal(err)
	}
	transport.Bind(s, m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return m, l.Addr().String()
}

// steady is a core.Clock that began an hour before the test.
type steady struct {
	now   func() time.Time
	start time.Time
}

func (c steady) Now() int64 { return int64(c.now().Sub(c.start) + time.Hour) }
