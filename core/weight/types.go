package weight

import "strconv"

// Availability is whether a revision may be read. The values are those on the wire.
type Availability uint8

// The values of Availability.
const (
	Importing Availability = 0
	Ready     Availability = 1
	Degraded  Availability = 2
	Deleting  Availability = 3
	Deleted   Availability = 4
)

// Residency is where the objects of a revision lie. The values are those on the wire.
type Residency uint8

// The values of Residency.
const (
	Unknown Residency = 0
	Hot     Residency = 1 // all in memory
	Cold    Residency = 2 // all on disk only
	Mixed   Residency = 3
	Absent  Residency = 4 // none can be read
)

// Operation is what is being done to a revision. The values are those on the wire.
type Operation uint8

// The values of Operation.
const (
	NoOperation Operation = 0
	Evicting    Operation = 1
	Rehydrating Operation = 2
	Repairing   Operation = 3 // of releases to come
)

// Error is the outcome of a call. The values are those on the wire; 0 is success.
type Error uint8

// The values of Error.
const (
	OK                  Error = 0
	InvalidArgument     Error = 1
	NotFound            Error = 2
	Conflict            Error = 3 // with what is there
	StaleGeneration     Error = 4 // the revision has changed since
	NotReady            Error = 5
	Busy                Error = 6 // leased, or being moved
	LeaseExpired        Error = 7
	GenerationExhausted Error = 8 // numbers are used up
	DurabilityFailed    Error = 9 // for masters with an operation log
)

var errorNames = [...]string{
	OK: "OK", InvalidArgument: "INVALID_ARGUMENT", NotFound: "NOT_FOUND", Conflict: "CONFLICT", StaleGeneration: "STALE_GENERATION",
	NotReady: "NOT_READY", Busy: "BUSY", LeaseExpired: "LEASE_EXPIRED", GenerationExhausted: "GENERATION_EXHAUSTED", DurabilityFailed: "DURABILITY_FAILED",
}

// String returns the name that the original gives the outcome.
func (e Error) String() string {
	if int(e) < len(errorNames) {
		return errorNames[e]
	}
	return strconv.Itoa(int(e))
}

// Manifest refers to the object that describes a revision, and says what its payload is.
type Manifest struct {
	ManifestKey       string
	ManifestSHA256    string
	PayloadGroupID    string
	PayloadKeysSHA256 string
	PayloadCount      uint64
	LogicalBytes      uint64
}

// Metadata is what is kept of a revision. Times are milliseconds since the epoch.
type Metadata struct {
	Identity           Identity
	Manifest           Manifest
	Availability       Availability
	Residency          Residency
	Operation          Operation
	OperationID        uint64
	MetadataGeneration uint64
	CreatedAtMs        uint64
	UpdatedAtMs        uint64
}

// Lease keeps a revision from being moved or deleted until ExpiresAtMs.
type Lease struct {
	LeaseID                  uint64
	Identity                 Identity
	Holder                   string
	ExpiresAtMs              uint64
	FencedMetadataGeneration uint64
}

// Job is a move of a revision and how far it has come.
type Job struct {
	OperationID              uint64
	Identity                 Identity
	Operation                Operation
	TargetResidency          Residency
	FencedMetadataGeneration uint64
	StartedAtMs              uint64
	UpdatedAtMs              uint64
	ProcessedMembers         uint64
	TotalMembers             uint64
	Cursor                   string
	Message                  string
}

// Revision is a revision with what is known of its leases.
type Revision struct {
	Metadata             Metadata
	ActiveLeaseCount     uint64
	NearestLeaseExpiryMs *uint64
}

// Page is one page of a listing; NextPageToken is empty on the last.
type Page struct {
	Revisions     []Revision
	NextPageToken string
}

// Member is an object of a revision's group.
type Member struct {
	Key      string
	Size     uint64
	Kind     Kind
	Readable bool
	InMemory bool // in memory, and readable there
	OnDisk   bool // the same elsewhere
}

// Kind is what a member says that it holds.
type Kind uint8

// The kinds that matter here.
const (
	Other Kind = iota
	Weights
	Description // the manifest
)

// Objects is what the store needs of the master. Names are those of the tenant and the group.
type Objects interface {
	// Members returns the objects of a group in the order of their keys.
	Members(tenant, group string) []Member
	// Remove removes an object whatever protects it, and reports whether it is gone.
	Remove(tenant, key string) bool
	// Evict drops the replicas in memory of those objects that can be read from elsewhere.
	Evict(tenant string, keys []string)
	// Fetch asks for a replica in memory of an object that has none.
	Fetch(tenant, key string)
}

// Time is an instant: nanoseconds on the clock that never goes back, which leases and idle
// imports are judged by, and milliseconds since the epoch, which clients are told.
type Time struct{ Now, Wall int64 }

func (t Time) millis() uint64 { return uint64(max(t.Wall, 0)) }
