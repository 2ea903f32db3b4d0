package core

import (
	"errors"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/drain"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// drains are the master's drain jobs.
type drains struct {
	jobs  drain.Jobs
	mu    sync.Mutex   // guards works
	works []*drainWork // of the jobs that go on
	step  sync.Mutex   // held for one step of all of them
}

// drainUnit is one object on one segment of a drain job.
type drainUnit struct {
	k      *keeper
	o      object.Ref
	source uint32 // index into the job's segments
}

// drainWork is how far a drain job has come. Only the step that works on it looks at it.
type drainWork struct {
	job     *drain.Job
	asked   drain.Request
	sources []*segment.Mounted
	drained []bool   // the source has been found empty
	left    []uint64 // units on each source that are not given up, as far as is known
	stuck   []uint64 // units on each source that are, when all objects were looked at last
	total   uint64   // units there have been, as far as is known
	units   []drainUnit
	moving  map[segment.UUID]moving
	retries map[drainUnit]uint8 // of units that have failed
	search  search
	passed  bool  // units that were listed and could not be moved have been left for later
	turned  int64 // when the list was last changed for that
}

// moving is a unit whose move a client has been asked for.
type moving struct {
	unit  drainUnit
	bytes uint64
}

// CreateDrainJob begins to move everything off the segments of some names, and returns the id of
// the job. It answers InvalidParams for a request that makes no sense, SegmentNotFound and
// UnavailableInStatus for segments and targets that are not there or not in status OK; nothing
// has changed then.
func (m *Master) CreateDrainJob(request drain.Request) (segment.UUID, errcode.Code) {
	if !request.Sound() {
		return segment.UUID{}, errcode.InvalidParams
	}
	m.drains.mu.Lock()
	defer m.drains.mu.Unlock()
	sources, err := m.pool.BeginDrain(request.Segments, request.Targets)
	if err != nil {
		return segment.UUID{}, allocationCode(err)
	}
	id := m.newID()
	job := m.drains.jobs.Add(id, request, m.wall())
	m.drains.works = append(m.drains.works, &drainWork{
		job:     job,
		asked:   job.Report().Request, // names of its own
		sources: sources,
		drained: make([]bool, len(sources)),
		left:    make([]uint64, len(sources)),
		stuck:   make([]uint64, len(sources)),
		moving:  make(map[segment.UUID]moving),
		retries: make(map[drainUnit]uint8),
	})
	m.log.Info("drain job created", "job", id, "segments", request.Segments, "targets", request.Targets, "concurrency", request.Concurrency)
	return id, errcode.OK
}

// QueryDrainJob returns what is known of a job, or JobNotFound.
func (m *Master) QueryDrainJob(id segment.UUID) (drain.Report, errcode.Code) {
	report, err := m.drains.jobs.Report(id)
	if err != nil {
		return report, errcode.JobNotFound
	}
	return report, errcode.OK
}

// DrainJobs returns what is known of all jobs that are remembered, oldest first.
func (m *Master) DrainJobs() []drain.Report { return m.drains.jobs.Reports() }

// CancelDrainJob ends a job; its segments take allocations again, unless they are being unmounted.
// It answers JobNotFound, and UnavailableInStatus when the job is over or a unit is being moved. A
// patient caller does not mind the latter: no more moves are begun then, and the job is canceled
// when those under way have ended; done says whether it is already.
func (m *Master) CancelDrainJob(id segment.UUID, patient bool) (done bool, _ errcode.Code) {
	m.drains.mu.Lock()
	defer m.drains.mu.Unlock()
	err := m.drains.jobs.Cancel(id, m.wall(), patient, func() {
		for _, w := range m.drains.works {
			if w.job.ID == id {
				m.reopen(w)
			}
		}
	})
	switch {
	case errors.Is(err, drain.ErrLater):
		return false, errcode.OK
	case errors.Is(err, drain.ErrNotFound):
		return false, errcode.JobNotFound
	case err != nil:
		return false, errcode.UnavailableInStatus
	}
	m.log.Info("drain job canceled", "job", id)
	return true, errcode.OK
}
