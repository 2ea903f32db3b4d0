package task

import "github.com/mooncake-go/mooncake-master/core/segment"

// Type is what a task is to do; numbers are part of the wire.
type Type int32

// The types of task.
const (
	Copy Type = 0
	Move Type = 1
)

// Status is how far a task has come; numbers are part of the wire.
type Status int32

// The states of a task.
const (
	Pending    Status = 0
	Processing Status = 1
	Failed     Status = 2
	Success    Status = 3
)

// Final reports whether a task in this state has ended.
func (s Status) Final() bool { return s == Failed || s == Success }

// View is a task as it is shown. Times are milliseconds since the epoch.
type View struct {
	ID                   segment.UUID
	Type                 Type
	Status               Status
	CreatedAtMsEpoch     int64
	LastUpdatedAtMsEpoch int64
	AssignedClient       segment.UUID
	Message              string
}

// Assignment is a task as it is handed to its client. Payload is the JSON of a CopyPayload or
// MovePayload.
type Assignment struct {
	ID               segment.UUID
	Type             Type
	Payload          string
	CreatedAtMsEpoch int64
	MaxRetryAttempts uint32
}

// Completion is how a client says that a task has ended.
type Completion struct {
	ID      segment.UUID
	Status  Status
	Message string
}

// Time is one instant on both clocks.
type Time struct {
	Now  int64 // nanoseconds, never goes back
	Wall int64 // milliseconds since the epoch, for what is shown
}
