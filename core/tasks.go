package core

import (
	"errors"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
)

// release0313 reports whether details that differ between releases are those of 0.3.13.
func (m *Master) release0313() bool { return m.cfg.Release0313 }

func newTaskQueue(c *TaskConfig) *task.Queue {
	return task.NewQueue(task.Limits{
		MaxFinished: c.MaxFinished, MaxPending: c.MaxPending, MaxProcessing: c.MaxProcessing,
		PendingTimeout: c.PendingTimeout.Nanoseconds(), ProcessingTimeout: c.ProcessingTimeout.Nanoseconds(),
		MaxRetries: c.MaxRetries,
	})
}

// TaskStats count tasks, and copies and moves whoever asked for them.
type TaskStats struct {
	Queue                 task.Counts
	UnderWay              int64  // copies and moves that have begun and not ended
	Copied, Moved, Failed uint64 // how many ended how; taken back, lost and timed out is Failed
	Dynamic               DynamicStat
	Transfers             TransferStats
}

func (m *Master) taskStats() TaskStats {
	c := &m.counters.replications
	return TaskStats{
		Queue: m.tasks.Counts(), Copied: c.copied.Load(), Moved: c.moved.Load(), Failed: c.failed.Load(),
		Dynamic: m.dynamic.stat(), Transfers: m.transferStats(),
	}
}

// at returns this instant on both clocks.
func (m *Master) at() task.Time { return task.Time{Now: m.clock.Now(), Wall: m.wall()} }

// CreateCopyTask asks the client that owns a replica of an object to copy it to the segments called
// targets, and returns the task's id. It answers TenantNotRegistered, InvalidParams without targets and for more than 1024,
// ObjectNotFound, InvalidParams for a target that is not mounted, UnavailableInStatus for one that
// takes no allocations and for an object that has no readable replica in memory, and TaskPendingLimitExceeded.
func (m *Master) CreateCopyTask(tenantName, key string, targets []string) (segment.UUID, errcode.Code) {
	k, code := m.writer(tenantName)
	if code != errcode.OK {
		return segment.UUID{}, code
	}
	if len(targets) == 0 || len(targets) > mostTargets {
		return segment.UUID{}, errcode.InvalidParams
	}
	var sources []*segment.Mounted
	var silent []*segment.Mounted
	code = m.holders(k, key, func(r *object.Replica) {
		if r.Readable() {
			sources = append(sources, r.Memory.Seg())
		} else if m.mayCarry(r, false) {
			silent = append(silent, r.Memory.Seg())
		}
	})
	if len(sources) == 0 {
		sources = silent
	}
	if code != errcode.OK {
		return segment.UUID{}, code
	}
	if code := m.taskTargets(targets); code != errcode.OK {
		return segment.UUID{}, code
	}
	if len(sources) == 0 {
		return segment.UUID{}, errcode.UnavailableInStatus
	}
	source := sources[m.rand.Uint64N(uint64(len(sources)))]
	p := &task.CopyPayload{TenantID: k.name, Key: strings.Clone(key), Source: source.Info.Name, Targets: cloned(targets)}
	return m.submit(source.Client, task.Copy, p)
}

// CreateMoveTask asks the client that owns an object's replica on the segment called source to move
// it to the one called target, and returns the task's id. It answers TenantNotRegistered, InvalidParams
// when both are the same, ObjectNotFound (before, as release 0.3.13), InvalidParams when the target is
// not mounted or the source has no replica, UnavailableInStatus for a target that takes no allocations and
// for a replica that can't be read, and TaskPendingLimitExceeded.
func (m *Master) CreateMoveTask(tenantName, key, source, target string) (segment.UUID, errcode.Code) {
	return m.createMove(tenantName, key, source, target, false)
}

// createMove is CreateMoveTask; relaxed lets a task begin at a silent client whose memory the master may reach.
func (m *Master) createMove(tenantName, key, source, target string, relaxed bool) (segment.UUID, errcode.Code) {
	k, code := m.writer(tenantName)
	if code != errcode.OK {
		return segment.UUID{}, code
	}
	if source == target && !m.release0313() {
		return segment.UUID{}, errcode.InvalidParams
	}
	var from *segment.Mounted
	ready := false
	code = m.holders(k, key, func(r *object.Replica) {
		if seg := r.Memory.Seg(); !ready && seg.Info.Name == source {
			from, ready = seg, m.mayCarry(r, relaxed)
		}
	})
	if code != errcode.OK {
		return segment.UUID{}, code
	}
	if source == target {
		return segment.UUID{}, errcode.InvalidParams
	}
	if code := m.taskTargets([]string{target}); code != errcode.OK {
		return segment.UUID{}, code
	}
	switch {
	case from == nil:
		return segment.UUID{}, errcode.InvalidParams
	case !ready:
		return segment.UUID{}, errcode.UnavailableInStatus
	}
	p := &task.MovePayload{TenantID: k.name, Key: strings.Clone(key), Source: strings.Clone(source), Target: strings.Clone(target)}
	return m.submit(from.Client, task.Move, p)
}

// cloned copies names, which may lie in a request that is about to be used again.
func cloned(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strings.Clone(name)
	}
	return all
}

// holders calls f for the replicas that an object has in memory. It answers ObjectNotFound.
func (m *Master) holders(k *keeper, key string, f func(*object.Replica)) errcode.Code {
	sh, h := k.space.Locate(key)
	sh.Lock()
	defer sh.Unlock()
	o := m.current(k, sh, h, key)
	if o == nil {
		return errcode.ObjectNotFound
	}
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory {
			f(r)
		}
	}
	return errcode.OK
}

// taskTargets is placeableTargets as those who create tasks are told.
func (m *Master) taskTargets(names []string) errcode.Code {
	code := m.placeableTargets(names)
	if code == errcode.SegmentNotFound {
		code = errcode.InvalidParams
	}
	return code
}

func (m *Master) submit(client segment.UUID, kind task.Type, payload task.Payload) (segment.UUID, errcode.Code) {
	id := m.newID()
	err := m.tasks.Submit(id, client, kind, payload, m.at())
	if m.transfers.executor == ExecutorMaster {
		wake(m.transfers.wake)
	}
	return id, taskCode(err)
}

// FetchTasks hands a client the tasks that wait for it, oldest first and at most n; none where the master carries out
// all of them.
func (m *Master) FetchTasks(client segment.UUID, n uint64) ([]task.Assignment, errcode.Code) {
	if m.transfers.executor == ExecutorMaster {
		return nil, errcode.OK
	}
	return m.tasks.Fetch(client, n, m.at()), errcode.OK
}

// MarkTaskToComplete ends a task as its client says. It answers UnavailableInStatus for a client
// that is not known, InvalidParams for a state that is no end, TaskNotFound, and IllegalClient for another
// client's task. A task that has ended stays as it is.
func (m *Master) MarkTaskToComplete(client segment.UUID, c task.Completion) errcode.Code {
	if code := m.known(client); code != errcode.OK {
		return code
	}
	return taskCode(m.tasks.Complete(client, c, m.at()))
}

// QueryTask returns a task, or TaskNotFound.
func (m *Master) QueryTask(id segment.UUID) (task.View, errcode.Code) {
	v, err := m.tasks.Find(id)
	return v, taskCode(err)
}

func taskCode(err error) errcode.Code {
	switch {
	case err == nil:
		return errcode.OK
	case errors.Is(err, task.ErrFull):
		return errcode.TaskPendingLimitExceeded
	case errors.Is(err, task.ErrNotFound):
		return errcode.TaskNotFound
	case errors.Is(err, task.ErrForeign):
		return errcode.IllegalClient
	case errors.Is(err, task.ErrNotFinal):
		return errcode.InvalidParams
	default:
		return errcode.InternalError
	}
}
