package segment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// cluster is a real etcd inside this process, which can be stopped and started again on the same port.
type cluster struct {
	dir, client, peer string
	running           *embed.Etcd
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: filepath.Join(t.TempDir(), "data")}
	for _, at := range []*string{&c.client, &c.peer} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		*at = l.Addr().String()
	}
	return c
}

func (c *cluster) start(t *testing.T) {
	t.Helper()
	place := func(at string) []url.URL { return []url.URL{{Scheme: "http", Host: at}} }
	config := embed.NewConfig()
	config.Dir = c.dir
	config.Logger, config.LogLevel, config.LogOutputs = "zap", "panic", []string{os.DevNull}
	config.TickMs, config.ElectionMs = 20, 200
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = place(c.client), place(c.client)
	config.ListenPeerUrls, config.AdvertisePeerUrls = place(c.peer), place(c.peer)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	running, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	c.running = running
	select {
	case <-running.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		t.Fatal("etcd does not get ready")
	}
}

func (c *cluster) stop() {
	c.running.Close()
	c.running = nil
}

// stores are the kinds of store.
func stores(t *testing.T, run func(t *testing.T, address string)) {
	t.Run("http", func(t *testing.T) { run(t, store(t)) })
	t.Run("etcd", func(t *testing.T) {
		c := newCluster(t)
		c.start(t)
		t.Cleanup(c.stop)
		run(t, "etcd://"+c.client)
	})
}

func open(t *testing.T, address string) Metadata {
	t.Helper()
	m, err := OpenMetadata(address, "", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// port1 is an address at which nobody listens.
const port1 = "127.0.0.1:1"

func TestStores(t *testing.T) {
	stores(t, func(t *testing.T, address string) {
		m, ctx := open(t, address), t.Context()
		if _, err := m.Descriptor(ctx, "a:1"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "a:1") {
			t.Errorf("%v", err)
		}
		if _, err := m.Address(ctx, "a:1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		if err := m.Withdraw(ctx, "a:1", port1); err != nil {
			t.Errorf("what isn't there: %v", err)
		}
		want := &Descriptor{Name: "a:1", Protocol: protocols{ProtocolTCP}, Buffers: []Buffer{{Addr: 1 << 63, Length: 7, Name: "a:1"}}}
		if err := errors.Join(m.Announce(ctx, "a:1", "192.0.2.1:7"), m.Publish(ctx, want)); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Address(ctx, "a:1"); err != nil || got != "192.0.2.1:7" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := m.Descriptor(ctx, "a:1"); err != nil || got.Name != "a:1" || got.Buffers[0].Addr != 1<<63 || got.Timestamp == "" {
			t.Errorf("%+v, %v", got, err)
		}
		// Names of one cluster are not those of another.
		other, err := OpenMetadata(address, "x", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.Address(ctx, "a:1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		// Somebody else's name isn't taken back, one's own is.
		for _, c := range []struct {
			address string
			want    error
		}{{"192.0.2.1:8", nil}, {"192.0.2.1:7", ErrNotFound}} {
			if err := m.Withdraw(ctx, "a:1", c.address); err != nil {
				t.Fatal(err)
			}
			_, a := m.Address(ctx, "a:1")
			_, d := m.Descriptor(ctx, "a:1")
			if !errors.Is(a, c.want) || !errors.Is(d, c.want) {
				t.Errorf("withdrawn by %s: %v, %v", c.address, a, d)
			}
		}
	})
}

// TestNames are taken over from the dead and from nobody else.
func TestNames(t *testing.T) {
	stores(t, func(t *testing.T, address string) {
		m, ctx := open(t, address), t.Context()
		s := m.(*shelfStore)
		if err := m.Announce(ctx, "dead:1", port1); err != nil {
			t.Fatal(err)
		}
		// What the released clients write is not written as we do.
		if err := s.put(ctx, s.addressKey("odd:1"), []byte("{ \"rpc_port\" : 1, \"ip_or_host_name\": \"127.0.0.1\" }\n")); err != nil {
			t.Fatal(err)
		}
		if err := m.Announce(ctx, "odd:1", port1); err != nil {
			t.Errorf("the same address again: %v", err)
		}
		if err := s.put(ctx, s.addressKey("bad:1"), []byte("nonsense")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"dead:1", "odd:1", "bad:1"} {
			h := host(t, address, name)
			if got, err := m.Address(ctx, name); err != nil || got != h.address {
				t.Errorf("%s: %q, %v; want %s", name, got, err, h.address)
			}
			// The living one keeps its name, and can say it once more.
			_, err := NewHost(ctx, HostConfig{Name: name, Metadata: address, Bind: "127.0.0.1", Now: time.Now})
			if !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), h.address) || !strings.Contains(err.Error(), "mooncake/rpc_meta/"+name) {
				t.Errorf("%s: %v", name, err)
			}
			if err := h.Publish(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSilentOwnersKeepTheirNames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	defer served.Wait()
	defer l.Close()
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close() // without an answer
		}
	})
	m := open(t, store(t))
	if err := m.Announce(t.Context(), "a:1", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if err := m.Announce(t.Context(), "a:1", port1); !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Announce(ctx, "a:1", port1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestOneOfManyGetsTheName has many take over one abandoned name at the same time.
func TestOneOfManyGetsTheName(t *testing.T) {
	c := newCluster(t)
	c.start(t)
	t.Cleanup(c.stop)
	m, ctx := open(t, "etcd://"+c.client), t.Context()
	if err := m.Announce(ctx, "a:1", port1); err != nil {
		t.Fatal(err)
	}
	const many = 8
	var wg sync.WaitGroup
	won, errs := make([]*Host, many), make([]error, many)
	for i := range many {
		wg.Go(func() {
			won[i], errs[i] = NewHost(ctx, HostConfig{Name: "a:1", Metadata: "etcd://" + c.client, Bind: "127.0.0.1", Now: time.Now})
		})
	}
	wg.Wait()
	winners := 0
	for i, h := range won {
		if h == nil {
			if !errors.Is(errs[i], ErrNameTaken) {
				t.Error(errs[i])
			}
			continue
		}
		winners++
		if got, err := m.Address(ctx, "a:1"); err != nil || got != h.address {
			t.Errorf("%q, %v; want %s", got, err, h.address)
		}
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if winners != 1 {
		t.Errorf("%d have the name", winners)
	}
}

// TestAHostOutlivesItsStore publishes once more what a store has lost, and reaches a cluster again that was down.
func TestAHostOutlivesItsStore(t *testing.T) {
	stores(t, func(t *testing.T, address string) {
		h, m, ctx := host(t, address, "127.0.0.1:17905"), memory(t, 1<<20), t.Context()
		if err := h.Register(ctx, m); err != nil {
			t.Fatal(err)
		}
		s := open(t, address).(*shelfStore)
		if err := s.remove(ctx, mustGet(t, s, s.addressKey(h.Name())), s.addressKey(h.Name()), s.descriptorKey(h.Name())); err != nil {
			t.Fatal(err)
		}
		if err := h.Publish(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Address(ctx, h.Name()); err != nil || got != h.address {
			t.Errorf("%q, %v", got, err)
		}
		want := []byte("still there")
		copy(m.Bytes(), want)
		got := make([]byte, len(want))
		if err := carrier(t, address).Read(ctx, Place{Owner: h.Name(), Address: m.Address()}, got); err != nil || string(got) != string(want) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func mustGet(t *testing.T, s *shelfStore, key string) []byte {
	t.Helper()
	text, err := s.get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEtcdGoesAndComes(t *testing.T) {
	c := newCluster(t)
	c.start(t)
	m := open(t, fmt.Sprintf("%s,%s", port1, c.client))
	if err := m.Announce(t.Context(), "a:1", port1); err != nil {
		t.Fatal(err)
	}
	c.stop()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := m.Address(short, "a:1"); err == nil || !strings.Contains(err.Error(), c.client) {
		t.Errorf("while it is down: %v", err)
	}
	c.start(t)
	defer c.stop()
	if got, err := m.Address(t.Context(), "a:1"); err != nil || got != port1 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAddressesOfMetadata(t *testing.T) {
	for _, good := range []string{P2P, "http://127.0.0.1:8080/metadata", "https://h/m", "etcd://127.0.0.1:2379", "etcd://a:1,b:2", "etcd://a:1;b:2", "127.0.0.1:2379", "etcd://[::1]:2379"} {
		m, err := OpenMetadata(good, "", time.Now)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if err := m.Close(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []struct{ address, want string }{
		{"redis://127.0.0.1:6379", "no store for redis; use P2PHANDSHAKE, http"},
		{"http://", "no URL with a host"},
		{"etcd://", "names no member"},
		{"etcd://a", `"a" is no host:port`},
		{"etcd://a:1,b", `"b" is no host:port`},
		{"", "names no member"},
		{"p2phandshake", "neither P2PHANDSHAKE"},
	} {
		if _, err := OpenMetadata(bad.address, "", time.Now); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %q", bad.address, err, bad.want)
		}
	}
}
