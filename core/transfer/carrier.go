package transfer

import "context"

// Place is memory of somebody else: an absolute address in the process called Owner, as a replica's
// descriptor has it.
type Place struct {
	Owner   string
	Address uint64
}

// Carrier reads and writes the memory of others. It is safe for concurrent use.
type Carrier interface {
	// Read fills dst from a place; Write copies src to a place and returns when it is there. Both return soon
	// after ctx has ended, and don't touch dst or src any more then.
	Read(ctx context.Context, from Place, dst []byte) error
	Write(ctx context.Context, to Place, src []byte) error
	// Buffer returns n bytes that the carrier moves without copying them first. release gives them back.
	Buffer(n int) (b []byte, release func(), err error)
}

// Connector is a Carrier that can connect to owners before there is anything to carry. That is worth it where an owner
// takes part in connecting and in nothing else: one that has stopped since can still be reached.
type Connector interface {
	// Ahead reports whether it is worth it for a protocol, as segments name it.
	Ahead(protocol string) bool
	// Connect makes the connections that transfers with a place may need.
	Connect(ctx context.Context, at Place) error
}
