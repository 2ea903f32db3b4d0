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
	leakDocument = 1 << 20 // bytes; a connector that keeps them all grows by 100 MiB
	settleStep   = 100 * time.Millisecond
)

// What may be more after leakCycles than before, for what runtimes do by themselves.
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

func cancelled(ctx context.Context, k *kit) error {
	if _, err := k.current(ctx); err != nil {
		return err
	}
	p, err := k.configured(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	if _, err := k.cycle(ctx, p); err != nil {
		return err
	}
	before, counted := usageOf(p.cmd.Process.Pid)
	for i := range cancelCycles {
		if _, err := k.cycle(ctx, p); err != nil {
			return fmt.Errorf("after %d cancelled Watch calls: %w", i+1, err)
		}
	}
	// What is seen from outside must settle in time, and so must what the connector counts.
	for begin := time.Now(); ; {
		late := time.Since(begin) >= k.limit(cancelLimit)
		beat, err := k.cycle(ctx, p)
		if err != nil {
			return fmt.Errorf("after %d cancelled Watch calls: %w", cancelCycles, err)
		}
		now, _ := usageOf(p.cmd.Process.Pid)
		switch {
		case beat.GetWatches() > 1:
			err = fmt.Errorf("%d Watch calls are still under way in the connector %s after the host cancelled them", beat.GetWatches()-1, k.limit(cancelLimit))
		case counted && now.threads >= before.threads+cancelCycles/2:
			err = fmt.Errorf("%d threads more than before, %s after %d Watch calls were cancelled: they go on", now.threads-before.threads, k.limit(cancelLimit), cancelCycles)
		}
		if err == nil || late {
			return err
		}
		time.Sleep(settleStep)
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
	var firstBeat *connectorv1.Heartbeat
	for range leakWarmUp {
		if firstBeat, err = k.cycle(ctx, p); err != nil {
			return err
		}
	}
	before, counted := usageOf(p.cmd.Process.Pid)
	for i := range leakCycles {
		if _, err := k.cycle(ctx, p); err != nil {
			return fmt.Errorf("Watch %d: %w", i+1, err)
		}
	}
	var grown error
	for begin := time.Now(); ; time.Sleep(settleStep) {
		beat, err := k.cycle(ctx, p)
		if err != nil {
			return err
		}
		now, _ := usageOf(p.cmd.Process.Pid)
		grown = growth(before, now, firstBeat, beat)
		if grown == nil || time.Since(begin) >= k.limit(eventLimit) {
			break
		}
	}
	if grown == nil && !counted && firstBeat.GetTasks() == 0 {
		return skipf("on this system the kit can't look into the process, and the connector does not count its tasks")
	}
	return grown
}

// growth compares two moments.
func growth(before, now usage, first, last *connectorv1.Heartbeat) error {
	grew := func(what string, from, to, most int) error {
		if to-from <= most {
			return nil
		}
		return fmt.Errorf("%d Watch calls left something behind: %s grew from %d to %d", leakCycles, what, from, to)
	}
	errs := []error{
		grew("open descriptors", before.files, now.files, moreFiles),
		grew("threads", before.threads, now.threads, moreThreads),
		grew("memory in bytes", before.memory, now.memory, moreMemory),
	}
	if first.GetTasks() > 0 && last.GetTasks() > 0 {
		errs = append(errs, grew("tasks (goroutines)", int(first.GetTasks()), int(last.GetTasks()), moreTasks))
	}
	return errors.Join(errs...)
}

// usage is what a process holds.
type usage struct {
	files, threads, memory int // memory in bytes
}
