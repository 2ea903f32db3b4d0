package drain

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// keptFinished is how many jobs in a final state are remembered.
const keptFinished = 1000

// The errors of this package.
var (
	// ErrNotFound says that there is no such job, or not any more.
	ErrNotFound = errors.New("no such drain job")
	// ErrBusy says that a job can't be canceled now: it is over, or units are being moved.
	ErrBusy = errors.New("drain job can't be canceled now")
	// ErrLater says that a job will be canceled when no unit is being moved any more.
	ErrLater = errors.New("drain job will be canceled")
)

// Jobs are all jobs of a master. The zero value is ready to be used. All methods are safe for
// concurrent use.
type Jobs struct {
	mu       sync.Mutex
	byID     map[segment.UUID]*Job
	order    []*Job // as they were made
	finished int
}

// Add enters a job that is made at now, in milliseconds since the epoch.
func (s *Jobs) Add(id segment.UUID, request Request, now int64) *Job {
	j := &Job{ID: id, jobs: s, report: Report{ID: id, CreatedMs: now, UpdatedMs: now, Message: createdMessage}}
	j.report.Request = Request{Segments: own(request.Segments), Targets: own(request.Targets), Concurrency: request.Concurrency}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[segment.UUID]*Job)
	}
	s.byID[id] = j
	s.order = append(s.order, j)
	return j
}

// own copies names, which may lie in a buffer that is about to be used again.
func own(names []string) []string {
	copied := make([]string, len(names))
	for i, name := range names {
		copied[i] = strings.Clone(name)
	}
	return copied
}

// Report returns what is told of a job. It fails with ErrNotFound.
func (s *Jobs) Report(id segment.UUID) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil {
		return Report{}, ErrNotFound
	}
	return j.report.clone(), nil
}

// Reports returns what is told of all jobs that are remembered, oldest first.
func (s *Jobs) Reports() []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Report, len(s.order))
	for i, j := range s.order {
		all[i] = j.report.clone()
	}
	return all
}

// Cancel ends a job at now, in milliseconds since the epoch. undo is called with the lock of all
// jobs held, so that nobody goes on with the job meanwhile. It fails with ErrNotFound and with
// ErrBusy when the job is over or a unit is being moved; in the latter case and where later says so
// with ErrLater.
func (s *Jobs) Cancel(id segment.UUID, now int64, later bool, undo func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	switch {
	case j == nil:
		return ErrNotFound
	case j.report.Status.Final(), j.report.Active > 0 && !later:
		return ErrBusy
	case j.report.Active > 0:
		j.report.Canceling = true
		return ErrLater
	}
	j.report.Canceling = false
	j.report.Status, j.report.UpdatedMs, j.report.Message = Canceled, now, canceledMessage
	undo()
	s.ended()
	return nil
}

// ended forgets the oldest of too many jobs that are over; mu is held.
func (s *Jobs) ended() {
	s.finished++
	for s.finished > keptFinished {
		i := slices.IndexFunc(s.order, func(j *Job) bool { return j.report.Status.Final() })
		delete(s.byID, s.order[i].report.ID)
		s.order = slices.Delete(s.order, i, i+1)
		s.finished--
	}
}
