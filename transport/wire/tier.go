package wire

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// OffloadTaskItem names an object of Size bytes that a client is to write to its own disk.
type OffloadTaskItem struct {
	TenantID string
	Key      string
	Size     int64
}

// StorageObjectMetadata says where in a client's own storage an object lies.
type StorageObjectMetadata struct {
	BucketID          int64
	Offset            int64
	KeySize           int64
	DataSize          int64
	TransportEndpoint string
}

// PromotionTaskItem names an object of Size bytes that a client is to bring from its own disk
// into memory.
type PromotionTaskItem struct {
	TenantID string
	Key      string
	Size     int64
}

// PromotionAlloc is the memory replica that a promotion fills.
type PromotionAlloc struct {
	MemoryDescriptor object.ReplicaDescriptor
}

// MountLocalDiskSegmentRequest holds the arguments of MountLocalDiskSegment.
type MountLocalDiskSegmentRequest struct {
	ClientID         segment.UUID
	EnableOffloading bool
}

// UnmountLocalDiskSegmentRequest holds the arguments of UnmountLocalDiskSegment.
type UnmountLocalDiskSegmentRequest struct {
	ClientID segment.UUID
}

// OffloadObjectHeartbeatRequest holds the arguments of OffloadObjectHeartbeat.
type OffloadObjectHeartbeatRequest struct {
	ClientID         segment.UUID
	EnableOffloading bool
}

// ReportSsdCapacityRequest holds the arguments of ReportSsdCapacity.
type ReportSsdCapacityRequest struct {
	ClientID              segment.UUID
	SSDTotalCapacityBytes int64
}

// NotifyOffloadSuccessRequest holds the arguments of NotifyOffloadSuccess.
type NotifyOffloadSuccessRequest struct {
	ClientID  segment.UUID
	Tasks     []OffloadTaskItem
	Metadatas []StorageObjectMetadata
}

// PollRemoveAllRequest holds the arguments of PollRemoveAll.
type PollRemoveAllRequest struct {
	ClientID segment.UUID
}

// EvictDiskReplicaRequest holds the arguments of EvictDiskReplica.
type EvictDiskReplicaRequest struct {
	ClientID    segment.UUID
	Key         string
	TenantID    string
	ReplicaType object.ReplicaType
}

// BatchEvictDiskReplicaRequest holds the arguments of BatchEvictDiskReplica.
type BatchEvictDiskReplicaRequest struct {
	ClientID    segment.UUID
	Keys        []string
	TenantID    string
	ReplicaType object.ReplicaType
}

// EvictDiskReplicaIfCurrentRequest holds the arguments of EvictDiskReplicaIfCurrent.
type EvictDiskReplicaIfCurrentRequest struct {
	ClientID                   segment.UUID
	Key                        string
	TenantID                   string
	ReplicaType                object.ReplicaType
	ExpectedReplicaIDOrVersion uint64
}

// PromotionObjectHeartbeatRequest holds the arguments of PromotionObjectHeartbeat.
type PromotionObjectHeartbeatRequest struct {
	ClientID segment.UUID
}

// PromotionAllocStartRequest holds the arguments of PromotionAllocStart.
type PromotionAllocStartRequest struct {
	ClientID          segment.UUID
	Key               string
	TenantID          string
	Size              uint64
	PreferredSegments []string
}

// NotifyPromotionSuccessRequest holds the arguments of NotifyPromotionSuccess.
type NotifyPromotionSuccessRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// NotifyPromotionFailureRequest holds the arguments of NotifyPromotionFailure.
type NotifyPromotionFailureRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}

// RegisterPrefetchTaskRequest holds the arguments of RegisterPrefetchTask.
type RegisterPrefetchTaskRequest struct {
	ClientID segment.UUID
	Key      string
	TenantID string
}
