// Package transfer carries bytes from one segment to others for a task, through a Carrier that knows how
// segments are reached.
//
// A Pump carries many objects at a time. Each is read piece by piece from one of the places where it lies and
// written to all of its targets; while one piece is written the next is read. What a pump has in memory, how many
// objects it carries at the same moment and how fast are bounded over all of them, and large objects let
// others go first after some pieces. A call of the carrier that doesn't come back is given up: it keeps its
// buffers until it does, and nothing else of the pump.
//
// Locks: the pump has two, its own and that of the bandwidth; both are leaves and never held together. Time comes
// from outside.
package transfer
