package task

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

const second = int64(1e9)

// text is a payload that says what it is.
type text string

func (t text) JSON() string { return string(t) }

func id(n uint64) segment.UUID { return segment.UUID{First: n, Second: n} }

// at is so many seconds after the start; the wall clock is 1000 s ahead.
func at(seconds int64) Time { return Time{Now: seconds * second, Wall: (seconds + 1000) * 1000} }

func queue(change ...func(*Limits)) *Queue {
	l := Limits{MaxFinished: 100, MaxPending: 100, MaxProcessing: 100, PendingTimeout: 10 * second, ProcessingTimeout: 20 * second, MaxRetries: 7}
	for _, f := range change {
		f(&l)
	}
	return NewQueue(l)
}

func submit(t *testing.T, q *Queue, n, client uint64, now Time) {
	t.Helper()
	if err := q.Submit(id(n), id(client), Copy, text(fmt.Sprint("payload ", n)), now); err != nil {
		t.Fatalf("task %d: %v", n, err)
	}
}

// fetched returns the numbers of the tasks that a client is given.
func fetched(q *Queue, client, n uint64, now Time) []uint64 {
	var got []uint64
	for _, a := range q.Fetch(id(client), n, now) {
		got = append(got, a.ID.First)
	}
	return got
}

func wantView(t *testing.T, q *Queue, want View) {
	t.Helper()
	if got, err := q.Find(want.ID); err != nil || got != want {
		t.Errorf("task %v is %+v (%v), want %+v", want.ID, got, err, want)
	}
}

func wantCounts(t *testing.T, q *Queue, pending, processing, finished int) {
	t.Helper()
	if c := q.Counts(); c.Pending != pending || c.Processing != processing || c.Finished != finished {
		t.Errorf("%d pending, %d processing, %d finished, want %d, %d, %d", c.Pending, c.Processing, c.Finished, pending, processing, finished)
	}
}

// task_manager_test SubmitAndPopTask
func TestSubmitAndPopTask(t *testing.T) {
	q := queue()
	submit(t, q, 1, 5, at(1))
	if err := q.Submit(id(2), id(5), Move, text("two"), at(2)); err != nil {
		t.Fatal(err)
	}
	wantView(t, q, View{ID: id(1), CreatedAtMsEpoch: 1001000, LastUpdatedAtMsEpoch: 1001000, AssignedClient: id(5)})
	got := q.Fetch(id(5), 10, at(3))
	want := []Assignment{
		{ID: id(1), Type: Copy, Payload: "payload 1", CreatedAtMsEpoch: 1001000, MaxRetryAttempts: 7},
		{ID: id(2), Type: Move, Payload: "two", CreatedAtMsEpoch: 1002000, MaxRetryAttempts: 7},
	}
	if !slices.Equal(got, want) {
		t.Errorf("fetched %+v, want %+v", got, want)
	}
	wantView(t, q, View{ID: id(2), Type: Move, Status: Processing, CreatedAtMsEpoch: 1002000, LastUpdatedAtMsEpoch: 1003000, AssignedClient: id(5)})
	if got := fetched(q, 5, 10, at(4)); got != nil {
		t.Errorf("fetched a second time: %v", got)
	}
	wantCounts(t, q, 0, 2, 0)
}

// task_manager_test MarkTaskComplete
func TestMarkTaskComplete(t *testing.T) {
	q := queue()
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 5, at(0))
	fetched(q, 5, 1, at(1))
	for _, c := range []struct {
		client uint64
		c      Completion
		want   error
	}{
		{5, Completion{ID: id(9), Status: Processing}, ErrNotFinal},
		{5, Completion{ID: id(1), Status: Pending}, ErrNotFinal},
		{5, Completion{ID: id(1), Status: 4}, ErrNotFinal},
		{6, Completion{ID: id(9), Status: Success}, ErrNotFound},
		{6, Completion{ID: id(1), Status: Success}, ErrForeign},
		{5, Completion{ID: id(1), Status: Failed, Message: "broken"}, nil},
		{5, Completion{ID: id(1), Status: Success, Message: "late"}, nil},
		{6, Completion{ID: id(1), Status: Success}, ErrForeign},
		{5, Completion{ID: id(2), Status: Success, Message: "before it was fetched"}, nil},
	} {
		if err := q.Complete(id(c.client), c.c, at(2)); !errors.Is(err, c.want) {
			t.Errorf("%+v of client %d: %v, want %v", c.c, c.client, err, c.want)
		}
	}
	wantView(t, q, View{ID: id(1), Status: Failed, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1002000, AssignedClient: id(5), Message: "broken"})
	wantView(t, q, View{ID: id(2), Status: Success, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1002000, AssignedClient: id(5), Message: "before it was fetched"})
	if got := fetched(q, 5, 10, at(3)); got != nil {
		t.Errorf("what had ended was fetched: %v", got)
	}
	wantCounts(t, q, 0, 0, 2)
	if got, want := q.Counts().Totals, (Totals{Created: 2, Fetched: 1, Succeeded: 1, Failed: 1}); got != want {
		t.Errorf("totals %+v, want %+v", got, want)
	}
}

// TestLongMessagesAreCut keeps as much of what a client says as there is room for.
func TestLongMessagesAreCut(t *testing.T) {
	q := NewQueue(Limits{MaxPending: 1, MaxProcessing: 1, MaxFinished: 1})
	id, client := segment.UUID{First: 1}, segment.UUID{First: 2}
	if err := q.Submit(id, client, Copy, text("{}"), Time{}); err != nil {
		t.Fatal(err)
	}
	if err := q.Complete(client, Completion{ID: id, Status: Success, Message: strings.Repeat("x", 1<<20)}, Time{}); err != nil {
		t.Fatal(err)
	}
	if v, err := q.Find(id); err != nil || len(v.Message) != 64<<10 {
		t.Errorf("%d bytes are kept, %v", len(v.Message), err)
	}
}

// task_manager_test PruningLogic
func TestPruningLogic(t *testing.T) {
	q := queue(func(l *Limits) { l.MaxFinished = 2 })
	for n := range uint64(4) {
		submit(t, q, n+1, 5, at(0))
	}
	for _, n := range []uint64{3, 1, 2} {
		if err := q.Complete(id(5), Completion{ID: id(n), Status: Success}, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	wantCounts(t, q, 1, 0, 3)
	q.Tidy(at(2))
	wantCounts(t, q, 1, 0, 2)
	if _, err := q.Find(id(3)); !errors.Is(err, ErrNotFound) {
		t.Errorf("the first that ended is still there: %v", err)
	}
	if err := q.Complete(id(5), Completion{ID: id(3), Status: Success}, at(2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("ending it again: %v", err)
	}
	if _, err := q.Find(id(1)); err != nil {
		t.Errorf("the second: %v", err)
	}
}

// task_manager_test MultipleClients
func TestMultipleClients(t *testing.T) {
	q := queue()
	for n := range uint64(6) {
		submit(t, q, n, n%2, at(int64(n)))
	}
	if got := fetched(q, 1, 2, at(9)); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("client 1 is given %v", got)
	}
	if got := fetched(q, 0, 9, at(9)); !slices.Equal(got, []uint64{0, 2, 4}) {
		t.Errorf("client 0 is given %v", got)
	}
	if got := fetched(q, 7, 9, at(9)); got != nil {
		t.Errorf("a client without tasks is given %v", got)
	}
	if got := fetched(q, 1, 0, at(9)); got != nil {
		t.Errorf("none asked for, given %v", got)
	}
	if got := fetched(q, 1, 2, at(9)); !slices.Equal(got, []uint64{5}) {
		t.Errorf("client 1 is given %v then", got)
	}
}

// task_manager_test PendingLimitExceeded
func TestPendingLimitExceeded(t *testing.T) {
	q := queue(func(l *Limits) { l.MaxPending = 2 })
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 6, at(0))
	if err := q.Submit(id(3), id(7), Copy, text(""), at(0)); !errors.Is(err, ErrFull) {
		t.Fatalf("a third: %v", err)
	}
	if _, err := q.Find(id(3)); !errors.Is(err, ErrNotFound) {
		t.Errorf("the refused one is there: %v", err)
	}
	fetched(q, 5, 1, at(1))
	submit(t, q, 3, 7, at(1))
	if got := q.Counts().Refused; got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

// task_manager_test ProcessingLimitCapsPop
func TestProcessingLimitCapsPop(t *testing.T) {
	q := queue(func(l *Limits) { l.MaxProcessing = 2 })
	for n := range uint64(4) {
		submit(t, q, n+1, 5+n%2, at(0))
	}
	if got := fetched(q, 5, 9, at(1)); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("given %v", got)
	}
	if got := fetched(q, 6, 9, at(1)); got != nil {
		t.Errorf("above the limit, given %v", got)
	}
	_ = q.Complete(id(5), Completion{ID: id(1), Status: Success}, at(2))
	if got := fetched(q, 6, 9, at(2)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("when one has ended, given %v", got)
	}
}

// task_manager_test PruneExpiredTasksPendingTimeout
func TestPruneExpiredTasksPendingTimeout(t *testing.T) {
	q := queue()
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 5, at(1))
	q.Tidy(at(10))
	wantCounts(t, q, 2, 0, 0)
	q.Tidy(at(11))
	wantCounts(t, q, 1, 0, 1)
	wantView(t, q, View{ID: id(1), Status: Failed, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1011000, AssignedClient: id(5), Message: "pending timeout"})
	if got := fetched(q, 5, 9, at(11)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("given %v", got)
	}
	if got := q.Counts().TimedOut; got != 1 {
		t.Errorf("%d timed out, want 1", got)
	}

	never := queue(func(l *Limits) { l.PendingTimeout, l.ProcessingTimeout = 0, 0 })
	submit(t, never, 1, 5, at(0))
	submit(t, never, 2, 6, at(0))
	fetched(never, 6, 1, at(0))
	never.Tidy(at(1 << 30))
	wantCounts(t, never, 1, 1, 0)
}

// task_manager_test PruneExpiredTasksProcessingTimeoutFreesSlot
func TestPruneExpiredTasksProcessingTimeoutFreesSlot(t *testing.T) {
	q := queue(func(l *Limits) { l.MaxProcessing, l.PendingTimeout = 1, 0 })
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 6, at(0))
	fetched(q, 5, 9, at(30)) // counted from here
	q.Tidy(at(50))
	if got := fetched(q, 6, 9, at(50)); got != nil {
		t.Errorf("given %v while another is under way", got)
	}
	q.Tidy(at(51))
	wantView(t, q, View{ID: id(1), Status: Failed, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1051000, AssignedClient: id(5), Message: "processing timeout"})
	if got := fetched(q, 6, 9, at(51)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("given %v", got)
	}
	if err := q.Complete(id(5), Completion{ID: id(1), Status: Success, Message: "late"}, at(52)); err != nil {
		t.Errorf("ending what has timed out: %v", err)
	}
	wantView(t, q, View{ID: id(1), Status: Failed, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1051000, AssignedClient: id(5), Message: "processing timeout"})
}

// task_manager_test FailPendingTaskSkipsQueuedAssignment
func TestFailPendingTaskSkipsQueuedAssignment(t *testing.T) {
	q := queue()
	for n := range uint64(3) {
		submit(t, q, n+1, 5, at(0))
	}
	if !q.FailPending(id(2), "not any more", at(1)) {
		t.Error("a task that waits was not failed")
	}
	fetched(q, 5, 1, at(1))
	for _, n := range []uint64{1, 2, 9} {
		if q.FailPending(id(n), "again", at(2)) {
			t.Errorf("task %d was failed", n)
		}
	}
	wantView(t, q, View{ID: id(2), Status: Failed, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1001000, AssignedClient: id(5), Message: "not any more"})
	if got := fetched(q, 5, 9, at(2)); !slices.Equal(got, []uint64{3}) {
		t.Errorf("given %v", got)
	}
}

// Whatever happens in whatever order, every task is in one state, and what is counted is there.
func TestRandomQueue(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	q := queue(func(l *Limits) { l.MaxPending, l.MaxProcessing, l.MaxFinished = 30, 10, 20 })
	now, timedOut := int64(0), uint64(0)
	status := map[uint64]Status{}
	for n := range uint64(20_000) {
		switch r.IntN(6) {
		case 0, 1:
			if q.Submit(id(n), id(n%4), Copy, text(""), at(now)) == nil {
				status[n] = Pending
			}
		case 2:
			for _, n := range fetched(q, r.Uint64N(5), r.Uint64N(4), at(now)) {
				if status[n] != Pending {
					t.Fatalf("seed %d: task %d is fetched in state %d", seed, n, status[n])
				}
				status[n] = Processing
			}
		case 3:
			some := r.Uint64N(n + 1)
			if q.Complete(id(some%4), Completion{ID: id(some), Status: Success}, at(now)) == nil && !status[some].Final() {
				status[some] = Success
			}
		case 4:
			if some := r.Uint64N(n + 1); q.FailPending(id(some), "", at(now)) {
				if status[some] != Pending {
					t.Fatalf("seed %d: task %d failed in state %d", seed, some, status[some])
				}
				status[some] = Failed
			}
		case 5:
			now += r.Int64N(3)
			q.Tidy(at(now))
			for n := range status {
				v, err := q.Find(id(n))
				if err != nil {
					if !status[n].Final() {
						timedOut++ // and was the oldest of too many
					}
					delete(status, n)
				} else if v.Status != status[n] {
					if v.Status != Failed || status[n].Final() {
						t.Fatalf("seed %d: task %d is %d, want %d", seed, n, v.Status, status[n])
					}
					status[n] = Failed
					timedOut++
				}
			}
			if c := q.Counts(); c.Finished > 20 || c.Processing > 10 || c.Pending > 30 || c.Pending+c.Processing+c.Finished != len(status) || c.TimedOut != timedOut {
				t.Fatalf("seed %d: %+v of %d tasks, of which %d have timed out", seed, c, len(status), timedOut)
			}
		}
	}
}

// Every task is handed out once, whoever else is at it.
func TestQueueIsSafe(t *testing.T) {
	const each = 500
	q := queue(func(l *Limits) { l.MaxPending, l.MaxProcessing, l.MaxFinished = 10*each, 10*each, 10*each })
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[uint64]int{}
	for w := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(each) {
				if err := q.Submit(id(w*each+i), id(1), Copy, text(""), at(0)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 2 * each {
				for _, n := range fetched(q, 1, 3, at(0)) {
					mu.Lock()
					seen[n]++
					mu.Unlock()
					if err := q.Complete(id(1), Completion{ID: id(n), Status: Success}, at(0)); err != nil {
						t.Error(err)
					}
				}
				q.Counts()
			}
		})
	}
	wg.Wait()
	for _, n := range fetched(q, 1, 10*each, at(0)) {
		seen[n]++
	}
	if len(seen) != 4*each {
		t.Errorf("%d tasks were handed out, want %d", len(seen), 4*each)
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("task %d was handed out %d times", n, times)
		}
	}
}
