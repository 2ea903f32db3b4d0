package object

import (
	"fmt"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// enter puts an object of a group into a space.
func enter(s *Space, key, group string, lease int64) *Object {
	o := New(key, 1, segment.UUID{First: 1}, 1)
	o.End()
	o.ExtendLease(lease)
	sh := s.Shard(key)
	sh.Lock()
	defer sh.Unlock()
	sh.Insert(o)
	s.Join(o, group)
	return o
}

func get(s *Space, key string) *Object {
	sh := s.Shard(key)
	sh.RLock()
	defer sh.RUnlock()
	return sh.Get(key)
}

func remove(s *Space, o *Object) {
	sh := s.Shard(o.Key)
	sh.Lock()
	defer sh.Unlock()
	sh.Delete(o)
}

func TestGroupRankIsTheLatestLease(t *testing.T) {
	s := NewSpace(4)
	a, b := enter(s, "a", "g", 10), enter(s, "b", "g", 30)
	c := enter(s, "c", "g", 20)
	alone := enter(s, "d", "", 5)
	if a.Lease() != 10 || c.Lease() != 30 {
		t.Errorf("leases %d and %d: a newcomer inherits, the others do not", a.Lease(), c.Lease())
	}
	for _, o := range []*Object{a, b, c} {
		if s.Rank(o) != 30 {
			t.Errorf("%s ranks %d", o.Key, s.Rank(o))
		}
	}
	if s.Rank(alone) != 5 || len(s.Members(alone)) != 1 || len(s.Members(a)) != 3 {
		t.Errorf("ungrouped ranks %d, members %d and %d", s.Rank(alone), len(s.Members(alone)), len(s.Members(a)))
	}
	remove(s, b)
	remove(s, c)
	if s.Rank(a) != 10 {
		t.Errorf("rank %d after the younger ones left", s.Rank(a))
	}
}

func TestLeaseOfAGroup(t *testing.T) {
	s := NewSpace(4)
	a, b := enter(s, "a", "g", 0), enter(s, "b", "g", 0)
	s.Lease(a, 100, 50)
	if b.Lease() != 150 {
		t.Fatalf("the other member's lease ends at %d", b.Lease())
	}
	// More than half is left and nobody has joined: only the one that is read.
	s.Lease(a, 120, 50)
	if a.Lease() != 170 || b.Lease() != 150 {
		t.Errorf("leases end at %d and %d", a.Lease(), b.Lease())
	}
	s.Lease(b, 125, 50) // exactly half is left
	if a.Lease() != 175 || b.Lease() != 175 {
		t.Errorf("leases end at %d and %d", a.Lease(), b.Lease())
	}
	c := enter(s, "c", "g", 0)
	if c.Lease() != 175 {
		t.Errorf("a newcomer's lease ends at %d", c.Lease())
	}
	s.Lease(a, 126, 50)
	if b.Lease() != 176 || c.Lease() != 176 {
		t.Errorf("after a change not all were leased: %d and %d", b.Lease(), c.Lease())
	}
	remove(s, c)
	s.Lease(a, 127, 50)
	if b.Lease() != 177 {
		t.Errorf("after somebody left not all were leased: %d", b.Lease())
	}
	s.Lease(a, 50, 50) // a late reader shortens nothing
	if a.Lease() != 177 {
		t.Errorf("lease moved back to %d", a.Lease())
	}
}

func TestDoomHidesTheWholeGroupOrNobody(t *testing.T) {
	s := NewSpace(4)
	var members []*Object
	for i := range 20 {
		members = append(members, enter(s, fmt.Sprint("k", i), "g", 10))
	}
	g := members[0].Group()
	if s.Doom(g, members, 9) {
		t.Fatal("a leased group was given up")
	}
	if get(s, "k3") == nil {
		t.Fatal("a refusal hid a member")
	}
	if !s.Doom(g, members, 10) {
		t.Fatal("an unleased group was not given up")
	}
	for _, o := range members {
		if get(s, o.Key) != nil {
			t.Errorf("%s is still found", o.Key)
		}
		if s.Shard(o.Key).GetAny(o.Key) != o {
			t.Errorf("%s has left the table already", o.Key)
		}
	}
	s.Spare(members[3])
	if get(s, "k3") != members[3] {
		t.Error("a spared member is not found")
	}
	for _, o := range members {
		remove(s, o)
		remove(s, o) // once is enough
	}
	if s.Len() != 0 || len(s.groups.byID) != 0 {
		t.Errorf("%d objects and %d groups left", s.Len(), len(s.groups.byID))
	}
	fresh := enter(s, "k0", "g", 0)
	if fresh.Group() == g || get(s, "k0") != fresh {
		t.Error("the group lives on after its last member")
	}
}
