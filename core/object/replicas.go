package object

import "unsafe"

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
}

// Drop removes the replicas that match, hands each to release, and returns how many there
// were. The order of those that stay is kept.
func (sh *Shard) Drop(o *Object, match func(*Replica) bool, release func(*Replica)) int {
	all := sh.Replicas(o)
	kept := all[:0]
	for i := range all {
		if r := &all[i]; match(r) {
			release(r)
		} else {
			kept = append(kept, *r)
		}
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

// Stale reports whether a replica's segment is gone.
func (sh *Shard) Stale(o *Object) bool {
	all := sh.Replicas(o)
	for i := range all {
		if !all[i].Memory.Seg().Alive() {
			return true
		}
	}
	return false
}

// Describe appends the replicas that match as clients see them.
func (sh *Shard) Describe(dst []ReplicaDescriptor, o *Object, match func(*Replica) bool) []ReplicaDescriptor {
	all := sh.Replicas(o)
	for i := range all {
		r := &all[i]
		if !match(r) {
			continue
		}
		info := &r.Memory.Seg().Info
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
