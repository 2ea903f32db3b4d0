package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

func TestBatches(t *testing.T) {
	p := newPool(t, 2)
	c, b := p.dialThrough(t)
	ctx := t.Context()
	var items []Item
	var keys []string
	var total uint64
	for i := range 100 {
		keys = append(keys, fmt.Sprint("k", i))
		items = append(items, Item{keys[i], value(1+i*977, byte(i))})
		total += uint64(len(items[i].Value))
	}
	same := func(items []Item) {
		t.Helper()
		values, errs := c.GetBatch(ctx, keys)
		room := make([][]byte, len(keys))
		for i := range room {
			room[i] = make([]byte, 100_000)
		}
		sizes, intos := c.GetBatchInto(ctx, keys, room)
		for i := range items {
			if errs[i] != nil || !bytes.Equal(values[i], items[i].Value) {
				t.Errorf("%s: %d bytes, %v", keys[i], len(values[i]), errs[i])
			}
			if intos[i] != nil || !bytes.Equal(room[i][:sizes[i]], items[i].Value) {
				t.Errorf("%s: %d bytes, %v", keys[i], sizes[i], intos[i])
			}
		}
	}
	if errs := c.PutBatch(ctx, items, Checksum); errors.Join(errs...) != nil || len(errs) != 100 {
		t.Fatal(errs)
	}
	if got := p.charged("a"); got != total {
		t.Errorf("%d bytes are charged, want %d", got, total)
	}
	same(items)
	for i, err := range c.PutBatch(ctx, items) {
		if !errors.Is(err, errcode.ObjectAlreadyExists) || !strings.Contains(err.Error(), keys[i]) {
			t.Errorf("%v", err)
		}
	}
	for i := range items {
		items[i].Value = value(500+i, byte(2*i))
	}
	if errs := c.UpsertBatch(ctx, items); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	same(items)
	there, errs := c.ExistsBatch(ctx, []string{"k0", "nobody", "k99"})
	if errors.Join(errs...) != nil || !there[0] || there[1] || !there[2] {
		t.Errorf("%v, %v", there, errs)
	}
	errs = c.RemoveBatch(ctx, []string{"k0", "nobody", "k99"}, true)
	if errs[0] != nil || !errors.Is(errs[1], errcode.ObjectNotFound) || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	for name, calls := range map[uint32]int{wire.BatchPutStart.ID(): 2, wire.BatchPutEnd.ID(): 1, wire.BatchUpsertEnd.ID(): 1, wire.BatchGetReplicaList.ID(): 4, wire.BatchRemove.ID(): 1, wire.BatchExistKey.ID(): 1, wire.BatchPutRevoke.ID(): 0} {
		if got := b.count(name); got != calls {
			t.Errorf("%d calls of function %#x, want %d", got, name, calls)
		}
	}
	// None are no question.
	if errs := c.PutBatch(ctx, nil); len(errs) != 0 {
		t.Error(errs)
	}
	if values, errs := c.GetBatch(ctx, nil); len(values) != 0 || len(errs) != 0 {
		t.Error(values, errs)
	}
	if errs := c.RemoveBatch(ctx, nil, true); len(errs) != 0 {
		t.Error(errs)
	}
	if there, errs := c.ExistsBatch(ctx, nil); len(there) != 0 || len(errs) != 0 {
		t.Error(there, errs)
	}
}

// TestABatchOfAllKinds has each key get its own answer, in the order in which they were asked for.
func TestABatchOfAllKinds(t *testing.T) {
	p := newPool(t, 2)
	c, ctx := p.client(t, "a"), t.Context()
	if err := c.Put(ctx, "there", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	writes := 0
	c.interrupt(func(_ context.Context, write bool, _ transfer.Place) error {
		mu.Lock()
		defer mu.Unlock()
		if write {
			writes++
		}
		if write && writes == 2 { // of the order in which they are written: one of those of three bytes
			return errors.New("no way")
		}
		return nil
	})
	errs := c.PutBatch(ctx, []Item{{"one", []byte("abc")}, {"there", []byte("abc")}, {"empty", nil}, {"", []byte("abc")}, {"big", value(11<<20, 1)}, {"two", []byte("def")}})
	failed := 0
	for _, i := range []int{0, 5} {
		if errs[i] != nil {
			failed++
			if !errors.Is(errs[i], errcode.TransferFail) || !strings.Contains(errs[i].Error(), "no way") {
				t.Error(errs[i])
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d writes failed", failed)
	}
	for i, want := range map[int]error{1: errcode.ObjectAlreadyExists, 2: errcode.InvalidParams, 3: errcode.InvalidParams, 4: errcode.TenantQuotaExceeded} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	if got := p.charged("a"); got != 4 {
		t.Errorf("%d bytes are charged", got)
	}
	values, errs := c.GetBatch(ctx, []string{"one", "nobody", "there", "two"})
	if (errs[0] == nil) == (errs[3] == nil) || !errors.Is(errs[1], errcode.ObjectNotFound) || errs[2] != nil || string(values[2]) != "x" || values[1] != nil {
		t.Errorf("%q, %v", values, errs)
	}
	if _, errs := c.GetBatchInto(ctx, []string{"there"}, nil); !errors.Is(errs[0], errcode.InvalidParams) {
		t.Error(errs)
	}
	if _, errs := c.GetBatchInto(ctx, []string{"there", "nobody"}, make([][]byte, 2)); !errors.Is(errs[0], errcode.BufferOverflow) || !errors.Is(errs[1], errcode.ObjectNotFound) {
		t.Error(errs)
	}
}

func TestSizesAndParts(t *testing.T) {
	p := newPool(t, 1)
	c, ctx, want := p.client(t, "a"), t.Context(), value(1000, 1)
	for _, err := range []error{c.Put(ctx, "k", nil), c.PutFrom(ctx, "k", 0, strings.NewReader("x")), c.Upsert(ctx, "", want)} {
		if !errors.Is(err, errcode.InvalidParams) {
			t.Errorf("%v", err)
		}
	}
	if err := c.Put(ctx, "k", want); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 2000)
	if n, err := c.GetInto(ctx, "k", dst); n != 1000 || err != nil || !bytes.Equal(dst[:n], want) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := c.GetInto(ctx, "k", dst[:999]); !errors.Is(err, errcode.BufferOverflow) || !strings.Contains(err.Error(), "1000 bytes don't fit into 999") {
		t.Errorf("%v", err)
	}
	for _, part := range []struct {
		offset uint64
		size   int
		n      int
		err    error
	}{{0, 1000, 1000, nil}, {0, 10, 10, nil}, {990, 10, 10, nil}, {990, 11, 10, io.EOF}, {1000, 1, 0, io.EOF}, {1 << 63, 1, 0, io.EOF}, {1000, 0, 0, nil}} {
		clear(dst)
		n, err := c.GetRange(ctx, "k", part.offset, dst[:part.size])
		if n != part.n || !errors.Is(err, part.err) || n > 0 && !bytes.Equal(dst[:n], want[part.offset:part.offset+uint64(n)]) {
			t.Errorf("%+v: %d, %v", part, n, err)
		}
	}
}

// TestChecksums finds what has changed in memory, and reads another replica.
func TestChecksums(t *testing.T) {
	p := newPool(t, 2)
	c, ctx, want := p.client(t, "a"), t.Context(), value(1<<20, 1)
	big := value(9<<20, 1)
	for _, put := range []func() error{
		func() error { return c.Upsert(ctx, "k", want, Checksum, Replicas(2)) },
		func() error { return c.UpsertFrom(ctx, "k", 1<<20, bytes.NewReader(want), Checksum, Replicas(2)) },
		func() error { return errors.Join(c.UpsertBatch(ctx, []Item{{"k", want}}, Checksum, Replicas(2))...) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		s, err := c.Stat(ctx, "k")
		if err != nil || s.Checksum == nil || *s.Checksum != uint64(transfer.Sum(want)) {
			t.Fatalf("%+v, %v", s, err)
		}
		p.spoil(t, s, 0)
		for name, read := range readers(c, "k") {
			if got, err := read(ctx); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		p.spoil(t, s, 1)
		for name, read := range readers(c, "k") {
			if _, err := read(ctx); !errors.Is(err, errcode.ChecksumMismatch) || !strings.Contains(err.Error(), `"k"`) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.Remove(ctx, "k", true); err != nil {
			t.Fatal(err)
		}
	}
	careless, _ := p.dialThrough(t, func(cfg *Config) { cfg.Checksum, cfg.SkipVerification = true, true })
	if err := careless.Put(ctx, "k", big); err != nil {
		t.Fatal(err)
	}
	s, err := c.Stat(ctx, "k")
	if err != nil || s.Checksum == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	p.spoil(t, s, 0)
	if _, err := careless.Get(ctx, "k"); err != nil {
		t.Error(err)
	}
	// The end of a long value isn't given away.
	var w bytes.Buffer
	if n, err := c.GetTo(ctx, "k", &w); !errors.Is(err, errcode.ChecksumMismatch) || n != 2*streamPiece || w.Len() != 2*streamPiece {
		t.Errorf("%d, %v", n, err)
	}
}

// readers are the ways to read a whole value.
func readers(c *Client, key string) map[string]func(context.Context) ([]byte, error) {
	return map[string]func(context.Context) ([]byte, error){
		"get": func(ctx context.Context) ([]byte, error) { return c.Get(ctx, key) },
		"batch": func(ctx context.Context) ([]byte, error) {
			v, errs := c.GetBatch(ctx, []string{key})
			return v[0], errs[0]
		},
		"stream": func(ctx context.Context) ([]byte, error) {
			var w bytes.Buffer
			_, err := c.GetTo(ctx, key, &w)
			return w.Bytes(), err
		},
	}
}

// spoil changes a byte of one replica where it lies.
func (p *pool) spoil(t *testing.T, s Stat, replica int) {
	t.Helper()
	at := s.Replicas[replica].Location.Memory.Buffer
	for i, h := range p.hosts {
		if h.Name() == at.Endpoint {
			p.memory[i].Bytes()[at.Address-p.memory[i].Address()+at.Size-1] ^= 1
			return
		}
	}
	t.Fatalf("%+v is nowhere", at)
}

func TestKeys(t *testing.T) {
	p := newPool(t, 2)
	a, b, ctx := p.client(t, "a"), p.client(t, "b"), t.Context()
	for _, key := range []string{"x1", "x2", "y1"} {
		if err := errors.Join(a.Put(ctx, key, value(10, 1)), b.Put(ctx, key, value(10, 1))); err != nil {
			t.Fatal(err)
		}
	}
	list, err := a.List(ctx, "^x")
	if err != nil || len(list) != 2 || list["x1"].Size != 10 || len(list["x2"].Replicas) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if keys, err := a.Keys(ctx, "1$"); err != nil || fmt.Sprint(keys) != "[x1 y1]" {
		t.Errorf("%v, %v", keys, err)
	}
	if _, err := a.List(ctx, "("); !errors.Is(err, errcode.InvalidParams) {
		t.Errorf("%v", err)
	}
	if n, err := a.RemoveByRegex(ctx, "^x", false); n != 0 || err != nil {
		t.Errorf("those that are leased: %d, %v", n, err)
	}
	if n, err := a.RemoveByRegex(ctx, "^x", true); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := a.RemoveByRegex(ctx, "(", true); !errors.Is(err, errcode.InvalidParams) {
		t.Errorf("%v", err)
	}
	if n, err := a.RemoveAll(ctx, true); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if keys, err := b.Keys(ctx, ""); err != nil || len(keys) != 3 {
		t.Errorf("of another tenant: %v, %v", keys, err)
	}
}
