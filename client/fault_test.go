package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// dialThrough connects to a pool's master over a way of a test's own.
func (p *pool) dialThrough(t *testing.T, change ...func(*Config)) (*Client, *between) {
	t.Helper()
	b := newBetween(t, p.address)
	cfg := Config{Master: b.address(), Metadata: segment.P2P, Tenant: "a"}
	for _, f := range change {
		f(&cfg)
	}
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, b
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("not %s after 20 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCallsWhoseConnectionEnds are made again where that changes nothing.
func TestCallsWhoseConnectionEnds(t *testing.T) {
	p := newPool(t, 2)
	c, b := p.dialThrough(t)
	ctx, want := t.Context(), value(1<<20, 1)
	for _, f := range []fate{lost, unsaid} {
		for _, r := range []uint32{wire.PutStart.ID(), wire.PutEnd.ID(), wire.GetReplicaList.ID(), wire.ExistKey.ID()} {
			b.next(r, f)
		}
		if err := c.Put(ctx, "k", want); err != nil {
			t.Fatalf("%d: %v", f, err)
		}
		if got, err := c.Get(ctx, "k"); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d: %v", f, err)
		}
		if there, err := c.Exists(ctx, "k"); err != nil || !there {
			t.Fatalf("%d: %v", f, err)
		}
		if got := p.charged("a"); got != 1<<20 {
			t.Errorf("%d bytes are charged", got)
		}
		b.next(wire.UpsertStart.ID(), f)
		b.next(wire.UpsertEnd.ID(), f)
		if err := c.Upsert(ctx, "k", want[1:]); err != nil {
			t.Fatalf("%d: %v", f, err)
		}
		b.next(wire.BatchPutStart.ID(), f)
		b.next(wire.BatchPutEnd.ID(), f)
		if err := errors.Join(c.PutBatch(ctx, []Item{{"x", want[:7]}, {"y", want[:8]}})...); err != nil {
			t.Fatalf("%d: %v", f, err)
		}
		b.next(wire.BatchGetReplicaList.ID(), f)
		if got, errs := c.GetBatch(ctx, []string{"x", "y"}); errors.Join(errs...) != nil || !bytes.Equal(got[0], want[:7]) || !bytes.Equal(got[1], want[:8]) {
			t.Fatalf("%d: %v", f, errs)
		}
		if got := p.charged("a"); got != 1<<20-1+15 {
			t.Errorf("%d bytes are charged", got)
		}
		if _, err := c.RemoveAll(ctx, true); err != nil {
			t.Fatal(err)
		}
	}
	// What may not be made twice is not.
	b.next(wire.RemoveAll.ID(), unsaid)
	calls := b.count(wire.RemoveAll.ID())
	if _, err := c.RemoveAll(ctx, true); !errors.Is(err, errcode.RPCFail) || b.count(wire.RemoveAll.ID()) != calls+1 {
		t.Errorf("%v", err)
	}
	// Twice is enough.
	b.next(wire.ExistKey.ID(), lost, lost)
	if _, err := c.Exists(ctx, "k"); !errors.Is(err, errcode.RPCFail) || !strings.Contains(err.Error(), b.address()) {
		t.Errorf("%v", err)
	}
}

// TestGivenUpWhileItBegins takes back a write whose caller has gone before the master has answered to its start.
func TestGivenUpWhileItBegins(t *testing.T) {
	p := newPool(t, 1)
	c, b := p.dialThrough(t)
	b.next(wire.PutStart.ID(), held)
	b.next(wire.BatchUpsertStart.ID(), held)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Put(ctx, "k", value(1<<20, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	wg.Go(func() {
		for _, err := range c.UpsertBatch(ctx, []Item{{"x", value(1<<20, 1)}, {"y", value(1<<20, 1)}}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
	})
	until(t, "charged", func() bool { return p.charged("a") == 3<<20 })
	cancel()
	wg.Wait()
	if got := p.charged("a"); got != 3<<20 {
		t.Errorf("%d bytes are charged before anybody can know", got)
	}
	under := func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, count := range c.writing {
			n += count
		}
		return n
	}
	if got := under(); got != 3 {
		t.Errorf("%d writes count as under way: others of these keys must know of all three", got)
	}
	b.release()
	until(t, "refunded", func() bool { return p.charged("a") == 0 })
	until(t, "left", func() bool { return under() == 0 })
	if err := c.Put(t.Context(), "k", value(9<<20, 1)); err != nil {
		t.Error(err)
	}
}

// interrupted is a carrier with which a test does something before transfers.
type interrupted struct {
	carrier
	before func(ctx context.Context, write bool, at transfer.Place) error
}

func (i *interrupted) Read(ctx context.Context, from transfer.Place, dst []byte) error {
	if err := i.before(ctx, false, from); err != nil {
		return err
	}
	return i.carrier.Read(ctx, from, dst)
}

func (i *interrupted) Write(ctx context.Context, to transfer.Place, src []byte) error {
	if err := i.before(ctx, true, to); err != nil {
		return err
	}
	return i.carrier.Write(ctx, to, src)
}

// interrupt has a client do something before each transfer.
func (c *Client) interrupt(before func(ctx context.Context, write bool, at transfer.Place) error) {
	if i, ok := c.carrier.(*interrupted); ok {
		i.before = before
		return
	}
	c.carrier = &interrupted{c.carrier, before}
}

func TestContextsEndWritesAndReads(t *testing.T) {
	p := newPool(t, 2)
	c := p.client(t, "a")
	if err := c.Put(t.Context(), "k", value(100, 1)); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	c.interrupt(func(ctx context.Context, _ bool, _ transfer.Place) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	for name, f := range map[string]func(context.Context) error{
		"put":    func(ctx context.Context) error { return c.Put(ctx, "l", value(100, 1), Replicas(2)) },
		"stream": func(ctx context.Context) error { return c.PutFrom(ctx, "l", 100, bytes.NewReader(value(100, 1))) },
		"batch":  func(ctx context.Context) error { return errors.Join(c.PutBatch(ctx, []Item{{"l", value(100, 1)}})...) },
		"get":    func(ctx context.Context) error { _, err := c.Get(ctx, "k"); return err },
		"get to": func(ctx context.Context) error { _, err := c.GetTo(ctx, "k", new(bytes.Buffer)); return err },
		"get all": func(ctx context.Context) error {
			_, errs := c.GetBatch(ctx, []string{"k"})
			return errors.Join(errs...)
		},
	} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cancel = stop
		if err := f(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if got := p.charged("a"); got != 100 {
			t.Errorf("%s: %d bytes are charged", name, got)
		}
	}
	done, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.Exists(done, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWritesThatTakeTooLong(t *testing.T) {
	p := newPool(t, 1)
	c, _ := p.dialThrough(t, func(cfg *Config) { cfg.WriteTimeout = 50 * time.Millisecond })
	c.interrupt(func(ctx context.Context, _ bool, _ transfer.Place) error { <-ctx.Done(); return ctx.Err() })
	for _, err := range []error{c.Put(t.Context(), "k", value(100, 1)), c.PutBatch(t.Context(), []Item{{"k", value(100, 1)}})[0]} {
		if !errors.Is(err, errcode.TransferFail) || !strings.Contains(err.Error(), "Config.WriteTimeout") {
			t.Errorf("%v", err)
		}
	}
	if got := p.charged("a"); got != 0 {
		t.Errorf("%d bytes are charged", got)
	}
}

// TestWritesThatMayStillHappen are not revoked: the master would give their memory to others at once.
func TestWritesThatMayStillHappen(t *testing.T) {
	p := newPool(t, 1)
	c, b := p.dialThrough(t)
	revocations := func() int { return b.count(wire.PutRevoke.ID()) + b.count(wire.BatchPutRevoke.ID()) }
	for name, write := range map[string]struct {
		size uint64
		f    func(key string) error
	}{
		"put":   {100, func(key string) error { return c.Put(t.Context(), key, value(100, 1)) }},
		"batch": {100, func(key string) error { return c.PutBatch(t.Context(), []Item{{key, value(100, 1)}})[0] }},
		// The reader fails while the first piece is being written.
		"stream": {streamPiece + 1, func(key string) error {
			return c.PutFrom(t.Context(), key, streamPiece+1, bytes.NewReader(value(streamPiece, 1)))
		}},
	} {
		for _, settled := range []bool{true, false} {
			broken, want, kept := errors.New("broken"), 1, uint64(0)
			if !settled {
				broken, want, kept = fmt.Errorf("broken; %w", segment.ErrUnsettled), 0, write.size
			}
			c.interrupt(func(context.Context, bool, transfer.Place) error { return broken })
			charged, before := p.charged("a"), revocations()
			err := write.f(fmt.Sprint(name, settled))
			if err == nil || errors.Is(err, segment.ErrUnsettled) == settled {
				t.Errorf("%s: %v", name, err)
			}
			if got := revocations() - before; got != want {
				t.Errorf("%s, %v: it is revoked %d times, want %d", name, err, got, want)
			}
			if got := p.charged("a") - charged; got != kept {
				t.Errorf("%s, %v: %d bytes stay charged, want %d", name, err, got, kept)
			}
		}
	}
}

func TestTheMasterIsSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Dial(t.Context(), Config{Master: l.Addr().String(), Metadata: segment.P2P, CallTimeout: 50 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	p := newPool(t, 1)
	c, b := p.dialThrough(t, func(cfg *Config) { cfg.CallTimeout = 100 * time.Millisecond })
	b.next(wire.ExistKey.ID(), held)
	if _, err := c.Exists(t.Context(), "k"); !errors.Is(err, errcode.RPCTimeout) {
		t.Errorf("%v", err)
	}
	if there, err := c.Exists(t.Context(), "k"); there || err != nil {
		t.Errorf("over another connection: %v, %v", there, err)
	}
	b.release()
}

// TestSeveralMasters finds the one that serves, at first and when another one takes over.
func TestSeveralMasters(t *testing.T) {
	p := newPool(t, 1)
	first, second := newBetween(t, p.address), newBetween(t, p.address)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	c, err := Dial(t.Context(), Config{Master: dead + ", " + first.address() + "," + second.address(), Metadata: segment.P2P, Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Put(t.Context(), "k", value(100, 1)); err != nil {
		t.Fatal(err)
	}
	if second.connections() != 0 {
		t.Error("the second one is asked while the first one answers")
	}
	first.listener.Close()
	first.cut(true)
	if there, err := c.Exists(t.Context(), "k"); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if err := c.Put(t.Context(), "l", value(100, 1)); err != nil {
		t.Error(err)
	}
	second.listener.Close()
	second.cut(true)
	_, err = c.Exists(t.Context(), "k")
	if !errors.Is(err, errcode.RPCFail) || !strings.Contains(err.Error(), dead) || !strings.Contains(err.Error(), second.address()) {
		t.Errorf("%v", err)
	}
}

func TestConnectionsAreSharedAndBounded(t *testing.T) {
	p := newPool(t, 1)
	c, b := p.dialThrough(t, func(cfg *Config) { cfg.Connections = 3 })
	for range 100 {
		if _, err := c.Exists(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.connections(); n != 1 {
		t.Errorf("one after the other takes %d connections", n)
	}
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 50 {
				if _, err := c.Exists(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := b.connections(); n < 1 || n > 3 {
		t.Errorf("%d connections", n)
	}
}

// TestAMasterThatStartsAnew is found again by the next call.
func TestAMasterThatStartsAnew(t *testing.T) {
	p := newPool(t, 1)
	c, b := p.dialThrough(t)
	if err := c.Put(t.Context(), "k", value(100, 1)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		b.cut(false)
		if got, err := c.Get(t.Context(), "k"); err != nil || len(got) != 100 {
			t.Fatalf("%v", err)
		}
	}
}

func TestClosed(t *testing.T) {
	p := newPool(t, 1)
	c, b := p.dialThrough(t)
	b.next(wire.ExistKey.ID(), held)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Exists(t.Context(), "k")
		failed <- err
	}()
	until(t, "called", func() bool { return b.count(wire.ExistKey.ID()) == 1 })
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("a call under way: %v", err)
	}
	b.release()
	if err := c.Put(t.Context(), "k", []byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := c.Get(t.Context(), "k"); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestAnOwnerDiesBetweenLookupAndRead has the value moved elsewhere, or not.
func TestAnOwnerDiesBetweenLookupAndRead(t *testing.T) {
	p := newPool(t, 2)
	c, ctx := p.client(t, "a"), t.Context()
	for i, want := range []string{"read elsewhere", "nowhere"} {
		key := string(rune('k' + i))
		if err := c.Upsert(ctx, key, []byte(want), Prefer("seg1")); err != nil {
			t.Fatal(err)
		}
		dead := p.hosts[0].Name()
		died := false
		c.interrupt(func(_ context.Context, write bool, at transfer.Place) error {
			if write || at.Owner != dead {
				return nil
			}
			if !died && i == 0 {
				died = true
				// Somebody notices and puts it elsewhere.
				if err := p.client(t, "a").Remove(ctx, key, true); err != nil {
					t.Error(err)
				}
				if err := p.client(t, "a").Put(ctx, key, []byte(want), Prefer("seg2")); err != nil {
					t.Error(err)
				}
			}
			return errors.New("connection refused")
		})
		got, err := c.Get(ctx, key)
		if i == 0 && (err != nil || string(got) != want) {
			t.Errorf("%q, %v", got, err)
		}
		if i == 1 && (!errors.Is(err, errcode.TransferFail) || !strings.Contains(err.Error(), "connection refused")) {
			t.Errorf("%v", err)
		}
	}
}

// TestSizesThatNoValueHas don't end the process.
func TestSizesThatNoValueHas(t *testing.T) {
	c := newPool(t, 1).client(t, "a")
	for _, size := range []uint64{maxSize + 1, 1 << 63, ^uint64(0)} {
		var list errcode.Result[object.ReplicaList]
		r := object.ReplicaDescriptor{Status: object.ReplicaComplete}
		r.Location.Index, r.Location.Memory.Buffer.Size = object.LocationMemory, size
		list.Value.Replicas = append(list.Value.Replicas, r)
		if _, err := c.understand("k", time.Now(), &list); !errors.Is(err, errcode.InvalidReplica) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
