// Package weight keeps what is known about managed model weights: revisions, who uses them, and
// moves of whole revisions between memory and disk. The objects themselves are the master's; the
// store looks at them, and acts on them, through Objects.
//
// A revision is imported: its objects, a manifest and a payload, are written as one group, then the
// import is committed, and from then on nobody but the store may change or remove them. While an
// import runs they may be written but not removed. An import that nobody writes to is given up.
//
//	importing ─commit─► ready ◄─► degraded (objects are missing)
//	    │                 │           │
//	    └──abort, idle──► deleting ◄──┘ delete
//	                      │
//	                      ▼
//	                   deleted, kept so that nobody takes the same identity again
//
// Every change raises the revision's metadata generation; who wants to change one names the
// generation known to them and is refused when it is not the present one. A request that has been
// done already, and names the generation before or after, is answered as if it had just been done.
//
// Locks: Store.mu is held for a whole call, during which the objects' locks are taken, never the
// other way round. Guard looks at an atomic and takes none.
package weight
