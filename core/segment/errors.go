package segment

import "errors"

// The errors of this package. Nothing has changed when one is returned. Each stands for one
// result code of the protocol.
var (
	// ErrInvalid is returned for arguments that make no sense: a segment without address or
	// size, a segment that is not the caller's or differs from the one mounted, a request for
	// zero bytes or replicas. It stands for INVALID_PARAMS.
	ErrInvalid = errors.New("invalid segment parameters")
	// ErrNotFound is returned when no segment with the id or name is there to be used. It
	// stands for SEGMENT_NOT_FOUND.
	ErrNotFound = errors.New("segment not found")
	// ErrUnavailable is returned when the segment's status forbids the operation. It stands
	// for UNAVAILABLE_IN_CURRENT_STATUS.
	ErrUnavailable = errors.New("segment status does not allow this")
	// ErrNoSpace is returned when no replica could be placed. It stands for
	// NO_AVAILABLE_HANDLE.
	ErrNoSpace = errors.New("no segment has room")
)
