package core_test

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// model is what a master should answer, written down a second time in the plainest way: maps
// that are walked, no locks, no incremental sums. It does not know where the master will put a
// replica; it is told, and says whether that was allowed. Memory never runs out.
type model struct {
	cfg     core.Config
	now     int64
	tenants map[string]*modelTenant
	segs    []*modelSegment // in mount order
	clients map[uint64]*modelClient
	timers  []modelTimer
	made    int // objects so far
}

type modelTenant struct {
	quota     uint64 // 0 = no policy
	effective uint64
	removing  bool
	objects   map[string]*modelObject
	changed   map[string]bool // groups that have gained or lost a member since their last refresh
}

type modelObject struct {
	key, group                   string
	size                         uint64
	owner                        uint64
	at                           []*modelSegment
	writing, hard                bool
	started, lease, soft         int64
	age                          int // which was made first, of those whose leases end together
	pin                          modelPin
	sum                          *uint64
	pending, committed, replaced uint64
}

type modelPin struct {
	action object.SoftPinAction
	ttl    int64
}

type modelSegment struct {
	name     string
	size     uint64
	client   uint64
	graceful bool
}

type modelClient struct {
	ping          int64
	suspected, ok bool
}

type modelTimer struct {
	at  int64
	seg *modelSegment
}

func newModel(cfg core.Config, now int64, names []string) *model {
	m := &model{cfg: cfg, now: now, tenants: map[string]*modelTenant{}, clients: map[uint64]*modelClient{}}
	for _, n := range names {
		m.tenants[n] = &modelTenant{objects: map[string]*modelObject{}, changed: map[string]bool{}}
	}
	return m
}

// Tenants.

func (t *modelTenant) open() bool { return t.quota != 0 && !t.removing }

func (t *modelTenant) charged() (n uint64) {
	for _, o := range t.objects {
		n += o.pending + o.committed + o.replaced
	}
	return n
}

func (t *modelTenant) drop(key string) {
	t.changed[t.objects[key].group] = true
	delete(t.objects, key)
}

func (t *modelTenant) replaced() (n uint64) {
	for _, o := range t.objects {
		n += o.replaced
	}
	return n
}

func (m *model) policies(set map[string]uint64) {
	for name, t := range m.tenants {
		t.quota, t.removing = set[name], false
	}
	m.share()
}

// share gives every tenant its effective quota: largest remainder where memory is scarce.
func (m *model) share() {
	var capacity, sum big.Int
	for _, s := range m.segs {
		capacity.Add(&capacity, new(big.Int).SetUint64(s.size))
	}
	type part struct {
		name string
		rest *big.Int
	}
	var parts []part
	for _, t := range m.tenants {
		sum.Add(&sum, new(big.Int).SetUint64(t.quota))
	}
	left := new(big.Int).Set(&capacity)
	for name, t := range m.tenants {
		t.effective = t.quota
		if t.quota == 0 || sum.Cmp(&capacity) <= 0 {
			continue
		}
		share, rest := new(big.Int).Mul(&capacity, new(big.Int).SetUint64(t.quota)), new(big.Int)
		share.DivMod(share, &sum, rest)
		t.effective = share.Uint64()
		left.Sub(left, share)
		parts = append(parts, part{name, rest})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(b.rest.Cmp(a.rest), strings.Compare(a.name, b.name)) })
	for _, p := range parts {
		if left.Sign() > 0 {
			m.tenants[p.name].effective++
			left.Sub(left, big.NewInt(1))
		}
	}
}

func (m *model) beginRemoval(name string) errcode.Code {
	t := m.tenants[name]
	switch {
	case t.quota == 0:
		return errcode.ObjectNotFound
	case len(t.objects) > 0:
		return errcode.TenantNotEmpty
	}
	t.removing = true
	return errcode.OK
}

// Segments and clients.

func (m *model) segment(name string) *modelSegment {
	for _, s := range m.segs {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (m *model) suspended(s *modelSegment) bool {
	c := m.clients[s.client]
	return c != nil && c.suspected
}

func (m *model) placeable() (n int) {
	for _, s := range m.segs {
		if !s.graceful && !m.suspended(s) {
			n++
		}
	}
	return n
}

func (m *model) mount(client uint64, name string, size uint64) errcode.Code {
	s := m.segment(name)
	if s != nil && s.graceful {
		return errcode.UnavailableInStatus
	}
	c := m.clients[client]
	if c == nil {
		c = &modelClient{}
		m.clients[client] = c
	}
	c.ping, c.suspected = m.now, false
	if s == nil {
		m.segs = append(m.segs, &modelSegment{name: name, size: size, client: client})
		m.share()
	}
	return errcode.OK
}

// remount is of segments that the client has mounted before.
func (m *model) remount(client uint64) { m.clients[client].ok = true }

func (m *model) ping(client uint64) int {
	c := m.clients[client]
	if c == nil {
		return 2
	}
	c.ping, c.suspected = m.now, false
	if c.ok {
		return 1
	}
	return 2
}

func (m *model) graceful(client uint64, name string, grace time.Duration) errcode.Code {
	owns := slices.ContainsFunc(m.segs, func(s *modelSegment) bool { return s.client == client })
	s := m.segment(name)
	switch {
	case !owns:
		return errcode.SegmentNotFound
	case s == nil || s.client != client:
		return errcode.InvalidParams
	}
	s.graceful = true
	m.timers = append(m.timers, modelTimer{m.now + int64(grace), s})
	return errcode.OK
}

func (m *model) unmount(gone ...*modelSegment) {
	for _, t := range m.tenants {
		for _, o := range t.objects {
			before := len(o.at)
			o.at = slices.DeleteFunc(o.at, func(s *modelSegment) bool { return slices.Contains(gone, s) })
			o.pending -= min(o.pending, o.size*uint64(before-len(o.at))) // of a write that goes on
			m.settle(t, o)
		}
	}
	m.segs = slices.DeleteFunc(m.segs, func(s *modelSegment) bool { return slices.Contains(gone, s) })
	m.share()
}

// step is the second's work: who is silent, whose grace has ended, which writes are abandoned.
func (m *model) step() {
	for id, c := range m.clients {
		switch silence := time.Duration(m.now - c.ping); {
		case silence > m.cfg.ClientActiveTTL+m.cfg.ClientSuspicionTTL:
			delete(m.clients, id)
			var gone []*modelSegment
			for _, s := range m.segs {
				if s.client == id {
					gone = append(gone, s)
				}
			}
			m.unmount(gone...)
		case silence > m.cfg.ClientActiveTTL:
			c.suspected = true
		}
	}
	for _, t := range m.timers {
		if t.at <= m.now && slices.Contains(m.segs, t.seg) {
			m.unmount(t.seg)
		}
	}
	m.timers = slices.DeleteFunc(m.timers, func(t modelTimer) bool { return t.at <= m.now })
	for _, t := range m.tenants {
		for _, o := range t.objects {
			if o.writing && o.started+int64(m.cfg.PutReleaseTimeout) < m.now {
				t.drop(o.key)
			}
		}
	}
	m.watermark()
}

// Objects.

// settle refunds what replicas that are gone were charged.
func (m *model) settle(t *modelTenant, o *modelObject) {
	switch keep := o.size * uint64(len(o.at)); {
	case len(o.at) == 0:
		t.drop(o.key)
	case o.writing:
		o.committed = min(o.committed, keep)
	default:
		o.committed = keep
	}
}

func (m *model) readable(o *modelObject) (names []string) {
	if o == nil || o.writing {
		return nil
	}
	for _, s := range o.at {
		if !m.suspended(s) {
			names = append(names, s.name)
		}
	}
	return names
}

func (t *modelTenant) group(o *modelObject) (members []*modelObject) {
	if o.group == "" {
		return []*modelObject{o}
	}
	for _, p := range t.objects {
		if p.group == o.group {
			members = append(members, p)
		}
	}
	return members
}

// look is one lookup; whether it leases is the caller's wish.
func (m *model) look(tenantName, key string, lease bool) ([]string, errcode.Code) {
	t := m.tenants[tenantName]
	o := t.objects[key]
	if o == nil {
		return nil, errcode.ObjectNotFound
	}
	names := m.readable(o)
	if names == nil {
		return nil, errcode.ReplicaIsNotReady
	}
	if lease {
		ttl := int64(m.cfg.LeaseTTL)
		who := []*modelObject{o}
		if o.lease-m.now <= ttl/2 || t.changed[o.group] {
			who = t.group(o)
			t.changed[o.group] = false
		}
		for _, p := range who {
			p.lease = max(p.lease, m.now+ttl)
		}
	}
	return names, errcode.OK
}

func (m *model) remove(tenantName, key string, force bool) errcode.Code {
	t := m.tenants[tenantName]
	o := t.objects[key]
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.lease > m.now && !force:
		return errcode.ObjectHasLease
	case o.writing:
		return errcode.ReplicaIsNotReady
	}
	t.drop(key)
	return errcode.OK
}

func (m *model) clear(tenantName, key string, client uint64, segment string) bool {
	t := m.tenants[tenantName]
	o := t.objects[key]
	if o == nil || o.owner != client || o.lease > m.now || o.writing {
		return false
	}
	before := len(o.at)
	o.at = slices.DeleteFunc(o.at, func(s *modelSegment) bool { return segment == "" || s.name == segment })
	changed := len(o.at) < before
	m.settle(t, o)
	return changed
}

func (m *model) pinNow(tenantName, key string, ttl time.Duration) errcode.Code {
	o := m.tenants[tenantName].objects[key]
	switch {
	case o == nil:
		return errcode.ObjectNotFound
	case o.writing:
		return errcode.ReplicaIsNotReady
	}
	o.soft = 0
	if ttl > 0 {
		o.soft = m.now + int64(ttl)
	}
	return errcode.OK
}
