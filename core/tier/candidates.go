package tier

import (
	"container/heap"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The limits of what is tried again.
const (
	candidateLimit   = 50000
	candidateTTL     = int64(60 * time.Second) // since a read last asked for it
	candidateRetries = 8
	firstBackoff     = int64(10 * time.Millisecond)
	longestBackoff   = int64(time.Second)
	// CandidateFailures is how often in a row a client may fail to bring an object back before that is
	// left to the next read.
	CandidateFailures = 3
)

// Candidates are the objects that were read and could not be brought back to memory at that
// moment: they are tried again a while later. Times are nanoseconds.
type Candidates struct {
	mu  sync.Mutex
	all map[name]*Candidate
	due dueHeap
	len atomic.Int64

	// What has become of them since start: entered, not entered because there are too many, given up after having
	// been tried, and given up without.
	Recorded, Dropped, Expired, ExpiredUntried atomic.Uint64
}

// Candidate is one of them.
type Candidate struct {
	Tenant, Key string
	Failures    int // how often in a row its client has failed

	seen, at int64 // last asked for; when to try
	tries    int
	index    int // in the heap; -1 while it is being tried
}

// Record enters an object that was asked for at now, to be tried at once. One that is there begins
// anew. The strings are copied.
func (c *Candidates) Record(tenant, key string, failures int, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := name{tenant, key}
	if e := c.all[n]; e != nil {
		e.seen, e.at, e.tries, e.Failures = now, now, 0, failures
		if e.index >= 0 {
			heap.Fix(&c.due, e.index)
		} else {
			heap.Push(&c.due, e)
		}
		return
	}
	if len(c.all) >= candidateLimit {
		c.Dropped.Add(1)
		return
	}
	if c.all == nil {
		c.all = make(map[name]*Candidate)
	}
	n = name{strings.Clone(tenant), strings.Clone(key)}
	e := &Candidate{Tenant: n.tenant, Key: n.key, Failures: failures, seen: now, at: now}
	c.all[n] = e
	heap.Push(&c.due, e)
	c.len.Add(1)
	c.Recorded.Add(1)
}

// Drop forgets an object, if it is there.
func (c *Candidates) Drop(tenant, key string) {
	if c.len.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[name{tenant, key}]; e != nil {
		c.drop(e)
	}
}

func (c *Candidates) drop(e *Candidate) {
	if e.index >= 0 {
		heap.Remove(&c.due, e.index)
	}
	delete(c.all, name{e.Tenant, e.Key})
	c.len.Add(-1)
}

// Len returns how many there are.
func (c *Candidates) Len() int { return int(c.len.Load()) }

// Due returns up to so many objects that are to be tried now. About each Drop, Again or Record has to be
// called. Those that nobody has asked for in a while are given up.
func (c *Candidates) Due(now int64, most int) []Candidate {
	if c.len.Load() == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []Candidate
	for len(some) < most && len(c.due) > 0 && c.due[0].at <= now {
		e := c.due[0]
		if now-e.seen >= candidateTTL {
			c.giveUp(e)
			continue
		}
		heap.Pop(&c.due)
		some = append(some, *e)
	}
	return some
}

func (c *Candidates) giveUp(e *Candidate) {
	if e.tries == 0 {
		c.ExpiredUntried.Add(1)
	} else {
		c.Expired.Add(1)
	}
	c.drop(e)
}

// Again says that an object could not be brought back at now either. It is tried later, after
// twice as long each time, until it has been tried often enough.
func (c *Candidates) Again(tenant, key string, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.all[name{tenant, key}]
	if e == nil || e.index >= 0 {
		return // forgotten, or asked for anew
	}
	e.tries++
	if now-e.seen >= candidateTTL || e.tries >= candidateRetries {
		c.giveUp(e)
		return
	}
	e.at = now + min(firstBackoff<<(e.tries-1), longestBackoff)
	heap.Push(&c.due, e)
}

type dueHeap []*Candidate

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	e := x.(*Candidate)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
