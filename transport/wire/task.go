package wire

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// CopyPlan answers CopyStart, MovePlan answers MoveStart.
type (
	CopyPlan = object.CopyPlan
	MovePlan = object.MovePlan
)

// A task, as the queue of tasks has it.
type (
	TaskType       = task.Type
	TaskStatus     = task.Status
	TaskView       = task.View
	TaskAssignment = task.Assignment
	TaskCompletion = task.Completion
)

// The values of TaskType and TaskStatus.
const (
	TaskReplicaCopy = task.Copy
	TaskReplicaMove = task.Move
	TaskPending     = task.Pending
	TaskProcessing  = task.Processing
	TaskFailed      = task.Failed
	TaskSuccess     = task.Success
)

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
