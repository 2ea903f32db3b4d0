package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// diskActions are the calls about local disks, offload and promotion.
var diskActions = []action{
	{2, (*world).diskMount},
	{2, (*world).diskUnmount},
	{40, (*world).offload},
	{45, (*world).offloaded},
	{4, (*world).capacity},
	{6, (*world).pollRemoveAll},
	{25, (*world).evictDisk},
	{14, (*world).evictCurrent},
	{30, (*world).promote},
	{40, (*world).readDisk},
	{20, (*world).prefetch},
	{12, (*world).promotionStep},
	{20, (*world).dropMemory},
	{40, (*world).story},
}

// fewDiskActions are the same where disks are off.
var fewDiskActions = []action{
	{2, (*world).diskMount},
	{2, (*world).diskUnmount},
	{3, (*world).offload},
	{3, (*world).offloaded},
	{2, (*world).capacity},
	{2, (*world).pollRemoveAll},
	{3, (*world).evictDisk},
	{2, (*world).evictCurrent},
	{3, (*world).promotionStep},
	{2, (*world).prefetch},
}

func (w *world) mountDisk(i int) {
	w.add(call(wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: w.clients[i], EnableOffloading: true}))
}

func (w *world) diskMount() {
	w.add(call(wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: pick(w, w.clients), EnableOffloading: w.chance(80)}))
}

func (w *world) diskUnmount() {
	client := pick(w, w.clients)
	w.add(call(wire.UnmountLocalDiskSegment, wire.UnmountLocalDiskSegmentRequest{ClientID: client}))
	if w.chance(80) {
		w.add(call(wire.MountLocalDiskSegment, wire.MountLocalDiskSegmentRequest{ClientID: client, EnableOffloading: true}))
	}
}

func (w *world) offload() {
	w.add(call(wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: w.client(), EnableOffloading: w.chance(94)}))
}

// sizeOf is the size of an object, now and then another.
func (w *world) sizeOf(tenant, key string) uint64 {
	if p := w.writes[w.scoped(tenant, key)]; p != nil && p.size > 0 && p.size < 1<<60 && !w.chance(6) {
		return p.size
	}
	return 4096
}

// offloaded says that objects are on a disk now, or could not be written.
func (w *world) offloaded() {
	q := wire.NotifyOffloadSuccessRequest{ClientID: w.client()}
	var names []string
	for range 1 + w.r.IntN(3) {
		tenant, key := w.object(false)
		size := int64(w.sizeOf(tenant, key))
		q.Tasks = append(q.Tasks, wire.OffloadTaskItem{TenantID: tenant, Key: key, Size: size})
		m := wire.StorageObjectMetadata{BucketID: 1, KeySize: int64(len(key)), DataSize: size, TransportEndpoint: fmt.Sprintf("disk%d:1", w.number(q.ClientID))}
		if w.chance(10) {
			m.DataSize = -1
		}
		q.Metadatas = append(q.Metadatas, m)
		names = append(names, w.scoped(tenant, key))
	}
	if w.chance(2) {
		q.Metadatas = q.Metadatas[1:]
	}
	if w.chance(2) {
		q.Tasks, q.Metadatas = nil, nil
	}
	w.add(call(wire.NotifyOffloadSuccess, q), names...)
}

func (w *world) capacity() {
	w.add(call(wire.ReportSsdCapacity, wire.ReportSsdCapacityRequest{ClientID: w.client(), SSDTotalCapacityBytes: pick(w, []int64{1 << 40, 0, -1, 5})}))
}

func (w *world) pollRemoveAll() {
	w.add(call(wire.PollRemoveAll, wire.PollRemoveAllRequest{ClientID: pick(w, w.clients)}))
}

func (w *world) diskKind() object.ReplicaType {
	if w.chance(85) {
		return object.ReplicaLocalDisk
	}
	return pick(w, []object.ReplicaType{object.ReplicaMemory, object.ReplicaDisk, object.ReplicaNoF, object.ReplicaAll, object.ReplicaDFS, 9})
}

func (w *world) evictDisk() {
	tenant, key := w.object(false)
	client := w.client()
	if w.chance(70) {
		w.add(call(wire.EvictDiskReplica, wire.EvictDiskReplicaRequest{ClientID: client, Key: key, TenantID: tenant, ReplicaType: w.diskKind()}), w.scoped(tenant, key))
		return
	}
	keys := w.several()
	w.add(call(wire.BatchEvictDiskReplica, wire.BatchEvictDiskReplicaRequest{ClientID: client, Keys: keys, TenantID: tenant, ReplicaType: w.diskKind()}), w.all(tenant, keys)...)
}

// evictCurrent names the replica that there is, or another.
func (w *world) evictCurrent() {
	tenant, key := w.object(false)
	q := wire.EvictDiskReplicaIfCurrentRequest{ClientID: w.client(), Key: key, TenantID: tenant, ReplicaType: w.diskKind(), ExpectedReplicaIDOrVersion: pick(w, []uint64{0, 1 << 60})}
	current := w.chance(70)
	memory := !current && w.chance(30)
	o := rpcOp(wire.EvictDiskReplicaIfCurrent, q, binding[wire.EvictDiskReplicaIfCurrentRequest, errcode.Result[bool]]{
		bind: func(ctx context.Context, s *side, q *wire.EvictDiskReplicaIfCurrentRequest) error {
			var a errcode.Result[object.ReplicaList]
			if err := rpc.Invoke(ctx, s.conn, wire.GetReplicaListForAdmin, &wire.GetReplicaListForAdminRequest{Key: key, TenantID: tenant}, &a); err != nil {
				return fmt.Errorf("%w: %w", errGone, err)
			}
			for _, r := range a.Value.Replicas {
				disk := r.Location.Index == object.LocationLocalDisk && r.Location.LocalDisk.ClientID == q.ClientID
				if current && disk || memory && !disk {
					q.ExpectedReplicaIDOrVersion = r.ID
				}
			}
			return nil
		},
	})
	if current {
		o.args += " (of the current replica)"
	}
	w.add(o, w.scoped(tenant, key))
}

// dropMemory leaves an object only on disk, if it is there.
func (w *world) dropMemory() {
	tenant, key := w.object(false)
	for _, s := range w.segs {
		o := call(wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{key}, ClientID: w.writer(tenant, key), SegmentName: s.info.Name, TenantID: tenant})
		o.minds = true
		w.add(o, w.scoped(tenant, key))
	}
	if w.chance(50) {
		for range 1 + w.r.IntN(3) {
			o := call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: tenant})
			o.leases = true
			w.add(o, w.scoped(tenant, key))
		}
		if w.chance(60) {
			w.promoteKey(tenant, key, w.client())
		}
	}
}

// story takes an object to a disk and back into memory, with steps left out now and then.
func (w *world) story() {
	tenant, key := w.object(false)
	owner := w.r.IntN(lenders)
	client, disk, scoped := w.clients[owner], w.clients[w.r.IntN(lenders)], w.scoped(tenant, key)
	size := pick(w, []uint64{100, 4096, 65536})
	c := object.ReplicateConfig{ReplicaNum: 1, PreferredSegments: w.places(key)}
	steps := []func(){
		func() {
			w.add(call(wire.Remove, wire.RemoveRequest{Key: key, Force: true, TenantID: tenant}), scoped)
		},
		func() {
			w.begun(tenant, key, owner, size, &c, 0)
			w.add(call(wire.PutStart, wire.PutStartRequest{ClientID: client, Key: key, SliceLength: size, Config: c, TenantID: tenant}), scoped)
			w.add(call(wire.PutEnd, wire.PutEndRequest{ClientID: client, ObjectMeta: w.meta(key), ReplicaType: object.ReplicaAll, TenantID: tenant}), scoped)
			w.closed(tenant, key)
		},
		func() {
			w.add(call(wire.OffloadObjectHeartbeat, wire.OffloadObjectHeartbeatRequest{ClientID: disk, EnableOffloading: true}))
		},
		func() {
			w.add(call(wire.NotifyOffloadSuccess, wire.NotifyOffloadSuccessRequest{
				ClientID: disk, Tasks: []wire.OffloadTaskItem{{TenantID: tenant, Key: key, Size: int64(size)}},
				Metadatas: []wire.StorageObjectMetadata{{BucketID: 2, KeySize: 2, DataSize: int64(size), TransportEndpoint: "disk:1"}},
			}), scoped)
		},
		func() {
			for _, name := range w.targets(key) {
				o := call(wire.BatchReplicaClear, wire.BatchReplicaClearRequest{ObjectKeys: []string{key}, ClientID: client, SegmentName: name, TenantID: tenant})
				o.minds = true
				w.add(o, scoped)
			}
		},
		func() {
			for range 3 {
				o := call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: tenant})
				o.leases = true
				w.add(o, scoped)
			}
		},
		func() {
			w.add(call(wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: disk}))
		},
		func() {
			w.allocate(wire.PromotionAllocStartRequest{ClientID: disk, Key: key, TenantID: tenant, Size: size, PreferredSegments: w.places(key)})
		},
		func() {
			if w.chance(70) {
				w.add(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: disk, Key: key, TenantID: tenant}), scoped)
			} else {
				w.promotionFailed(tenant, key, disk)
			}
		},
		func() {
			w.add(call(wire.GetReplicaListForAdmin, wire.GetReplicaListForAdminRequest{Key: key, TenantID: tenant}), scoped)
		},
	}
	until := len(steps)
	if w.chance(25) {
		until = w.r.IntN(len(steps)) // somebody else meets what is half done
	}
	for _, step := range steps[:until] {
		if !w.chance(4) {
			step()
		}
	}
}

// readDisk reads often enough for a promotion.
func (w *world) readDisk() {
	tenant, key := w.object(false)
	for range 1 + w.r.IntN(3) {
		o := call(wire.GetReplicaList, wire.GetReplicaListRequest{Key: key, TenantID: tenant})
		o.leases = true
		w.add(o, w.scoped(tenant, key))
	}
}

// promote walks through a promotion, or what may be one.
func (w *world) promote() {
	tenant, key := w.object(false)
	w.promoteKey(tenant, key, w.client())
}

func (w *world) promoteKey(tenant, key string, client segment.UUID) {
	scoped := w.scoped(tenant, key)
	w.add(call(wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: client}))
	w.allocate(wire.PromotionAllocStartRequest{ClientID: client, Key: key, TenantID: tenant, Size: w.sizeOf(tenant, key), PreferredSegments: w.places(key)})
	switch w.r.IntN(5) {
	case 0, 1, 2:
		w.add(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	case 3:
		w.promotionFailed(tenant, key, client)
	}
}

// allocate asks for memory for a promotion, and what is charged then.
func (w *world) allocate(q wire.PromotionAllocStartRequest) {
	scoped := w.scoped(q.TenantID, q.Key)
	w.add(call(wire.PromotionAllocStart, q), scoped)
	if w.config.policy != "" {
		w.add(httpOp("GET", "/api/v1/tenant_quotas?tenant_id="+url.QueryEscape(q.TenantID), ""), scoped)
	}
}

// promotionFailed ends a promotion. The original tries it again by itself within some tenths of a
// second.
func (w *world) promotionFailed(tenant, key string, client segment.UUID) {
	o := call(wire.NotifyPromotionFailure, wire.NotifyPromotionFailureRequest{ClientID: client, Key: key, TenantID: tenant})
	if w.chance(10) {
		o.rest = 700 * time.Millisecond
		w.add(o, w.scoped(tenant, key))
	} else {
		w.add(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: client, Key: key, TenantID: tenant}), w.scoped(tenant, key))
	}
}

// promotionStep is one step out of order.
func (w *world) promotionStep() {
	tenant, key := w.object(false)
	client, scoped := w.client(), w.scoped(tenant, key)
	switch w.r.IntN(4) {
	case 0:
		w.add(call(wire.PromotionObjectHeartbeat, wire.PromotionObjectHeartbeatRequest{ClientID: pick(w, w.clients)}))
	case 1:
		w.allocate(wire.PromotionAllocStartRequest{ClientID: client, Key: key, TenantID: tenant, Size: w.size(), PreferredSegments: w.places(key)})
	case 2:
		w.add(call(wire.NotifyPromotionSuccess, wire.NotifyPromotionSuccessRequest{ClientID: client, Key: key, TenantID: tenant}), scoped)
	case 3:
		w.promotionFailed(tenant, key, client)
	}
}

func (w *world) prefetch() {
	tenant, key := w.object(false)
	client := w.client()
	w.add(call(wire.RegisterPrefetchTask, wire.RegisterPrefetchTaskRequest{ClientID: client, Key: key, TenantID: tenant}), w.scoped(tenant, key))
	if w.chance(60) {
		w.promoteKey(tenant, key, client)
	}
}

// leaseEnd is how long a lease of a millisecond is waited for.
const leaseEnd = 4 * time.Millisecond
