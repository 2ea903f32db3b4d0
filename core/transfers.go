package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/core/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/task"
	"github.com/mooncake-go/mooncake-master/core/transfer"
)

const (
	transferPeriod = 100 * time.Millisecond
	// transfersAhead is how many tasks the master has begun for each that it may carry at the same moment, so that
	// small objects aren't behind large ones.
	transfersAhead = 4
	reachTimeout   = 5 * time.Second              // for the first byte of a place
	reachPause     = int64(10 * time.Second)      // until one that could not be reached is tried again
	drainPause     = int64(50 * time.Millisecond) // between two looks of drains at moves that the master has carried
	allocationRest = 50 * time.Millisecond        // before a target without room is asked again, a little longer each time
)

// The reasons of failures that aren't of the carrier, beside transfer's causes.
const (
	causeRefused = "refused" // it could not be begun: no room, no quota, no object, ...
	causeLost    = "lost"    // the object, what was read or a target was taken away meanwhile
)

// transfers are the tasks that the master carries out itself.
type transfers struct {
	self     segment.UUID // who the works are of
	pump     *transfer.Pump
	after    transfer.Timer
	executor string // ExecutorClient where there is no carrier
	takeover int64
	most     int // tasks that may be under way
	wake     chan struct{}

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // taken before the lock of the queue of tasks
	stopped bool
	running map[segment.UUID]*carrying
	rests   map[segment.UUID]int64 // tasks whose places could not be reached, until when they are left alone
	dark    map[string]int64       // owners of places that could not be reached, likewise
	ahead   ahead
	moved   bool  // moves have ended that drains don't know of
	told    int64 // when drains were last woken for that

	done   atomic.Uint64
	failed map[string]*atomic.Uint64 // by cause; the map doesn't change
}

// carrying is a task that the master is at.
type carrying struct {
	task.Candidate
	wish   wish
	since  int64 // milliseconds since the epoch
	cancel context.CancelCauseFunc
	size   atomic.Uint64
	job    atomic.Pointer[transfer.Job] // nil until bytes are carried
	mine   bool                         // claimed; guarded by transfers.mu
}

// done is how many of its bytes have been written.
func (t *carrying) done() uint64 {
	if j := t.job.Load(); j != nil {
		return j.Done()
	}
	return 0
}

func newTransfers(cfg *TransferConfig, deps *Deps, self segment.UUID) *transfers {
	t := &transfers{
		self: self, executor: ExecutorClient, takeover: cfg.Takeover.Nanoseconds(), most: transfersAhead * cfg.Concurrency,
		wake: make(chan struct{}, 1), running: make(map[segment.UUID]*carrying),
		rests: make(map[segment.UUID]int64), dark: make(map[string]int64), failed: make(map[string]*atomic.Uint64),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	for _, cause := range transfer.Causes() {
		t.failed[string(cause)] = new(atomic.Uint64)
	}
	t.failed[causeRefused], t.failed[causeLost] = new(atomic.Uint64), new(atomic.Uint64)
	if deps.Carrier == nil {
		return t
	}
	t.executor = cfg.Executor
	pump := cfg.pump()
	pump.Carrier, pump.Now, pump.After = deps.Carrier, deps.Clock.Now, deps.After
	if t.after = deps.After; t.after == nil {
		t.after = transfer.After
	}
	if t.executor != ExecutorClient {
		t.pump = transfer.New(pump)
		t.ahead.connector, _ = deps.Carrier.(transfer.Connector)
		t.ahead.due = make(map[segment.UUID]int64)
	}
	return t
}

// carries reports whether the master can try to carry what lies on a segment, though its client is silent.
func (t *transfers) carries(seg *segment.Mounted, now int64) bool {
	return t.pump != nil && seg.Alive() && t.lit(seg.Info.Endpoint, now)
}

// errStopping is why transfers end when the master does.
var errStopping = errors.New("the master stops")

// StopTransfers ends all transfers and waits for them; no others begin. Run does it at its end.
func (m *Master) StopTransfers() {
	t := m.transfers
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.cancel(&transfer.Error{Cause: transfer.Canceled, Err: errStopping})
	t.wg.Wait()
	if t.pump != nil {
		t.pump.Close()
	}
}

// stepTransfers takes up tasks that the master is to carry out.
func (m *Master) stepTransfers() {
	t := m.transfers
	if t.pump == nil {
		return
	}
	now := m.clock.Now()
	before, silent, gone := now+1, map[segment.UUID]bool(nil), map[segment.UUID]bool(nil)
	waited, fetched := m.tasks.Clients()
	if t.executor == ExecutorAuto {
		before = now - t.takeover
		silent = m.inState(waited, func(s client.State) bool { return s != client.Active })
	}
	gone = m.inState(fetched, func(s client.State) bool { return s == client.Offline })
	t.mu.Lock()
	defer t.mu.Unlock()
	over := func(_ segment.UUID, until int64) bool { return now >= until }
	maps.DeleteFunc(t.rests, over)
	maps.DeleteFunc(t.dark, func(_ string, until int64) bool { return now >= until })
	if t.moved && now-t.told >= drainPause {
		t.moved, t.told = false, now
		wake(m.wakeDrains)
	}
	if t.stopped {
		return
	}
	m.connectAhead(now)
	free := t.most - len(t.running)
	if free <= 0 {
		return
	}
	for _, c := range m.tasks.Fetched(gone, free) {
		if t.rests[c.ID] == 0 {
			m.take(c)
		}
	}
	list := m.tasks.Waiting(before, silent, free, func(id segment.UUID) bool { return t.running[id] != nil || t.rests[id] != 0 })
	for _, c := range list {
		m.take(c)
	}
}

// inState returns the clients in a state that matches.
func (m *Master) inState(ids []segment.UUID, match func(client.State) bool) map[segment.UUID]bool {
	var of map[segment.UUID]bool
	for _, id := range ids {
		if match(m.clients.State(id)) {
			if of == nil {
				of = make(map[segment.UUID]bool)
			}
			of[id] = true
		}
	}
	return of
}

// take begins to carry out a task; transfers.mu is held.
func (m *Master) take(c task.Candidate) {
	t := m.transfers
	if t.running[c.ID] != nil {
		return
	}
	r := &carrying{Candidate: c, wish: wishOf(c.Payload), since: m.wall()}
	ctx, cancel := context.WithCancelCause(t.ctx)
	r.cancel = cancel
	t.running[c.ID] = r
	t.wg.Go(func() {
		defer cancel(nil)
		m.carryOut(ctx, r)
		t.mu.Lock()
		delete(t.running, c.ID)
		t.moved = t.moved || r.mine && r.wish.move
		t.mu.Unlock()
		wake(t.wake) // there is room for another
	})
}

// carryOut carries out a task, unless its client is quicker or nothing can be reached.
func (m *Master) carryOut(ctx context.Context, r *carrying) {
	t := m.transfers
	if t.executor == ExecutorAuto && !m.reachable(ctx, r) {
		return
	}
	t.mu.Lock()
	claimed := m.tasks.Claim(r.Candidate, m.at())
	r.mine = claimed
	t.mu.Unlock()
	if !claimed {
		return
	}
	if r.Status == task.Processing {
		m.revokeFetched(&r.wish, r.Client)
	}
	end := task.Completion{ID: r.ID, Status: task.Success, Message: "Task completed successfully, carried by the master"}
	if cause, err := m.carry(ctx, r); err != nil {
		t.failed[cause].Add(1)
		end.Status, end.Message = task.Failed, "carried by the master: "+err.Error()
		m.log.Warn("task failed", "task", r.ID, "tenant", r.wish.tenant, "key", r.wish.key, "cause", cause, "error", err)
	} else {
		t.done.Add(1)
	}
	m.tasks.Finish(end, m.at())
}

// carry does what a task asks for. On failure it also says why in a word.
func (m *Master) carry(ctx context.Context, r *carrying) (cause string, _ error) {
	c, code := m.beginCarriage(&r.wish)
	for n := uint32(0); code == errcode.NoAvailableHandle && n < m.cfg.Tasks.MaxRetries; n++ {
		if err := m.transfers.rest(ctx, time.Duration(n+1)*allocationRest); err != nil {
			return string(transfer.Canceled), err
		}
		c, code = m.beginCarriage(&r.wish)
	}
	if code != errcode.OK {
		return causeRefused, fmt.Errorf("could not be begun: %s (%d)", code, int32(code))
	}
	r.size.Store(c.size)
	for {
		result := transfer.Result{Source: -1}
		if len(c.targets) > 0 {
			job := c.job()
			r.job.Store(job)
			result = m.transfers.pump.Carry(ctx, job)
		}
		m.transfers.darken(result.Bad, m.clock.Now())
		code, again := m.endCarriage(c, &result)
		switch {
		case again:
			continue
		case result.Err != nil && errors.Is(result.Err, errUnmounted):
			return causeLost, result.Err
		case result.Err != nil:
			return string(transfer.CauseOf(result.Err)), result.Err
		case code != errcode.OK:
			return causeLost, fmt.Errorf("what was read, or a target, has gone meanwhile: %s (%d)", code, int32(code))
		}
		return "", nil
	}
}

// darken notes which sources could not be read.
func (t *transfers) darken(bad []error, now int64) {
	for _, err := range bad {
		var e *transfer.Error
		if errors.As(err, &e) && e.At.Owner != "" && (e.Cause == transfer.SourceUnreachable || e.Cause == transfer.Stalled) && !errors.Is(err, errUnmounted) {
			t.mu.Lock()
			t.dark[e.At.Owner] = now + reachPause
			t.mu.Unlock()
		}
	}
}

// lit reports whether a place has not turned out to be out of reach lately.
func (t *transfers) lit(owner string, now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now >= t.dark[owner]
}

// rest waits.
func (t *transfers) rest(ctx context.Context, d time.Duration) error {
	c, stop := t.after(d)
	defer stop()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reachable reports whether a task is one for the master: whether one of the places where the object lies can be
// read, and the targets. If not, the task is left alone for a while; its client may still come, and a timeout will. A
// client that is silent and hasn't fetched the task won't come: what can't come true is taken up then, so that it
// fails.
func (m *Master) reachable(ctx context.Context, r *carrying) bool {
	sources, targets, found := m.ways(&r.wish)
	ok := found && m.reachAny(ctx, sources)
	for i := 0; ok && i < len(targets); i++ {
		ok = m.reachAny(ctx, targets[i:i+1])
	}
	switch {
	case ok:
		return true
	case !found && r.Status == task.Pending && m.clients.State(r.Client) != client.Active:
		return true
	}
	t := m.transfers
	t.mu.Lock()
	t.rests[r.ID] = m.clock.Now() + reachPause
	t.mu.Unlock()
	return false
}

func (m *Master) reachAny(ctx context.Context, places []transfer.Place) bool {
	t := m.transfers
	for _, p := range places {
		if !t.lit(p.Owner, m.clock.Now()) {
			continue
		}
		err := t.pump.Reach(ctx, p, reachTimeout)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		m.log.Debug("segment can't be reached", "endpoint", p.Owner, "error", err)
		t.mu.Lock()
		t.dark[p.Owner] = m.clock.Now() + reachPause
		t.mu.Unlock()
	}
	return false
}

// mayCarry reports whether a replica can be the source of a task though its client is silent. relaxed is for tasks
// that the master makes itself.
func (m *Master) mayCarry(r *object.Replica, relaxed bool) bool {
	if r.Readable() {
		return true
	}
	t := m.transfers
	relaxed = relaxed || t.executor == ExecutorMaster
	return relaxed && isComplete(r) && alive(r) && t.carries(r.Memory.Seg(), m.clock.Now())
}
