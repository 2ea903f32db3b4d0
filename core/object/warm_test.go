package object

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// filled returns a space and its keys, in which every third object has been deleted.
func filled(shards, objects int) (space *Space, keys []string) {
	space = NewSpace(shards)
	for i := range objects {
		key := fmt.Sprintf("%0*d", 1+i%90, i) // of many lengths, so that blocks are of many sizes
		sh, h := space.Locate(key)
		o := sh.Insert(h, key, uint64(i), segment.UUID{}, 1)
		if i%3 == 0 {
			sh.Delete(o)
		}
		keys = append(keys, key)
	}
	return space, keys
}

func hashes(space *Space, keys []string) []Hash {
	hashes := make([]Hash, len(keys))
	for i, key := range keys {
		hashes[i] = space.Hash(key)
	}
	return hashes
}

func TestWarmChangesNothing(t *testing.T) {
	for _, c := range []struct{ shards, objects int }{{1, 0}, {16, 0}, {1, 5}, {16, 300}, {1, 5_000}, {4, 50_000}} {
		space, keys := filled(c.shards, c.objects)
		for i := range 100 {
			keys = append(keys, fmt.Sprint("absent", i))
		}
		space.Warm(nil)
		space.Warm(hashes(space, keys[:1]))
		space.Warm(hashes(space, keys))
		for i, key := range keys {
			sh, h := space.Locate(key)
			o := sh.Get(h, key)
			if want := i < c.objects && i%3 != 0; (o != nil) != want {
				t.Fatalf("%+v: object %d is there: %v", c, i, o != nil)
			}
			if o != nil && (o.Size != uint64(i) || sh.Key(o) != key) {
				t.Fatalf("%+v: object %d is number %d under %q", c, i, o.Size, sh.Key(o))
			}
		}
	}
}

// What Warm would fetch is what a lookup touches.
func TestAGlanceFindsWhatALookupDoes(t *testing.T) {
	space, keys := filled(4, 20_000)
	seen := 0
	for _, key := range keys {
		sh, h := space.Locate(key)
		o := sh.Get(h, key)
		if o == nil {
			continue
		}
		// Of two objects with one hash the first one is glanced at, and a long way is cut short.
		if slot, ok := sh.index.glance(h.index()); ok && sh.slab.glance(slot) == o {
			seen++
		}
		block, length := o.keyAt()
		if at := sh.keys.glance(block, length); at != &sh.keys.of(length).at(block)[0] {
			t.Fatalf("%q: another place", key)
		}
	}
	if n := space.Len(); seen < n*95/100 {
		t.Errorf("%d of %d objects seen", seen, n)
	}
}

func TestAGlanceAtNothing(t *testing.T) {
	space := NewSpace(1)
	sh := &space.Shards()[0]
	if _, ok := sh.index.glance(7); ok || sh.index.home(7) != nil || sh.slab.glance(0) != nil || sh.keys.glance(0, 5) != nil {
		t.Error("an empty shard shows something")
	}
	h := space.Hash("k")
	sh.Insert(h, "k", 1, segment.UUID{}, 1)
	if sh.slab.glance(1<<20) != nil || sh.keys.glance(1<<20, 1) != nil || sh.keys.glance(0, 500) != nil {
		t.Error("a shard of one object shows more")
	}
}

// Warm takes no lock, so it meets tables in the middle of being changed.
func TestWarmWhileOthersWrite(t *testing.T) {
	space, keys := filled(4, 5_000)
	all := hashes(space, keys)
	var writers, warmers sync.WaitGroup
	var done atomic.Bool
	for w := range 2 {
		writers.Go(func() {
			for round := range 20 {
				var mine []string
				for i := range 500 {
					mine = append(mine, fmt.Sprintf("%d-%d-%0*d", w, round, 1+i%60, i))
				}
				for _, key := range mine {
					sh, h := space.Locate(key)
					sh.Lock()
					sh.Insert(h, key, 9, segment.UUID{}, 1)
					sh.Unlock()
				}
				for _, key := range mine[:400] {
					sh, h := space.Locate(key)
					sh.Lock()
					if o := sh.Get(h, key); o == nil || o.Size != 9 || sh.Key(o) != key {
						t.Errorf("%q is gone", key)
					} else {
						sh.Delete(o)
					}
					sh.Unlock()
				}
			}
		})
		warmers.Go(func() {
			for from := 0; !done.Load(); from = (from + 128) % (len(all) - 128) {
				space.Warm(all[from : from+128])
			}
		})
	}
	writers.Wait()
	done.Store(true)
	warmers.Wait()
	n := len(keys) - (len(keys)+2)/3 + 2*20*100
	if space.Len() != n {
		t.Errorf("%d objects, want %d", space.Len(), n)
	}
}
