package task

import "github.com/mooncake-go/mooncake-master/core/segment"

// The master may carry tasks out itself. It claims them one by one; a task is either fetched by its client or claimed.

// Candidate is a task that could be claimed. Status is Pending, or Processing for one that its client has fetched.
type Candidate struct {
	ID      segment.UUID
	Client  segment.UUID // who it was made for
	Type    Type
	Status  Status
	Payload Payload
}

// Waiting returns at most n tasks that nobody has fetched, oldest first: those that came before an instant, and those
// of some clients whenever they came. skip, if not nil, leaves tasks out; it is called with the queue locked.
func (q *Queue) Waiting(before int64, of map[segment.UUID]bool, n int, skip func(segment.UUID) bool) []Candidate {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Candidate
	for at := q.pending.Front(); at != nil && len(out) < n; at = at.Next() {
		e := at.Value.(*entry)
		if e.since >= before && len(of) == 0 {
			break // all that follow came later
		}
		if (e.since < before || of[e.AssignedClient]) && (skip == nil || !skip(e.ID)) {
			out = append(out, e.candidate())
		}
	}
	return out
}

// Fetched returns at most n tasks that some clients have fetched and not ended, oldest first.
func (q *Queue) Fetched(of map[segment.UUID]bool, n int) []Candidate {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Candidate
	for at := q.processing.Front(); at != nil && len(out) < n && len(of) > 0; at = at.Next() {
		if e := at.Value.(*entry); of[e.AssignedClient] {
			out = append(out, e.candidate())
		}
	}
	return out
}

func (e *entry) candidate() Candidate {
	return Candidate{e.ID, e.AssignedClient, e.Type, e.Status, e.payload}
}

// Clients returns the clients that tasks wait for, and those that have fetched some, each once.
func (q *Queue) Clients() (waited, fetched []segment.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for client := range q.waiting {
		waited = append(waited, client)
	}
	seen := make(map[segment.UUID]bool)
	for at := q.processing.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*entry); !seen[e.AssignedClient] {
			seen[e.AssignedClient] = true
			fetched = append(fetched, e.AssignedClient)
		}
	}
	return waited, fetched
}

// Claim takes a task for the master, which ends it with Finish; no client can do so any more, and no timeout does. It
// reports whether the task still was as the candidate says.
func (q *Queue) Claim(c Candidate, now Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.byID[c.ID]
	if e == nil || e.Status != c.Status || e.mine || e.Status.Final() {
		return false
	}
	if e.Status == Pending && q.underWay() >= q.limits.MaxProcessing {
		return false
	}
	q.leave(e)
	e.Status, e.LastUpdatedAtMsEpoch, e.since, e.mine = Processing, now.Wall, now.Now, true
	e.at = q.claimed.PushBack(e)
	q.totals.Claimed++
	return true
}

// Finish ends a task that the master has claimed, and reports whether it was one.
func (q *Queue) Finish(c Completion, now Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.byID[c.ID]
	if e == nil || !e.mine || e.Status.Final() {
		return false
	}
	q.finish(e, c.Status, c.Message[:min(len(c.Message), maxMessage)], now)
	return true
}

// Running is a task under way.
type Running struct {
	View
	Payload Payload
	Claimed bool // the master carries it out, not its client
}

// Running returns the tasks under way, those that the master carries out first.
func (q *Queue) Running() []Running {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Running, 0, q.underWay())
	for at := q.claimed.Front(); at != nil; at = at.Next() {
		e := at.Value.(*entry)
		out = append(out, Running{e.View, e.payload, true})
	}
	for at := q.processing.Front(); at != nil; at = at.Next() {
		e := at.Value.(*entry)
		out = append(out, Running{e.View, e.payload, false})
	}
	return out
}
