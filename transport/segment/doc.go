// Package segment is the data plane: it reads and writes the memory that clients lend, and lends memory
// itself, as the Transfer Engine of the released clients does.
//
// A process that lends memory has a name, under which it publishes a Descriptor: its buffers and how to
// reach them. Where that is found is a Metadata: a store that all share, or the process itself (handshake).
// A replica is named by the endpoint of its owner, an absolute address in the owner's memory and a size; a
// Carrier reads and writes such places, and a Host serves its own.
package segment
