package core

import (
	"errors"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// carriage is a copy or move that the master carries out itself. It begins and ends as one of a client does: the
// tenant is charged for the targets when it begins, and has back what wasn't made when it ends. What it needs
// to know of the object is noted when it begins; from then on the object is looked for by its Ref.
type carriage struct {
	k        *keeper
	object   object.Ref
	work     *object.Work
	size     uint64
	checksum *uint64
	sources  []spot // in the order in which they are tried
	targets  []spot
}

// spot is one replica's memory.
type spot struct {
	replica uint64
	seg     *segment.Mounted
	place   transfer.Place
}

func spotOf(r *object.Replica) spot {
	seg := r.Memory.Seg()
	return spot{r.ID, seg, transfer.Place{Owner: seg.Info.Endpoint, Address: r.Memory.Address}}
}

var errUnmounted = errors.New("its segment has been unmounted")

// gone says why a spot is no good any more.
func (s *spot) gone() error {
	if !s.seg.Alive() {
		return errUnmounted
	}
	return nil
}

// wish is what a task asks for.
type wish struct {
	tenant, key string
	source      string
	targets     []string
	move        bool
	token       Proposal
}

func wishOf(p task.Payload) wish {
	switch p := p.(type) {
	case *task.CopyPayload:
		return wish{
			tenant: p.TenantID, key: p.Key, source: p.Source, targets: p.Targets,
			token: Proposal{Lease: segment.UUID{First: p.LeaseHigh, Second: p.LeaseLow}, Epoch: p.Epoch},
		}
	case *task.MovePayload:
		return wish{tenant: p.TenantID, key: p.Key, source: p.Source, targets: []string{p.Target}, move: true}
	}
	return wish{}
}

// beginCarriage begins a copy or move that the master carries out. Codes are those of CopyStart, MoveStart and
// DynamicCopyStart, except that it needs no client.
func (m *Master) beginCarriage(w *wish) (*carriage, errcode.Code) {
	k, code := m.request(w.tenant)
	if code == errcode.OK && k == nil {
		code = errcode.ObjectNotFound
	}
	if code == errcode.OK {
		code = m.placeableTargets(w.targets)
	}
	if code != errcode.OK {
		return nil, code
	}
	q := &replication{client: m.transfers.self, source: w.source, move: w.move, token: w.token, own: true}
	sh, h := k.space.Locate(w.key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, w.key)
	if code := m.replicable(k, sh, o, w.key, q); code != errcode.OK {
		return nil, code
	}
	var work *object.Work
	if w.token.Lease.IsZero() {
		work, code = m.beginReplication(k, sh, o, missing(sh, o, w.targets), q)
	} else {
		var names []string
		if names, code = m.follow(k, sh, o, w.key, w.targets, q); code == errcode.OK {
			work, code = m.beginProposed(k, sh, o, names, q)
		}
	}
	if code != errcode.OK {
		return nil, code
	}
	c := &carriage{k: k, object: o.Ref(), work: work, size: o.Size, checksum: sh.Checksum(o)}
	for _, id := range work.Sources {
		c.sources = append(c.sources, spotOf(sh.ByID(o, id)))
	}
	for _, id := range work.Targets {
		c.targets = append(c.targets, spotOf(sh.ByID(o, id)))
	}
	// A silent client's memory may still answer; another's does more likely.
	now := m.clock.Now()
	doubtful := func(s spot) bool { return s.seg.Suspended() || !m.transfers.lit(s.place.Owner, now) }
	slices.SortStableFunc(c.sources, func(a, b spot) int { return order(doubtful(a), doubtful(b)) })
	return c, errcode.OK
}

// job is what the pump is asked for.
func (c *carriage) job() *transfer.Job {
	j := &transfer.Job{
		Size: c.size, Checksum: c.checksum,
		SourceGone: func(i int) error { return c.sources[i].gone() },
		TargetGone: func(i int) error { return c.targets[i].gone() },
	}
	for i := range c.sources {
		j.Sources = append(j.Sources, c.sources[i].place)
	}
	for i := range c.targets {
		j.Targets = append(j.Targets, c.targets[i].place)
	}
	return j
}

// endCarriage ends a copy or move after the pump has done what it could. again says that what was read turned out to
// have been taken away meanwhile and there are other sources: nothing has ended, and c.sources are those.
//
// It answers ReplicaIsGone when what was read, or a target, was lost; the targets that are whole are kept all the
// same. A move whose source was lost after it had been read has come out well: the object is where it should be.
func (m *Master) endCarriage(c *carriage, r *transfer.Result) (code errcode.Code, again bool) {
	sh := c.k.space.ShardOf(c.object)
	sh.Lock()
	defer sh.Unlock()
	o, w := sh.Live(c.object), c.work
	if o == nil || !sh.Going(o, w) {
		return errcode.ReplicaIsGone, false // with its object; everything has been given back
	}
	there := func(s spot) bool { r := sh.ByID(o, s.replica); return r != nil && alive(r) }
	sound := r.Source < 0 || there(c.sources[r.Source])
	if !sound {
		c.sources = slices.DeleteFunc(c.sources, func(s spot) bool { return !there(s) })
		if len(c.sources) > 0 && !r.Unsettled() {
			return errcode.OK, true
		}
	}
	state := make(map[uint64]transfer.TargetResult, len(w.Targets))
	for i, t := range r.Targets {
		state[c.targets[i].replica] = t
	}
	good := func(r *object.Replica) bool { return sound && alive(r) && state[r.ID].Err == nil }
	park := m.park(m.clock.Now() + m.cfg.PutReleaseTimeout.Nanoseconds())
	release := func(r *object.Replica) {
		if state[r.ID].Unsettled {
			park(r) // a write that was given up may still arrive there
		} else {
			free(r)
		}
	}
	_, kept := m.finishWork(c.k, sh, o, object.SlotReplication, good, release)
	ok := sound && r.Err == nil && kept == len(w.Targets)
	if w.Move { // where the target had a replica before, that one may have been lost meanwhile
		ok = ok && elsewhere(sh, o, w.Sources[0])
	}
	m.replicationEnded(w, ok)
	if ok && w.Move {
		m.takeSource(sh, o, w)
	}
	m.settle(c.k, sh, o)
	m.enqueue(c.k, sh, o, m.clock.Now())
	if !ok {
		return errcode.ReplicaIsGone, false
	}
	return errcode.OK, false
}

// revokeFetched takes back what a client that is gone has begun of a task, so that the master can begin anew. The
// client's writes may still arrive: what it was making is parked.
func (m *Master) revokeFetched(w *wish, client segment.UUID) {
	k, _ := m.request(w.tenant)
	if k == nil {
		return
	}
	sh, h := k.space.Locate(w.key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, w.key)
	if o == nil {
		return
	}
	work := sh.Work(o, object.SlotReplication)
	if work == nil || work.Carried || work.Client != client {
		return
	}
	now := m.clock.Now()
	m.finishWork(k, sh, o, object.SlotReplication, noReplica, m.park(now+m.cfg.PutReleaseTimeout.Nanoseconds()))
	m.replicationEnded(work, false)
	m.settle(k, sh, o)
	m.enqueue(k, sh, o, now)
}

// ways are where an object could be read for a wish, and where it would be written, as far as that is known before it
// is begun; found is false when the wish can't come true whatever can be reached.
func (m *Master) ways(w *wish) (sources, targets []transfer.Place, found bool) {
	k, _ := m.request(w.tenant)
	if k == nil {
		return nil, nil, false
	}
	for _, name := range w.targets {
		seg := m.pool.ByName(name)
		if seg == nil {
			return nil, nil, false
		}
		targets = append(targets, transfer.Place{Owner: seg.Info.Endpoint, Address: seg.Info.Base})
	}
	sh, h := k.space.Locate(w.key)
	sh.RLock()
	defer sh.RUnlock()
	o := sh.Get(h, w.key)
	if o == nil {
		return nil, nil, false
	}
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory && isComplete(r) && alive(r) {
			sources = append(sources, spotOf(r).place)
		}
	}
	return sources, targets, len(sources) > 0
}
