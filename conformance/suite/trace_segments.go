package main

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/weight"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// segmentActions are the calls about segments and clients, some that ask and some that are off.
var segmentActions = []action{
	{10, (*world).ping},
	{6, (*world).mount},
	{3, (*world).remount},
	{4, (*world).unmount},
	{3, (*world).unmountLater},
	{10, (*world).segmentQuery},
	{3, (*world).flash},
	{3, (*world).weights},
	{3, (*world).service},
}

// quotaActions change policies.
var quotaActions = []action{{8, (*world).quota}}

func (w *world) segment() *lent { return pick(w, w.segs) }

// loose returns a segment that may go. The first two stay, so that keys with m have a place.
func (w *world) loose() *lent {
	if len(w.segs) < 3 {
		return w.segs[0]
	}
	return w.segs[2+w.r.IntN(len(w.segs)-2)]
}

// mountAll is how a trace begins.
func (w *world) mountAll() {
	for _, s := range w.segs {
		w.mountOne(s)
	}
	for i := range lenders - 1 { // the third is mounted, and not OK
		w.add(call(wire.Ping, wire.PingRequest{ClientID: w.clients[i]}))
		w.add(call(wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: w.ofClient(i), ClientID: w.clients[i]}))
		w.add(call(wire.Ping, wire.PingRequest{ClientID: w.clients[i]}))
	}
}

func (w *world) mountOne(s *lent) {
	w.add(call(wire.MountSegment, wire.MountSegmentRequest{Segment: s.info, ClientID: w.clients[s.owner]}))
	s.mounted = true
}

func (w *world) ofClient(i int) []segment.Info {
	var all []segment.Info
	for _, s := range w.segs {
		if s.owner == i && s.mounted {
			all = append(all, s.info)
		}
	}
	return all
}

func (w *world) ping() {
	w.add(call(wire.Ping, wire.PingRequest{ClientID: pick(w, w.clients)}))
}

func (w *world) mount() {
	s := w.loose()
	if w.chance(10) {
		bad := s.info
		switch w.r.IntN(3) {
		case 0:
			bad.Base = 0
		case 1:
			bad.Size = 0
		case 2:
			bad.Endpoint = "elsewhere:1" // the same id once more, if it is mounted
			if !s.mounted {
				bad.Base = 0
			}
		}
		w.add(call(wire.MountSegment, wire.MountSegmentRequest{Segment: bad, ClientID: w.clients[s.owner]}))
		return
	}
	w.mountOne(s)
}

func (w *world) remount() {
	i := w.r.IntN(known)
	segs := w.ofClient(i)
	if w.chance(10) && len(segs) > 0 {
		segs[0].Size++
	}
	if w.chance(10) {
		segs = nil
	}
	w.add(call(wire.ReMountSegment, wire.ReMountSegmentRequest{Segments: segs, ClientID: w.clients[i]}))
}

func (w *world) unmount() {
	s := w.loose()
	q := wire.UnmountSegmentRequest{SegmentID: s.info.ID, ClientID: w.clients[s.owner]}
	if w.chance(5) {
		q.SegmentID = segment.UUID{First: 9, Second: 9}
		w.add(call(wire.UnmountSegment, q))
		return
	}
	w.unmountNow(s)
	if len(w.segs) < 3 || w.chance(50) {
		w.mountOne(s)
	}
}

// unmountNow takes a segment away. The original gives back what copies to it were charged only when
// the object is asked for by a call that may change it, as these are that change nothing.
func (w *world) unmountNow(s *lent) {
	o := call(wire.UnmountSegment, wire.UnmountSegmentRequest{SegmentID: s.info.ID, ClientID: w.clients[s.owner]})
	o.settle = s.info.ID
	w.add(o)
	s.mounted = false
	for _, tenant := range w.config.tenants {
		w.add(call(wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: slices.Concat(w.config.keys, oddKeys), ClientID: segment.UUID{First: 99, Second: 99}, TenantID: tenant}))
	}
}

// unmountLater asks for an unmount in an hour.
func (w *world) unmountLater() {
	s := w.loose()
	q := wire.GracefulUnmountSegmentRequest{SegmentID: s.info.ID, ClientID: w.clients[s.owner], GracePeriodMs: 3_600_000}
	if w.chance(10) {
		q.ClientID = w.client()
	}
	if w.chance(5) {
		q.SegmentID = segment.UUID{First: 9, Second: 9}
	}
	w.add(call(wire.GracefulUnmountSegment, q))
	w.add(call(wire.QuerySegmentStatus, wire.QuerySegmentStatusRequest{SegmentName: s.info.Name}))
	if w.chance(80) {
		w.unmountNow(s)
		w.mountOne(s)
	}
}

func (w *world) segmentQuery() {
	s := w.segment()
	name := s.info.Name
	if w.chance(10) {
		name = "nowhere:1"
	}
	switch w.r.IntN(7) {
	case 0:
		w.add(call(wire.QuerySegmentStatus, wire.QuerySegmentStatusRequest{SegmentName: name}))
	case 1:
		id := s.info.ID
		if w.chance(10) {
			id.First = 77
		}
		w.add(call(wire.QuerySegmentStatusById, wire.QuerySegmentStatusByIdRequest{SegmentID: id}))
	case 2:
		w.add(call(wire.BatchQueryIp, wire.BatchQueryIpRequest{ClientIDs: []segment.UUID{pick(w, w.clients), pick(w, w.clients)}}))
	case 3:
		w.add(httpOp("GET", "/get_all_segments", ""))
	case 4:
		w.add(httpOp("GET", "/get_segments_detail", ""))
	case 5:
		w.add(httpOp("GET", "/query_segment?segment="+name, ""))
	case 6:
		w.add(httpOp("GET", "/api/v1/segments/status?segment="+url.QueryEscape(name), ""))
	}
}

// flash is about NVMe-oF, which the released master doesn't have.
func (w *world) flash() {
	seg := wire.NoFSegment{ID: segment.UUID{First: 5, Second: 5}, Name: "nof:1", Base: 4096, Size: gib, Endpoint: "nof:1"}
	switch w.r.IntN(5) {
	case 0:
		w.add(call(wire.MountNoFSegment, wire.MountNoFSegmentRequest{Segment: seg, ClientID: w.client()}))
	case 1:
		w.add(call(wire.ReMountNoFSegment, wire.ReMountNoFSegmentRequest{Segments: []wire.NoFSegment{seg}, ClientID: w.client()}))
	case 2:
		w.add(call(wire.UnmountNoFSegment, wire.UnmountNoFSegmentRequest{SegmentID: seg.ID, ClientID: w.client()}))
	case 3:
		w.add(call(wire.GetAllNoFSegments, wire.GetAllNoFSegmentsRequest{}))
	case 4:
		w.add(call(wire.GetNoFSegmentsByName, wire.GetNoFSegmentsByNameRequest{SegmentName: "nof:1"}))
	}
}

// weights asks for weight revisions that there are none of.
func (w *world) weights() {
	tenant := w.config.tenants[0]
	id := wire.WeightIdentity{TenantID: tenant, Namespace: "n", ResourceID: "r", Revision: "v", WeightGeneration: 1}
	ref := wire.WeightRevisionRef{Identity: id, ExpectedMetadataGeneration: 1}
	switch w.r.IntN(11) {
	case 0:
		w.add(call(wire.BeginWeightImport, wire.BeginWeightImportRequest{TenantID: tenant}))
	case 1:
		w.add(call(wire.CommitWeightImport, wire.CommitWeightImportRequest{Request: wire.WeightImportCommit{Identity: id}, TenantID: tenant}))
	case 2:
		w.add(call(wire.AbortWeightImport, wire.AbortWeightImportRequest{Request: ref, TenantID: tenant}))
	case 3:
		w.add(call(wire.DeleteWeightRevision, wire.DeleteWeightRevisionRequest{Request: ref, TenantID: tenant}))
	case 4:
		w.add(call(wire.GetWeightRevision, wire.GetWeightRevisionRequest{Request: wire.WeightLookup{Identity: id}, TenantID: tenant}))
	case 5:
		w.add(call(wire.ListWeightRevisions, wire.ListWeightRevisionsRequest{Request: wire.WeightQuery{TenantID: tenant}, TenantID: tenant}))
	case 6:
		w.add(call(wire.AcquireWeightRevisionLease, wire.AcquireWeightRevisionLeaseRequest{Request: wire.WeightLeaseAcquire{Identity: id, Holder: "h", TTLMs: 1000}, TenantID: tenant}))
	case 7:
		w.add(call(wire.RenewWeightRevisionLease, wire.RenewWeightRevisionLeaseRequest{Request: wire.WeightLeaseRenew{TenantID: tenant, LeaseID: 5, TTLMs: 1000}, TenantID: tenant}))
	case 8:
		w.add(call(wire.ReleaseWeightRevisionLease, wire.ReleaseWeightRevisionLeaseRequest{Request: wire.WeightLeaseRef{TenantID: tenant, LeaseID: 5}, TenantID: tenant}))
	case 9:
		w.add(call(wire.StartWeightResidencyOperation, wire.StartWeightResidencyOperationRequest{Request: wire.WeightResidencyStart{Identity: id, TargetResidency: weight.Cold}, TenantID: tenant}))
	case 10:
		w.add(call(wire.QueryWeightOperation, wire.QueryWeightOperationRequest{Request: wire.WeightOperationRef{TenantID: tenant, OperationID: 3}, TenantID: tenant}))
	}
}

// service asks for what never changes.
func (w *world) service() {
	switch w.r.IntN(7) {
	case 0:
		w.add(call(wire.ServiceReady, wire.ServiceReadyRequest{}))
	case 1:
		w.add(call(wire.GetStorageConfig, wire.GetStorageConfigRequest{}))
	case 2:
		w.add(call(wire.GetFsdir, wire.GetFsdirRequest{}))
	case 3:
		w.add(httpOp("GET", pick(w, []string{"/health", "/role", "/ha_status", "/leader", "/kv_events/status", "/api/v1/dfs/shard_count"}), ""))
	case 4:
		w.add(httpOp("POST", "/api/v1/drain_jobs", pick(w, []string{
			`{"segments":[]}`, `{"segments":["nowhere:1"]}`, `{"segments":["` + w.segs[0].info.Name + `"],"max_concurrency":0}`, `{`, ``,
			`{"segments":["` + w.segs[0].info.Name + `","` + w.segs[0].info.Name + `"]}`,
			`{"segments":["` + w.segs[0].info.Name + `"],"target_segments":["` + w.segs[0].info.Name + `"]}`,
			`{"segments":["` + w.segs[0].info.Name + `"],"target_segments":["nowhere:1"]}`,
		})))
	case 5:
		w.add(httpOp("GET", "/api/v1/drain_jobs/query"+pick(w, []string{"", "?job_id=", "?job_id=1-2", "?job_id=x"}), ""))
	case 6:
		w.add(httpOp("POST", "/api/v1/drain_jobs/cancel"+pick(w, []string{"", "?job_id=", "?job_id=1-2", "?job_id=x"}), ""))
	}
}

// quota reads and changes policies.
func (w *world) quota() {
	tenant := pick(w, append(slices.Clone(w.config.tenants), "ghost", "_x", ""))
	path := "/api/v1/tenant_quotas?tenant_id=" + url.QueryEscape(tenant)
	switch w.r.IntN(8) {
	case 0, 1:
		w.add(httpOp("GET", path, ""))
	case 2:
		w.add(httpOp("DELETE", path, ""))
	case 3:
		w.add(httpOp("PUT", path, pick(w, []string{`{"requested_quota_bytes":0}`, `{}`, `xx`, `{"requested_quota_bytes":"2MB"}`, `{"requested_quota_bytes":-5}`, ``})))
	case 4:
		// More than there is: quotas are shared out.
		w.add(httpOp("PUT", path, fmt.Sprintf(`{"requested_quota_bytes":%d}`, w.config.segmentSize*uint64(1+w.r.IntN(20))+uint64(w.r.IntN(1000)))))
		w.add(httpOp("GET", "/api/v1/tenant_quotas", ""))
		fallthrough
	default:
		w.add(httpOp("PUT", path, fmt.Sprintf(`{"requested_quota_bytes":%d}`, 1<<20+w.r.IntN(12<<20))))
		w.add(httpOp("GET", "/api/v1/tenant_quotas", ""))
	}
}
