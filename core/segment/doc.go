// Package segment keeps the memory that clients lend to the pool: the registry of mounted
// segments, the offset allocator inside each, and the strategies that place replicas. No
// memory is touched: addresses are those of the clients' processes.
//
// Invariant: the bytes reported as used by a segment are the sum of the sizes of the
// allocations handed out and not yet freed, and no two of them overlap.
//
// Locks, in this order: Pool's mutex guards the registry; each segment's mutex guards its
// allocator and orders allocations against the end of the segment, so that nothing is
// allocated once BeginUnmount, BeginGracefulUnmount or Suspend has returned. Placing replicas
// takes only the chosen segment's: it reads the list of segments from an immutable layout
// behind an atomic pointer.
package segment
