package core

import (
	"cmp"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// heat notes that an object was read. It is called without locks, if dynamic replication is on.
func (m *Master) heat(k *keeper, key string, out *object.ReplicaList) {
	d := m.dynamic
	inMemory := 0
	for i := range out.Replicas {
		if out.Replicas[i].Location.Index == object.LocationMemory {
			inMemory++
		}
	}
	if inMemory == 0 || inMemory >= d.most {
		return
	}
	name := objectName{k.name, key}
	if d.count(name, m.clock.Now()) {
		d.hot.Add(1)
		if d.enforce {
			d.await(name)
		}
	}
}

// stepDynamic proposes copies of what has become hot, and gives up the proposals that nobody followed.
func (m *Master) stepDynamic() {
	d := m.dynamic
	if d == nil {
		return
	}
	now := m.clock.Now()
	for _, p := range d.expire(now) {
		d.expired.Add(1)
		m.tasks.FailPending(p.task, "dynamic replica lease expired", m.at())
	}
	d.sweep(now)
	for _, name := range d.next() {
		if d.isHot(name, now) {
			m.propose(name, now)
		}
	}
}

// propose asks a client to copy an object, if that can be done now.
func (m *Master) propose(name objectName, now int64) {
	k, _ := m.request(name.tenant)
	if k == nil {
		return
	}
	sh, h := k.space.Locate(name.key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, name.key)
	if o == nil || o.InFlight() || !complete(sh, o) || k.acct.Closed() ||
		sh.Work(o, object.SlotReplication) != nil || sh.Work(o, object.SlotPromotion) != nil {
		return
	}
	source, target := m.choose(sh, o, name)
	if source == nil || target == nil {
		return
	}
	p := &proposal{
		Proposal: Proposal{Lease: m.newID(), Epoch: uint64(m.wall())},
		name:     name, object: o.Ref(),
		source: source.Info.Name, target: target.Info.Name, owner: source.Client,
		task: m.newID(), until: now + proposalTTL,
	}
	if !m.dynamic.enter(p, now) {
		return
	}
	payload := &task.CopyPayload{
		TenantID: name.tenant, Key: name.key, Source: p.source, Targets: []string{p.target},
		LeaseHigh: p.Lease.First, LeaseLow: p.Lease.Second, Epoch: p.Epoch,
	}
	if m.tasks.Submit(p.task, p.owner, task.Copy, payload, m.at()) != nil {
		m.dynamic.drop(name)
		return
	}
	m.dynamic.proposed.Add(1)
	if m.transfers.executor == ExecutorMaster {
		wake(m.transfers.wake)
	}
}

// choose returns where an object is to be copied from and to, nil when it should not or can't be. The choice
// is the same every time unless something changes: of the replicas one by hash; of the segments with
// room those on a host without replica first, then the emptiest, then by hash.
func (m *Master) choose(sh *object.Shard, o *object.Object, name objectName) (source, target *segment.Mounted) {
	var holders []*segment.Mounted
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory {
			if !r.Readable() {
				return nil, nil
			}
			holders = append(holders, r.Memory.Seg())
		}
	}
	if len(holders) == 0 || len(holders) >= m.dynamic.most {
		return nil, nil
	}
	source = holders[stableHash(name.tenant, name.key)%uint64(len(holders))]
	holds := func(same func(*segment.Mounted) bool) bool { return slices.ContainsFunc(holders, same) }
	type candidate struct {
		seg   *segment.Mounted
		near  bool // on the host of a replica
		usage float64
		hash  uint64
	}
	var candidates []candidate
	for _, v := range m.pool.Views() {
		seg := m.pool.ByID(v.Info.ID)
		after := float64(v.Used) + float64(o.Size)
		switch {
		case seg == nil || v.Status != segment.StatusOK || v.Suspended,
			holds(func(h *segment.Mounted) bool { return h.Info.Name == v.Info.Name }),
			o.Size > v.Capacity-min(v.Used, v.Capacity), after >= dynamicFill*float64(v.Capacity):
			continue
		}
		candidates = append(candidates, candidate{
			seg:   seg,
			near:  v.Info.HostID == "" || holds(func(h *segment.Mounted) bool { return h.Info.HostID == v.Info.HostID }),
			usage: float64(v.Used) / float64(v.Capacity),
			hash:  stableHash(v.Info.Name, name.tenant, name.key),
		})
	}
	if len(candidates) == 0 {
		return source, nil
	}
	return source, slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(order(a.near, b.near), cmp.Compare(a.usage, b.usage), cmp.Compare(a.hash, b.hash), cmp.Compare(a.seg.Info.Name, b.seg.Info.Name))
	}).seg
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
