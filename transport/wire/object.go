package wire

import (
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// LeaseMode says which keys of a BatchProbeKey are leased.
type LeaseMode uint8

// The values of LeaseMode, as numbered on the wire.
const (
	LeaseNone        LeaseMode = 0
	LeaseLastHitOnly LeaseMode = 1
)

// LeasePolicy is the first argument of BatchProbeKey. CandidateSize is the number of keys in a
// group and matters only for LeaseLastHitOnly. It is copied as memory, padding included.
type LeasePolicy struct {
	_             struct{} `pack:"trivial"`
	Mode          LeaseMode
	CandidateSize uint64
}

// ExistKeyRequest holds the arguments of ExistKey.
type ExistKeyRequest struct {
	Key      string
	TenantID string
}

// BatchExistKeyRequest holds the arguments of BatchExistKey.
type BatchExistKeyRequest struct {
	Keys     []string
	TenantID string
}

// ProbeKeyRequest holds the arguments of ProbeKey.
type ProbeKeyRequest struct {
	Key      string
	TenantID string
}

// BatchProbeKeyRequest holds the arguments of BatchProbeKey.
type BatchProbeKeyRequest struct {
	Policy   LeasePolicy
	Keys     []string
	TenantID string
}

// GetReplicaListRequest holds the arguments of GetReplicaList.
type GetReplicaListRequest struct {
	Key      string
	TenantID string
}

// BatchGetReplicaListRequest holds the arguments of BatchGetReplicaList.
type BatchGetReplicaListRequest struct {
	Keys     []string
	TenantID string
}

// GetReplicaListByRegexRequest holds the arguments of GetReplicaListByRegex.
type GetReplicaListByRegexRequest struct {
	Regex    string
	TenantID string
}

// GetReplicaListForAdminRequest holds the arguments of GetReplicaListForAdmin.
type GetReplicaListForAdminRequest struct {
	Key      string
	TenantID string
}

// BatchGetReplicaListForAdminRequest holds the arguments of BatchGetReplicaListForAdmin.
type BatchGetReplicaListForAdminRequest struct {
	Keys     []string
	TenantID string
}

// PutStartRequest holds the arguments of PutStart.
type PutStartRequest struct {
	ClientID    segment.UUID
	Key         string
	SliceLength uint64
	Config      object.ReplicateConfig
	TenantID    string
}

// PutEndRequest holds the arguments of PutEnd.
type PutEndRequest struct {
	ClientID    segment.UUID
	ObjectMeta  object.Meta
	ReplicaType object.ReplicaType
	TenantID    string
}

// PutRevokeRequest holds the arguments of PutRevoke.
type PutRevokeRequest struct {
	ClientID    segment.UUID
	Key         string
	ReplicaType object.ReplicaType
	TenantID    string
}

// BatchPutStartRequest holds the arguments of BatchPutStart.
type BatchPutStartRequest struct {
	ClientID     segment.UUID
	Keys         []string
	SliceLengths []uint64
	Config       object.ReplicateConfig
	TenantID     string
}

// BatchPutEndRequest holds the arguments of BatchPutEnd.
type BatchPutEndRequest struct {
	ClientID    segment.UUID
	ObjectMetas []object.Meta
	ReplicaType object.ReplicaType
	TenantID    string
}

// BatchPutRevokeRequest holds the arguments of BatchPutRevoke.
type BatchPutRevokeRequest struct {
	ClientID    segment.UUID
	Keys        []string
	ReplicaType object.ReplicaType
	TenantID    string
}

// UpsertStartRequest holds the arguments of UpsertStart.
type UpsertStartRequest struct {
	ClientID    segment.UUID
	Key         string
	SliceLength uint64
	Config      object.ReplicateConfig
	TenantID    string
}

// UpsertEndRequest holds the arguments of UpsertEnd.
type UpsertEndRequest struct {
	ClientID    segment.UUID
	ObjectMeta  object.Meta
	ReplicaType object.ReplicaType
	TenantID    string
}

// UpsertRevokeRequest holds the arguments of UpsertRevoke.
type UpsertRevokeRequest struct {
	ClientID    segment.UUID
	Key         string
	ReplicaType object.ReplicaType
	TenantID    string
}

// BatchUpsertStartRequest holds the arguments of BatchUpsertStart.
type BatchUpsertStartRequest struct {
	ClientID     segment.UUID
	Keys         []string
	SliceLengths []uint64
	Config       object.ReplicateConfig
	TenantID     string
}

// BatchUpsertEndRequest holds the arguments of BatchUpsertEnd.
type BatchUpsertEndRequest struct {
	ClientID    segment.UUID
	ObjectMetas []object.Meta
	TenantID    string
}

// BatchUpsertRevokeRequest holds the arguments of BatchUpsertRevoke.
type BatchUpsertRevokeRequest struct {
	ClientID segment.UUID
	Keys     []string
	TenantID string
}

// RemoveRequest holds the arguments of Remove.
type RemoveRequest struct {
	Key      string
	Force    bool
	TenantID string
}

// RemoveByRegexRequest holds the arguments of RemoveByRegex.
type RemoveByRegexRequest struct {
	Regex    string
	Force    bool
	TenantID string
}

// RemoveAllRequest holds the arguments of RemoveAll.
type RemoveAllRequest struct {
	Force    bool
	TenantID string
}

// BatchRemoveRequest holds the arguments of BatchRemove.
type BatchRemoveRequest struct {
	Keys     []string
	Force    bool
	TenantID string
}

// BatchReplicaClearRequest holds the arguments of BatchReplicaClear. Release 0.3.13 has no
// TenantID; its requests mean DefaultTenant.
type BatchReplicaClearRequest struct {
	ObjectKeys  []string
	ClientID    segment.UUID
	SegmentName string
	TenantID    string
}

// DefaultTenant is the tenant of requests from releases that do not say one.
const DefaultTenant = "default"

// batchReplicaClearR0313 is BatchReplicaClearRequest as release 0.3.13 sends it.
type batchReplicaClearR0313 struct {
	ObjectKeys  []string
	ClientID    segment.UUID
	SegmentName string
}
