package task

import (
	"container/list"
	"errors"
	"strings"
	"sync"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Limits bound a queue. Timeouts are nanoseconds; zero is never.
type Limits struct {
	MaxFinished       int    // tasks that have ended and are remembered
	MaxPending        int    // tasks that may wait
	MaxProcessing     int    // tasks that may be under way
	PendingTimeout    int64  // since the creation of a task that waits
	ProcessingTimeout int64  // since it was fetched
	MaxRetries        uint32 // told to the client that carries a task out
}

// The errors of this package. Nothing has changed when one is returned.
var (
	ErrFull      = errors.New("too many tasks are waiting")
	ErrNotFound  = errors.New("task not found")
	ErrForeign   = errors.New("task is another client's")
	ErrNotFinal  = errors.New("a task ends as failed or succeeded")
	errDuplicate = errors.New("task id is taken")
)

// Queue holds the tasks of all clients.
type Queue struct {
	limits Limits

	mu         sync.Mutex
	byID       map[segment.UUID]*entry
	waiting    map[segment.UUID]*list.List // pending tasks of each client, oldest first
	pending    list.List                   // the four hold every task, in the order it got there
	processing list.List                   // at their clients
	claimed    list.List                   // at the master
	finished   list.List
	totals     Totals
}

type entry struct {
	View
	payload Payload       // nil once it has ended
	mine    bool          // the master carries it out
	since   int64         // when it came into the list it is in
	at      *list.Element // there
	waits   *list.Element // in its client's list, while it is pending
}

// Totals count tasks since start.
type Totals struct{ Created, Fetched, Claimed, Succeeded, Failed, TimedOut, Refused uint64 }

// Counts are the tasks there are.
type Counts struct {
	Pending, Processing, Finished int
	Totals
}

// NewQueue returns an empty queue.
func NewQueue(limits Limits) *Queue {
	return &Queue{limits: limits, byID: make(map[segment.UUID]*entry), waiting: make(map[segment.UUID]*list.List)}
}

// Submit enters a task for a client under an id that no other has. It fails with ErrFull.
func (q *Queue) Submit(id, client segment.UUID, kind Type, payload Payload, now Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending.Len() >= q.limits.MaxPending {
		q.totals.Refused++
		return ErrFull
	}
	if q.byID[id] != nil {
		return errDuplicate
	}
	e := &entry{
		View:    View{ID: id, Type: kind, CreatedAtMsEpoch: now.Wall, LastUpdatedAtMsEpoch: now.Wall, AssignedClient: client},
		payload: payload, since: now.Now,
	}
	q.byID[id] = e
	e.at = q.pending.PushBack(e)
	mine := q.waiting[client]
	if mine == nil {
		mine = list.New()
		q.waiting[client] = mine
	}
	e.waits = mine.PushBack(e)
	q.totals.Created++
	return nil
}

// Fetch hands a client its oldest tasks, at most n and no more than may be under way in all.
func (q *Queue) Fetch(client segment.UUID, n uint64, now Time) []Assignment {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Assignment
	for uint64(len(out)) < n && q.underWay() < q.limits.MaxProcessing {
		mine := q.waiting[client]
		if mine == nil {
			break
		}
		e := mine.Front().Value.(*entry)
		q.leave(e)
		e.Status, e.LastUpdatedAtMsEpoch, e.since = Processing, now.Wall, now.Now
		e.at = q.processing.PushBack(e)
		q.totals.Fetched++
		out = append(out, Assignment{ID: e.ID, Type: e.Type, Payload: e.payload.JSON(), CreatedAtMsEpoch: e.CreatedAtMsEpoch, MaxRetryAttempts: q.limits.MaxRetries})
	}
	return out
}

// maxMessage is how much of what a client says about a task is kept, in bytes.
const maxMessage = 64 << 10

// Complete ends a task as its client says. One that has ended already stays as it is. It fails
// with ErrNotFinal, ErrNotFound and ErrForeign, in this order; the last one also says that the master carries the
// task out.
func (q *Queue) Complete(client segment.UUID, c Completion, now Time) error {
	if !c.Status.Final() {
		return ErrNotFinal
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.byID[c.ID]
	switch {
	case e == nil:
		return ErrNotFound
	case e.AssignedClient != client, e.mine && !e.Status.Final():
		return ErrForeign
	case !e.Status.Final():
		q.finish(e, c.Status, strings.Clone(c.Message[:min(len(c.Message), maxMessage)]), now)
	}
	return nil
}

// FailPending ends a task as failed if nobody has fetched it yet, and reports whether it did.
func (q *Queue) FailPending(id segment.UUID, message string, now Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.byID[id]
	if e == nil || e.Status != Pending {
		return false
	}
	q.finish(e, Failed, message, now)
	return true
}

// Find returns a task. It fails with ErrNotFound.
func (q *Queue) Find(id segment.UUID) (View, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.byID[id]; e != nil {
		return e.View, nil
	}
	return View{}, ErrNotFound
}

// Tidy ends the tasks that have taken too long, and forgets the oldest of those that have ended
// where there are too many.
func (q *Queue) Tidy(now Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire(&q.pending, q.limits.PendingTimeout, "pending timeout", now)
	q.expire(&q.processing, q.limits.ProcessingTimeout, "processing timeout", now)
	for q.finished.Len() > q.limits.MaxFinished {
		e := q.finished.Remove(q.finished.Front()).(*entry)
		delete(q.byID, e.ID)
	}
}

// expire ends what has been in a list for longer than the timeout; the oldest comes first there.
func (q *Queue) expire(l *list.List, timeout int64, message string, now Time) {
	for timeout > 0 && l.Len() > 0 {
		e := l.Front().Value.(*entry)
		if now.Now-e.since <= timeout {
			return
		}
		q.finish(e, Failed, message, now)
		q.totals.TimedOut++
	}
}

// underWay is how many tasks are.
func (q *Queue) underWay() int { return q.processing.Len() + q.claimed.Len() }

func (q *Queue) finish(e *entry, status Status, message string, now Time) {
	q.leave(e)
	e.Status, e.Message, e.LastUpdatedAtMsEpoch, e.since = status, message, now.Wall, now.Now
	e.payload = nil
	e.at = q.finished.PushBack(e)
	if status == Success {
		q.totals.Succeeded++
	} else {
		q.totals.Failed++
	}
}

// leave takes a task that has not ended out of the lists it is in.
func (q *Queue) leave(e *entry) {
	switch {
	case e.mine:
		q.claimed.Remove(e.at)
		return
	case e.Status == Processing:
		q.processing.Remove(e.at)
		return
	}
	q.pending.Remove(e.at)
	mine := q.waiting[e.AssignedClient]
	mine.Remove(e.waits)
	if mine.Len() == 0 {
		delete(q.waiting, e.AssignedClient)
	}
	e.waits = nil
}

// Counts returns how many tasks there are and were.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{Pending: q.pending.Len(), Processing: q.underWay(), Finished: q.finished.Len(), Totals: q.totals}
}
