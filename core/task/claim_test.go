package task

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

func numbers(list []Candidate) (got []uint64) {
	for _, c := range list {
		got = append(got, c.ID.First)
	}
	return got
}

func clients(n ...uint64) map[segment.UUID]bool {
	of := make(map[segment.UUID]bool)
	for _, n := range n {
		of[id(n)] = true
	}
	return of
}

func TestCandidates(t *testing.T) {
	q := queue()
	for n := range uint64(6) {
		submit(t, q, n, 5+n%2, at(int64(n)))
	}
	for _, c := range []struct {
		before int64
		of     map[segment.UUID]bool
		n      int
		want   []uint64
	}{
		{0, nil, 9, nil},
		{3, nil, 9, []uint64{0, 1, 2}},
		{3, nil, 2, []uint64{0, 1}},
		{0, clients(6), 9, []uint64{1, 3, 5}},
		{2, clients(6, 7), 9, []uint64{0, 1, 3, 5}},
		{9, nil, 9, []uint64{0, 1, 2, 3, 4, 5}},
	} {
		if got := numbers(q.Waiting(c.before*second, c.of, c.n, nil)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	if got := numbers(q.Waiting(9*second, nil, 9, func(task segment.UUID) bool { return task.First < 4 })); !slices.Equal(got, []uint64{4, 5}) {
		t.Errorf("without those skipped: %v", got)
	}
	q.Fetch(id(5), 2, at(9))
	if got := numbers(q.Fetched(clients(5), 9)); !slices.Equal(got, []uint64{0, 2}) {
		t.Errorf("fetched: %v", got)
	}
	if got := numbers(q.Fetched(clients(6), 9)); got != nil {
		t.Errorf("fetched by another: %v", got)
	}
	waited, fetched := q.Clients()
	if len(waited) != 2 || len(fetched) != 1 || fetched[0] != id(5) {
		t.Errorf("tasks wait for %v, are at %v", waited, fetched)
	}
}

// A claimed task is nobody else's: neither its client's nor a timeout's.
func TestClaim(t *testing.T) {
	q := queue()
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 5, at(0))
	list := q.Waiting(second, nil, 9, nil)
	if !q.Claim(list[0], at(1)) || q.Claim(list[0], at(1)) {
		t.Error("a task that waits is claimed once")
	}
	wantView(t, q, View{ID: id(1), Status: Processing, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 1001000, AssignedClient: id(5)})
	if got := fetched(q, 5, 9, at(2)); !slices.Equal(got, []uint64{2}) {
		t.Errorf("its client is given %v", got)
	}
	if q.Claim(list[1], at(2)) {
		t.Error("a fetched task was claimed as one that waits")
	}
	if err := q.Complete(id(5), Completion{ID: id(1), Status: Success}, at(3)); !errors.Is(err, ErrForeign) {
		t.Errorf("its client ends it: %v", err)
	}
	wantCounts(t, q, 0, 2, 0)
	q.Tidy(at(1000))
	wantCounts(t, q, 0, 1, 1)
	running := q.Running()
	if len(running) != 1 || !running[0].Claimed || running[0].Payload != text("payload 1") {
		t.Errorf("running: %+v", running)
	}
	if q.Finish(Completion{ID: id(2), Status: Success}, at(1001)) || !q.Finish(Completion{ID: id(1), Status: Success, Message: "m"}, at(1001)) || q.Finish(Completion{ID: id(1), Status: Failed}, at(1002)) {
		t.Error("only a claimed task that goes on is ended, once")
	}
	wantView(t, q, View{ID: id(1), Status: Success, CreatedAtMsEpoch: 1000000, LastUpdatedAtMsEpoch: 2001000, AssignedClient: id(5), Message: "m"})
	if err := q.Complete(id(5), Completion{ID: id(1), Status: Failed}, at(1003)); err != nil {
		t.Errorf("ending what has ended: %v", err)
	}
	if got := q.Counts(); got.Claimed != 1 || got.Fetched != 1 || got.Succeeded != 1 {
		t.Errorf("counted %+v", got)
	}
}

// What a client has fetched can be taken from it.
func TestClaimOfAFetchedTask(t *testing.T) {
	q := queue(func(l *Limits) { l.MaxProcessing = 1 })
	submit(t, q, 1, 5, at(0))
	submit(t, q, 2, 6, at(0))
	q.Fetch(id(5), 1, at(1))
	if q.Claim(q.Waiting(second, nil, 9, nil)[0], at(2)) {
		t.Error("one more than may be under way was claimed")
	}
	list := q.Fetched(clients(5), 9)
	if len(list) != 1 || list[0].Status != Processing || !q.Claim(list[0], at(2)) || q.Claim(list[0], at(2)) {
		t.Errorf("claiming %+v", list)
	}
	if err := q.Complete(id(5), Completion{ID: id(1), Status: Success}, at(3)); !errors.Is(err, ErrForeign) {
		t.Errorf("its client ends it: %v", err)
	}
	wantCounts(t, q, 1, 1, 0)
}

// Whoever is quicker: every task is either fetched or claimed.
func TestClaimOrFetch(t *testing.T) {
	const n = 500
	q := queue(func(l *Limits) { l.MaxPending, l.MaxProcessing, l.MaxFinished = n, n, n })
	for i := range uint64(n) {
		submit(t, q, i, 1, at(0))
	}
	var got [2][]uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for list := q.Waiting(second, nil, 3, nil); len(list) > 0; list = q.Waiting(second, nil, 3, nil) {
			for _, c := range list {
				if q.Claim(c, at(1)) {
					got[0] = append(got[0], c.ID.First)
				}
			}
		}
	})
	wg.Go(func() {
		for list := fetched(q, 1, 2, at(1)); list != nil; list = fetched(q, 1, 2, at(1)) {
			got[1] = append(got[1], list...)
		}
	})
	wg.Wait()
	all := slices.Concat(got[0], got[1])
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n {
		t.Errorf("%d claimed and %d fetched of %d", len(got[0]), len(got[1]), n)
	}
	if c := q.Counts(); c.Claimed != uint64(len(got[0])) || c.Fetched != uint64(len(got[1])) || c.Processing != n {
		t.Errorf("counted %+v, claimed %d", c, len(got[0]))
	}
}
