//go:build rdma

package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

// leaves checks at the end of a test that there are as many goroutines and descriptors as at its beginning. It must be
// called first.
func leaves(t *testing.T) {
	count := func() (goroutines, files int) {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(all)
	}
	if _, err := verbs.Names(); err != nil { // opens what stays open
		t.Fatal(err)
	}
	g, f := count()
	t.Cleanup(func() {
		var g2, f2 int
		await(t, "goroutines and descriptors are gone", func() bool {
			g2, f2 = count()
			return g2 <= g && f2 <= f
		})
		if t.Failed() {
			t.Logf("goroutines: %d, then %d; descriptors: %d, then %d", g, g2, f, f2)
		}
	})
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

// quiet waits until an adapter has no endpoints and nothing under way.
func quiet(t *testing.T, a *rdma.Adapter) {
	t.Helper()
	await(t, "no endpoint is left", func() bool {
		for _, s := range a.Status() {
			if s.Endpoints+s.Breaking+s.QueuePairs+s.InFlight > 0 {
				return false
			}
		}
		return true
	})
}

func within(t *testing.T, limit time.Duration, f func() error) error {
	t.Helper()
	begun := time.Now()
	err := f()
	if took := time.Since(begun); took > limit {
		t.Errorf("it took %v, more than %v", took, limit)
	}
	return err
}

func TestRDMAWrongKeysAndAddresses(t *testing.T) {
	leaves(t)
	there, here := adapter(t, rdma.Options{}, 0), adapter(t, rdma.Options{}, 0)
	m := memory(t, 1<<20)
	h, c := railHost(t, P2P, there), railCarrier(t, P2P, here)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	at := Place{Owner: h.Name(), Address: m.Address()}
	for name, spoil := range map[string]func(d *Descriptor){
		"another key":    func(d *Descriptor) { d.Buffers[0].RKey[0] += 7 },
		"too long":       func(d *Descriptor) { d.Buffers[0].Addr -= 1 << 20; d.Buffers[0].Length += 1 << 21 },
		"no memory":      func(d *Descriptor) { d.Buffers[0].RKey = nil },
		"somewhere else": func(d *Descriptor) { d.Buffers[0].Addr = 1 << 20; d.Buffers[0].Length = 1 << 40 },
	} {
		t.Run(name, func(t *testing.T) {
			d := h.descriptor()
			spoil(d)
			r, err := openRails(here, c.cfg.Metadata, h.Name(), d)
			if err == nil {
				defer r.close()
				// A good transfer at the same time is not harmed.
				var wg sync.WaitGroup
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 10 {
						if err := c.Write(t.Context(), at, random(300)); err != nil {
							t.Errorf("a good transfer: %v", err)
						}
					}
				}()
				for i := range 3 {
					err = within(t, 5*time.Second, func() error {
						return r.transfer(t.Context(), request{size: 4096, addr: d.Buffers[0].Addr + uint64(i), opcode: opWrite}, random(4096))
					})
				}
				wg.Wait()
			}
			if !errors.Is(err, ErrRejected) {
				t.Errorf("%v", err)
			}
		})
	}
	data, got := random(1<<20), make([]byte, 1<<20)
	if err := c.Write(t.Context(), at, data); err != nil {
		t.Fatal(err)
	}
	if err := c.Read(t.Context(), at, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestRDMAAHostThatStartsAnew under the same name, with the same memory and other keys and queue pairs, is reached by who
// knows the old ones.
func TestRDMAAHostThatStartsAnew(t *testing.T) {
	leaves(t)
	metadata := store(t)
	here, m := adapter(t, rdma.Options{}, 0, 1), memory(t, 1<<20)
	c := railCarrier(t, metadata, here)
	at := Place{Owner: "127.0.0.1:17901", Address: m.Address()}
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			h := railHost(t, metadata, adapter(t, rdma.Options{}, 0, 1))
			if err := h.Register(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1000, 1 << 20} {
				data := random(size - round)
				err := within(t, 5*time.Second, func() error { return c.Write(t.Context(), at, data) })
				if err != nil || !bytes.Equal(m.Bytes()[:len(data)], data) {
					t.Fatal(err)
				}
			}
		})
		err := within(t, 5*time.Second, func() error { return c.Write(t.Context(), at, random(10)) })
		if err == nil {
			t.Fatal("a host that has closed takes data")
		}
	}
	quiet(t, here)
}

func TestRDMAMemoryTakenBack(t *testing.T) {
	leaves(t)
	h, c := railHost(t, P2P, adapter(t, rdma.Options{}, 0)), railCarrier(t, P2P, adapter(t, rdma.Options{}, 0))
	a, b := memory(t, 1<<20), memory(t, 1<<20)
	for _, m := range []*Memory{a, b} {
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, []byte("good")); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Unregister(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: a.Address()}, []byte("late")); !errors.Is(err, ErrRejected) {
		t.Errorf("writing to what was taken back: %v", err)
	}
	if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: b.Address()}, []byte("more")); err != nil {
		t.Errorf("writing to what was not: %v", err)
	}
	if string(a.Bytes()[:4]) != "good" || string(b.Bytes()[:4]) != "more" {
		t.Errorf("%q, %q", a.Bytes()[:4], b.Bytes()[:4])
	}
	if err := h.Unregister(t.Context(), a); err == nil {
		t.Error("taken back twice")
	}
}

// down takes the port of a software device down, or up again.
func down(t *testing.T, device int, is bool) {
	t.Helper()
	file := filepath.Join(os.Getenv("SOFTVERBS_DIR"), "down", fmt.Sprint("softrdma", device))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	var err error
	if is {
		err = os.WriteFile(file, nil, 0o666)
	} else {
		err = os.Remove(file)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func active(a *rdma.Adapter, device int) bool {
	for _, s := range a.Status() {
		if s.Device == fmt.Sprint("softrdma", device) {
			return s.Active
		}
	}
	return false
}

func TestRDMAOnePortGoesDown(t *testing.T) {
	leaves(t)
	o := rdma.Options{RailPause: 100 * time.Millisecond}
	there, here := adapter(t, o, 0, 1), adapter(t, o, 0, 1)
	metadata := store(t)
	h, c, m := railHost(t, metadata, there), railCarrier(t, metadata, here), memory(t, 8<<20)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down(t, 1, false) })
	published := func() int {
		d, err := c.cfg.Metadata.Descriptor(t.Context(), h.Name())
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Devices) != len(d.Buffers[0].RKey) || len(d.Devices) != len(d.Buffers[0].LKey) || len(d.PriorityMatrix["cpu:0"][0]) != len(d.Devices) {
			t.Errorf("published don't fit: %+v", d)
		}
		return len(d.Devices)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			part := m.Bytes()[i<<22 : (i+1)<<22]
			at, got := Place{Owner: h.Name(), Address: m.Address() + uint64(i<<22)}, make([]byte, len(part))
			for round := 0; ; round++ {
				data := random(len(part) - round%1000)
				if err := c.Write(t.Context(), at, data); err != nil || !bytes.Equal(part[:len(data)], data) {
					t.Errorf("round %d of %d: %v", round, i, err)
				}
				if err := c.Read(t.Context(), at, got[:len(data)]); err != nil || !bytes.Equal(got[:len(data)], data) {
					t.Errorf("round %d of %d: %v", round, i, err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	for range 3 {
		down(t, 1, true)
		await(t, "the port is down", func() bool { return !active(here, 1) && !active(there, 1) && published() == 1 })
		down(t, 1, false)
		await(t, "the port is up", func() bool { return active(here, 1) && active(there, 1) && published() == 2 })
	}
	close(stop)
	wg.Wait()
}

func TestRDMATheOnlyPortGoesDown(t *testing.T) {
	leaves(t)
	o := rdma.Options{RailPause: 100 * time.Millisecond}
	there, here := adapter(t, o, 0), adapter(t, o, 0)
	h, c, m := railHost(t, P2P, there), railCarrier(t, P2P, here), memory(t, 1<<20)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	at, data := Place{Owner: h.Name(), Address: m.Address()}, random(1<<20)
	if err := c.Write(t.Context(), at, data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down(t, 0, false) })
	down(t, 0, true)
	await(t, "the port is down", func() bool { return !active(here, 0) && !active(there, 0) })
	err := within(t, 5*time.Second, func() error { return c.Write(t.Context(), at, data) })
	if err == nil || !strings.Contains(err.Error(), "active") && !strings.Contains(err.Error(), "device") {
		t.Errorf("writing without a port: %v", err)
	}
	quiet(t, here)
	if _, err := rdma.Open(rdma.Options{Devices: []string{"softrdma0"}, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "port 1 is active") {
		t.Errorf("opening with the port down: %v", err)
	}
	down(t, 0, false)
	await(t, "the port is up", func() bool { return active(here, 0) && active(there, 0) })
	if err := c.Write(t.Context(), at, data); err != nil || !bytes.Equal(m.Bytes(), data) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestRDMAACancelledTransferLeavesItsMemoryAlone: what its memory holds afterwards never arrives.
func TestRDMAACancelledTransferLeavesItsMemoryAlone(t *testing.T) {
	leaves(t)
	there, here := adapter(t, rdma.Options{}, 0, 1), adapter(t, rdma.Options{}, 0, 1)
	h, c, m := railHost(t, P2P, there), railCarrier(t, P2P, here), memory(t, 32<<20)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b := buffer(t, c, 32<<20)
	at := Place{Owner: h.Name(), Address: m.Address()}
	if err := c.Write(t.Context(), at, b[:4096]); err != nil {
		t.Fatal(err)
	}
	given := 0
	for i := range 20 {
		clear(b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
		err := c.Write(ctx, at, b)
		cancel()
		for j := range b {
			b[j] = 0xff
		}
		if err != nil {
			given++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		// Another transfer over the same connections is carried all the same.
		if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, []byte{0}); err != nil {
			t.Error(err)
		}
		if at := bytes.IndexByte(m.Bytes(), 0xff); at >= 0 {
			t.Fatalf("round %d: what was in memory after the end is at %d", i, at)
		}
	}
	if given == 0 {
		t.Error("no transfer was given up")
	}
}

// TestRDMAWithoutAnAdapter is told apart from other failures.
func TestRDMAWithoutAnAdapter(t *testing.T) {
	h, m := railHost(t, P2P, adapter(t, rdma.Options{}, 0)), memory(t, 4096)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	err := carrier(t, P2P).Read(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, make([]byte, 1))
	if err == nil || !strings.Contains(err.Error(), "this carrier has no RDMA adapter") {
		t.Errorf("%v", err)
	}
}
