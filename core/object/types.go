package object

import "github.com/mooncake-go/mooncake-master/core/segment"

// ReplicaStatus is the state of one replica; numbers are part of the wire.
type ReplicaStatus int32

// The states of a replica.
const (
	ReplicaUndefined   ReplicaStatus = 0
	ReplicaInitialized ReplicaStatus = 1
	ReplicaProcessing  ReplicaStatus = 2
	ReplicaComplete    ReplicaStatus = 3
	ReplicaRemoved     ReplicaStatus = 4
	ReplicaFailed      ReplicaStatus = 5
)

// ReplicaType selects replicas by where they live; numbers are part of the wire and are not
// range-checked there.
type ReplicaType int32

// The kinds of replica. ReplicaAll means memory, NoF and DFS, not disk.
const (
	ReplicaMemory    ReplicaType = 0
	ReplicaDisk      ReplicaType = 1
	ReplicaLocalDisk ReplicaType = 2
	ReplicaNoF       ReplicaType = 3
	ReplicaAll       ReplicaType = 4
	ReplicaDFS       ReplicaType = 100
)

// SoftPinAction says what a write does to the object's soft pin.
type SoftPinAction uint8

// The soft pin actions.
const (
	SoftPinPreserve SoftPinAction = 0
	SoftPinEnable   SoftPinAction = 1
	SoftPinDisable  SoftPinAction = 2
)

// DataType is what the writer says the object holds. It is stored and given back, nothing
// more.
type DataType uint8

// BufferDescriptor is a piece of memory that clients can reach: Size bytes at Address of the
// process behind Endpoint.
type BufferDescriptor struct {
	Size     uint64
	Address  uint64
	Protocol string
	Endpoint string
	Locality *segment.Locality `pack:"compat=1"`
}

// MemoryDescriptor is a replica in the memory of a segment.
type MemoryDescriptor struct{ Buffer BufferDescriptor }

// NoFDescriptor is a replica on an NVMe-oF segment.
type NoFDescriptor struct{ Buffer BufferDescriptor }

// DiskDescriptor is a replica in a shared file system.
type DiskDescriptor struct {
	FilePath   string
	ObjectSize uint64
}

// LocalDiskDescriptor is a replica on a client's own disk.
type LocalDiskDescriptor struct {
	ClientID   segment.UUID
	ObjectSize uint64
	Endpoint   string
}

// DFSDescriptor is a replica in a distributed file system.
type DFSDescriptor struct {
	FilePath    string
	Offset      uint64
	ObjectSize  uint64
	AlignedSize uint64
	ShardIdx    int32
}

// Location is where a replica lies: the alternative that Index selects. Memory, by far the
// most frequent, is held inline.
type Location struct {
	_         struct{} `pack:"variant"`
	Index     uint8
	Memory    MemoryDescriptor
	NoF       *NoFDescriptor
	Disk      *DiskDescriptor
	LocalDisk *LocalDiskDescriptor
	DFS       *DFSDescriptor
}

// The values of Location.Index, in the order of its alternatives.
const (
	LocationMemory    uint8 = 0
	LocationNoF       uint8 = 1
	LocationDisk      uint8 = 2
	LocationLocalDisk uint8 = 3
	LocationDFS       uint8 = 4
)

// ReplicaDescriptor is one replica as clients see it.
type ReplicaDescriptor struct {
	ID       uint64
	Location Location
	Status   ReplicaStatus
}

// ReplicaList answers a lookup. LeaseTTLMs is how long from now the object is protected from
// eviction, in milliseconds; Checksum is set when the writer gave one; ResolvedTenantID is
// the tenant the master looked in (absent in the admin reads).
type ReplicaList struct {
	Replicas         []ReplicaDescriptor
	LeaseTTLMs       uint64
	Checksum         *uint64
	ResolvedTenantID *string `pack:"compat=1"`
}

// ReplicateConfig says how an object is to be stored. Pointer fields are optional on the
// wire; nil is "not given".
type ReplicateConfig struct {
	ReplicaNum            uint64
	NoFReplicaNum         uint64
	DFSReplicaNum         uint64
	SoftPinAction         SoftPinAction
	SoftPinTTLMs          *uint64
	WithHardPin           bool
	PreferredSegments     []string
	PreferredSegment      string
	PreferredNoFSegments  []string
	PreferAllocInSameNode bool
	DataType              DataType
	HostID                string
	GroupIDs              *[]string
	SessionIDs            *[]string   `pack:"compat=1"`
	PreferredHCANames     *[]string   `pack:"compat=2"`
	PerKeyHCANames        *[][]string `pack:"compat=3"`
	ResidencyAffinityIDs  *[]string   `pack:"compat=4"`
}

// Meta is what a writer says about an object when the write ends.
type Meta struct {
	Key      string
	Checksum *uint64
}
