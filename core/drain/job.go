// Package drain keeps drain jobs: requests to take everything off some segments, so that their
// clients can leave without anything being lost. It knows what a job is and what is told of it;
// core looks for the objects, has them moved and reports what became of them.
//
// Locks: one guards all jobs; it is held for moments.
package drain

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Status is the state of a job; numbers are part of the HTTP interface.
type Status int32

// The states of a job. The last three are final.
const (
	Created Status = iota
	Planning
	Running
	Succeeded
	Failed
	Canceled
)

var statusNames = [...]string{"CREATED", "PLANNING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"}

// String returns the upper-case name, as HTTP bodies show it.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "UNKNOWN"
	}
	return statusNames[s]
}

// Final reports whether nothing happens to the job any more.
func (s Status) Final() bool { return s >= Succeeded }

// The messages of jobs, one for each state.
const (
	createdMessage   = "Drain job created"
	RunningMessage   = "Drain job running"
	canceledMessage  = "Drain job canceled"
	SucceededMessage = "Drain job finished successfully"
	FailedMessage    = "Drain job failed: unrecoverable units remain"
)

// MaxRetries is how often a unit may fail before it is given up.
const MaxRetries = 3

// DefaultConcurrency is how many units of a job are moved at a time where the request does not say.
const DefaultConcurrency = 4

// Request asks for a job. Segments are the names of those to drain. Targets, if any, are the
// only ones to move to. Concurrency is how many units may be moved at a time.
type Request struct {
	Segments    []string
	Targets     []string
	Concurrency uint32
}

// Sound reports whether the request makes sense as far as it says itself; what its segments are
// is another matter.
func (r *Request) Sound() bool {
	if len(r.Segments) == 0 || r.Concurrency == 0 {
		return false
	}
	sorted := slices.Sorted(slices.Values(r.Segments))
	return len(slices.Compact(sorted)) == len(r.Segments)
}

// Report is what is told of a job. A unit is one object on one of the segments. Total is how many
// there were when the job first looked, plus what has been found since, and Remaining how many of
// those are still there; both are zero before it has looked. ActiveBytes are those of the units being moved, and
// ActiveDone how many of them have been moved as far as the master does so itself. Times are milliseconds since the epoch.
type Report struct {
	ID                                 segment.UUID
	Status                             Status
	CreatedMs, UpdatedMs               int64
	Request                            Request
	Succeeded, Failed, Blocked, Active uint64
	MigratedBytes                      uint64
	ActiveBytes, ActiveDone            uint64
	Total, Remaining                   uint64
	Message                            string
	Canceling                          bool // it is canceled once no unit is being moved
}

// Job is one job. Its methods are safe for concurrent use.
type Job struct {
	ID     segment.UUID // never changes
	jobs   *Jobs
	report Report // guarded by jobs.mu
}

// Update changes what is told of the job, and reports whether it did: a job in a final state
// changes no more. f is called with the lock of all jobs held.
func (j *Job) Update(f func(*Report)) bool {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	if j.report.Status.Final() {
		return false
	}
	f(&j.report)
	if j.report.Status.Final() {
		j.jobs.ended()
	}
	return true
}

// Report returns what is told of the job now.
func (j *Job) Report() Report {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	return j.report.clone()
}

func (r Report) clone() Report {
	r.Request.Segments = slices.Clone(r.Request.Segments)
	r.Request.Targets = slices.Clone(r.Request.Targets)
	return r
}
