package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/structpack"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Short names for what most handlers answer.
type (
	void     = errcode.Result[errcode.Void]
	yes      = errcode.Result[bool]
	replicas = errcode.Result[[]object.ReplicaDescriptor]
	list     = errcode.Result[object.ReplicaList]
)

func bindLookups(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.ExistKey, func(_ *rpc.Call, q *wire.ExistKeyRequest, a *yes) error {
		a.Value, a.Code = m.ExistKey(q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.BatchExistKey, func(c *rpc.Call, q *wire.BatchExistKeyRequest, a *[]yes) error {
		inPieces(c, len(q.Keys), func(from, to int) {
			*a = m.BatchExistKey(q.TenantID, q.Keys[from:to], *a)
		})
		return nil
	})
	rpc.Handle(s, wire.ProbeKey, func(_ *rpc.Call, q *wire.ProbeKeyRequest, a *yes) error {
		a.Value, a.Code = m.ProbeKey(q.TenantID, q.Key)
		return nil
	})
	rpc.Handle(s, wire.BatchProbeKey, func(_ *rpc.Call, q *wire.BatchProbeKeyRequest, a *[]yes) error {
		*a = m.BatchProbeKey(core.LeaseMode(q.Policy.Mode), q.Policy.CandidateSize, q.TenantID, q.Keys, (*a)[:0])
		return nil
	})
	rpc.Handle(s, wire.GetReplicaList, func(_ *rpc.Call, q *wire.GetReplicaListRequest, a *list) error {
		a.Code = m.GetReplicaList(q.TenantID, q.Key, &a.Value)
		return nil
	})
	rpc.Handle(s, wire.BatchGetReplicaList, func(c *rpc.Call, q *wire.BatchGetReplicaListRequest, a *[]list) error {
		*a = structpack.Resize(*a, len(q.Keys))
		inPieces(c, len(q.Keys), func(from, to int) {
			m.BatchGetReplicaList(q.TenantID, q.Keys[from:to], (*a)[from:to:to])
		})
		return nil
	})
	rpc.Handle(s, wire.GetReplicaListForAdmin, func(_ *rpc.Call, q *wire.GetReplicaListForAdminRequest, a *list) error {
		a.Code = m.AdminReplicas(q.TenantID, q.Key, &a.Value)
		return nil
	})
	rpc.Handle(s, wire.BatchGetReplicaListForAdmin, func(c *rpc.Call, q *wire.BatchGetReplicaListForAdminRequest, a *[]list) error {
		*a = structpack.Resize(*a, len(q.Keys))
		inPieces(c, len(q.Keys), func(from, to int) {
			for i := from; i < to; i++ {
				(*a)[i].Code = m.AdminReplicas(q.TenantID, q.Keys[i], &(*a)[i].Value)
			}
		})
		return nil
	})
	rpc.Handle(s, wire.GetReplicaListByRegex, func(_ *rpc.Call, q *wire.GetReplicaListByRegexRequest, a *errcode.Result[wire.Map[string, []object.ReplicaDescriptor]]) error {
		found, code := m.GetReplicaListByRegex(q.TenantID, q.Regex)
		a.Code = code
		for _, f := range found {
			a.Value.Entries = append(a.Value.Entries, wire.Entry[string, []object.ReplicaDescriptor](f))
		}
		return nil
	}, rpc.Slow)
}

func bindWrites(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.PutStart, func(_ *rpc.Call, q *wire.PutStartRequest, a *replicas) error {
		a.Value, a.Code = m.PutStart(q.ClientID, q.TenantID, q.Key, q.SliceLength, &q.Config, a.Value[:0])
		return nil
	})
	rpc.Handle(s, wire.UpsertStart, func(_ *rpc.Call, q *wire.UpsertStartRequest, a *replicas) error {
		a.Value, a.Code = m.UpsertStart(q.ClientID, q.TenantID, q.Key, q.SliceLength, &q.Config, a.Value[:0])
		return nil
	})
	rpc.Handle(s, wire.BatchPutStart, func(_ *rpc.Call, q *wire.BatchPutStartRequest, a *[]replicas) error {
		*a = m.BatchPutStart(q.ClientID, q.TenantID, q.Keys, q.SliceLengths, &q.Config, *a)
		return nil
	})
	rpc.Handle(s, wire.BatchUpsertStart, func(_ *rpc.Call, q *wire.BatchUpsertStartRequest, a *[]replicas) error {
		*a = m.BatchUpsertStart(q.ClientID, q.TenantID, q.Keys, q.SliceLengths, &q.Config, *a)
		return nil
	})
	rpc.Handle(s, wire.PutEnd, func(_ *rpc.Call, q *wire.PutEndRequest, a *void) error {
		a.Code = m.PutEnd(q.ClientID, q.TenantID, &q.ObjectMeta, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.UpsertEnd, func(_ *rpc.Call, q *wire.UpsertEndRequest, a *void) error {
		a.Code = m.PutEnd(q.ClientID, q.TenantID, &q.ObjectMeta, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.BatchPutEnd, func(c *rpc.Call, q *wire.BatchPutEndRequest, a *[]void) error {
		inPieces(c, len(q.ObjectMetas), func(from, to int) {
			*a = m.BatchPutEnd(q.ClientID, q.TenantID, q.ObjectMetas[from:to], q.ReplicaType, *a)
		})
		return nil
	})
	rpc.Handle(s, wire.BatchUpsertEnd, func(c *rpc.Call, q *wire.BatchUpsertEndRequest, a *[]void) error {
		inPieces(c, len(q.ObjectMetas), func(from, to int) {
			*a = m.BatchPutEnd(q.ClientID, q.TenantID, q.ObjectMetas[from:to], object.ReplicaAll, *a)
		})
		return nil
	})
	rpc.Handle(s, wire.PutRevoke, func(_ *rpc.Call, q *wire.PutRevokeRequest, a *void) error {
		a.Code = m.PutRevoke(q.ClientID, q.TenantID, q.Key, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.UpsertRevoke, func(_ *rpc.Call, q *wire.UpsertRevokeRequest, a *void) error {
		a.Code = m.PutRevoke(q.ClientID, q.TenantID, q.Key, q.ReplicaType)
		return nil
	})
	rpc.Handle(s, wire.BatchPutRevoke, func(c *rpc.Call, q *wire.BatchPutRevokeRequest, a *[]void) error {
		inPieces(c, len(q.Keys), func(from, to int) {
			*a = m.BatchPutRevoke(q.ClientID, q.TenantID, q.Keys[from:to], q.ReplicaType, *a)
		})
		return nil
	})
	rpc.Handle(s, wire.BatchUpsertRevoke, func(c *rpc.Call, q *wire.BatchUpsertRevokeRequest, a *[]void) error {
		inPieces(c, len(q.Keys), func(from, to int) {
			*a = m.BatchPutRevoke(q.ClientID, q.TenantID, q.Keys[from:to], object.ReplicaAll, *a)
		})
		return nil
	})
}

func bindRemovals(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.Remove, func(_ *rpc.Call, q *wire.RemoveRequest, a *void) error {
		a.Code = m.Remove(q.TenantID, q.Key, q.Force)
		return nil
	})
	rpc.Handle(s, wire.BatchRemove, func(c *rpc.Call, q *wire.BatchRemoveRequest, a *[]void) error {
		inPieces(c, len(q.Keys), func(from, to int) {
			*a = m.BatchRemove(q.TenantID, q.Keys[from:to], q.Force, *a)
		})
		return nil
	})
	rpc.Handle(s, wire.RemoveByRegex, func(_ *rpc.Call, q *wire.RemoveByRegexRequest, a *errcode.Result[int64]) error {
		a.Value, a.Code = m.RemoveByRegex(q.TenantID, q.Regex, q.Force)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.RemoveAll, func(_ *rpc.Call, q *wire.RemoveAllRequest, a *int64) error {
		*a = m.RemoveAll(q.TenantID, q.Force)
		return nil
	}, rpc.Slow)
	rpc.Handle(s, wire.BatchReplicaClear, func(_ *rpc.Call, q *wire.BatchReplicaClearRequest, a *errcode.Result[[]string]) error {
		a.Value, a.Code = m.BatchReplicaClear(q.TenantID, q.ObjectKeys, q.ClientID, q.SegmentName)
		return nil
	})
}
