package core_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// modelWrite is a write as it is asked for.
type modelWrite struct {
	client   uint64
	key      string
	size     uint64
	replicas uint64
	group    string
	grouped  bool
	hard     bool
	pin      modelPin
}

// put answers PutStart. On OK with fresh set, the caller tells where the replicas went.
func (m *model) put(tenantName string, w modelWrite) (o *modelObject, fresh bool, code errcode.Code) {
	t := m.tenants[tenantName]
	if !t.open() {
		return nil, false, errcode.TenantNotRegistered
	}
	if old := t.objects[w.key]; old != nil {
		if !old.writing || m.now <= old.started+int64(m.cfg.PutDiscardTimeout) {
			m.look(tenantName, w.key, true) // it is leased if it can be read
			return nil, false, errcode.ObjectAlreadyExists
		}
		t.drop(w.key)
	}
	return m.admit(t, w, nil)
}

func (m *model) upsert(tenantName string, w modelWrite) (o *modelObject, fresh bool, code errcode.Code) {
	t := m.tenants[tenantName]
	if !t.open() {
		return nil, false, errcode.TenantNotRegistered
	}
	old := t.objects[w.key]
	if old != nil && w.grouped && w.group != old.group {
		return nil, false, errcode.InvalidParams
	}
	if old != nil && old.writing {
		t.drop(w.key)
		old = nil
	}
	if old == nil || old.size != w.size || old.lease > m.now {
		return m.admit(t, w, old)
	}
	if slices.ContainsFunc(old.at, m.suspended) {
		return nil, false, errcode.UnavailableInStatus
	}
	old.writing, old.started, old.owner, old.pin = true, m.now, w.client, w.pin
	return old, false, errcode.OK
}

func (m *model) admit(t *modelTenant, w modelWrite, old *modelObject) (o *modelObject, fresh bool, code errcode.Code) {
	charge := w.size * w.replicas
	fits := func() (short uint64) {
		after := t.charged() + charge
		if old != nil {
			after -= old.committed
		}
		return after - min(after, t.effective)
	}
	if short := fits(); short > 0 {
		if m.cfg.QuotaExceeded == core.EvictOwn && charge <= t.effective {
			m.evict(t, short, true, old)
		}
		if fits() > 0 {
			return nil, false, errcode.TenantQuotaExceeded
		}
	}
	if m.placeable() == 0 {
		return nil, false, errcode.NoAvailableHandle
	}
	o = &modelObject{
		key: w.key, group: w.group, size: w.size, owner: w.client, hard: w.hard,
		writing: true, started: m.now, pin: w.pin, pending: charge,
	}
	if old != nil {
		o.group, o.hard, o.soft, o.replaced = old.group, old.hard || w.hard, old.soft, old.committed
		t.drop(w.key)
	}
	if o.group != "" {
		for _, p := range t.group(o) {
			o.lease = max(o.lease, p.lease)
		}
		t.changed[o.group] = true
	}
	m.made++
	o.age = m.made
	t.objects[w.key] = o
	return o, true, errcode.OK
}

// placed notes where replicas went and says whether that was allowed.
func (m *model) placed(o *modelObject, wanted uint64, names []string) bool {
	for _, n := range names {
		s := m.segment(n)
		if s == nil || s.graceful || m.suspended(s) || slices.Contains(o.at, s) {
			return false
		}
		o.at = append(o.at, s)
	}
	o.pending = o.size * uint64(len(o.at)) // what has found no memory costs nothing
	return uint64(len(names)) == min(wanted, uint64(m.placeable()))
}

func coversMemory(kind object.ReplicaType) bool {
	return kind == object.ReplicaMemory || kind == object.ReplicaAll
}

// end answers PutEnd at an instant that may be a little later than now, in a batch.
func (m *model) end(tenantName, key string, client uint64, kind object.ReplicaType, sum *uint64, at int64) errcode.Code {
	t := m.tenants[tenantName]
	o := t.objects[key]
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.owner != client:
		return errcode.IllegalClient
	case !coversMemory(kind) && !o.writing:
		return errcode.InvalidWrite
	case !coversMemory(kind):
		return errcode.OK
	}
	if o.writing {
		o.writing, o.sum = false, sum
		switch {
		case o.pin.action == object.SoftPinEnable && o.pin.ttl > 0:
			o.soft = at + o.pin.ttl
		case o.pin.action != object.SoftPinPreserve:
			o.soft = 0
		}
		o.pending, o.replaced = 0, 0
		m.settle(t, o)
		o.lease = max(o.lease, at)
	}
	return errcode.OK
}

func (m *model) revoke(tenantName, key string, client uint64, kind object.ReplicaType) errcode.Code {
	t := m.tenants[tenantName]
	o := t.objects[key]
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.owner != client:
		return errcode.IllegalClient
	case !o.writing:
		return errcode.InvalidWrite
	case coversMemory(kind):
		t.drop(key)
	}
	return errcode.OK
}

// watermark brings each tenant down that is above its mark.
func (m *model) watermark() {
	if m.cfg.TenantWatermark == 0 {
		return
	}
	for _, t := range m.tenants {
		used, effective := t.charged()-t.replaced(), float64(t.effective)
		if t.quota != 0 && t.effective != 0 && float64(used) > m.cfg.TenantWatermark*effective {
			low := (m.cfg.TenantWatermark - m.cfg.EvictionRatio) * effective
			m.evict(t, uint64(math.Ceil(float64(used)-low-1e-6)), false, nil)
		}
	}
}

// evict gives up bytes of a tenant, those whose lease ended first, soft-pinned ones after all
// others; with all set nothing unless that is enough.
func (m *model) evict(t *modelTenant, bytes uint64, all bool, except *modelObject) {
	rank := func(o *modelObject) (r int64) {
		for _, p := range t.group(o) {
			r = max(r, p.lease)
		}
		return r
	}
	may := func(o *modelObject, pinned bool) bool {
		return o != except && !o.writing && !o.hard && rank(o) <= m.now && (pinned || o.soft <= m.now)
	}
	var victims []*modelObject
	var got uint64
	for _, pinned := range []bool{false, true} {
		var line []*modelObject
		for _, o := range t.objects {
			if may(o, pinned) && (o.soft > m.now) == pinned {
				line = append(line, o)
			}
		}
		slices.SortFunc(line, func(a, b *modelObject) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.age, b.age))
		})
		for _, o := range line {
			if got >= bytes || slices.Contains(victims, o) {
				continue
			}
			for _, p := range t.group(o) {
				if may(p, pinned) && !slices.Contains(victims, p) {
					victims = append(victims, p)
					got += p.size * uint64(len(p.at))
				}
			}
		}
	}
	if all && got < bytes {
		return
	}
	for _, o := range victims {
		t.drop(o.key)
	}
}
