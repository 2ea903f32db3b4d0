package wire

// WeightResult is the outcome of a weight management call: Value when Code is 0, else Code
// alone.
type WeightResult[T any] struct {
	_     struct{} `pack:"expected"`
	Code  WeightError
	Value T
}

// WeightAvailability is whether a weight revision may be read.
type WeightAvailability uint8

// The values of WeightAvailability, as numbered on the wire.
const (
	WeightImporting WeightAvailability = 0
	WeightReady     WeightAvailability = 1
	WeightDegraded  WeightAvailability = 2
	WeightDeleting  WeightAvailability = 3
	WeightDeleted   WeightAvailability = 4
)

// WeightResidency is where the members of a weight revision lie.
type WeightResidency uint8

// The values of WeightResidency, as numbered on the wire.
const (
	WeightResidencyUnknown WeightResidency = 0
	WeightResidencyHot     WeightResidency = 1
	WeightResidencyCold    WeightResidency = 2
	WeightResidencyMixed   WeightResidency = 3
	WeightResidencyAbsent  WeightResidency = 4
)

// WeightOperation is what is being done to a weight revision.
type WeightOperation uint8

// The values of WeightOperation, as numbered on the wire.
const (
	WeightOperationNone        WeightOperation = 0
	WeightOperationEvicting    WeightOperation = 1
	WeightOperationRehydrating WeightOperation = 2
	WeightOperationRepairing   WeightOperation = 3
)

// WeightError is the error of the weight management calls; 0 is success.
type WeightError uint8

// The values of WeightError, as numbered on the wire.
const (
	WeightErrInvalidArgument     WeightError = 1
	WeightErrNotFound            WeightError = 2
	WeightErrConflict            WeightError = 3
	WeightErrStaleGeneration     WeightError = 4
	WeightErrNotReady            WeightError = 5
	WeightErrBusy                WeightError = 6
	WeightErrLeaseExpired        WeightError = 7
	WeightErrGenerationExhausted WeightError = 8
	WeightErrDurabilityFailed    WeightError = 9
)

// WeightIdentity names one revision of one weight resource.
type WeightIdentity struct {
	TenantID         string
	Namespace        string
	ResourceID       string
	Revision         string
	WeightGeneration uint64
}

// WeightManifest refers to the manifest object and the payload of a weight revision.
type WeightManifest struct {
	ManifestKey       string
	ManifestSHA256    string
	PayloadGroupID    string
	PayloadKeysSHA256 string
	PayloadCount      uint64
	LogicalBytes      uint64
}

// WeightMetadata is what the master keeps about a weight revision. Times are milliseconds since
// the epoch.
type WeightMetadata struct {
	Identity           WeightIdentity
	Manifest           WeightManifest
	Availability       WeightAvailability
	Residency          WeightResidency
	Operation          WeightOperation
	OperationID        uint64
	MetadataGeneration uint64
	CreatedAtMs        uint64
	UpdatedAtMs        uint64
}

// WeightLease protects a weight revision until ExpiresAtMs.
type WeightLease struct {
	LeaseID                  uint64
	Identity                 WeightIdentity
	Holder                   string
	ExpiresAtMs              uint64
	FencedMetadataGeneration uint64
}

// WeightResidencyJob is the progress of a move between memory and disk.
type WeightResidencyJob struct {
	OperationID              uint64
	Identity                 WeightIdentity
	Operation                WeightOperation
	TargetResidency          WeightResidency
	FencedMetadataGeneration uint64
	StartedAtMs              uint64
	UpdatedAtMs              uint64
	ProcessedMembers         uint64
	TotalMembers             uint64
	Cursor                   string
	Message                  string
}

// WeightRevision is a weight revision with its leases.
type WeightRevision struct {
	Metadata             WeightMetadata
	ActiveLeaseCount     uint64
	NearestLeaseExpiryMs *uint64
}

// WeightRevisionPage is one page of a listing; NextPageToken is empty on the last.
type WeightRevisionPage struct {
	Revisions     []WeightRevision
	NextPageToken string
}

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
