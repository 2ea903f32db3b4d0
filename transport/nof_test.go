package transport_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// TestNoFCalls makes every call about NVMe-oF segments over a connection, of a master that takes them and
// of one that doesn't, which answers as the released builds do.
func TestNoFCalls(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		cfg := core.Default()
		cfg.NoF.Enabled = enabled
		m, err := core.New(cfg, core.Deps{Clock: mastertest.NewClock(), Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger()})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rpc.NewServer(rpc.Options{Now: time.Now, MaxFrame: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		transport.Bind(s, m)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(l) }()
		defer s.Shutdown(context.Background())
		c, err := rpc.Dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		noFCalls(t, c, enabled)
	}
}

func ask[Q, A any](t *testing.T, c *rpc.Client, row *wire.RPC[Q, A], q Q) (a A) {
	t.Helper()
	if err := rpc.Invoke(t.Context(), c, row, &q, &a); err != nil {
		t.Fatalf("%s: %v", row.Name(), err)
	}
	return a
}

func noFCalls(t *testing.T, c *rpc.Client, enabled bool) {
	t.Helper()
	want := func(what string, got, on, off errcode.Code) {
		t.Helper()
		if enabled {
			off = on
		}
		if got != off {
			t.Errorf("enabled %t: %s: %v, want %v", enabled, what, got, off)
		}
	}
	one := wire.NoFSegment{ID: mastertest.ID(5), Name: "d", Base: 0, Size: 1 << 20, Endpoint: "trtype:TCP traddr:1.2.3.4 trsvcid:4420"}
	two := wire.NoFSegment{ID: mastertest.ID(6), Name: "e", Base: 4096, Size: 1 << 20, Endpoint: "trtype:TCP traddr:1.2.3.5 trsvcid:4420"}
	client := mastertest.ID(1)
	want("mount", ask(t, c, wire.MountNoFSegment, wire.MountNoFSegmentRequest{Segment: one, ClientID: client}).Code, errcode.OK, errcode.UnavailableInMode)
	want("remount", ask(t, c, wire.ReMountNoFSegment, wire.ReMountNoFSegmentRequest{Segments: []wire.NoFSegment{one, two}, ClientID: client}).Code, errcode.OK, errcode.UnavailableInMode)
	all := ask(t, c, wire.GetAllNoFSegments, wire.GetAllNoFSegmentsRequest{})
	want("all", all.Code, errcode.OK, errcode.OK)
	if enabled && (len(all.Value) != 2 || all.Value[0] != one || all.Value[1] != two) || !enabled && len(all.Value) != 0 {
		t.Errorf("enabled %t: all are %+v", enabled, all.Value)
	}
	of := ask(t, c, wire.GetNoFSegmentsByName, wire.GetNoFSegmentsByNameRequest{SegmentName: "e"})
	want("by name", of.Code, errcode.OK, errcode.SegmentNotFound)
	if enabled && (len(of.Value) != 1 || of.Value[0] != (wire.NoFSegmentOwner{SegmentID: two.ID, ClientID: client})) {
		t.Errorf("by name: %+v", of.Value)
	}
	put := ask(t, c, wire.PutStart, wire.PutStartRequest{ClientID: client, Key: "k", SliceLength: 1000, Config: object.ReplicateConfig{NoFReplicaNum: 1, PreferredNoFSegments: []string{"e"}}, TenantID: "default"})
	want("put", put.Code, errcode.OK, errcode.InvalidParams)
	if enabled {
		d := put.Value[0].Location
		if d.Index != object.LocationNoF || d.NoF.Buffer.Endpoint != two.Endpoint || d.NoF.Buffer.Address != two.Base || d.NoF.Buffer.Size != 1000 {
			t.Errorf("placed at %+v", d.NoF)
		}
	}
	want("unmount", ask(t, c, wire.UnmountNoFSegment, wire.UnmountNoFSegmentRequest{SegmentID: two.ID, ClientID: client}).Code, errcode.OK, errcode.UnavailableInMode)
}
