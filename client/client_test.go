package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	seg "github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/transporttest"
)

// pool is a master and hosts that lend it memory.
type pool struct {
	*core.Master
	address string
	hosts   []*segment.Host
	memory  []*segment.Memory // of each
}

const lent = 32 << 20 // bytes of each host

// patience is for how long the masters of tests keep hosts that never ping.
const patience = time.Hour

// newPool serves a master for the tenants a, of ten megabytes, and b, to which so many hosts lend memory.
func newPool(t *testing.T, hosts int, change ...func(*core.Config)) *pool {
	t.Helper()
	usual := func(cfg *core.Config) { cfg.MultiTenant, cfg.ClientActiveTTL = true, patience }
	m, address := transporttest.Serve(t, time.Now, append([]func(*core.Config){usual}, change...)...)
	p := &pool{Master: m, address: address}
	for i := range hosts {
		p.lend(t, uint64(i+1))
	}
	m.ApplyPolicies([]tenant.Policy{{Name: "a", Quota: 10 << 20}, {Name: "b", Quota: 20 << 20}})
	return p
}

// lend adds a host.
func (p *pool) lend(t *testing.T, n uint64) {
	t.Helper()
	h, err := segment.NewHost(t.Context(), segment.HostConfig{Name: "127.0.0.1:1", Metadata: segment.P2P, Bind: "127.0.0.1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := segment.NewMemory(lent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close(context.Background())
		memory.Free()
	})
	if err := h.Register(t.Context(), memory); err != nil {
		t.Fatal(err)
	}
	info := seg.Info{ID: mastertest.ID(n), Name: fmt.Sprint("seg", n), Base: memory.Address(), Size: lent, Endpoint: h.Name(), Protocol: "tcp"}
	if code := p.MountSegment(info, mastertest.ID(n)); code != errcode.OK {
		t.Fatal(code)
	}
	p.hosts, p.memory = append(p.hosts, h), append(p.memory, memory)
}

func (p *pool) client(t *testing.T, tenant string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), Config{Master: p.address, Metadata: segment.P2P, Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (p *pool) charged(name string) uint64 {
	s, _ := p.TenantSnapshot(name)
	return s.ChargedBytes
}

func value(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) ^ seed
	}
	return b
}

func TestPutGetRemove(t *testing.T) {
	p := newPool(t, 2)
	c, ctx := p.client(t, "a"), t.Context()
	for _, size := range []int{1, 4096, 1 << 20, 5<<20 + 3} {
		key, want := fmt.Sprint("k", size), value(size, 1)
		if err := c.Put(ctx, key, want); err != nil {
			t.Fatal(err)
		}
		got, err := c.Get(ctx, key)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %d come back, %v", size, len(got), err)
		}
		if s, err := c.Stat(ctx, key); err != nil || s.Size != uint64(size) || len(s.Replicas) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if got := p.charged("a"); got != uint64(size) {
			t.Errorf("%d bytes are charged for %d", got, size)
		}
		if err := c.Put(ctx, key, want); !errors.Is(err, errcode.ObjectAlreadyExists) {
			t.Errorf("a second put: %v", err)
		}
		next := value(size, 2)
		if err := c.Upsert(ctx, key, next); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(ctx, key); err != nil || !bytes.Equal(got, next) {
			t.Errorf("after an upsert: %v", err)
		}
		if err := c.Remove(ctx, key, true); err != nil {
			t.Fatal(err)
		}
		if there, err := c.Exists(ctx, key); there || err != nil {
			t.Errorf("after removal: %v, %v", there, err)
		}
		if _, err := c.Get(ctx, key); !errors.Is(err, errcode.ObjectNotFound) {
			t.Errorf("after removal: %v", err)
		}
		p.Step()
	}
}

func TestTenantsAreApart(t *testing.T) {
	p := newPool(t, 1)
	a, b, ctx := p.client(t, "a"), p.client(t, "b"), t.Context()
	if err := a.Put(ctx, "k", []byte("a's")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, "k"); !errors.Is(err, errcode.ObjectNotFound) {
		t.Errorf("b sees a's value: %v", err)
	}
	if err := b.Put(ctx, "big", value(21<<20, 0)); !errors.Is(err, errcode.TenantQuotaExceeded) || !strings.Contains(err.Error(), `put "big"`) {
		t.Errorf("more than the quota: %v", err)
	}
	if err := p.client(t, "nobody").Put(ctx, "k", []byte("x")); !errors.Is(err, errcode.TenantNotRegistered) {
		t.Errorf("an unknown tenant: %v", err)
	}
}

// TestStreams are longer than what is in memory of them, and no multiple of it.
func TestStreams(t *testing.T) {
	p := newPool(t, 2)
	c, want := p.client(t, "b"), value(9<<20+5, 3)
	if err := c.PutFrom(t.Context(), "k", uint64(len(want)), bytes.NewReader(want), Replicas(2)); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if n, err := c.GetTo(t.Context(), "k", &got); err != nil || n != uint64(len(want)) || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := p.charged("b"); got != 2*uint64(len(want)) {
		t.Errorf("charged %d", got)
	}
	// A value that ends early is taken back, whole.
	if err := c.PutFrom(t.Context(), "short", 1<<20, io.LimitReader(bytes.NewReader(want), 1<<20-1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a value that ends early: %v", err)
	}
	if got := p.charged("b"); got != 2*uint64(len(want)) {
		t.Errorf("after a revoked put %d bytes are charged", got)
	}
}

func TestAnotherReplicaIsRead(t *testing.T) {
	p := newPool(t, 2)
	c, ctx := p.client(t, "a"), t.Context()
	if err := c.Put(ctx, "k", []byte("twice"), Replicas(2)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Stat(ctx, "k")
	if err != nil || len(s.Replicas) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	first := s.Replicas[0].Location.Memory.Buffer.Endpoint
	for _, h := range p.hosts {
		if h.Name() == first {
			h.Close(ctx)
		}
	}
	if got, err := c.Get(ctx, "k"); err != nil || string(got) != "twice" {
		t.Errorf("%q, %v", got, err)
	}
	// A write to a host that is gone is revoked, and says where it failed.
	err = c.Put(ctx, "l", []byte("x"), Replicas(2))
	if err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("%v", err)
	}
	if got := p.charged("a"); got != 10 {
		t.Errorf("%d bytes are charged, want those of k", got)
	}
}

func TestOptions(t *testing.T) {
	p := newPool(t, 2)
	c, ctx := p.client(t, "a"), t.Context()
	for _, name := range []string{"seg2", "seg1"} {
		if err := c.Put(ctx, name, []byte("x"), Prefer(name)); err != nil {
			t.Fatal(err)
		}
		s, err := c.Stat(ctx, name)
		if err != nil || s.Replicas[0].Location.Memory.Buffer.Endpoint != p.hosts[name[3]-'1'].Name() {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if err := c.Put(ctx, "soft", value(1<<20, 0), SoftPin(time.Hour)); err != nil || p.Stats().SoftPinnedKeys != 1 {
		t.Errorf("%v, %d soft pins", err, p.Stats().SoftPinnedKeys)
	}
	if err := c.Put(ctx, "hard", value(6<<20, 0), HardPin); err != nil {
		t.Fatal(err)
	}
	// Of ten megabytes six are pinned for good: there is no room for five more, whatever else goes.
	if err := c.Put(ctx, "big", value(5<<20, 0)); !errors.Is(err, errcode.TenantQuotaExceeded) {
		t.Errorf("%v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	p := newPool(t, 2)
	c := p.client(t, "a")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			key, want := fmt.Sprint("k", i), value(10_000+i, byte(i))
			if err := c.Put(t.Context(), key, want); err != nil {
				t.Error(err)
				return
			}
			if got, err := c.Get(t.Context(), key); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	wg.Wait()
}

func TestNoMasterThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err := Dial(t.Context(), Config{Master: address, Metadata: segment.P2P}); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(), Config{Master: address, Metadata: "nonsense"}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("%v", err)
	}
}
