package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	core "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// settings are those of "open" and "lend".
type settings struct {
	Name        string `json:"name"` // host:port of a host
	Size        int    `json:"size"` // bytes that a host lends
	Master      string `json:"master"`
	Metadata    string `json:"metadata"`
	Tenant      string `json:"tenant"`
	DataVersion int    `json:"data_version"`
}

func (s *settings) client() client.Config {
	return client.Config{Master: s.Master, Metadata: s.Metadata, Tenant: s.Tenant}
}

// lent is memory that a master allocates.
type lent struct {
	host   *segment.Host
	memory *segment.Memory
	master *rpc.Client
	info   core.Info
	stop   context.CancelFunc
	pings  sync.WaitGroup
}

// lend offers memory to a master, which hears of it once a second from then on.
func lend(ctx context.Context, s settings) (_ *lent, err error) {
	l := new(lent)
	defer func() {
		if err != nil {
			l.takeBack(ctx)
		}
	}()
	if l.host, err = segment.NewHost(ctx, segment.HostConfig{Name: s.Name, Metadata: s.Metadata, Bind: "127.0.0.1", DataVersion: s.DataVersion, Now: time.Now}); err != nil {
		return nil, err
	}
	if l.memory, err = segment.NewMemory(s.Size); err != nil {
		return nil, err
	}
	if err = l.host.Register(ctx, l.memory); err != nil {
		return nil, err
	}
	if l.master, err = rpc.Dial(ctx, s.Master); err != nil {
		return nil, err
	}
	id := newID()
	l.info = core.Info{ID: id, Name: l.host.Name(), Base: l.memory.Address(), Size: uint64(s.Size), Endpoint: l.host.Name(), Protocol: "tcp"}
	var got errcode.Result[errcode.Void]
	if err = rpc.Invoke(ctx, l.master, wire.MountSegment, &wire.MountSegmentRequest{Segment: l.info, ClientID: id}, &got); err != nil {
		return nil, err
	}
	if got.Code != errcode.OK {
		return nil, fmt.Errorf("mounting %s: %w", l.host.Name(), got.Code)
	}
	var alive context.Context
	alive, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.pings.Go(func() { l.ping(alive) })
	return l, nil
}

func (l *lent) ping(ctx context.Context) {
	for every := time.NewTicker(time.Second); ctx.Err() == nil; {
		select {
		case <-every.C:
			var pong errcode.Result[wire.PingReply]
			rpc.Invoke(ctx, l.master, wire.Ping, &wire.PingRequest{ClientID: l.info.ID}, &pong) // a master that is gone ends the run anyway
		case <-ctx.Done():
			every.Stop()
		}
	}
}

// takeBack ends the loan.
func (l *lent) takeBack(ctx context.Context) error {
	var errs []error
	if l.stop != nil {
		l.stop()
		l.pings.Wait()
		var got errcode.Result[errcode.Void]
		errs = append(errs, rpc.Invoke(ctx, l.master, wire.UnmountSegment, &wire.UnmountSegmentRequest{SegmentID: l.info.ID, ClientID: l.info.ID}, &got))
	}
	if l.master != nil {
		errs = append(errs, l.master.Close())
	}
	if l.host != nil {
		errs = append(errs, l.host.Close(ctx))
	}
	if l.memory != nil {
		errs = append(errs, l.memory.Free())
	}
	return errors.Join(errs...)
}

// newID returns a random identity.
func newID() core.UUID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return core.UUID{First: binary.LittleEndian.Uint64(b[:8]), Second: binary.LittleEndian.Uint64(b[8:])}
}
