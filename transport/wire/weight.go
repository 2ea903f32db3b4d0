package wire

import "github.com/mooncake-go/mooncake-master/core/weight"

// WeightResult is the outcome of a weight management call: Value when Code is 0, else Code
// alone.
type WeightResult[T any] struct {
	_     struct{} `pack:"expected"`
	Code  WeightError
	Value T
}

// The types of what the calls are about, which are those of the store.
type (
	WeightAvailability = weight.Availability
	WeightResidency    = weight.Residency
	WeightOperation    = weight.Operation
	WeightError        = weight.Error
	WeightIdentity     = weight.Identity
	WeightManifest     = weight.Manifest
	WeightMetadata     = weight.Metadata
	WeightLease        = weight.Lease
	WeightResidencyJob = weight.Job
	WeightRevision     = weight.Revision
	WeightRevisionPage = weight.Page
)

// WeightImportBegin announces the payload of a new revision.
type WeightImportBegin struct {
	Identity             WeightIdentity
	PayloadGroupID       string
	ExpectedPayloadCount uint64
	ExpectedLogicalBytes uint64
}

// WeightImportCommit ends an import.
type WeightImportCommit struct {
	Identity                   WeightIdentity
	ExpectedMetadataGeneration uint64
	Manifest                   WeightManifest
}

// WeightRevisionRef names a revision in the state the caller knows it in.
type WeightRevisionRef struct {
	Identity                   WeightIdentity
	ExpectedMetadataGeneration uint64
}

// WeightLookup names a revision.
type WeightLookup struct {
	Identity WeightIdentity
}

// WeightQuery selects revisions; empty fields select all, Limit 0 leaves the size of a page to the
// master.
type WeightQuery struct {
	TenantID   string
	Namespace  string
	ResourceID string
	PageToken  string
	Limit      uint32
}

// WeightLeaseAcquire asks for a lease of TTLMs milliseconds.
type WeightLeaseAcquire struct {
	Identity                   WeightIdentity
	ExpectedMetadataGeneration uint64
	Holder                     string
	TTLMs                      uint64
}

// WeightLeaseRenew asks for another TTLMs milliseconds.
type WeightLeaseRenew struct {
	TenantID string
	LeaseID  uint64
	TTLMs    uint64
}

// WeightLeaseRef names a lease.
type WeightLeaseRef struct {
	TenantID string
	LeaseID  uint64
}

// WeightResidencyStart asks for a move to TargetResidency.
type WeightResidencyStart struct {
	Identity                   WeightIdentity
	ExpectedMetadataGeneration uint64
	TargetResidency            WeightResidency
}

// WeightOperationRef names an operation.
type WeightOperationRef struct {
	TenantID    string
	OperationID uint64
}

// BeginWeightImportRequest holds the arguments of BeginWeightImport.
type BeginWeightImportRequest struct {
	Request  WeightImportBegin
	TenantID string
}

// CommitWeightImportRequest holds the arguments of CommitWeightImport.
type CommitWeightImportRequest struct {
	Request  WeightImportCommit
	TenantID string
}

// AbortWeightImportRequest holds the arguments of AbortWeightImport.
type AbortWeightImportRequest struct {
	Request  WeightRevisionRef
	TenantID string
}

// DeleteWeightRevisionRequest holds the arguments of DeleteWeightRevision.
type DeleteWeightRevisionRequest struct {
	Request  WeightRevisionRef
	TenantID string
}

// GetWeightRevisionRequest holds the arguments of GetWeightRevision.
type GetWeightRevisionRequest struct {
	Request  WeightLookup
	TenantID string
}

// ListWeightRevisionsRequest holds the arguments of ListWeightRevisions.
type ListWeightRevisionsRequest struct {
	Request  WeightQuery
	TenantID string
}

// AcquireWeightRevisionLeaseRequest holds the arguments of AcquireWeightRevisionLease.
type AcquireWeightRevisionLeaseRequest struct {
	Request  WeightLeaseAcquire
	TenantID string
}

// RenewWeightRevisionLeaseRequest holds the arguments of RenewWeightRevisionLease.
type RenewWeightRevisionLeaseRequest struct {
	Request  WeightLeaseRenew
	TenantID string
}

// ReleaseWeightRevisionLeaseRequest holds the arguments of ReleaseWeightRevisionLease.
type ReleaseWeightRevisionLeaseRequest struct {
	Request  WeightLeaseRef
	TenantID string
}

// StartWeightResidencyOperationRequest holds the arguments of StartWeightResidencyOperation.
type StartWeightResidencyOperationRequest struct {
	Request  WeightResidencyStart
	TenantID string
}

// QueryWeightOperationRequest holds the arguments of QueryWeightOperation.
type QueryWeightOperationRequest struct {
	Request  WeightOperationRef
	TenantID string
}
