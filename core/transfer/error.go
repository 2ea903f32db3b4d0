package transfer

import (
	"context"
	"errors"
	"fmt"
)

// Cause says in one word why a transfer failed.
type Cause string

// The causes.
const (
	SourceUnreachable Cause = "source_unreachable" // none of the sources could be read
	TargetUnreachable Cause = "target_unreachable" // a target could not be written
	ChecksumMismatch  Cause = "checksum_mismatch"  // what was read is not what the object's writer wrote
	Stalled           Cause = "stalled"            // one piece took longer than Config.Stall
	TimedOut          Cause = "timeout"            // the whole took longer than Config.Timeout
	Canceled          Cause = "canceled"           // the caller's context has ended, or the pump was closed
	NoMemory          Cause = "no_memory"          // the carrier had no buffers
)

// Causes are all causes there are, in no particular order.
func Causes() []Cause {
	return []Cause{SourceUnreachable, TargetUnreachable, ChecksumMismatch, Stalled, TimedOut, Canceled, NoMemory}
}

// Error is why a transfer, or one of its targets, failed.
type Error struct {
	Cause Cause
	At    Place // where; zero where that makes no sense
	Err   error // nil if the cause says everything
}

// Error names the cause, the owner of the place and what went wrong there.
func (e *Error) Error() string {
	text := string(e.Cause)
	if e.At.Owner != "" {
		text += " at " + e.At.Owner
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns what went wrong at the place.
func (e *Error) Unwrap() error { return e.Err }

// CauseOf returns the cause in an error of this package; "" for nil and for other errors.
func CauseOf(err error) Cause {
	var e *Error
	if errors.As(err, &e) {
		return e.Cause
	}
	return ""
}

// ErrClosed is within the error of a transfer that a closed pump did not carry.
var ErrClosed = errors.New("transfers have been stopped")

// reach makes an error of a failed call of the carrier: it is the context's where that has ended, and otherwise
// of the given cause.
func reach(ctx context.Context, cause Cause, at Place, err error) error {
	var own *Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.As(err, &own): // stalled
		return &Error{own.Cause, at, own.Err}
	}
	return &Error{cause, at, err}
}

// ended is the error of a context that has.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	var own *Error
	switch {
	case errors.As(cause, &own):
		return own
	case errors.Is(cause, context.Canceled):
		return &Error{Cause: Canceled}
	case errors.Is(cause, context.DeadlineExceeded):
		return &Error{Cause: TimedOut}
	}
	return &Error{Cause: Canceled, Err: cause}
}

// mismatch is the error about a checksum.
func mismatch(at Place, got, want uint64) error {
	return &Error{ChecksumMismatch, at, fmt.Errorf("the bytes read sum up to %#x, the object's checksum is %#x", got, want)}
}
