package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

const (
	cancelCycles = 25
	leakWarmUp   = 20
	leakCycles   = 100
	leakDocument = 1 << 20 // bytes; a connector that keeps them all grows by 100 MiB in a round
	settleStep   = 100 * time.Millisecond
	gentleStep   = 20 * time.Millisecond // between the Watch calls of a second look
	// leakRounds is in how many rounds in a row something must have grown to be a fault. What every
	// Watch leaves behind grows in all of them. A pool of threads or a heap that a busy machine has
	// made larger once does not.
	leakRounds = 3
)

// What may be more after a round than before, for what runtimes do by themselves.
const (
	moreFiles   = 8
	moreThreads = 12
	moreTasks   = 20
	moreMemory  = 48 << 20
)

// cycle does one Watch: begin, an event, cancel, end.
func (k *kit) cycle(ctx context.Context, p *child) (*connectorv1.Heartbeat, error) {
	w, err := k.watch(ctx, p, "")
	if err != nil {
		return nil, err
	}
	defer w.close()
	var beat *connectorv1.Heartbeat
	_, err = w.await(ctx, k.limit(eventLimit), "first snapshot", func(e *connectorv1.WatchResponse) (bool, error) {
		if e.GetHeartbeat() != nil {
			beat = e.GetHeartbeat()
		}
		return e.GetHeartbeat() == nil, nil
	})
	if err != nil {
		return nil, err
	}
	w.cancel()
	select {
	case <-w.ended:
	case <-time.After(k.limit(cancelLimit)):
		return nil, fmt.Errorf("a cancelled Watch does not end within %s", k.limit(cancelLimit))
	}
	return beat, nil
}

// cycles does many, with a pause after each, and looks at the process afterwards.
func (k *kit) cycles(ctx context.Context, p *child, n int, pause time.Duration) (held, error) {
	var last *connectorv1.Heartbeat
	for i := range n {
		var err error
		if last, err = k.cycle(ctx, p); err != nil {
			return held{}, fmt.Errorf("Watch %d of %d: %w", i+1, n, err)
		}
		time.Sleep(pause)
	}
	now, counted := usageOf(p.cmd.Process.Pid)
	return held{usage: now, counted: counted, watches: int(last.GetWatches()), tasks: int(last.GetTasks())}, nil
}

// held is what a process holds at one moment: what is seen from outside, and what it tells of
// itself, 0 for what it does not count.
type held struct {
	usage
	counted        bool // the kit can look into the process
	watches, tasks int
}

// usage is what a process holds as seen from outside.
type usage struct {
	files, threads, memory int // memory in bytes
}

// sign is a number of held that grows when something is left behind.
type sign struct {
	what string
	most int // may be more after a round
	of   func(held) int
	// soft numbers grow in jumps, a heap doubles: only the sum over the rounds counts.
	soft bool
}

// signs are the numbers to go by.
func (h held) signs() []sign {
	return []sign{
		{what: "open descriptors", most: moreFiles, of: func(h held) int { return h.files }},
		h.work(),
		{what: "memory in bytes", most: moreMemory, of: func(h held) int { return h.memory }, soft: true},
	}
}

// work is the sign of what goes on. Threads are the runtime's business where the connector
// counts its own tasks: a Go program keeps those that it once needed for slow system calls.
func (h held) work() sign {
	if h.tasks > 0 {
		return sign{what: "tasks (goroutines)", most: moreTasks, of: func(h held) int { return h.tasks }}
	}
	return sign{what: "threads", most: moreThreads, of: func(h held) int { return h.threads }}
}

// grew keeps the signs that have grown too much in the last round and over all of them.
func grew(signs []sign, first, before, now held, rounds int) (left []sign) {
	for _, s := range signs {
		whole, round := s.of(now)-s.of(first), s.of(now)-s.of(before)
		if whole > rounds*s.most && (s.soft || round > s.most) {
			left = append(left, s)
		}
	}
	return left
}

func cancelled(ctx context.Context, k *kit) error {
	if _, err := k.current(ctx); err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	first, err := k.cycles(ctx, p, 1, 0)
	if err != nil {
		return err
	}
	if first.watches > 0 {
		return k.cancelledByCount(ctx, p)
	}
	// Nothing but what each call needs can be counted, and that only in its growth.
	s := first.work()
	s.most = cancelCycles / 2
	left, now := []sign{s}, first
	for round := 1; round <= leakRounds && len(left) > 0; round++ {
		before := now
		if _, err = k.cycles(ctx, p, cancelCycles, pauseOf(round)); err != nil {
			return err
		}
		if now, left, err = k.settled(ctx, p, left, first, before, round, cancelLimit); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d %s more than before, %s after %d Watch calls were cancelled: they go on",
		s.of(now)-s.of(first), s.what, k.limit(cancelLimit), leakRounds*cancelCycles)
}

// cancelledByCount goes by what the connector says of its Watch calls.
func (k *kit) cancelledByCount(ctx context.Context, p *child) error {
	if _, err := k.cycles(ctx, p, cancelCycles, 0); err != nil {
		return err
	}
	// Looking is a Watch as well. The last look comes after a silence in which all that was
	// cancelled had its time.
	pause, limit := settleStep, k.limit(cancelLimit)
	for begin := time.Now(); ; pause *= 2 {
		last := time.Since(begin)+pause > limit
		if last {
			pause = limit
		}
		time.Sleep(pause)
		now, err := k.cycles(ctx, p, 1, 0)
		switch {
		case err != nil || now.watches <= 1:
			return err
		case last:
			return fmt.Errorf("%d Watch calls are still under way in the connector %s after the host cancelled them", now.watches-1, limit)
		}
	}
}

// pauseOf is the pause between calls: a second look is a gentle one, so that what takes its
// time to end is not taken for what stays.
func pauseOf(round int) time.Duration {
	if round == 1 {
		return 0
	}
	return gentleStep
}

// settled waits until no sign is left, for limit at most, and gives the last look.
func (k *kit) settled(ctx context.Context, p *child, signs []sign, first, before held, round int, limit time.Duration) (held, []sign, error) {
	for begin := time.Now(); ; time.Sleep(settleStep) {
		now, err := k.cycles(ctx, p, 1, 0)
		if err != nil {
			return held{}, nil, err
		}
		if left := grew(signs, first, before, now, round); len(left) == 0 || time.Since(begin) >= k.limit(limit) {
			return now, left, nil
		}
	}
}

func leaks(ctx context.Context, k *kit) error {
	if _, err := k.current(ctx); err != nil {
		return err
	}
	// A large document makes kept memory visible; where the source does not take it the small
	// one has to do.
	if err := k.source.Set(ctx, padded(document(2), leakDocument)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		if err := k.source.Set(ctx, document(2)); err != nil {
			return err
		}
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	first, err := k.cycles(ctx, p, leakWarmUp, 0)
	if err != nil {
		return err
	}
	if !first.counted && first.tasks == 0 {
		return skipf("on this system the kit can't look into the process, and the connector does not count its tasks")
	}
	left, now := first.signs(), first
	for round := 1; round <= leakRounds && len(left) > 0; round++ {
		before := now
		if _, err = k.cycles(ctx, p, leakCycles, pauseOf(round)); err != nil {
			return err
		}
		if now, left, err = k.settled(ctx, p, left, first, before, round, eventLimit/leakRounds); err != nil {
			return err
		}
	}
	var errs []error
	for _, s := range left {
		errs = append(errs, fmt.Errorf("%d Watch calls left something behind: %s grew from %d to %d", leakRounds*leakCycles, s.what, s.of(first), s.of(now)))
	}
	return errors.Join(errs...)
}
