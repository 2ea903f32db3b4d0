package client

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/transfer"
	"github.com/mooncake-go/mooncake-master/transport/transporttest"
)

// TestSharedFolder keeps values in the file system that clients share as well, and reads them from there when they
// are nowhere else.
func TestSharedFolder(t *testing.T) {
	folder := t.TempDir()
	m, address := transporttest.Serve(t, time.Now, func(cfg *core.Config) {
		cfg.Disk.Root, cfg.Disk.ClusterID, cfg.ClientActiveTTL = folder, "c", patience
	})
	p := &pool{Master: m, address: address}
	p.lend(t, 1)
	ctx := t.Context()
	dial := func(cfg Config) *Client {
		cfg.Master, cfg.Metadata = address, "P2PHANDSHAKE"
		c, err := Dial(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c, stranger := dial(Config{SharedFolder: folder}), dial(Config{})
	files := func() (names []string) {
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	kinds := func(key string) (memory, disk int) {
		s, err := c.Stat(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Replicas {
			if r.Status != object.ReplicaComplete {
				t.Errorf("%s: a replica is %d", key, r.Status)
			}
			if r.Location.Index == object.LocationDisk {
				disk++
			} else {
				memory++
			}
		}
		return memory, disk
	}
	want := value(9<<20+1, 3)
	if err := c.Put(ctx, "whole", want); err != nil {
		t.Fatal(err)
	}
	if err := c.PutFrom(ctx, "stream", uint64(len(want)), bytes.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.PutBatch(ctx, []Item{{"one", want[:1]}, {"two", want[:2]}})...); err != nil {
		t.Fatal(err)
	}
	if got := files(); len(got) != 4 {
		t.Errorf("%q", got)
	}
	for key, n := range map[string]int{"whole": len(want), "stream": len(want), "one": 1, "two": 2} {
		if memory, disk := kinds(key); memory != 1 || disk != 1 {
			t.Errorf("%s: %d replicas in memory, %d on disk", key, memory, disk)
		}
		// The owner of the memory has gone.
		c.interrupt(func(_ context.Context, write bool, _ transfer.Place) error { return errors.New("gone") })
		for name, read := range readers(c, key) {
			if got, err := read(ctx); err != nil || !bytes.Equal(got, want[:n]) {
				t.Errorf("%s, %s: %d bytes, %v", key, name, len(got), err)
			}
		}
		c.interrupt(func(context.Context, bool, transfer.Place) error { return nil })
	}
	// What was not written leaves nothing.
	if err := c.PutFrom(ctx, "short", 9<<20, bytes.NewReader(want[:5<<20])); err == nil {
		t.Error("a value that ends early is taken")
	}
	if got := files(); len(got) != 4 {
		t.Errorf("%q", got)
	}
	// Who doesn't share the folder writes to memory only, and the master knows.
	if err := stranger.Put(ctx, "memory", want); err != nil {
		t.Fatal(err)
	}
	if memory, disk := kinds("memory"); memory != 1 || disk != 0 {
		t.Errorf("%d replicas in memory, %d on disk", memory, disk)
	}
	p.hosts[0].Close(ctx)
	if code := m.UnmountSegment(mastertest.ID(1), mastertest.ID(1)); code != errcode.OK {
		t.Fatal(code)
	}
	if got, err := c.Get(ctx, "whole"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := stranger.Get(ctx, "whole"); !errors.Is(err, ErrNotInMemory) {
		t.Errorf("%v", err)
	}
}

// TestFilesElsewhere are not touched, whatever a master says.
func TestFilesElsewhere(t *testing.T) {
	c := &Client{cfg: Config{SharedFolder: "/shared/pool"}}
	for file, want := range map[string]bool{
		"/shared/pool/c/a/b/k": true, "/shared/pool/..k": true,
		"/shared/pool": false, "/shared/pool/..": false, "/shared/pool/../x": false, "/shared/poolx": false, "/etc/passwd": false, "pool/k": false, "": false,
	} {
		if got := c.shares(file); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
	if (&Client{}).shares("/etc/passwd") {
		t.Error("a client without a folder shares one")
	}
}
