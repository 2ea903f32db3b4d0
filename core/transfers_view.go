package core

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer"
)

// TransferView is a copy or move under way that a task asks for. Bytes are those of one target; Done is 0 for
// what a client carries, since it doesn't tell.
type TransferView struct {
	ID          segment.UUID // the task's
	Tenant, Key string
	Type        task.Type
	Source      string   // name of a segment
	Targets     []string // likewise
	Bytes, Done uint64
	SinceMs     int64  // when it was fetched or taken up, in milliseconds since the epoch
	Executor    string // ExecutorClient or ExecutorMaster
	Client      segment.UUID
}

// Transfers returns the copies and moves under way that tasks ask for, those that the master carries first.
func (m *Master) Transfers() []TransferView {
	t := m.transfers
	running := m.tasks.Running()
	all := make([]TransferView, 0, len(running))
	t.mu.Lock()
	mine := maps.Clone(t.running)
	t.mu.Unlock()
	for i := range running {
		r := &running[i]
		w := wishOf(r.Payload)
		v := TransferView{
			ID: r.ID, Tenant: w.tenant, Key: w.key, Type: r.Type, Source: w.source, Targets: slices.Clone(w.targets),
			SinceMs: r.LastUpdatedAtMsEpoch, Executor: ExecutorClient, Client: r.AssignedClient,
		}
		if c := mine[r.ID]; r.Claimed {
			v.Executor = ExecutorMaster
			if c != nil {
				v.Bytes, v.Done = c.size.Load(), c.done()
			}
		}
		if v.Bytes == 0 {
			v.Bytes = m.sizeOf(w.tenant, w.key)
		}
		all = append(all, v)
	}
	return all
}

// sizeOf returns the size of an object, 0 if it isn't there.
func (m *Master) sizeOf(tenantName, key string) uint64 {
	k, _ := m.request(tenantName)
	if k == nil {
		return 0
	}
	sh, h := k.space.Locate(key)
	sh.RLock()
	defer sh.RUnlock()
	if o := sh.Get(h, key); o != nil {
		return o.Size
	}
	return 0
}

// errByOperator is why a transfer was canceled.
var errByOperator = errors.New("by an operator")

// CancelTransfer gives up a task: one that nobody has taken up yet fails at once, one that the master carries out as
// soon as what is under way has stopped. It answers TaskNotFound when there is none or it has ended, and
// UnavailableInStatus when its client carries it out, which nothing can stop.
func (m *Master) CancelTransfer(id segment.UUID) errcode.Code {
	t := m.transfers
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.running[id]; r != nil && r.mine {
		r.cancel(&transfer.Error{Cause: transfer.Canceled, Err: errByOperator})
		return errcode.OK
	}
	if m.tasks.FailPending(id, "canceled by an operator", m.at()) {
		return errcode.OK
	}
	if v, err := m.tasks.Find(id); err != nil || v.Status.Final() {
		return errcode.TaskNotFound
	}
	return errcode.UnavailableInStatus
}

// transferDone returns how many bytes the master has carried for a task that it is at.
func (m *Master) transferDone(id segment.UUID) uint64 {
	t := m.transfers
	t.mu.Lock()
	r := t.running[id]
	t.mu.Unlock()
	if r == nil {
		return 0
	}
	return r.done()
}

// TransferStats count what the master carries itself.
type TransferStats struct {
	UnderWay     int    // tasks
	Done         uint64 // tasks that ended well
	Failed       []CauseStat
	Read         uint64  // bytes
	Written      uint64  // bytes
	BandwidthSec float64 // time spent waiting because of the limit of bandwidth, of all tasks together
	BufferBytes  int     // memory in use
	Stuck        int     // buffers' owners that wait for calls of the carrier which were given up
}

// CauseStat is how many tasks failed of one cause.
type CauseStat struct {
	Cause string
	Count uint64
}

func (m *Master) transferStats() TransferStats {
	t := m.transfers
	s := TransferStats{Done: t.done.Load()}
	for _, cause := range slices.Sorted(maps.Keys(t.failed)) {
		s.Failed = append(s.Failed, CauseStat{cause, t.failed[cause].Load()})
	}
	t.mu.Lock()
	for _, r := range t.running {
		if r.mine {
			s.UnderWay++
		}
	}
	t.mu.Unlock()
	if t.pump != nil {
		p := t.pump.Stats()
		s.Read, s.Written, s.BufferBytes, s.Stuck = p.Read, p.Written, p.BufferBytes, p.Abandoned
		s.BandwidthSec = float64(p.Waited) / float64(time.Second)
	}
	return s
}
