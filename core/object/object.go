package object

import (
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Replica is one copy of an object in the memory of a segment.
type Replica struct {
	ID     uint64
	Memory segment.Allocation
	Status ReplicaStatus
	Pins   int32 // running copies that read from it; it is not evicted while there are any
}

// Readable reports whether clients may be sent to the replica: it is complete and its owner is
// there and not suspected to be gone.
func (r *Replica) Readable() bool {
	return r.Status == ReplicaComplete && r.Memory.Seg.Readable()
}

// Evictable reports whether the replica may be dropped to make room.
func (r *Replica) Evictable() bool { return r.Pins == 0 && r.Readable() }

// Object is one value under one key. All fields are guarded by the lock of its shard but the
// two instants, which are atomic so that they can be read without it.
type Object struct {
	Key      string
	Size     uint64 // bytes of one replica
	Owner    segment.UUID
	Ledger   tenant.Ledger
	Replicas []Replica

	extra *extra
	lease atomic.Int64 // until when the object is protected
	write atomic.Int64 // when the write in flight began; zero when there is none
	first [1]Replica   // backs Replicas for the usual single copy
	slot  evict.Slot

	HardPin  bool
	dead     bool // taken out of its space
	DataType DataType
}

// extra is what few objects have.
type extra struct {
	group     *Group
	checksum  *uint64
	softUntil int64
	pending   PinRequest
	doomed    bool // chosen by a group's eviction; guarded by the group lock
}

// PinRequest is what a write wants done to the soft pin once the object is readable.
type PinRequest struct {
	Action SoftPinAction
	TTL    int64 // nanoseconds, for SoftPinEnable
}

// New makes an object that owner starts to write at now, with room for one replica inline. The key is kept as it is given, so it
// must not alias a buffer that is reused.
func New(key string, size uint64, owner segment.UUID, now int64) *Object {
	o := &Object{Key: key, Size: size, Owner: owner}
	o.Replicas = o.first[:0]
	o.write.Store(now)
	return o
}

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

// OrderSlot lets the eviction order keep its place in the object.
func (o *Object) OrderSlot() *evict.Slot { return &o.slot }

// Dead reports whether the object has been taken out of its space.
func (o *Object) Dead() bool { return o.dead }

func (o *Object) more() *extra {
	if o.extra == nil {
		o.extra = new(extra)
	}
	return o.extra
}

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

// Checksum returns what the writer gave, or nil. The pointed-to value never changes.
func (o *Object) Checksum() *uint64 {
	if o.extra == nil {
		return nil
	}
	return o.extra.checksum
}

// SetChecksum stores a copy of sum, or forgets the checksum when sum is nil.
func (o *Object) SetChecksum(sum *uint64) {
	if sum == nil {
		if o.extra != nil {
			o.extra.checksum = nil
		}
		return
	}
	v := *sum
	o.more().checksum = &v
}

// SoftUntil returns the end of the soft pin; zero if there is none.
func (o *Object) SoftUntil() int64 {
	if o.extra == nil {
		return 0
	}
	return o.extra.softUntil
}

// SetSoftUntil sets the end of the soft pin; zero removes it.
func (o *Object) SetSoftUntil(until int64) {
	if until != 0 || o.extra != nil {
		o.more().softUntil = until
	}
}

// RequestPin keeps what the write wants done to the soft pin until the object is readable.
func (o *Object) RequestPin(p PinRequest) {
	if p.Action != SoftPinPreserve || o.extra != nil {
		o.more().pending = p
	}
}

// CommitPin does what the write asked for; a second call does nothing.
func (o *Object) CommitPin(now int64) {
	if o.extra == nil {
		return
	}
	switch p := o.extra.pending; p.Action {
	case SoftPinEnable:
		o.extra.softUntil = 0
		if p.TTL > 0 {
			o.extra.softUntil = now + p.TTL
		}
	case SoftPinDisable:
		o.extra.softUntil = 0
	}
	o.extra.pending = PinRequest{}
}

// Group returns the object's group, or nil.
func (o *Object) Group() *Group {
	if o.extra == nil {
		return nil
	}
	return o.extra.group
}

// GroupID returns the id of the object's group, "" if it has none.
func (o *Object) GroupID() string {
	if g := o.Group(); g != nil {
		return g.ID
	}
	return ""
}

// Readable reports whether any replica is.
func (o *Object) Readable() bool {
	for i := range o.Replicas {
		if o.Replicas[i].Readable() {
			return true
		}
	}
	return false
}

// HasComplete reports whether any replica has been completely written, readable or not.
func (o *Object) HasComplete() bool {
	for i := range o.Replicas {
		if o.Replicas[i].Status == ReplicaComplete {
			return true
		}
	}
	return false
}

// Count returns the number of replicas in the given state.
func (o *Object) Count(s ReplicaStatus) int {
	n := 0
	for i := range o.Replicas {
		if o.Replicas[i].Status == s {
			n++
		}
	}
	return n
}

// EvictableReplicas returns how many replicas may be dropped to make room.
func (o *Object) EvictableReplicas() int {
	n := 0
	for i := range o.Replicas {
		if o.Replicas[i].Evictable() {
			n++
		}
	}
	return n
}

// Stale reports whether a replica's segment is gone.
func (o *Object) Stale() bool {
	for i := range o.Replicas {
		if !o.Replicas[i].Memory.Seg.Alive() {
			return true
		}
	}
	return false
}

// Drop removes the replicas that match, hands each to release, and returns how many there
// were. The order of those that stay is kept.
func (o *Object) Drop(match func(*Replica) bool, release func(*Replica)) int {
	kept, n := o.Replicas[:0], 0
	for i := range o.Replicas {
		if r := &o.Replicas[i]; match(r) {
			release(r)
			n++
		} else {
			kept = append(kept, *r)
		}
	}
	clear(o.Replicas[len(kept):])
	o.Replicas = kept
	return n
}

// Describe appends the replicas that match as clients see them.
func (o *Object) Describe(dst []ReplicaDescriptor, match func(*Replica) bool) []ReplicaDescriptor {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !match(r) {
			continue
		}
		info := &r.Memory.Seg.Info
		dst = append(dst, ReplicaDescriptor{
			ID: r.ID,
			Location: Location{Index: LocationMemory, Memory: MemoryDescriptor{Buffer: BufferDescriptor{
				Size: o.Size, Address: r.Memory.Address, Protocol: info.Protocol, Endpoint: info.Endpoint, Locality: info.Locality,
			}}},
			Status: r.Status,
		})
	}
	return dst
}
