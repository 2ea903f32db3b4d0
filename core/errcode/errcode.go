// Package errcode holds the result codes of the Mooncake Store protocol: the one place
// where a number, its name and the moment it is returned are written down.
//
// A Code is what travels on the wire; it is also an error, so that it can be wrapped and
// compared with errors.Is without any translation on the hot path. OK is zero.
package errcode

import "strconv"

// Code is a result code. Zero is success, everything else is negative.
type Code int32

// The codes of releases 0.3.13 and 0.3.14; numbers are part of the wire.
const (
	OK                       Code = 0
	InternalError            Code = -1
	BufferOverflow           Code = -10
	NoFRegistrationStuck     Code = -11
	NotRegistered            Code = -12
	ShardIndexOutOfRange     Code = -100
	SegmentNotFound          Code = -101
	SegmentAlreadyExists     Code = -102
	ClientNotFound           Code = -103
	NoAvailableHandle        Code = -200
	InvalidVersion           Code = -300
	InvalidKey               Code = -400
	WriteFail                Code = -500
	InvalidParams            Code = -600
	IllegalClient            Code = -601
	InvalidWrite             Code = -700
	InvalidRead              Code = -701
	InvalidReplica           Code = -702
	ReplicaIsNotReady        Code = -703
	ObjectNotFound           Code = -704
	ObjectAlreadyExists      Code = -705
	ObjectHasLease           Code = -706
	LeaseExpired             Code = -707
	ObjectHasReplicationTask Code = -708
	ObjectNoReplicationTask  Code = -709
	ReplicaNotFound          Code = -710
	ReplicaAlreadyExists     Code = -711
	ReplicaIsGone            Code = -712
	ReplicaNotInLocalMemory  Code = -713
	ObjectReplicaBusy        Code = -714
	PromotionAlreadyExists   Code = -715
	TransferFail             Code = -800
	ChecksumMismatch         Code = -801
	RPCFail                  Code = -900
	RPCTimeout               Code = -901
	EtcdOperationError       Code = -1000
	EtcdKeyNotExist          Code = -1001
	EtcdTransactionFail      Code = -1002
	EtcdCtxCancelled         Code = -1003
	OplogEntryNotFound       Code = -1004
	K8sLeaseOperationError   Code = -1005
	K8sLeaseNotFound         Code = -1006
	IncompleteOplogCatchUp   Code = -1007
	UnavailableInStatus      Code = -1010
	UnavailableInMode        Code = -1011
	NotSupported             Code = -1012
	FileNotFound             Code = -1100
	FileOpenFail             Code = -1101
	FileReadFail             Code = -1102
	FileWriteFail            Code = -1103
	FileInvalidBuffer        Code = -1104
	FileLockFail             Code = -1105
	FileInvalidHandle        Code = -1106
	BucketNotFound           Code = -1200
	BucketAlreadyExists      Code = -1201
	KeysExceedBucketLimit    Code = -1202
	KeysUltraLimit           Code = -1203
	UnableOffload            Code = -1300
	UnableOffloading         Code = -1301
	TaskNotFound             Code = -1400
	TaskPendingLimitExceeded Code = -1401
	JobNotFound              Code = -1402
	SerializeUnsupported     Code = -1500
	SerializeFail            Code = -1501
	DeserializeFail          Code = -1502
	PersistentFail           Code = -1503
	DFSNetworkTimeout        Code = -1600
	DFSServiceUnavailable    Code = -1601
	DFSQuotaExceeded         Code = -1602
	DFSPermissionDenied      Code = -1603
	DFSStaleHandle           Code = -1604
	DFSPartialWrite          Code = -1605
	TenantQuotaExceeded      Code = -1700
	TenantNotRegistered      Code = -1701
	TenantNotEmpty           Code = -1702
)

var names = map[Code]string{
	OK:                       "OK",
	InternalError:            "INTERNAL_ERROR",
	BufferOverflow:           "BUFFER_OVERFLOW",
	NoFRegistrationStuck:     "NOF_REGISTRATION_STUCK",
	NotRegistered:            "NOT_REGISTERED",
	ShardIndexOutOfRange:     "SHARD_INDEX_OUT_OF_RANGE",
	SegmentNotFound:          "SEGMENT_NOT_FOUND",
	SegmentAlreadyExists:     "SEGMENT_ALREADY_EXISTS",
	ClientNotFound:           "CLIENT_NOT_FOUND",
	NoAvailableHandle:        "NO_AVAILABLE_HANDLE",
	InvalidVersion:           "INVALID_VERSION",
	InvalidKey:               "INVALID_KEY",
	WriteFail:                "WRITE_FAIL",
	InvalidParams:            "INVALID_PARAMS",
	IllegalClient:            "ILLEGAL_CLIENT",
	InvalidWrite:             "INVALID_WRITE",
	InvalidRead:              "INVALID_READ",
	InvalidReplica:           "INVALID_REPLICA",
	ReplicaIsNotReady:        "REPLICA_IS_NOT_READY",
	ObjectNotFound:           "OBJECT_NOT_FOUND",
	ObjectAlreadyExists:      "OBJECT_ALREADY_EXISTS",
	ObjectHasLease:           "OBJECT_HAS_LEASE",
	LeaseExpired:             "LEASE_EXPIRED",
	ObjectHasReplicationTask: "OBJECT_HAS_REPLICATION_TASK",
	ObjectNoReplicationTask:  "OBJECT_NO_REPLICATION_TASK",
	ReplicaNotFound:          "REPLICA_NOT_FOUND",
	ReplicaAlreadyExists:     "REPLICA_ALREADY_EXISTS",
	ReplicaIsGone:            "REPLICA_IS_GONE",
	ObjectReplicaBusy:        "OBJECT_REPLICA_BUSY",
	PromotionAlreadyExists:   "PROMOTION_ALREADY_EXISTS",
	TransferFail:             "TRANSFER_FAIL",
	ChecksumMismatch:         "CHECKSUM_MISMATCH",
	RPCFail:                  "RPC_FAIL",
	RPCTimeout:               "RPC_TIMEOUT",
	EtcdOperationError:       "ETCD_OPERATION_ERROR",
	EtcdKeyNotExist:          "ETCD_KEY_NOT_EXIST",
	EtcdTransactionFail:      "ETCD_TRANSACTION_FAIL",
	EtcdCtxCancelled:         "ETCD_CTX_CANCELLED",
	OplogEntryNotFound:       "OPLOG_ENTRY_NOT_FOUND",
	K8sLeaseOperationError:   "K8S_LEASE_OPERATION_ERROR",
	K8sLeaseNotFound:         "K8S_LEASE_NOT_FOUND",
	IncompleteOplogCatchUp:   "INCOMPLETE_OPLOG_CATCH_UP",
	UnavailableInStatus:      "UNAVAILABLE_IN_CURRENT_STATUS",
	UnavailableInMode:        "UNAVAILABLE_IN_CURRENT_MODE",
	NotSupported:             "NOT_SUPPORTED",
	FileNotFound:             "FILE_NOT_FOUND",
	FileOpenFail:             "FILE_OPEN_FAIL",
	FileReadFail:             "FILE_READ_FAIL",
	FileWriteFail:            "FILE_WRITE_FAIL",
	FileInvalidBuffer:        "FILE_INVALID_BUFFER",
	FileLockFail:             "FILE_LOCK_FAIL",
	FileInvalidHandle:        "FILE_INVALID_HANDLE",
	BucketNotFound:           "BUCKET_NOT_FOUND",
	BucketAlreadyExists:      "BUCKET_ALREADY_EXISTS",
	KeysExceedBucketLimit:    "KEYS_EXCEED_BUCKET_LIMIT",
	KeysUltraLimit:           "KEYS_ULTRA_LIMIT",
	UnableOffload:            "UNABLE_OFFLOAD",
	UnableOffloading:         "UNABLE_OFFLOADING",
	TaskNotFound:             "TASK_NOT_FOUND",
	TaskPendingLimitExceeded: "TASK_PENDING_LIMIT_EXCEEDED",
	JobNotFound:              "JOB_NOT_FOUND",
	SerializeUnsupported:     "SERIALIZE_UNSUPPORTED",
	SerializeFail:            "SERIALIZE_FAIL",
	DeserializeFail:          "DESERIALIZE_FAIL",
	PersistentFail:           "PERSISTENT_FAIL",
	DFSNetworkTimeout:        "DFS_NETWORK_TIMEOUT",
	DFSServiceUnavailable:    "DFS_SERVICE_UNAVAILABLE",
	DFSQuotaExceeded:         "DFS_QUOTA_EXCEEDED",
	DFSPermissionDenied:      "DFS_PERMISSION_DENIED",
	DFSStaleHandle:           "DFS_STALE_HANDLE",
	DFSPartialWrite:          "DFS_PARTIAL_WRITE",
	TenantQuotaExceeded:      "TENANT_QUOTA_EXCEEDED",
	TenantNotRegistered:      "TENANT_NOT_REGISTERED",
	TenantNotEmpty:           "TENANT_NOT_EMPTY",
}

// Name returns the upper-case name of the code as the released clients and masters print
// it. ReplicaNotInLocalMemory has no name there, so it prints UNKNOWN_ERROR like any
// number that is not a code.
func (c Code) Name() string {
	if n, ok := names[c]; ok {
		return n
	}
	return "UNKNOWN_ERROR"
}

// Error makes a Code an error. It reads "OBJECT_NOT_FOUND (-704)".
func (c Code) Error() string { return c.Name() + " (" + strconv.Itoa(int(c)) + ")" }

// Err returns nil for OK and the code otherwise.
func (c Code) Err() error {
	if c == OK {
		return nil
	}
	return c
}

// Result is the outcome of one call or of one element of a batch: Value when Code is OK,
// else Code alone. On the wire it is expected<T,ErrorCode>: one byte 1 and the value, or one
// byte 0 and the code; the marker tells the codec so.
type Result[T any] struct {
	_     struct{} `pack:"expected"`
	Code  Code
	Value T
}

// Void is the value of a Result that carries none.
type Void = struct{}
