package wire

import (
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// NoFSegment describes an NVMe-oF segment as its client mounts it.
type NoFSegment struct {
	ID       segment.UUID
	Name     string
	Base     uint64
	Size     uint64
	Endpoint string
}

// NoFSegmentOwner says which client mounted an NVMe-oF segment.
type NoFSegmentOwner struct {
	SegmentID segment.UUID
	ClientID  segment.UUID
}

// ClientStatus is what the master thinks of a client that pings.
type ClientStatus int32

// The values of ClientStatus, as numbered on the wire.
const (
	ClientUndefined   ClientStatus = 0
	ClientOK          ClientStatus = 1
	ClientNeedRemount ClientStatus = 2
)

// PingReply answers Ping. ViewVersionID is the term of the leader, 0 without high availability.
type PingReply struct {
	ViewVersionID int64
	ClientStatus  ClientStatus
}

// StorageConfig tells a client where and how to keep disk replicas. FSDir is empty when there
// is no shared file system; QuotaBytes 0 is no limit.
type StorageConfig struct {
	FSDir              string
	EnableDiskEviction bool
	QuotaBytes         uint64
}

// Map is a map on the wire. It is a list, because the order in which entries were written is
// kept; the protocol gives the order no meaning.
type Map[K, V any] struct {
	_       struct{} `pack:"map"`
	Entries []Entry[K, V]
}

// Entry is one key of a Map with its value.
type Entry[K, V any] struct {
	Key   K
	Value V
}

// ServiceReadyRequest has no arguments.
type ServiceReadyRequest struct{}

// GetStorageConfigRequest has no arguments.
type GetStorageConfigRequest struct{}

// GetFsdirRequest has no arguments.
type GetFsdirRequest struct{}

// PingRequest holds the arguments of Ping.
type PingRequest struct {
	ClientID segment.UUID
}

// BatchQueryIpRequest holds the arguments of BatchQueryIp.
type BatchQueryIpRequest struct {
	ClientIDs []segment.UUID
}

// MountSegmentRequest holds the arguments of MountSegment.
type MountSegmentRequest struct {
	Segment  segment.Info
	ClientID segment.UUID
}

// ReMountSegmentRequest holds the arguments of ReMountSegment.
type ReMountSegmentRequest struct {
	Segments []segment.Info
	ClientID segment.UUID
}

// UnmountSegmentRequest holds the arguments of UnmountSegment.
type UnmountSegmentRequest struct {
	SegmentID segment.UUID
	ClientID  segment.UUID
}

// GracefulUnmountSegmentRequest holds the arguments of GracefulUnmountSegment.
type GracefulUnmountSegmentRequest struct {
	SegmentID     segment.UUID
	ClientID      segment.UUID
	GracePeriodMs uint64
}

// QuerySegmentStatusRequest holds the arguments of QuerySegmentStatus.
type QuerySegmentStatusRequest struct {
	SegmentName string
}

// QuerySegmentStatusByIdRequest holds the arguments of QuerySegmentStatusById.
type QuerySegmentStatusByIdRequest struct {
	SegmentID segment.UUID
}

// MountNoFSegmentRequest holds the arguments of MountNoFSegment.
type MountNoFSegmentRequest struct {
	Segment  NoFSegment
	ClientID segment.UUID
}

// ReMountNoFSegmentRequest holds the arguments of ReMountNoFSegment.
type ReMountNoFSegmentRequest struct {
	Segments []NoFSegment
	ClientID segment.UUID
}

// UnmountNoFSegmentRequest holds the arguments of UnmountNoFSegment.
type UnmountNoFSegmentRequest struct {
	SegmentID segment.UUID
	ClientID  segment.UUID
}

// GetAllNoFSegmentsRequest has no arguments.
type GetAllNoFSegmentsRequest struct{}

// GetNoFSegmentsByNameRequest holds the arguments of GetNoFSegmentsByName.
type GetNoFSegmentsByNameRequest struct {
	SegmentName string
}
