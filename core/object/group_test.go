package object

import (
	"fmt"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// enter puts an object of a group into a space.
func enter(s *Space, key, group string, lease int64) *Object {
	sh, h := s.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := sh.Insert(h, key, 1, segment.UUID{First: 1}, 1)
	o.End()
	o.ExtendLease(lease)
	sh.Join(o, group)
	return o
}

func get(s *Space, key string) *Object {
	sh, h := s.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	return sh.Get(h, key)
}

func anyOf(s *Space, key string) *Object {
	sh, h := s.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	return sh.GetAny(h, key)
}

func remove(s *Space, o *Object) {
	sh := shardOf(s, o)
	sh.Lock()
	defer sh.Unlock()
	sh.Delete(o)
}

func shardOf(s *Space, o *Object) *Shard { return s.ShardOf(o.Ref()) }

func keyOf(s *Space, o *Object) string { return shardOf(s, o).Key(o) }

func rank(s *Space, o *Object) int64 { return shardOf(s, o).Rank(o) }

func lease(s *Space, o *Object, now, ttl int64) { shardOf(s, o).Lease(o, now, ttl) }

func TestGroupRankIsTheLatestLease(t *testing.T) {
	s := NewSpace(4)
	a, b := enter(s, "a", "g", 10), enter(s, "b", "g", 30)
	c := enter(s, "c", "g", 20)
	alone := enter(s, "d", "", 5)
	if a.Lease() != 10 || c.Lease() != 30 {
		t.Errorf("leases %d and %d: a newcomer inherits, the others do not", a.Lease(), c.Lease())
	}
	for _, o := range []*Object{a, b, c} {
		if rank(s, o) != 30 {
			t.Errorf("%s ranks %d", keyOf(s, o), rank(s, o))
		}
	}
	if rank(s, alone) != 5 || shardOf(s, alone).Group(alone) != nil || len(s.Members(shardOf(s, a).Group(a))) != 3 {
		t.Errorf("ungrouped ranks %d, the group has %d members", rank(s, alone), len(s.Members(shardOf(s, a).Group(a))))
	}
	remove(s, b)
	remove(s, c)
	if rank(s, a) != 10 {
		t.Errorf("rank %d after the younger ones left", rank(s, a))
	}
}

func TestLeaseOfAGroup(t *testing.T) {
	s := NewSpace(4)
	a, b := enter(s, "a", "g", 0), enter(s, "b", "g", 0)
	lease(s, a, 100, 50)
	if b.Lease() != 150 {
		t.Fatalf("the other member's lease ends at %d", b.Lease())
	}
	// More than half is left and nobody has joined: only the one that is read.
	lease(s, a, 120, 50)
	if a.Lease() != 170 || b.Lease() != 150 {
		t.Errorf("leases end at %d and %d", a.Lease(), b.Lease())
	}
	lease(s, b, 125, 50) // exactly half is left
	if a.Lease() != 175 || b.Lease() != 175 {
		t.Errorf("leases end at %d and %d", a.Lease(), b.Lease())
	}
	c := enter(s, "c", "g", 0)
	if c.Lease() != 175 {
		t.Errorf("a newcomer's lease ends at %d", c.Lease())
	}
	lease(s, a, 126, 50)
	if b.Lease() != 176 || c.Lease() != 176 {
		t.Errorf("after a change not all were leased: %d and %d", b.Lease(), c.Lease())
	}
	remove(s, c)
	lease(s, a, 127, 50)
	if b.Lease() != 177 {
		t.Errorf("after somebody left not all were leased: %d", b.Lease())
	}
	lease(s, a, 50, 50) // a late reader shortens nothing
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
	g := shardOf(s, members[0]).Group(members[0])
	all := s.Members(g)
	if s.Doom(g, all, 9) {
		t.Fatal("a leased group was given up")
	}
	if get(s, "k3") == nil {
		t.Fatal("a refusal hid a member")
	}
	if !s.Doom(g, all, 10) {
		t.Fatal("an unleased group was not given up")
	}
	for _, o := range members {
		if get(s, keyOf(s, o)) != nil {
			t.Errorf("%s is still found", keyOf(s, o))
		}
		if anyOf(s, keyOf(s, o)) != o {
			t.Errorf("%s has left the table already", keyOf(s, o))
		}
	}
	shardOf(s, members[3]).Spare(members[3])
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
	if shardOf(s, fresh).Group(fresh) == g || get(s, "k0") != fresh {
		t.Error("the group lives on after its last member")
	}
}
