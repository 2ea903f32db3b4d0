// Package core is the master without a network: it admits writes against the tenants' quotas,
// places replicas, answers lookups and makes room when memory is full.
//
// A Master is driven from outside: calls come from transport, time from a Clock, and the
// background work (liveness, eviction, timeouts) is done by Run or, in tests, step by step.
//
// Invariant, at every moment when no call is running: what a tenant is charged equals the sum
// over its objects of committed, pending and replaced bytes; and an object without a write in
// flight has committed exactly its size times the number of its memory replicas. Every path
// that drops a replica goes through Master.shed, which refunds.
//
// Locks: see package object for the order inside a tenant. Before those come a space's Reclaim
// lock and the pool pass lock; after them the segment allocators', the parked buffers' and the
// accounts' (atomics). Ping, health and metrics take no object lock.
package core
