package app

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Recording writes what a released master answers: go test -run TestParity -args -record RELEASE=RPC,HTTP
// with the addresses of one that was just started with the flags of parityFlags.
var record = flag.String("record", "", "write the answers of the master RELEASE=RPC,HTTP to testdata/http")

// parityFlags are those with which the masters whose answers are recorded were started.
var parityFlags = []string{"--enable_offload=true", "--promotion_on_hit=true", "--eviction_ratio=0", "--eviction_high_watermark_ratio=1"}

// step is one request of the parity script.
type step struct {
	name  string
	since wire.Release
	do    func(context.Context, *rpc.Client) (string, error)
}

// request is a step that makes one call; the answer is the result code, or those of a batch.
func request[Q, A any](name string, row *wire.RPC[Q, A], q Q) step {
	return step{row.Name() + " " + name, row.Row().Since, func(ctx context.Context, c *rpc.Client) (string, error) {
		var a A
		if err := rpc.Invoke(ctx, c, row, &q, &a); err != nil {
			return "", err
		}
		return codesOf(reflect.ValueOf(a)), nil
	}}
}

func codesOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int64:
		return fmt.Sprint("removed ", v.Int())
	case reflect.Slice:
		all := make([]string, v.Len())
		for i := range all {
			all[i] = codesOf(v.Index(i))
		}
		return strings.Join(all, ",")
	}
	if code := v.FieldByName("Code"); code.IsValid() {
		if code.CanInt() {
			return fmt.Sprint(code.Int())
		}
		return fmt.Sprint(code.Uint())
	}
	return v.Type().String()
}

var (
	one, two = segment.UUID{First: 1, Second: 1}, segment.UUID{First: 2, Second: 2}
	nobody   = segment.UUID{First: 9, Second: 9}
)

func mounted(n uint64, name string) segment.Info {
	return segment.Info{ID: segment.UUID{First: n, Second: 7}, Name: name, Base: 0x7e0000000000 + n<<32, Size: 64 << 20, Endpoint: name, Protocol: "tcp"}
}

// parityScript asks every call for something good and something bad. Its order matters.
func parityScript() []step {
	config := object.ReplicateConfig{ReplicaNum: 1, PreferredSegment: "s1"}
	metas := func(keys ...string) []object.Meta {
		var all []object.Meta
		for _, k := range keys {
			all = append(all, object.Meta{Key: k})
		}
		return all
	}
	mem := object.ReplicaMemory
	return []step{
		request("", wire.ServiceReady, wire.ServiceReadyRequest{}),
		request("", wire.GetStorageConfig, wire.GetStorageConfigRequest{}),
		request("", wire.GetFsdir, wire.GetFsdirRequest{}),
		request("good", wire.MountSegment, wire.MountSegmentRequest{Segment: mounted(1, "s1"), ClientID: one}),
		request("again", wire.MountSegment, wire.MountSegmentRequest{Segment: mounted(1, "s1"), ClientID: one}),
		request("of no size", wire.MountSegment, wire.MountSegmentRequest{Segment: segment.Info{ID: nobody, Name: "x", Endpoint: "x", Protocol: "tcp"}, ClientID: one}),
		request("of another client", wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{mounted(2, "s2")}, ClientID: two}),
		request("again", wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: []segment.Info{mounted(2, "s2")}, ClientID: two}),
		request("of nothing", wire.ReMountSegment, wire.ReMountSegmentRequest{ClientID: two}),
		request("one", wire.Ping, wire.PingRequest{ClientID: one}),
		request("two", wire.Ping, wire.PingRequest{ClientID: two}),
		request("nobody", wire.Ping, wire.PingRequest{ClientID: nobody}),
		request("good", wire.QuerySegmentStatus, wire.QuerySegmentStatusRequest{SegmentName: "s1"}),
		request("bad", wire.QuerySegmentStatus, wire.QuerySegmentStatusRequest{SegmentName: "sx"}),
		request("good", wire.QuerySegmentStatusById, wire.QuerySegmentStatusByIdRequest{SegmentID: mounted(1, "").ID}),
		request("bad", wire.QuerySegmentStatusById, wire.QuerySegmentStatusByIdRequest{SegmentID: nobody}),
		request("good", wire.BatchQueryIp, wire.BatchQueryIpRequest{ClientIDs: []segment.UUID{one, two}}),
		request("partly", wire.BatchQueryIp, wire.BatchQueryIpRequest{ClientIDs: []segment.UUID{one, nobody}}),
		request("bad", wire.BatchQueryIp, wire.BatchQueryIpRequest{ClientIDs: []segment.UUID{nobody}}),
		request("of nobody", wire.BatchQueryIp, wire.BatchQueryIpRequest{}),

		request("a", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "a", SliceLength: 5000, Config: config, TenantID: "default"}),
		request("a again", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "a", SliceLength: 5000, Config: config, TenantID: "default"}),
		request("too big", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "big", SliceLength: 1 << 30, Config: config, TenantID: "default"}),
		request("three replicas", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "three", SliceLength: 100, Config: object.ReplicateConfig{ReplicaNum: 3}, TenantID: "default"}),
		request("no replica", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "none", SliceLength: 100, TenantID: "default"}),
		request("no size", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "none", Config: config, TenantID: "default"}),
		request("soft pinned", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "pin", SliceLength: 100, Config: object.ReplicateConfig{ReplicaNum: 1, SoftPinAction: object.SoftPinEnable}, TenantID: "default"}),
		request("soft pinned", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "pin"}, ReplicaType: mem, TenantID: "default"}),
		request("a", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "a"}, ReplicaType: mem, TenantID: "default"}),
		request("a again", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "a"}, ReplicaType: mem, TenantID: "default"}),
		request("unknown", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "x"}, ReplicaType: mem, TenantID: "default"}),
		request("three", wire.PutRevoke, wire.PutRevokeRequest{ClientID: one, Key: "three", ReplicaType: mem, TenantID: "default"}),
		request("unknown", wire.PutRevoke, wire.PutRevokeRequest{ClientID: one, Key: "x", ReplicaType: mem, TenantID: "default"}),
		request("another's", wire.PutRevoke, wire.PutRevokeRequest{ClientID: two, Key: "a", ReplicaType: mem, TenantID: "default"}),
		request("new", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Keys: []string{"b", "c", "d", "e"}, SliceLengths: []uint64{10, 70000, 30, 40}, Config: config, TenantID: "default"}),
		request("partly", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Keys: []string{"a", "f"}, SliceLengths: []uint64{10, 20}, Config: config, TenantID: "default"}),
		request("old", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Keys: []string{"a", "f"}, SliceLengths: []uint64{10, 20}, Config: config, TenantID: "default"}),
		request("too big", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Keys: []string{"g", "h"}, SliceLengths: []uint64{1 << 30, 1 << 30}, Config: config, TenantID: "default"}),
		request("lengths missing", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Keys: []string{"g", "h"}, SliceLengths: []uint64{1}, Config: config, TenantID: "default"}),
		request("of nothing", wire.BatchPutStart, wire.BatchPutStartRequest{ClientID: one, Config: config, TenantID: "default"}),
		request("good", wire.BatchPutEnd, wire.BatchPutEndRequest{ClientID: one, ObjectMetas: metas("b", "c"), ReplicaType: mem, TenantID: "default"}),
		request("partly", wire.BatchPutEnd, wire.BatchPutEndRequest{ClientID: one, ObjectMetas: metas("d", "x"), ReplicaType: mem, TenantID: "default"}),
		request("bad", wire.BatchPutEnd, wire.BatchPutEndRequest{ClientID: one, ObjectMetas: metas("x", "y"), ReplicaType: mem, TenantID: "default"}),
		request("partly", wire.BatchPutRevoke, wire.BatchPutRevokeRequest{ClientID: one, Keys: []string{"e", "x"}, ReplicaType: mem, TenantID: "default"}),
		request("good", wire.BatchPutRevoke, wire.BatchPutRevokeRequest{ClientID: one, Keys: []string{"f"}, ReplicaType: mem, TenantID: "default"}),
		request("bad", wire.BatchPutRevoke, wire.BatchPutRevokeRequest{ClientID: one, Keys: []string{"x", "y"}, ReplicaType: mem, TenantID: "default"}),

		request("new", wire.UpsertStart, wire.UpsertStartRequest{ClientID: one, Key: "u", SliceLength: 5000, Config: config, TenantID: "default"}),
		request("new", wire.UpsertEnd, wire.UpsertEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "u"}, ReplicaType: mem, TenantID: "default"}),
		request("same size", wire.UpsertStart, wire.UpsertStartRequest{ClientID: one, Key: "u", SliceLength: 5000, Config: config, TenantID: "default"}),
		request("same size", wire.UpsertEnd, wire.UpsertEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "u"}, ReplicaType: mem, TenantID: "default"}),
		request("too big", wire.UpsertStart, wire.UpsertStartRequest{ClientID: one, Key: "v", SliceLength: 1 << 30, Config: config, TenantID: "default"}),
		request("no replica", wire.UpsertStart, wire.UpsertStartRequest{ClientID: one, Key: "v", SliceLength: 1, TenantID: "default"}),
		request("unknown", wire.UpsertEnd, wire.UpsertEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "x"}, ReplicaType: mem, TenantID: "default"}),
		request("unknown", wire.UpsertRevoke, wire.UpsertRevokeRequest{ClientID: one, Key: "x", ReplicaType: mem, TenantID: "default"}),
		request("two new", wire.BatchUpsertStart, wire.BatchUpsertStartRequest{ClientID: one, Keys: []string{"w", "y"}, SliceLengths: []uint64{10, 20}, Config: config, TenantID: "default"}),
		request("partly", wire.BatchUpsertStart, wire.BatchUpsertStartRequest{ClientID: one, Keys: []string{"z", "big"}, SliceLengths: []uint64{10, 1 << 30}, Config: config, TenantID: "default"}),
		request("bad", wire.BatchUpsertStart, wire.BatchUpsertStartRequest{ClientID: one, Keys: []string{"big"}, SliceLengths: []uint64{1 << 30}, Config: config, TenantID: "default"}),
		request("partly", wire.BatchUpsertEnd, wire.BatchUpsertEndRequest{ClientID: one, ObjectMetas: metas("w", "x"), TenantID: "default"}),
		request("bad", wire.BatchUpsertEnd, wire.BatchUpsertEndRequest{ClientID: one, ObjectMetas: metas("x"), TenantID: "default"}),
		request("partly", wire.BatchUpsertRevoke, wire.BatchUpsertRevokeRequest{ClientID: one, Keys: []string{"y", "x"}, TenantID: "default"}),
		request("bad", wire.BatchUpsertRevoke, wire.BatchUpsertRevokeRequest{ClientID: one, Keys: []string{"x"}, TenantID: "default"}),
		request("z", wire.BatchUpsertRevoke, wire.BatchUpsertRevokeRequest{ClientID: one, Keys: []string{"z"}, TenantID: "default"}),

		request("yes", wire.ExistKey, wire.ExistKeyRequest{Key: "a", TenantID: "default"}),
		request("no", wire.ExistKey, wire.ExistKeyRequest{Key: "x", TenantID: "default"}),
		request("both", wire.BatchExistKey, wire.BatchExistKeyRequest{Keys: []string{"a", "x"}, TenantID: "default"}),
		request("of nothing", wire.BatchExistKey, wire.BatchExistKeyRequest{TenantID: "default"}),
		request("yes", wire.ProbeKey, wire.ProbeKeyRequest{Key: "a", TenantID: "default"}),
		request("no", wire.ProbeKey, wire.ProbeKeyRequest{Key: "x", TenantID: "default"}),
		request("both", wire.BatchProbeKey, wire.BatchProbeKeyRequest{Keys: []string{"a", "x"}, TenantID: "default"}),
		request("bad policy", wire.BatchProbeKey, wire.BatchProbeKeyRequest{Policy: wire.LeasePolicy{Mode: 7}, Keys: []string{"a", "x"}, TenantID: "default"}),
		request("good", wire.GetReplicaList, wire.GetReplicaListRequest{Key: "a", TenantID: "default"}),
		request("unknown", wire.GetReplicaList, wire.GetReplicaListRequest{Key: "x", TenantID: "default"}),
		request("good", wire.BatchGetReplicaList, wire.BatchGetReplicaListRequest{Keys: []string{"a", "b"}, TenantID: "default"}),
		request("partly", wire.BatchGetReplicaList, wire.BatchGetReplicaListRequest{Keys: []string{"a", "x"}, TenantID: "default"}),
		request("bad", wire.BatchGetReplicaList, wire.BatchGetReplicaListRequest{Keys: []string{"x", "y2"}, TenantID: "default"}),
		request("of nothing", wire.BatchGetReplicaList, wire.BatchGetReplicaListRequest{TenantID: "default"}),
		request("good", wire.GetReplicaListByRegex, wire.GetReplicaListByRegexRequest{Regex: "^[ab]$", TenantID: "default"}),
		request("none", wire.GetReplicaListByRegex, wire.GetReplicaListByRegexRequest{Regex: "^nothing$", TenantID: "default"}),
		request("bad", wire.GetReplicaListByRegex, wire.GetReplicaListByRegexRequest{Regex: "[", TenantID: "default"}),
		request("good", wire.GetReplicaListForAdmin, wire.GetReplicaListForAdminRequest{Key: "a", TenantID: "default"}),
		request("unknown", wire.GetReplicaListForAdmin, wire.GetReplicaListForAdminRequest{Key: "x", TenantID: "default"}),
		request("partly", wire.BatchGetReplicaListForAdmin, wire.BatchGetReplicaListForAdminRequest{Keys: []string{"a", "x"}, TenantID: "default"}),

		request("unknown object", wire.CopyStart, wire.CopyStartRequest{ClientID: one, Key: "x", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"s2"}}),
		request("unknown segment", wire.CopyStart, wire.CopyStartRequest{ClientID: one, Key: "a", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"sx"}}),
		request("good", wire.CopyStart, wire.CopyStartRequest{ClientID: one, Key: "b", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"s2"}}),
		request("again", wire.CopyStart, wire.CopyStartRequest{ClientID: one, Key: "b", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"s2"}}),
		request("another's", wire.CopyEnd, wire.CopyEndRequest{ClientID: two, Key: "b", TenantID: "default"}),
		request("good", wire.CopyEnd, wire.CopyEndRequest{ClientID: one, Key: "b", TenantID: "default"}),
		request("none", wire.CopyEnd, wire.CopyEndRequest{ClientID: one, Key: "b", TenantID: "default"}),
		request("to revoke", wire.CopyStart, wire.CopyStartRequest{ClientID: one, Key: "c", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"s2"}}),
		request("good", wire.CopyRevoke, wire.CopyRevokeRequest{ClientID: one, Key: "c", TenantID: "default"}),
		request("none", wire.CopyRevoke, wire.CopyRevokeRequest{ClientID: one, Key: "c", TenantID: "default"}),
		request("good", wire.MoveStart, wire.MoveStartRequest{ClientID: one, Key: "d", TenantID: "default", SrcSegment: "s1", TgtSegment: "s2"}),
		request("same", wire.MoveStart, wire.MoveStartRequest{ClientID: one, Key: "d", TenantID: "default", SrcSegment: "s1", TgtSegment: "s1"}),
		request("good", wire.MoveEnd, wire.MoveEndRequest{ClientID: one, Key: "d", TenantID: "default"}),
		request("none", wire.MoveEnd, wire.MoveEndRequest{ClientID: one, Key: "d", TenantID: "default"}),
		request("to revoke", wire.MoveStart, wire.MoveStartRequest{ClientID: one, Key: "c", TenantID: "default", SrcSegment: "s1", TgtSegment: "s2"}),
		request("good", wire.MoveRevoke, wire.MoveRevokeRequest{ClientID: one, Key: "c", TenantID: "default"}),
		request("none", wire.MoveRevoke, wire.MoveRevokeRequest{ClientID: one, Key: "c", TenantID: "default"}),
		request("unknown", wire.DynamicReplicaCopyStart, wire.DynamicReplicaCopyStartRequest{ClientID: one, Key: "c", TenantID: "default", SrcSegment: "s1", TgtSegments: []string{"s2"}, DynamicReplicationLeaseID: nobody, DynamicReplicationVersionEpoch: 1}),
		request("unknown", wire.DynamicReplicaCopyEnd, wire.DynamicReplicaCopyEndRequest{ClientID: one, Key: "c", TenantID: "default", DynamicReplicationLeaseID: nobody, DynamicReplicationVersionEpoch: 1}),
		request("unknown", wire.DynamicReplicaCopyRevoke, wire.DynamicReplicaCopyRevokeRequest{ClientID: one, Key: "c", TenantID: "default", DynamicReplicationLeaseID: nobody, DynamicReplicationVersionEpoch: 1}),
		request("good", wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "c", TenantID: "default", Targets: []string{"s2"}}),
		request("unknown object", wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "x", TenantID: "default", Targets: []string{"s2"}}),
		request("no target", wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "c", TenantID: "default"}),
		request("unknown target", wire.CreateCopyTask, wire.CreateCopyTaskRequest{Key: "c", TenantID: "default", Targets: []string{"sx"}}),
		request("same segment", wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "c", TenantID: "default", Source: "s1", Target: "s1"}),
		request("good", wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "c", TenantID: "default", Source: "s1", Target: "s2"}),
		request("unknown object", wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "x", TenantID: "default", Source: "s1", Target: "s2"}),
		request("unknown object and segments", wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "x", TenantID: "default", Source: "sx", Target: "sy"}),
		request("unknown object, same segment", wire.CreateMoveTask, wire.CreateMoveTaskRequest{Key: "x", TenantID: "default", Source: "s1", Target: "s1"}),
		request("nothing given", wire.CreateMoveTask, wire.CreateMoveTaskRequest{}),
		request("nothing given", wire.CreateCopyTask, wire.CreateCopyTaskRequest{}),
		request("nothing given", wire.MoveStart, wire.MoveStartRequest{}),
		request("nothing given", wire.CopyStart, wire.CopyStartRequest{}),
		request("unknown", wire.QueryTask, wire.QueryTaskRequest{TaskID: nobody}),
		request("two", wire.FetchTasks, wire.FetchTasksRequest{ClientID: one, BatchSize: 10}),
		request("none", wire.FetchTasks, wire.FetchTasksRequest{ClientID: nobody, BatchSize: 10}),
		request("unknown", wire.MarkTaskToComplete, wire.MarkTaskToCompleteRequest{ClientID: one, Request: wire.TaskCompletion{ID: nobody, Status: wire.TaskSuccess}}),

		request("good", wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: one, EnableOffloading: true}),
		request("again", wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: one, EnableOffloading: true}),
		request("good", wire.ReportSsdCapacity, wire.ReportSsdCapacityRequest{ClientID: one, SSDTotalCapacityBytes: 1 << 30}),
		request("nobody", wire.ReportSsdCapacity, wire.ReportSsdCapacityRequest{ClientID: nobody, SSDTotalCapacityBytes: 1 << 30}),
		request("o", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "o", SliceLength: 6000, Config: config, TenantID: "default"}),
		request("o", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "o"}, ReplicaType: mem, TenantID: "default"}),
		request("good", wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: one, EnableOffloading: true}),
		request("nobody", wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: nobody, EnableOffloading: true}),
		request("good", wire.NotifyOffloadSuccess, wire.NotifyOffloadSuccessRequest{
			ClientID: one, Tasks: []wire.OffloadTaskItem{{TenantID: "default", Key: "o", Size: 6000}},
			Metadatas: []wire.StorageObjectMetadata{{BucketID: 1, KeySize: 1, DataSize: 6000, TransportEndpoint: "s1"}},
		}),
		request("lengths differ", wire.NotifyOffloadSuccess, wire.NotifyOffloadSuccessRequest{ClientID: one, Tasks: []wire.OffloadTaskItem{{TenantID: "default", Key: "o", Size: 6000}}}),
		request("on disk too", wire.GetReplicaList, wire.GetReplicaListRequest{Key: "o", TenantID: "default"}),
		request("with memory", wire.RegisterPrefetchTask, wire.RegisterPrefetchTaskRequest{ClientID: one, Key: "o", TenantID: "default"}),
		request("unknown", wire.RegisterPrefetchTask, wire.RegisterPrefetchTaskRequest{ClientID: one, Key: "x", TenantID: "default"}),
		request("good", wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: one}),
		request("nobody", wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: nobody}),
		request("not asked for", wire.PromotionAllocStart, wire.PromotionAllocStartRequest{ClientID: one, Key: "o", TenantID: "default", Size: 6000}),
		request("not asked for", wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: one, Key: "o", TenantID: "default"}),
		request("not asked for", wire.NotifyPromotionFailure, wire.NotifyPromotionFailureRequest{ClientID: one, Key: "o", TenantID: "default"}),
		request("good", wire.PollRemoveAll, wire.PollRemoveAllRequest{ClientID: one}),
		request("nobody", wire.PollRemoveAll, wire.PollRemoveAllRequest{ClientID: nobody}),
		request("good", wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: one, Key: "o", TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("unknown", wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: one, Key: "x", TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("of memory", wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: one, Key: "a", TenantID: "default", ReplicaType: mem}),
		request("of memory, unknown", wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: one, Key: "x", TenantID: "default", ReplicaType: mem}),
		request("of a file", wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: one, Key: "a", TenantID: "default", ReplicaType: object.ReplicaDisk}),
		request("partly", wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: one, Keys: []string{"o", "x", "y"}, TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("good", wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: one, Keys: []string{"o", "c"}, TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("mostly", wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: one, Keys: []string{"o", "c", "x"}, TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("bad", wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: one, Keys: []string{"x", "y"}, TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("of nothing", wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: one, TenantID: "default", ReplicaType: object.ReplicaLocalDisk}),
		request("unknown", wire.EvictDiskReplicaIfCurrent, wire.EvictDiskReplicaIfCurrentRequest{ClientID: one, Key: "x", TenantID: "default", ReplicaType: object.ReplicaLocalDisk, ExpectedReplicaIDOrVersion: 1}),
		request("none there", wire.EvictDiskReplicaIfCurrent, wire.EvictDiskReplicaIfCurrentRequest{ClientID: one, Key: "o", TenantID: "default", ReplicaType: object.ReplicaLocalDisk, ExpectedReplicaIDOrVersion: 1}),
		request("good", wire.UnmountLocalDiskSegment, wire.UnmountLocalDiskSegmentRequest{ClientID: one}),
		request("nobody", wire.UnmountLocalDiskSegment, wire.UnmountLocalDiskSegmentRequest{ClientID: nobody}),

		request("", wire.MountNoFSegment, wire.MountNoFSegmentRequest{Segment: wire.NoFSegment{ID: nobody, Name: "n", Size: 1 << 20, Endpoint: "n"}, ClientID: one}),
		request("", wire.ReMountNoFSegment, wire.ReMountNoFSegmentRequest{Segments: []wire.NoFSegment{{ID: nobody, Name: "n", Size: 1 << 20, Endpoint: "n"}}, ClientID: one}),
		request("", wire.UnmountNoFSegment, wire.UnmountNoFSegmentRequest{SegmentID: nobody, ClientID: one}),
		request("", wire.GetAllNoFSegments, wire.GetAllNoFSegmentsRequest{}),
		request("", wire.GetNoFSegmentsByName, wire.GetNoFSegmentsByNameRequest{SegmentName: "n"}),

		request("leased", wire.Remove, wire.RemoveRequest{Key: "a", TenantID: "default"}),
		request("good", wire.Remove, wire.RemoveRequest{Key: "a", Force: true, TenantID: "default"}),
		request("unknown", wire.Remove, wire.RemoveRequest{Key: "x", TenantID: "default"}),
		request("partly", wire.BatchRemove, wire.BatchRemoveRequest{Keys: []string{"b", "x", "y9"}, Force: true, TenantID: "default"}),
		request("bad", wire.BatchRemove, wire.BatchRemoveRequest{Keys: []string{"x", "y9"}, TenantID: "default"}),
		request("of nothing", wire.BatchRemove, wire.BatchRemoveRequest{TenantID: "default"}),
		request("good", wire.RemoveByRegex, wire.RemoveByRegexRequest{Regex: "^u$", TenantID: "default"}),
		request("none", wire.RemoveByRegex, wire.RemoveByRegexRequest{Regex: "^nothing$", TenantID: "default"}),
		request("bad", wire.RemoveByRegex, wire.RemoveByRegexRequest{Regex: "[", TenantID: "default"}),
		request("clear one", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "k1", SliceLength: 10, Config: config, TenantID: "default"}),
		request("clear one", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "k1"}, ReplicaType: mem, TenantID: "default"}),
		request("clear two", wire.PutStart, wire.PutStartRequest{ClientID: one, Key: "k2", SliceLength: 10, Config: config, TenantID: "default"}),
		request("clear two", wire.PutEnd, wire.PutEndRequest{ClientID: one, ObjectMeta: object.Meta{Key: "k2"}, ReplicaType: mem, TenantID: "default"}),
		request("partly", wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{"k1", "x"}, ClientID: one, TenantID: "default"}),
		request("good", wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{"k2"}, ClientID: one, TenantID: "default"}),
		request("bad", wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{"x", "y"}, ClientID: one, TenantID: "default"}),
		request("of nothing", wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ClientID: one, TenantID: "default"}),
		request("of an unknown segment", wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{"k2"}, ClientID: one, SegmentName: "sx", TenantID: "default"}),
		request("all", wire.RemoveAll, wire.RemoveAllRequest{Force: true, TenantID: "default"}),
		request("none", wire.RemoveAll, wire.RemoveAllRequest{TenantID: "default"}),
		request("good", wire.UnmountSegment, wire.UnmountSegmentRequest{SegmentID: mounted(1, "").ID, ClientID: one}),
		request("again", wire.UnmountSegment, wire.UnmountSegmentRequest{SegmentID: mounted(1, "").ID, ClientID: one}),
		request("unknown", wire.GracefulUnmountSegment, wire.GracefulUnmountSegmentRequest{SegmentID: nobody, ClientID: one}),
		request("good", wire.GracefulUnmountSegment, wire.GracefulUnmountSegmentRequest{SegmentID: mounted(2, "").ID, ClientID: two, GracePeriodMs: 60000}),
	}
}

// samples reads the series without labels of the page that matter here: not those about the
// process. A histogram counts as its number of observations.
func samples(ctx context.Context, address string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.SplitSeq(string(page), "\n") {
		name, value, ok := strings.Cut(line, " ")
		if !ok || name == "#" || strings.HasPrefix(name, "mooncake_") || strings.HasPrefix(name, "go_") || strings.Contains(name, "{") || strings.HasSuffix(name, "_sum") {
			continue
		}
		if out[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return out, nil
}

// play makes the requests one after the other and says for each what was answered and which
// numbers moved, one line each.
func play(ctx context.Context, rpcAddress, httpAddress string, release wire.Release) ([]string, error) {
	c, err := rpc.Dial(ctx, rpcAddress, rpc.As(release))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	before, err := samples(ctx, httpAddress)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range parityScript() {
		if s.since > release {
			continue
		}
		answer, err := s.do(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		after, err := samples(ctx, httpAddress)
		if err != nil {
			return nil, err
		}
		var moved []string
		for name, v := range after {
			if d := v - before[name]; d != 0 {
				moved = append(moved, fmt.Sprintf("%s%+g", name, d))
			}
		}
		slices.SortFunc(moved, cmp.Compare)
		out = append(out, s.name+"\t"+answer+"\t"+strings.Join(moved, " "))
		before = after
	}
	return out, nil
}

// families reads the names and types of the page.
func families(t *testing.T, address string) map[string]string {
	t.Helper()
	_, page := (&running{http: address}).request(t, http.MethodGet, "/metrics", "")
	out := map[string]string{}
	for line := range strings.SplitSeq(page, "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			out[name] = kind
		}
	}
	return out
}

func TestParityRecord(t *testing.T) {
	if *record == "" {
		t.Skip("nothing is recorded")
	}
	name, addresses, _ := strings.Cut(*record, "=")
	rpcAddress, httpAddress, _ := strings.Cut(addresses, ",")
	release := wire.R0314
	if name == "0.3.13" {
		release = wire.R0313
	}
	idle := families(t, httpAddress)
	got, err := play(t.Context(), rpcAddress, httpAddress, release)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for name, kind := range families(t, httpAddress) {
		if idle[name] == "" {
			kind += " used"
		} else {
			kind += " idle"
		}
		list = append(list, name+" "+kind)
	}
	slices.Sort(list)
	text := "# families that release " + name + " prints when it has just been started (idle), and further ones after parityScript (used)\n"
	if err := os.WriteFile("../../../testdata/http/families_"+name+".txt", []byte(text+strings.Join(list, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	head := "# what release " + name + " answers to the requests of parityScript in cmd/mooncake_master/app, and which metrics each moves\n"
	if err := os.WriteFile("../../../testdata/http/calls_"+name+".txt", []byte(head+strings.Join(got, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// apart is what this master answers on purpose where a release answers otherwise; 0 is both.
type apart struct {
	release wire.Release
	ours    string // the answer, a tab, what moved
	why     string
}

var parityApart = map[string]apart{
	"PutStart a":            {wire.R0313, "0\tmaster_allocated_bytes+5000 master_key_count+1 master_put_start_requests_total+1 master_value_size_bytes_count+1", "the original counts one size more than there are"},
	"UpsertStart same size": {0, "0\tmaster_put_start_requests_total+1 master_value_size_bytes_count+1 mem_cache_nums_-1", "the size of every write is counted"},
	"UnmountSegment good":   {0, "0\tmaster_allocated_bytes-30 master_put_start_discarded_staging_size-30 master_total_capacity_bytes-6.7108864e+07 master_unmount_segment_requests_total+1", "what was put aside in a segment goes with it"},
}

// golden reads a file of testdata/http without its comments.
func golden(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile("../../../testdata/http/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(content), "\n"), "\n") {
		if !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// This master answers every call as either release does, moves the same numbers, and prints the same families
// before and after.
func TestParity(t *testing.T) {
	absent := map[string]bool{}
	for _, line := range golden(t, "metrics_absent.txt") {
		name, _, _ := strings.Cut(line, "\t")
		absent[name] = true
	}
	for name, release := range map[string]wire.Release{"0.3.13": wire.R0313, "0.3.14": wire.R0314} {
		t.Run(name, func(t *testing.T) {
			m := runMaster(t, append([]string{"--release_behaviour=" + name, "--enable_metric_reporting=false"}, parityFlags...)...)
			idle := families(t, m.http)
			got, err := play(t.Context(), m.rpc, m.http, release)
			if err != nil {
				t.Fatal(err)
			}
			used := families(t, m.http)
			for _, line := range golden(t, "families_"+name+".txt") {
				f := strings.Fields(line)
				if family := f[0]; !absent[family] && family != "master_value_size_bytes" && (used[family] != f[1] || (idle[family] != "") != (f[2] == "idle")) {
					t.Errorf("%s is %q when idle and %q when used, want %s from %s on", family, idle[family], used[family], f[1], f[2])
				}
			}
			want := golden(t, "calls_"+name+".txt")
			if len(got) != len(want) {
				t.Fatalf("%d steps, want %d", len(got), len(want))
			}
			for i, line := range want {
				step, rest, _ := strings.Cut(line, "\t")
				if a, ok := parityApart[step]; ok && (a.release == 0 || a.release == release) {
					rest = a.ours
				}
				if line = step + "\t" + rest; got[i] != line {
					t.Errorf("got  %s\nwant %s", got[i], line)
				}
			}
		})
	}
}
