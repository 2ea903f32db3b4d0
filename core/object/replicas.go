package object

import (
	"unsafe"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Replicas returns the object's replicas, in the order they were added. The slice may be
// changed in place; it is good until the next Add, Drop or Delete.
func (sh *Shard) Replicas(o *Object) []Replica {
	switch o.replicas {
	case 0:
		return nil
	case 1:
		return unsafe.Slice(&o.first, 1)
	}
	return sh.more[o]
}

// Add gives the object a further replica.
func (sh *Shard) Add(o *Object, r Replica) {
	switch o.replicas {
	case 0:
		o.first = r
	case 1:
		if sh.more == nil {
			sh.more = make(map[*Object][]Replica)
		}
		sh.more[o] = []Replica{o.first, r}
	default:
		sh.more[o] = append(sh.more[o], r)
	}
	o.replicas++
	sh.countFile(&r, 1)
	if r.Kind == KindMemory && sh.memoryReplicas(o) == 1 {
		sh.inMemory++
	}
}

// memoryReplicas returns how many replicas are in memory, those included that a work is making.
func (sh *Shard) memoryReplicas(o *Object) int {
	n := 0
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Kind == KindMemory {
			n++
		}
	}
	return n
}

// countFile notes that a replica has come or gone, if it is in a file.
func (sh *Shard) countFile(r *Replica, n int64) {
	if r.Kind == KindDisk || r.Kind == KindLocalDisk {
		sh.Files.Add(n)
		sh.FileBytes.Add(n * int64(r.Memory.Size))
	}
}

// Drop removes the replicas that match, hands each to release, and returns how many there
// were. The order of those that stay is kept.
func (sh *Shard) Drop(o *Object, match func(*Replica) bool, release func(*Replica)) int {
	all := sh.Replicas(o)
	kept := all[:0]
	lost, left := false, false // of memory
	for i := range all {
		if r := &all[i]; match(r) {
			lost = lost || r.Kind == KindMemory
			sh.countFile(r, -1)
			release(r)
		} else {
			left = left || r.Kind == KindMemory
			kept = append(kept, *r)
		}
	}
	if lost && !left {
		sh.inMemory--
	}
	n := len(all) - len(kept)
	switch {
	case n == 0:
	case len(kept) <= 1:
		if len(kept) == 1 {
			o.first = kept[0]
		}
		if len(all) > 1 {
			delete(sh.more, o)
		}
	default:
		sh.more[o] = kept
	}
	o.replicas = uint16(len(kept))
	return n
}

// Readable reports whether any replica is.
func (sh *Shard) Readable(o *Object) bool {
	for i := range sh.Replicas(o) {
		if sh.Replicas(o)[i].Readable() {
			return true
		}
	}
	return false
}

// Count returns the number of replicas in the given state.
func (sh *Shard) Count(o *Object, s ReplicaStatus) int {
	n := 0
	for _, r := range sh.Replicas(o) {
		if r.Status == s {
			n++
		}
	}
	return n
}

// EvictableReplicas returns how many replicas may be dropped to make room.
func (sh *Shard) EvictableReplicas(o *Object) int {
	n := 0
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Evictable() {
			n++
		}
	}
	return n
}

// Stale reports whether a replica's place is gone.
func (sh *Shard) Stale(o *Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if !all[i].Memory.Seg().Alive() {
			return true
		}
	}
	return false
}

// Tally counts replicas by what the accounting wants to know. Those that a work is making count
// in All only.
type Tally struct {
	All           int
	Writing       int // being written
	Memory        int // in memory, being written or complete
	MemoryWriting int // in memory and being written
}

// Tally counts an object's replicas.
func (sh *Shard) Tally(o *Object) Tally {
	all := sh.Replicas(o)
	t := Tally{All: len(all)}
	for i := range all {
		r := &all[i]
		if r.Staged {
			continue
		}
		writing := r.Status == ReplicaProcessing
		if writing {
			t.Writing++
		}
		if r.Kind == KindMemory {
			t.Memory++
			if writing {
				t.MemoryWriting++
			}
		}
	}
	return t
}

// InMemory reports whether the object has a replica in memory that is not just being made by a
// work.
func (sh *Shard) InMemory(o *Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].Kind == KindMemory && !all[i].Staged {
			return true
		}
	}
	return false
}

// ByID returns the replica with an id, or nil.
func (sh *Shard) ByID(o *Object, id uint64) *Replica {
	all := sh.Replicas(o)
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// Describe appends the replicas that match as clients see them.
func (sh *Shard) Describe(dst []ReplicaDescriptor, o *Object, match func(*Replica) bool) []ReplicaDescriptor {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; match(r) {
			dst = append(dst, sh.DescribeOne(o, r))
		}
	}
	return dst
}

// DescribeOne returns one replica of an object as clients see it.
func (sh *Shard) DescribeOne(o *Object, r *Replica) ReplicaDescriptor {
	d := ReplicaDescriptor{ID: r.ID, Status: r.Status, Location: Location{Index: uint8(r.Kind)}}
	seg := r.Memory.Seg()
	switch r.Kind {
	case KindMemory:
		d.Location.Memory.Buffer = sh.buffer(o, r, seg)
	case KindNoF:
		d.Location.NoF = &NoFDescriptor{Buffer: sh.buffer(o, r, seg)}
	case KindDisk:
		d.Location.Disk = &DiskDescriptor{FilePath: sh.space.FilePath(sh.Key(o)), ObjectSize: r.Memory.Size}
	case KindLocalDisk:
		d.Location.LocalDisk = &LocalDiskDescriptor{ClientID: seg.Client, ObjectSize: r.Memory.Size, Endpoint: seg.Info.Endpoint}
	}
	return d
}

func (sh *Shard) buffer(o *Object, r *Replica, seg *segment.Mounted) BufferDescriptor {
	return BufferDescriptor{Size: o.Size, Address: r.Memory.Address, Protocol: seg.Protocol, Endpoint: seg.Info.Endpoint, Locality: seg.Info.Locality}
}
