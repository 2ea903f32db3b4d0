// Package object is the table of objects: which keys a tenant has, where their replicas lie,
// how long their leases and pins last, and which of them belong together in groups.
//
// A Space holds one tenant's objects, so that no operation on one tenant can touch another's
// state. Invariants: an object is in exactly one space and one shard until it is dead, and
// never comes back; a replica's allocation is freed or parked exactly once.
//
// Locks, in the order they are taken: a Shard's lock guards the shard's map and every field of
// its objects except the lease, which is atomic; then the space's group lock; then the eviction
// order's own lock. At most one shard lock is held at a time.
package object
