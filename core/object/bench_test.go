package object

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// benchSpace holds n objects under keys of 64 bytes.
func benchSpace(n int) (*Space, []string) {
	s, keys := NewSpace(1024), make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%064d", i)
		sh, h := s.Locate(keys[i])
		sh.Insert(h, keys[i], 4096, segment.UUID{}, 1)
	}
	return s, keys
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint("objects=", n), func(b *testing.B) {
			s, keys := benchSpace(n)
			r := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				key := keys[r.IntN(n)]
				sh, h := s.Locate(key)
				sh.RLock()
				o := sh.Get(h, key)
				sh.RUnlock()
				if o == nil {
					b.Fatalf("%s is not found", key)
				}
			}
		})
	}
}

func BenchmarkLookupMiss(b *testing.B) {
	s, _ := benchSpace(10_000)
	key := fmt.Sprintf("%064x", 1<<40)
	b.ReportAllocs()
	for b.Loop() {
		sh, h := s.Locate(key)
		sh.RLock()
		o := sh.Get(h, key)
		sh.RUnlock()
		if o != nil {
			b.Fatalf("%s is found", key)
		}
	}
}

// BenchmarkInsertDelete replaces objects, so that nothing grows.
func BenchmarkInsertDelete(b *testing.B) {
	const n = 100_000
	s, keys := benchSpace(n)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		sh, h := s.Locate(keys[i])
		sh.Lock()
		sh.Delete(sh.Get(h, keys[i]))
		sh.Insert(h, keys[i], 4096, segment.UUID{}, 1)
		sh.Unlock()
		if i++; i == n {
			i = 0
		}
	}
}
