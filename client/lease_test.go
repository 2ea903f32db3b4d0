package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// leased is a pool that protects what is looked up for so long.
func leased(t *testing.T, ttl time.Duration) *pool {
	return newPool(t, 2, func(cfg *core.Config) { cfg.LeaseTTL = ttl })
}

// TestALongReadKeepsItsLease reads for longer than the lease, while somebody tries to remove the value.
func TestALongReadKeepsItsLease(t *testing.T) {
	p := leased(t, time.Second)
	want := value(5<<20, 1)
	for name, read := range map[string]func(*Client) ([]byte, error){
		"get": func(c *Client) ([]byte, error) { return c.Get(t.Context(), "k") },
		"stream": func(c *Client) ([]byte, error) {
			var got bytes.Buffer
			_, err := c.GetTo(t.Context(), "k", &got)
			return got.Bytes(), err
		},
		"into": func(c *Client) ([]byte, error) {
			dst := make([]byte, 6<<20)
			n, err := c.GetInto(t.Context(), "k", dst)
			return dst[:n], err
		},
		"range": func(c *Client) ([]byte, error) {
			dst := make([]byte, 6<<20)
			n, err := c.GetRange(t.Context(), "k", 0, dst)
			return dst[:n], ignore(err, io.EOF)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := p.dialThrough(t)
			if err := c.Upsert(t.Context(), "k", want); err != nil {
				t.Fatal(err)
			}
			other, reads := p.client(t, "a"), 0
			c.interrupt(func(context.Context, bool, transfer.Place) error {
				reads++
				before := b.count(wire.GetReplicaList.ID())
				until(t, "renewed twice", func() bool { return b.count(wire.GetReplicaList.ID()) >= before+2 })
				if err := other.Remove(t.Context(), "k", false); !errors.Is(err, errcode.ObjectHasLease) {
					t.Errorf("it can be removed: %v", err)
				}
				return nil
			})
			if got, err := read(c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if want := map[bool]int{true: 2, false: 1}[name == "stream"]; reads < want {
				t.Errorf("%d reads, want %d", reads, want)
			}
		})
	}
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// TestALostLease has what was read thrown away when the lease could not be kept, and read anew.
func TestALostLease(t *testing.T) {
	const ttl = 200 * time.Millisecond
	p := leased(t, ttl)
	c, b := p.dialThrough(t, func(cfg *Config) { cfg.Connections = 64 })
	ctx, want := t.Context(), value(1000, 1)
	if err := c.Put(ctx, "k", want); err != nil {
		t.Fatal(err)
	}
	lose := func(times int) (reads *int) {
		reads = new(int)
		c.interrupt(func(context.Context, bool, transfer.Place) error {
			if *reads++; *reads <= times {
				b.every(wire.GetReplicaList.ID(), held) // the answer to the renewal comes too late
				time.Sleep(2 * ttl)
				b.every(wire.GetReplicaList.ID(), pass)
			}
			return nil
		})
		return reads
	}
	reads := lose(1)
	if got, err := c.Get(ctx, "k"); err != nil || !bytes.Equal(got, want) || *reads < 2 {
		t.Errorf("%v, %d reads", err, *reads)
	}
	reads = lose(1)
	var w bytes.Buffer
	if n, err := c.GetTo(ctx, "k", &w); err != nil || n != 1000 || !bytes.Equal(w.Bytes(), want) || *reads < 2 {
		t.Errorf("%d, %v, %d reads", n, err, *reads)
	}
	reads = lose(1 << 20)
	if _, err := c.Get(ctx, "k"); !errors.Is(err, errcode.LeaseExpired) || !strings.Contains(err.Error(), "default_kv_lease_ttl") || *reads != readTries {
		t.Errorf("%v, %d reads", err, *reads)
	}
	// A value that is known to be what was written needs no lease.
	if err := c.Upsert(ctx, "k", want, Checksum); err != nil {
		t.Fatal(err)
	}
	reads = lose(1 << 20)
	if got, err := c.Get(ctx, "k"); err != nil || !bytes.Equal(got, want) || *reads != 1 {
		t.Errorf("%v, %d reads", err, *reads)
	}
	b.release()
}

// TestReplacedWhileRead reads the new value, and not half of both.
func TestReplacedWhileRead(t *testing.T) {
	for _, ttl := range []time.Duration{0, 200 * time.Millisecond} {
		p := leased(t, ttl)
		c, other, ctx := p.client(t, "a"), p.client(t, "a"), t.Context()
		old, fresh := value(5<<20, 1), value(4<<20, 2)
		replace := func(when int) func(context.Context, bool, transfer.Place) error {
			n := 0
			return func(_ context.Context, write bool, _ transfer.Place) error {
				if n++; !write && n == when {
					if err := errors.Join(other.Remove(ctx, "k", true), other.Put(ctx, "k", fresh)); err != nil {
						t.Error(err)
					}
					time.Sleep(ttl)
				}
				return nil
			}
		}
		if err := c.Put(ctx, "k", old); err != nil {
			t.Fatal(err)
		}
		c.interrupt(replace(1))
		if got, err := c.Get(ctx, "k"); err != nil || !bytes.Equal(got, fresh) {
			t.Errorf("%v: %d bytes, %v", ttl, len(got), err)
		}
		if err := errors.Join(other.Remove(ctx, "k", true), other.Put(ctx, "k", old)); err != nil {
			t.Fatal(err)
		}
		c.interrupt(replace(2))
		var w bytes.Buffer
		if n, err := c.GetTo(ctx, "k", &w); !errors.Is(err, ErrReplaced) && !errors.Is(err, errcode.LeaseExpired) || n != streamPiece || !bytes.Equal(w.Bytes(), old[:streamPiece]) {
			t.Errorf("%v: half of it had gone: %d bytes, %v", ttl, n, err)
		}
		p.Step()
	}
}
