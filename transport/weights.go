package transport

import (
	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/weight"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// bindWeights registers the calls about managed weights. The tenant of a call is the one that
// counts; the one in its request is ignored, as by the original.
func bindWeights(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.BeginWeightImport, func(_ *rpc.Call, q *wire.BeginWeightImportRequest, a *wire.WeightResult[wire.WeightMetadata]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightMetadata, weight.Error) {
			return w.Begin(r.Identity, r.PayloadGroupID, r.ExpectedPayloadCount, r.ExpectedLogicalBytes, t)
		})
		return nil
	})
	rpc.Handle(s, wire.CommitWeightImport, func(_ *rpc.Call, q *wire.CommitWeightImportRequest, a *wire.WeightResult[wire.WeightMetadata]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightMetadata, weight.Error) {
			return w.Commit(r.Identity, r.ExpectedMetadataGeneration, &r.Manifest, t)
		})
		return nil
	})
	rpc.Handle(s, wire.AbortWeightImport, func(_ *rpc.Call, q *wire.AbortWeightImportRequest, a *wire.WeightResult[wire.WeightMetadata]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightMetadata, weight.Error) {
			return w.Abort(r.Identity, r.ExpectedMetadataGeneration, t)
		})
		return nil
	})
	rpc.Handle(s, wire.DeleteWeightRevision, func(_ *rpc.Call, q *wire.DeleteWeightRevisionRequest, a *wire.WeightResult[wire.WeightMetadata]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightMetadata, weight.Error) {
			return w.Delete(r.Identity, r.ExpectedMetadataGeneration, t)
		})
		return nil
	})
	rpc.Handle(s, wire.GetWeightRevision, func(_ *rpc.Call, q *wire.GetWeightRevisionRequest, a *wire.WeightResult[wire.WeightRevision]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightRevision, weight.Error) {
			return w.Get(r.Identity, t)
		})
		return nil
	})
	rpc.Handle(s, wire.ListWeightRevisions, func(_ *rpc.Call, q *wire.ListWeightRevisionsRequest, a *wire.WeightResult[wire.WeightRevisionPage]) error {
		r := &q.Request
		ofTenant(m, q.TenantID, a, func(w *weight.Store, tenantName string) (wire.WeightRevisionPage, weight.Error) {
			return w.List(tenantName, r.Namespace, r.ResourceID, r.PageToken, r.Limit, m.WeightTime())
		})
		return nil
	})
	bindWeightUse(s, m)
}

// bindWeightUse registers the calls about leases and moves.
func bindWeightUse(s *rpc.Server, m *core.Master) {
	rpc.Handle(s, wire.AcquireWeightRevisionLease, func(_ *rpc.Call, q *wire.AcquireWeightRevisionLeaseRequest, a *wire.WeightResult[wire.WeightLease]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightLease, weight.Error) {
			return w.Acquire(r.Identity, r.ExpectedMetadataGeneration, r.Holder, r.TTLMs, t)
		})
		return nil
	})
	rpc.Handle(s, wire.RenewWeightRevisionLease, func(_ *rpc.Call, q *wire.RenewWeightRevisionLeaseRequest, a *wire.WeightResult[wire.WeightLease]) error {
		ofTenant(m, q.TenantID, a, func(w *weight.Store, tenantName string) (wire.WeightLease, weight.Error) {
			return w.Renew(tenantName, q.Request.LeaseID, q.Request.TTLMs, m.WeightTime())
		})
		return nil
	})
	rpc.Handle(s, wire.ReleaseWeightRevisionLease, func(_ *rpc.Call, q *wire.ReleaseWeightRevisionLeaseRequest, a *wire.WeightResult[errcode.Void]) error {
		ofTenant(m, q.TenantID, a, func(w *weight.Store, tenantName string) (errcode.Void, weight.Error) {
			return errcode.Void{}, w.Release(tenantName, q.Request.LeaseID)
		})
		return nil
	})
	rpc.Handle(s, wire.StartWeightResidencyOperation, func(_ *rpc.Call, q *wire.StartWeightResidencyOperationRequest, a *wire.WeightResult[wire.WeightResidencyJob]) error {
		r := &q.Request
		onRevision(m, q.TenantID, &r.Identity, a, func(w *weight.Store, t weight.Time) (wire.WeightResidencyJob, weight.Error) {
			return w.Start(r.Identity, r.ExpectedMetadataGeneration, r.TargetResidency, t)
		})
		return nil
	})
	rpc.Handle(s, wire.QueryWeightOperation, func(_ *rpc.Call, q *wire.QueryWeightOperationRequest, a *wire.WeightResult[wire.WeightResidencyJob]) error {
		ofTenant(m, q.TenantID, a, func(w *weight.Store, tenantName string) (wire.WeightResidencyJob, weight.Error) {
			return w.Query(tenantName, q.Request.OperationID)
		})
		return nil
	})
}

// ofTenant answers a call about something of a tenant.
func ofTenant[T any](m *core.Master, named string, a *wire.WeightResult[T], f func(w *weight.Store, tenantName string) (T, weight.Error)) {
	w, tenantName, ok := m.Weights(named)
	if a.Code = weight.InvalidArgument; ok {
		a.Value, a.Code = f(w, tenantName)
	}
}

// onRevision answers a call about a revision, which becomes one of the call's tenant.
func onRevision[T any](m *core.Master, named string, id *wire.WeightIdentity, a *wire.WeightResult[T], f func(w *weight.Store, t weight.Time) (T, weight.Error)) {
	ofTenant(m, named, a, func(w *weight.Store, tenantName string) (T, weight.Error) {
		id.TenantID = tenantName
		return f(w, m.WeightTime())
	})
}
