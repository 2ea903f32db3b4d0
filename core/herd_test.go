package core

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

type frozen struct{}

func (frozen) Now() int64              { return int64(time.Hour) }
func (frozen) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// TestWritersThatFailTogetherShareOneBite blocks the pool's eviction until many writers wait for
// it, and counts what they evict.
func TestWritersThatFailTogetherShareOneBite(t *testing.T) {
	m, err := New(Default(), Deps{Clock: frozen{}, Rand: frozen{}, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	me := segment.UUID{First: 1}
	if code := m.MountSegment(segment.Info{ID: me, Name: "seg", Base: 1 << 32, Size: 1024 << 10}, me); code != errcode.OK {
		t.Fatal(code)
	}
	put := func(key string) errcode.Code {
		_, code := m.PutStart(me, "", key, 1024, &object.ReplicateConfig{ReplicaNum: 1}, nil)
		return code
	}
	for i := range 1024 {
		key := fmt.Sprint("k", i)
		if code := put(key); code != errcode.OK {
			t.Fatal(code)
		}
		if code := m.PutEnd(me, "", &object.Meta{Key: key}, object.ReplicaAll); code != errcode.OK {
			t.Fatal(code)
		}
	}
	m.pass.mu.Lock()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if code := put(fmt.Sprint("n", i)); code != errcode.OK {
				t.Error(code)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // whoever comes later finds room and proves nothing
	m.pass.mu.Unlock()
	wg.Wait()
	// One bite, and for each writer that had room one more object.
	if got := m.Stats().EvictedKeys; got < waitingBite || got > waitingBite+40 {
		t.Errorf("%d objects were evicted for 40 writers, want one bite of %d and up to 40 more", got, waitingBite)
	}
	// A full pool is a tenth above its watermark: .15 of 1024 in all.
	m.evictPool(false, func() bool { return true })
	if got := m.Stats().EvictedKeys; got != 154 {
		t.Errorf("%d objects were evicted in the end, want one pass of 154", got)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}
