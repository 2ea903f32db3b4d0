package core

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// stepDrains goes on with all drain jobs.
func (m *Master) stepDrains() {
	d := &m.drains
	d.step.Lock()
	defer d.step.Unlock()
	d.mu.Lock()
	works := slices.Clone(d.works)
	d.mu.Unlock()
	over := false
	for _, w := range works {
		if m.stepDrain(w); w.job.Report().Status.Final() {
			over = true
		}
	}
	if over {
		d.mu.Lock()
		d.works = slices.DeleteFunc(d.works, func(w *drainWork) bool { return w.job.Report().Status.Final() })
		d.mu.Unlock()
	}
}

// stepDrain looks what has become of a job's moves, whether the job is over, and asks for further
// moves.
func (m *Master) stepDrain(w *drainWork) {
	if w.job.Report().Status.Final() {
		return
	}
	m.settleMoves(w)
	if w.job.Report().Canceling {
		if len(w.moving) == 0 {
			m.CancelDrainJob(w.job.ID, true)
		}
		return
	}
	if !w.search.begun || len(w.moving) == 0 && w.unsure() {
		before := w.remaining()
		m.searchAll(w)
		w.total += max(before, w.remaining()) - before
	}
	if len(w.moving) == 0 && m.endDrain(w) {
		return
	}
	if len(w.moving) < int(w.asked.Concurrency) {
		m.scheduleMoves(w)
	}
}

// unsure reports whether all objects have to be looked at before anything can be said: nothing is
// listed, or a source that is not known to be empty has nothing listed any more.
func (w *drainWork) unsure() bool {
	if w.search.unread {
		return false
	}
	for i, left := range w.left {
		if left == 0 && w.stuck[i] == 0 && !w.drained[i] {
			return true
		}
	}
	return len(w.units) == 0
}

// settleMoves looks what has become of the units that are being moved.
func (m *Master) settleMoves(w *drainWork) {
	for id, u := range w.moving {
		view, code := m.QueryTask(id)
		if code == errcode.OK && !view.Status.Final() {
			continue
		}
		delete(w.moving, id)
		ok := code == errcode.OK && view.Status == task.Success
		w.job.Update(func(r *drain.Report) {
			r.Active--
			if ok {
				r.Succeeded++
				r.MigratedBytes += u.bytes
			} else {
				r.Failed++
			}
		})
		switch {
		case ok && !m.onSource(w, u.unit):
			w.leave(u.unit)
		case code != errcode.OK: // nobody knows any more
			w.giveUp(u.unit)
		default: // it has failed, or its client says that it is done and it is not
			w.failed(u.unit)
		}
	}
	var bytes, done uint64
	for id, u := range w.moving {
		bytes += u.bytes
		done += m.transferDone(id)
	}
	w.job.Update(func(r *drain.Report) {
		r.Total, r.Remaining = w.total, w.remaining()
		r.ActiveBytes, r.ActiveDone = bytes, done
	})
}

// onSource reports whether a unit is still where it has to leave.
func (m *Master) onSource(w *drainWork, u drainUnit) bool {
	sh := u.k.space.ShardOf(u.o)
	sh.RLock()
	defer sh.RUnlock()
	o := sh.Live(u.o)
	return o != nil && w.sourceReplica(sh, o, u.source) != nil
}

// failed counts a failure of a unit, which is listed again or given up.
func (w *drainWork) failed(u drainUnit) {
	if w.retries[u]++; w.givenUp(u) {
		w.giveUp(u)
		return
	}
	w.units = append(w.units, u)
}

func (w *drainWork) givenUp(u drainUnit) bool { return w.retries[u] >= drain.MaxRetries }

func (w *drainWork) giveUp(u drainUnit) {
	w.retries[u] = drain.MaxRetries
	w.left[u.source] -= min(1, w.left[u.source])
	w.stuck[u.source]++
}

// leave notes that a unit is not on its source any more.
func (w *drainWork) leave(u drainUnit) {
	delete(w.retries, u)
	w.left[u.source] -= min(1, w.left[u.source]) // one that has come late is not counted
}

// endDrain notes which sources are empty, and ends the job when all are or nothing can be moved any
// more. All objects have been looked at.
func (m *Master) endDrain(w *drainWork) bool {
	var left, stuck uint64
	for i := range w.sources {
		left += w.left[i]
		stuck += w.stuck[i]
	}
	over := left == 0 && !w.search.unread && len(w.units) == 0
	var status drain.Status
	w.job.Update(func(r *drain.Report) {
		for i, s := range w.sources {
			if w.left[i] == 0 && w.stuck[i] == 0 && !w.drained[i] {
				m.pool.EndDrain(s, segment.StatusDrained)
				w.drained[i] = true
			}
		}
		r.Total, r.Remaining = w.total, w.remaining() // all objects may have been looked at since
		switch {
		case !over:
			return
		case stuck == 0:
			r.Status, r.Message = drain.Succeeded, drain.SucceededMessage
		default:
			m.reopen(w)
			r.Status, r.Message = drain.Failed, drain.FailedMessage
		}
		r.UpdatedMs = m.wall()
		status = r.Status
	})
	if status.Final() {
		m.log.Info("drain job ended", "job", w.job.ID, "status", status, "stuck", stuck)
	}
	return status.Final()
}

// reopen lets the segments of a job take allocations again that are not being unmounted.
func (m *Master) reopen(w *drainWork) {
	for _, s := range w.sources {
		m.pool.EndDrain(s, segment.StatusOK)
	}
}

// remaining is how many units there still are, as far as is known.
func (w *drainWork) remaining() (n uint64) {
	for i := range w.left {
		n += w.left[i] + w.stuck[i]
	}
	return n
}

// plan is a unit that can be moved now.
type plan struct {
	unit        drainUnit
	key, target string
	bytes       uint64
}

// scheduleMoves asks for as many moves as the job may have under way, and drops what need not be
// moved.
func (m *Master) scheduleMoves(w *drainWork) {
	if len(w.units) == 0 && w.search.unread {
		m.searchOn(w)
	}
	plans, redundant, blocked := m.planMoves(w)
	if len(plans)+len(w.moving) < int(w.asked.Concurrency) {
		m.turnList(w)
	}
	going := w.job.Update(func(r *drain.Report) { r.Active += uint64(len(plans)) })
	if !going { // canceled meanwhile
		return
	}
	var dropped, refused, failed uint64
	for _, u := range redundant {
		if m.dropRedundant(w, u) {
			w.leave(u)
			dropped++
		} else {
			w.units = append(w.units, u)
			blocked++
		}
	}
	for _, p := range plans {
		id, code := m.createMove(p.unit.k.name, p.key, w.sources[p.unit.source].Info.Name, p.target, true)
		switch code {
		case errcode.OK:
			w.moving[id] = moving{p.unit, p.bytes}
			continue
		case errcode.NoAvailableHandle, errcode.UnavailableInStatus, errcode.ObjectHasReplicationTask, errcode.TaskPendingLimitExceeded:
			w.units = append(w.units, p.unit)
			blocked++
		default:
			w.failed(p.unit)
			failed++
		}
		refused++
	}
	w.job.Update(func(r *drain.Report) {
		r.Active -= refused
		r.Succeeded += dropped
		r.Failed += failed
		r.Blocked = blocked
		r.Status, r.Message, r.UpdatedMs = drain.Running, drain.RunningMessage, m.wall()
		r.Total, r.Remaining = w.total, w.remaining()
	})
}

// turnPeriod is how often a job looks at other units than those listed, in nanoseconds.
const turnPeriod = int64(5e9)

// turnList makes way for units that are not listed, as too few of those listed can be moved now: they may
// be in use for ever, and others not.
func (m *Master) turnList(w *drainWork) {
	now := m.clock.Now()
	if !w.search.unread && !w.passed || now-w.turned < turnPeriod {
		return
	}
	w.turned = now
	if w.search.unread {
		w.units, w.passed = w.units[:0], true
		m.searchOn(w)
	} else {
		w.search.begun, w.passed = false, false // from the beginning again
	}
}

// verdict is what can be done with a unit now.
type verdict uint8

const (
	unitGone      verdict = iota // it is not on its source any more
	unitBlocked                  // not now
	unitFree                     // it can be moved
	unitRedundant                // wherever it could go, there is a copy already
)

// planMoves goes through the listed units. Those to be moved now and those that need not be moved
// leave the list; the others stay, and it is counted how many of them can't be moved now.
func (m *Master) planMoves(w *drainWork) (plans []plan, redundant []drainUnit, blocked uint64) {
	slots := int(w.asked.Concurrency) - len(w.moving)
	targets := m.targets(w)
	moved := make(map[object.Ref]bool) // an object moves once at a time
	for _, u := range w.moving {
		moved[u.unit.o] = true
	}
	now := m.clock.Now()
	kept := w.units[:0]
	for i := 0; i < len(w.units); {
		sh := w.units[i].k.space.ShardOf(w.units[i].o)
		sh.RLock()
		for end := min(i+sweepBite, len(w.units)); i < end && w.units[i].k.space.ShardOf(w.units[i].o) == sh; i++ {
			u := w.units[i]
			switch o := sh.Live(u.o); m.judge(w, sh, o, u, targets, moved[u.o], now) {
			case unitGone:
				w.leave(u)
			case unitBlocked:
				blocked++
				kept = append(kept, u)
			case unitRedundant:
				redundant = append(redundant, u)
			case unitFree:
				if len(plans) == slots {
					kept = append(kept, u)
					continue
				}
				moved[u.o] = true
				plans = append(plans, plan{u, sh.KeyCopy(o), choose(sh, o, targets).Name, o.Size})
			}
		}
		sh.RUnlock()
		m.yield()
	}
	clear(w.units[len(kept):])
	w.units = kept
	return plans, redundant, blocked
}

// targets are the names that units may go to now, as they are used.
func (m *Master) targets(w *drainWork) []segment.Use {
	all := m.pool.Placeable()
	if len(w.asked.Targets) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(u segment.Use) bool { return !slices.Contains(w.asked.Targets, u.Name) })
}

// judge says what can be done with a unit. The shard is locked.
func (m *Master) judge(w *drainWork, sh *object.Shard, o *object.Object, u drainUnit, targets []segment.Use, moved bool, now int64) verdict {
	if o == nil {
		return unitGone
	}
	r := w.sourceReplica(sh, o, u.source)
	switch {
	case r == nil:
		return unitGone
	case moved, o.HardPin, o.Leased(now), !complete(sh, o), sh.Work(o, object.SlotReplication) != nil:
		return unitBlocked
	}
	if s := w.sources[u.source]; s.Suspended() && !m.transfers.carries(s, now) {
		return unitBlocked
	}
	if len(targets) > len(sh.Replicas(o)) || choose(sh, o, targets) != nil {
		return unitFree
	}
	if r.Pins == 0 && held(sh, o, targets) {
		return unitRedundant
	}
	return unitBlocked
}

// choose returns the target that is used least among those that hold no replica of the object, or
// nil.
func choose(sh *object.Shard, o *object.Object, targets []segment.Use) *segment.Use {
	var best *segment.Use
	for i := range targets {
		if t := &targets[i]; (best == nil || t.Ratio() < best.Ratio()) && !holds(sh, o, t.Name) {
			best = t
		}
	}
	return best
}

// holds reports whether the object has a replica in the memory of that name.
func holds(sh *object.Shard, o *object.Object, name string) bool {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory && r.Memory.Seg().Info.Name == name {
			return true
		}
	}
	return false
}

// held reports whether the object can be read on one of the targets.
func held(sh *object.Shard, o *object.Object, targets []segment.Use) bool {
	all := sh.Replicas(o)
	for i := range all {
		r := &all[i]
		if r.Kind == object.KindMemory && r.Readable() && slices.ContainsFunc(targets, func(t segment.Use) bool { return t.Name == r.Memory.Seg().Info.Name }) {
			return true
		}
	}
	return false
}

// dropRedundant drops a unit whose object has a readable copy wherever it could be moved to, and
// reports whether it still was so.
func (m *Master) dropRedundant(w *drainWork, u drainUnit) bool {
	sh := u.k.space.ShardOf(u.o)
	sh.Lock()
	defer sh.Unlock()
	now := m.clock.Now()
	o := sh.Live(u.o)
	if m.judge(w, sh, o, u, m.targets(w), false, now) != unitRedundant {
		return false
	}
	id := w.sourceReplica(sh, o, u.source).ID
	m.shed(u.k, sh, o, func(r *object.Replica) bool { return r.ID == id }, free)
	m.enqueue(u.k, sh, o, now)
	return true
}
