// Package evict decides what leaves the pool and how much: the order in which a tenant's
// objects are given up, and the arithmetic of the pool's and the tenants' watermarks.
//
// Invariant of Order: an entry's key never exceeds the rank its item has now, so the smallest
// key that still equals its item's rank is the oldest item. Renewing a lease therefore costs
// nothing here; the entry is moved when it comes up for eviction and turns out younger. Locks:
// each part of an Order has a mutex of its own, a leaf: nothing else is acquired under it.
package evict
