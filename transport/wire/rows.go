package wire

import (
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// The calls about objects: lookups, writes, removal.
var (
	ExistKey                    = define[ExistKeyRequest, errcode.Result[bool]]("ExistKey", R0313)
	BatchExistKey               = define[BatchExistKeyRequest, []errcode.Result[bool]]("BatchExistKey", R0313)
	ProbeKey                    = define[ProbeKeyRequest, errcode.Result[bool]]("ProbeKey", R0314)
	BatchProbeKey               = define[BatchProbeKeyRequest, []errcode.Result[bool]]("BatchProbeKey", R0314)
	GetReplicaList              = define[GetReplicaListRequest, errcode.Result[object.ReplicaList]]("GetReplicaList", R0313)
	BatchGetReplicaList         = define[BatchGetReplicaListRequest, []errcode.Result[object.ReplicaList]]("BatchGetReplicaList", R0313)
	GetReplicaListByRegex       = define[GetReplicaListByRegexRequest, errcode.Result[Map[string, []object.ReplicaDescriptor]]]("GetReplicaListByRegex", R0313)
	GetReplicaListForAdmin      = define[GetReplicaListForAdminRequest, errcode.Result[object.ReplicaList]]("GetReplicaListForAdmin", R0314)
	BatchGetReplicaListForAdmin = define[BatchGetReplicaListForAdminRequest, []errcode.Result[object.ReplicaList]]("BatchGetReplicaListForAdmin", R0314)
	PutStart                    = define[PutStartRequest, errcode.Result[[]object.ReplicaDescriptor]]("PutStart", R0313)
	PutEnd                      = define[PutEndRequest, errcode.Result[errcode.Void]]("PutEnd", R0313)
	PutRevoke                   = define[PutRevokeRequest, errcode.Result[errcode.Void]]("PutRevoke", R0313)
	BatchPutStart               = define[BatchPutStartRequest, []errcode.Result[[]object.ReplicaDescriptor]]("BatchPutStart", R0313)
	BatchPutEnd                 = define[BatchPutEndRequest, []errcode.Result[errcode.Void]]("BatchPutEnd", R0313)
	BatchPutRevoke              = define[BatchPutRevokeRequest, []errcode.Result[errcode.Void]]("BatchPutRevoke", R0313)
	UpsertStart                 = define[UpsertStartRequest, errcode.Result[[]object.ReplicaDescriptor]]("UpsertStart", R0313)
	UpsertEnd                   = define[UpsertEndRequest, errcode.Result[errcode.Void]]("UpsertEnd", R0313)
	UpsertRevoke                = define[UpsertRevokeRequest, errcode.Result[errcode.Void]]("UpsertRevoke", R0313)
	BatchUpsertStart            = define[BatchUpsertStartRequest, []errcode.Result[[]object.ReplicaDescriptor]]("BatchUpsertStart", R0313)
	BatchUpsertEnd              = define[BatchUpsertEndRequest, []errcode.Result[errcode.Void]]("BatchUpsertEnd", R0313)
	BatchUpsertRevoke           = define[BatchUpsertRevokeRequest, []errcode.Result[errcode.Void]]("BatchUpsertRevoke", R0313)
	Remove                      = define[RemoveRequest, errcode.Result[errcode.Void]]("Remove", R0313)
	RemoveByRegex               = define[RemoveByRegexRequest, errcode.Result[int64]]("RemoveByRegex", R0313)
	RemoveAll                   = define[RemoveAllRequest, int64]("RemoveAll", R0313)
	BatchRemove                 = define[BatchRemoveRequest, []errcode.Result[errcode.Void]]("BatchRemove", R0313)
	BatchReplicaClear           = define[BatchReplicaClearRequest, errcode.Result[[]string]]("BatchReplicaClear", R0314,
		earlier(R0313,
			func(old *batchReplicaClearR0313, req *BatchReplicaClearRequest) {
				req.ObjectKeys, req.ClientID, req.SegmentName = old.ObjectKeys, old.ClientID, old.SegmentName
				req.TenantID = DefaultTenant
			},
			func(req *BatchReplicaClearRequest, old *batchReplicaClearR0313) {
				old.ObjectKeys, old.ClientID, old.SegmentName = req.ObjectKeys, req.ClientID, req.SegmentName
			})).
		missing(func(req *BatchReplicaClearRequest) int { return len(req.ObjectKeys) }, func(resp *errcode.Result[[]string]) int { return len(resp.Value) })
)

// The calls about segments and clients.
var (
	ServiceReady     = define[ServiceReadyRequest, errcode.Result[string]]("ServiceReady", R0313)
	GetStorageConfig = define[GetStorageConfigRequest, errcode.Result[StorageConfig]]("GetStorageConfig", R0313)
	GetFsdir         = define[GetFsdirRequest, errcode.Result[string]]("GetFsdir", R0313)
	Ping             = define[PingRequest, errcode.Result[PingReply]]("Ping", R0313)
	BatchQueryIp     = define[BatchQueryIpRequest, errcode.Result[Map[segment.UUID, []string]]]("BatchQueryIp", R0313).
				missing(func(req *BatchQueryIpRequest) int { return len(req.ClientIDs) }, func(resp *errcode.Result[Map[segment.UUID, []string]]) int { return len(resp.Value.Entries) })
	MountSegment           = define[MountSegmentRequest, errcode.Result[errcode.Void]]("MountSegment", R0313)
	ReMountSegment         = define[ReMountSegmentRequest, errcode.Result[errcode.Void]]("ReMountSegment", R0313)
	UnmountSegment         = define[UnmountSegmentRequest, errcode.Result[errcode.Void]]("UnmountSegment", R0313)
	GracefulUnmountSegment = define[GracefulUnmountSegmentRequest, errcode.Result[errcode.Void]]("GracefulUnmountSegment", R0313)
	QuerySegmentStatus     = define[QuerySegmentStatusRequest, errcode.Result[segment.Status]]("QuerySegmentStatus", R0313)
	QuerySegmentStatusById = define[QuerySegmentStatusByIdRequest, errcode.Result[segment.Status]]("QuerySegmentStatusById", R0313)
	MountNoFSegment        = define[MountNoFSegmentRequest, errcode.Result[errcode.Void]]("MountNoFSegment", R0313)
	ReMountNoFSegment      = define[ReMountNoFSegmentRequest, errcode.Result[errcode.Void]]("ReMountNoFSegment", R0313)
	UnmountNoFSegment      = define[UnmountNoFSegmentRequest, errcode.Result[errcode.Void]]("UnmountNoFSegment", R0313)
	GetAllNoFSegments      = define[GetAllNoFSegmentsRequest, errcode.Result[[]NoFSegment]]("GetAllNoFSegments", R0313)
	GetNoFSegmentsByName   = define[GetNoFSegmentsByNameRequest, errcode.Result[[]NoFSegmentOwner]]("GetNoFSegmentsByName", R0313)
)

// The calls about local disks, offload and promotion.
var (
	MountLocalDiskSegment     = define[MountLocalDiskSegmentRequest, errcode.Result[errcode.Void]]("MountLocalDiskSegment", R0313)
	UnmountLocalDiskSegment   = define[UnmountLocalDiskSegmentRequest, errcode.Result[errcode.Void]]("UnmountLocalDiskSegment", R0313)
	OffloadObjectHeartbeat    = define[OffloadObjectHeartbeatRequest, errcode.Result[[]OffloadTaskItem]]("OffloadObjectHeartbeat", R0313)
	ReportSsdCapacity         = define[ReportSsdCapacityRequest, errcode.Result[errcode.Void]]("ReportSsdCapacity", R0313)
	NotifyOffloadSuccess      = define[NotifyOffloadSuccessRequest, errcode.Result[errcode.Void]]("NotifyOffloadSuccess", R0313)
	PollRemoveAll             = define[PollRemoveAllRequest, errcode.Result[bool]]("PollRemoveAll", R0313)
	EvictDiskReplica          = define[EvictDiskReplicaRequest, errcode.Result[errcode.Void]]("EvictDiskReplica", R0313)
	BatchEvictDiskReplica     = define[BatchEvictDiskReplicaRequest, []errcode.Result[errcode.Void]]("BatchEvictDiskReplica", R0313)
	EvictDiskReplicaIfCurrent = define[EvictDiskReplicaIfCurrentRequest, errcode.Result[bool]]("EvictDiskReplicaIfCurrent", R0314)
	PromotionObjectHeartbeat  = define[PromotionObjectHeartbeatRequest, errcode.Result[[]PromotionTaskItem]]("PromotionObjectHeartbeat", R0313)
	PromotionAllocStart       = define[PromotionAllocStartRequest, errcode.Result[PromotionAlloc]]("PromotionAllocStart", R0313)
	NotifyPromotionSuccess    = define[NotifyPromotionSuccessRequest, errcode.Result[errcode.Void]]("NotifyPromotionSuccess", R0313)
	NotifyPromotionFailure    = define[NotifyPromotionFailureRequest, errcode.Result[errcode.Void]]("NotifyPromotionFailure", R0313)
	RegisterPrefetchTask      = define[RegisterPrefetchTaskRequest, errcode.Result[errcode.Void]]("RegisterPrefetchTask", R0314)
)

// The calls about copies, moves and tasks.
var (
	CopyStart                = define[CopyStartRequest, errcode.Result[CopyPlan]]("CopyStart", R0313)
	CopyEnd                  = define[CopyEndRequest, errcode.Result[errcode.Void]]("CopyEnd", R0313)
	CopyRevoke               = define[CopyRevokeRequest, errcode.Result[errcode.Void]]("CopyRevoke", R0313)
	DynamicReplicaCopyStart  = define[DynamicReplicaCopyStartRequest, errcode.Result[CopyPlan]]("DynamicReplicaCopyStart", R0313)
	DynamicReplicaCopyEnd    = define[DynamicReplicaCopyEndRequest, errcode.Result[errcode.Void]]("DynamicReplicaCopyEnd", R0313)
	DynamicReplicaCopyRevoke = define[DynamicReplicaCopyRevokeRequest, errcode.Result[errcode.Void]]("DynamicReplicaCopyRevoke", R0313)
	MoveStart                = define[MoveStartRequest, errcode.Result[MovePlan]]("MoveStart", R0313)
	MoveEnd                  = define[MoveEndRequest, errcode.Result[errcode.Void]]("MoveEnd", R0313)
	MoveRevoke               = define[MoveRevokeRequest, errcode.Result[errcode.Void]]("MoveRevoke", R0313)
	CreateCopyTask           = define[CreateCopyTaskRequest, errcode.Result[segment.UUID]]("CreateCopyTask", R0313)
	CreateMoveTask           = define[CreateMoveTaskRequest, errcode.Result[segment.UUID]]("CreateMoveTask", R0313)
	QueryTask                = define[QueryTaskRequest, errcode.Result[TaskView]]("QueryTask", R0313)
	FetchTasks               = define[FetchTasksRequest, errcode.Result[[]TaskAssignment]]("FetchTasks", R0313)
	MarkTaskToComplete       = define[MarkTaskToCompleteRequest, errcode.Result[errcode.Void]]("MarkTaskToComplete", R0313)
)

// The calls about weight revisions.
var (
	BeginWeightImport             = define[BeginWeightImportRequest, WeightResult[WeightMetadata]]("BeginWeightImport", R0314)
	CommitWeightImport            = define[CommitWeightImportRequest, WeightResult[WeightMetadata]]("CommitWeightImport", R0314)
	AbortWeightImport             = define[AbortWeightImportRequest, WeightResult[WeightMetadata]]("AbortWeightImport", R0314)
	DeleteWeightRevision          = define[DeleteWeightRevisionRequest, WeightResult[WeightMetadata]]("DeleteWeightRevision", R0314)
	GetWeightRevision             = define[GetWeightRevisionRequest, WeightResult[WeightRevision]]("GetWeightRevision", R0314)
	ListWeightRevisions           = define[ListWeightRevisionsRequest, WeightResult[WeightRevisionPage]]("ListWeightRevisions", R0314)
	AcquireWeightRevisionLease    = define[AcquireWeightRevisionLeaseRequest, WeightResult[WeightLease]]("AcquireWeightRevisionLease", R0314)
	RenewWeightRevisionLease      = define[RenewWeightRevisionLeaseRequest, WeightResult[WeightLease]]("RenewWeightRevisionLease", R0314)
	ReleaseWeightRevisionLease    = define[ReleaseWeightRevisionLeaseRequest, WeightResult[errcode.Void]]("ReleaseWeightRevisionLease", R0314)
	StartWeightResidencyOperation = define[StartWeightResidencyOperationRequest, WeightResult[WeightResidencyJob]]("StartWeightResidencyOperation", R0314)
	QueryWeightOperation          = define[QueryWeightOperationRequest, WeightResult[WeightResidencyJob]]("QueryWeightOperation", R0314)
)
