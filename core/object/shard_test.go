package object

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

func TestSlotsHavePlaces(t *testing.T) {
	chunk, offset := uint32(0), uint32(0)
	for slot := range uint32(100_000) {
		if int(offset) == chunkLen(int(chunk)) {
			chunk, offset = chunk+1, 0
		}
		if c, o := place(slot); c != chunk || o != offset {
			t.Fatalf("slot %d is at %d/%d, want %d/%d", slot, c, o, chunk, offset)
		}
		offset++
	}
}

// TestShardAgainstAMap runs random inserts, deletes and lookups beside a map.
func TestShardAgainstAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := NewSpace(2)
	want := map[string]uint64{}
	key := func() string {
		return fmt.Sprint(r.IntN(3000)) + strings.Repeat("x", 20*r.IntN(4))
	}
	for i := range 200_000 {
		k := key()
		sh, h := s.Locate(k)
		sh.Lock()
		o := sh.Get(h, k)
		if size, ok := want[k]; ok != (o != nil) || ok && (o.Size != size || sh.Key(o) != k) {
			t.Fatalf("%q: found %v, want %v of %d bytes", k, o != nil, ok, size)
		}
		switch {
		case o == nil:
			want[k] = uint64(i) + 1
			o = sh.Insert(h, k, uint64(i)+1, segment.UUID{}, 1)
			if sh.Live(o.Ref()) != o {
				t.Fatal("a fresh object is not alive")
			}
		case r.IntN(2) == 0:
			ref := o.Ref()
			sh.Delete(o)
			sh.Delete(o)
			delete(want, k)
			if sh.Live(ref) != nil || sh.Get(h, k) != nil {
				t.Fatal("a deleted object is alive")
			}
		}
		sh.Unlock()
	}
	if s.Len() != len(want) {
		t.Fatalf("%d objects, want %d", s.Len(), len(want))
	}
	seen := 0
	for i := range s.Shards() {
		sh := &s.Shards()[i]
		sh.Each(func(o *Object) {
			seen++
			if want[sh.Key(o)] != o.Size {
				t.Errorf("%q has %d bytes, want %d", sh.Key(o), o.Size, want[sh.Key(o)])
			}
			sh.Delete(o)
		})
	}
	if seen != len(want) || s.Len() != 0 {
		t.Fatalf("%d of %d objects met, %d left", seen, len(want), s.Len())
	}
}

func TestARefKnowsTheNextObjectInItsSlot(t *testing.T) {
	s := NewSpace(1)
	sh, h := s.Locate("a")
	first := sh.Insert(h, "a", 1, segment.UUID{}, 1)
	sh.SetSoftUntil(first, 5)
	sh.Join(first, "g")
	sh.Add(first, Replica{ID: 1})
	sh.Add(first, Replica{ID: 2})
	first.ExtendLease(9)
	first.HardPin = true
	ref := first.Ref()
	sh.Delete(first)
	second := sh.Insert(h, "a", 2, segment.UUID{}, 3)
	if second != first {
		t.Fatal("the slot was not used again")
	}
	if sh.Live(ref) != nil || sh.Live(second.Ref()) != second {
		t.Error("the old name finds the new object, or the new name does not")
	}
	if second.HardPin || second.Lease() != 0 || sh.SoftUntil(second) != 0 || sh.Group(second) != nil || len(sh.Replicas(second)) != 0 || second.Started() != 3 {
		t.Errorf("the new object has inherited something: %+v", second)
	}
	if len(sh.more) != 0 || len(sh.extras) != 0 {
		t.Errorf("%d lists and %d extras left", len(sh.more), len(sh.extras))
	}
}

func TestEmptyKeyAndLongKeys(t *testing.T) {
	s := NewSpace(1)
	for _, key := range []string{"", "\x00", strings.Repeat("a", 15), strings.Repeat("a", 16), strings.Repeat("a", 17), strings.Repeat("b", 1<<20)} {
		sh, h := s.Locate(key)
		o := sh.Insert(h, key, 1, segment.UUID{}, 1)
		if sh.Key(o) != key || sh.Get(h, key) != o {
			t.Errorf("a key of %d bytes is not found", len(key))
		}
	}
}

// TestObjectsHoldNoPointers keeps the table out of the garbage collector's sight.
func TestObjectsHoldNoPointers(t *testing.T) {
	if where := pointers(reflect.TypeFor[Object]()); where != "" {
		t.Errorf("Object%s is a pointer", where)
	}
	if n := unsafe.Sizeof(Object{}); n > 152 {
		t.Errorf("an object takes %d bytes", n)
	}
}

func pointers(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.String, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return "!"
	case reflect.Struct:
		for i := range t.NumField() {
			if where := pointers(t.Field(i).Type); where != "" {
				return "." + t.Field(i).Name + where
			}
		}
	case reflect.Array:
		return pointers(t.Elem())
	}
	return ""
}
