package wire

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// CopyPlan says which replica to copy and where to; Targets is empty when every target already
// holds the object.
type CopyPlan struct {
	Source  object.ReplicaDescriptor
	Targets []object.ReplicaDescriptor
}

// MovePlan says which replica to move and where to; Target is nil when the target already holds
// the object.
type MovePlan struct {
	Source object.ReplicaDescriptor
	Target *object.ReplicaDescriptor
}

// TaskType is the kind of a task.
type TaskType int32

// The values of TaskType, as numbered on the wire.
const (
	TaskReplicaCopy TaskType = 0
	TaskReplicaMove TaskType = 1
)

// TaskStatus is the state of a task.
type TaskStatus int32

// The values of TaskStatus, as numbered on the wire.
const (
	TaskPending    TaskStatus = 0
	TaskProcessing TaskStatus = 1
	TaskFailed     TaskStatus = 2
	TaskSuccess    TaskStatus = 3
)

// TaskView is a task as QueryTask shows it. Times are milliseconds since the epoch.
type TaskView struct {
	ID                   segment.UUID
	Type                 TaskType
	Status               TaskStatus
	CreatedAtMsEpoch     int64
	LastUpdatedAtMsEpoch int64
	AssignedClient       segment.UUID
	Message              string
}

// TaskAssignment is a task handed to a client. Payload is compact JSON whose fields depend on
// Type.
type TaskAssignment struct {
	ID               segment.UUID
	Type             TaskType
	Payload          string
	CreatedAtMsEpoch int64
	MaxRetryAttempts uint32
}

// TaskCompletion is how a client says that a task has ended.
type TaskCompletion struct {
	ID      segment.UUID
	Status  TaskStatus
	Message string
}

// CopyStartRequest holds the arguments of CopyStart.
type CopyStartRequest struct {
	ClientID    segment.UUID
	Key         string
	TenantID    string
	SrcSegment  string
	TgtSegments []string
}

// CopyEndRequest holds the arguments of CopyEnd.
type CopyEndRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// CopyRevokeRequest holds the arguments of CopyRevoke.
type CopyRevokeRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// DynamicReplicaCopyStartRequest holds the arguments of DynamicReplicaCopyStart.
type DynamicReplicaCopyStartRequest struct {
	ClientID                       segment.UUID
	Key                            string
	TenantID                       string
	SrcSegment                     string
	TgtSegments                    []string
	DynamicReplicationLeaseID      segment.UUID
	DynamicReplicationVersionEpoch uint64
}

// DynamicReplicaCopyEndRequest holds the arguments of DynamicReplicaCopyEnd.
type DynamicReplicaCopyEndRequest struct {
	ClientID                       segment.UUID
	Key                            string
	TenantID                       string
	DynamicReplicationLeaseID      segment.UUID
	DynamicReplicationVersionEpoch uint64
}

// DynamicReplicaCopyRevokeRequest holds the arguments of DynamicReplicaCopyRevoke.
type DynamicReplicaCopyRevokeRequest struct {
	ClientID                       segment.UUID
	Key                            string
	TenantID                       string
	DynamicReplicationLeaseID      segment.UUID
	DynamicReplicationVersionEpoch uint64
}

// MoveStartRequest holds the arguments of MoveStart.
type MoveStartRequest struct {
	ClientID   segment.UUID
	Key        string
	TenantID   string
	SrcSegment string
	TgtSegment string
}

// MoveEndRequest holds the arguments of MoveEnd.
type MoveEndRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// MoveRevokeRequest holds the arguments of MoveRevoke.
type MoveRevokeRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// CreateCopyTaskRequest holds the arguments of CreateCopyTask.
type CreateCopyTaskRequest struct {
	Key      string
	TenantID string
	Targets  []string
}

// CreateMoveTaskRequest holds the arguments of CreateMoveTask.
type CreateMoveTaskRequest struct {
	Key      string
	TenantID string
	Source   string
	Target   string
}

// QueryTaskRequest holds the arguments of QueryTask.
type QueryTaskRequest struct {
	TaskID segment.UUID
}

// FetchTasksRequest holds the arguments of FetchTasks.
type FetchTasksRequest struct {
	ClientID  segment.UUID
	BatchSize uint64
}

// MarkTaskToCompleteRequest holds the arguments of MarkTaskToComplete.
type MarkTaskToCompleteRequest struct {
	ClientID segment.UUID
	Request  TaskCompletion
}
