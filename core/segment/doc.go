// Package segment keeps the memory that clients lend to the pool: the registry of mounted
// segments, the offset allocator inside each, and the strategies that place replicas.
//
// Invariant: the bytes reported as used by a segment are the sum of the sizes of the
// allocations handed out and not yet freed. Locks: each segment's allocator has its own; the
// list of segments is an immutable snapshot behind an atomic pointer, so that placing
// replicas takes no lock but the chosen segment's.
package segment
