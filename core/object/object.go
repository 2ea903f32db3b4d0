package object

import (
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Replica is one copy of an object: in the memory of a segment, or somewhere else.
type Replica struct {
	ID     uint64
	Memory segment.Allocation // what it lies in; Kind says what that is
	Status ReplicaStatus
	Pins   int16 // works that read from it; it is not evicted while there are any
	Kind   Kind
	Staged bool // a work of the object is making it: its charge is with the work
}

// Kind is where a replica lies. The numbers are those of Location.Index.
type Kind uint8

// The kinds of place. KindMemory, by far the most frequent, is zero.
const (
	KindMemory    = Kind(LocationMemory)
	KindNoF       = Kind(LocationNoF)
	KindDisk      = Kind(LocationDisk)
	KindLocalDisk = Kind(LocationLocalDisk)
	KindDFS       = Kind(LocationDFS)
)

// Covers reports whether a call about replicas of a type is about those of a kind. ReplicaAll
// is about all but those on disks.
func (t ReplicaType) Covers(k Kind) bool {
	switch t {
	case ReplicaMemory:
		return k == KindMemory
	case ReplicaDisk:
		return k == KindDisk
	case ReplicaLocalDisk:
		return k == KindLocalDisk
	case ReplicaNoF:
		return k == KindNoF
	case ReplicaDFS:
		return k == KindDFS
	case ReplicaAll:
		return k == KindMemory || k == KindNoF || k == KindDFS
	}
	return false
}

// Readable reports whether clients may be sent to the replica: it is complete and its owner is
// there and not suspected to be gone.
func (r *Replica) Readable() bool {
	return r.Status == ReplicaComplete && r.Memory.Seg().Readable()
}

// Evictable reports whether the replica may be dropped to make room in memory.
func (r *Replica) Evictable() bool { return r.Kind == KindMemory && r.Pins == 0 && r.Readable() }

// Primary reports whether the replica belongs to the object itself, not to a work under way.
func (r *Replica) Primary() bool { return !r.Staged }

// Object is one value under one key. All fields are guarded by the lock of its shard but the
// two instants, which are atomic so that they can be read without it.
//
// Objects live in slabs and hold no pointers: the garbage collector never looks at them. What
// needs a pointer, or few objects have, is kept by the Shard, whose methods give it. A slot is
// used again for another object; whoever keeps a *Object without the lock keeps a Ref and asks
// Shard.Live.
type Object struct {
	Size   uint64 // bytes of one replica
	Owner  segment.UUID
	Ledger tenant.Ledger

	lease atomic.Int64 // until when the object is protected
	write atomic.Int64 // when the write in flight began; zero when there is none

	first Replica // the usual single copy; more are with the shard
	slot  evict.Slot

	name atomic.Uint64 // of the key: block << 32 | length; atomic for glances

	hash uint32 // what the index of the shard knows it by
	self uint32 // number of the slot
	gen  uint32 // raised when the slot's object dies

	replicas uint16
	shard    uint16
	flags    uint8
	HardPin  bool
	DataType DataType
}

const (
	flagDead  = 1 << iota // taken out of its space
	flagExtra             // the shard keeps something more about it
)

// Ref names an object beyond the lock of its shard.
type Ref struct {
	o   *Object
	gen uint32
}

// Ref returns a name for the object that stays good, or is known to have gone bad. The shard,
// or the lock under which the object was found, is held.
func (o *Object) Ref() Ref { return Ref{o, o.gen} }

// Shard returns the number of the shard that the object is, or was, in.
func (r Ref) Shard() int { return int(r.o.shard) }

// Generation implements evict.Item.
func (o *Object) Generation() uint32 { return o.gen }

// Found turns what an eviction order gave into a Ref.
func Found(o *Object, generation uint32) Ref { return Ref{o, generation} }

// keyAt returns the block of the key's bytes, and how many there are.
func (o *Object) keyAt() (block uint32, length int) {
	n := o.name.Load()
	return uint32(n >> 32), int(uint32(n))
}

// OrderSlot lets the eviction order keep its place in the object.
func (o *Object) OrderSlot() *evict.Slot { return &o.slot }

// OrderPart implements evict.Item: the order has a part for each shard.
func (o *Object) OrderPart() int { return int(o.shard) }

// OrderAge implements evict.Item: replicas are numbered in the order they are made.
func (o *Object) OrderAge() uint32 { return uint32(o.first.ID) }

// Dead reports whether the object has been taken out of its space.
func (o *Object) Dead() bool { return o.flags&flagDead != 0 }

// InFlight reports whether a write to the object has started and not ended.
func (o *Object) InFlight() bool { return o.write.Load() != 0 }

// Started returns when the write in flight began; zero when there is none.
func (o *Object) Started() int64 { return o.write.Load() }

// Begin notes that owner starts to write the object at now, which must not be zero.
func (o *Object) Begin(owner segment.UUID, now int64) {
	o.Owner = owner
	o.write.Store(now)
}

// End notes that the write in flight is over.
func (o *Object) End() { o.write.Store(0) }

// Lease returns the instant until which the object is protected; zero if it never was.
func (o *Object) Lease() int64 { return o.lease.Load() }

// Leased reports whether the object is protected at now.
func (o *Object) Leased(now int64) bool { return o.lease.Load() > now }

// ExtendLease moves the end of the lease to until unless it is later already.
func (o *Object) ExtendLease(until int64) {
	for {
		old := o.lease.Load()
		if old >= until || o.lease.CompareAndSwap(old, until) {
			return
		}
	}
}
