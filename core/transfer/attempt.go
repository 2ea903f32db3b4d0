package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// attempt is one try to carry an object from one of its sources.
type attempt struct {
	p      *Pump
	j      *Job
	source int
	sum    Checksum
	result *Result     // what goes wrong with single targets is written there
	offset uint64      // what has been read so far
	lost   atomic.Bool // no target is left
}

// carry returns nil if at least one target is written whole; what is wrong with others is in the result.
func (a *attempt) carry(ctx context.Context) error {
	for a.offset < a.j.Size {
		d, err := a.p.desks.sit(ctx)
		if err != nil {
			return err
		}
		err = a.turn(ctx, d)
		a.p.desks.stand(d)
		if err != nil {
			return err
		}
	}
	if want := a.j.Checksum; want != nil && uint64(a.sum) != *want {
		return mismatch(a.j.Sources[a.source], uint64(a.sum), *want)
	}
	return nil
}

// part is a piece that has been read.
type part struct {
	buffer int // of the desk
	n      int
	offset uint64
}

// turn carries pieces until the object is done, or others wait and it has had its share.
func (a *attempt) turn(ctx context.Context, d *desk) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full, empty := make(chan part), make(chan int, buffersPerTurn)
	for i := range buffersPerTurn {
		empty <- i
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for p := range full {
			if err := a.write(ctx, d, p); err != nil {
				cancel(err) // nobody needs what is read
			}
			empty <- p.buffer
		}
	})
	err := a.read(ctx, d, full, empty)
	close(full)
	writer.Wait()
	if err == nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	return err
}

// read reads pieces and hands them on.
func (a *attempt) read(ctx context.Context, d *desk, full chan<- part, empty <-chan int) error {
	at := a.j.Sources[a.source]
	for pieces := 0; a.offset < a.j.Size && (pieces < turnPieces || !a.p.desks.wanted()); pieces++ {
		buffer := <-empty
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if a.j.SourceGone != nil {
			if err := a.j.SourceGone(a.source); err != nil {
				return &Error{SourceUnreachable, at, err}
			}
		}
		n := int(min(uint64(a.p.size), a.j.Size-a.offset))
		b := d.buffers[buffer][:n]
		from := Place{at.Owner, at.Address + a.offset}
		err := a.p.call(ctx, d, a.patience(), func(ctx context.Context) error { return a.p.cfg.Carrier.Read(ctx, from, b) })
		if err != nil {
			return reach(ctx, SourceUnreachable, at, err)
		}
		a.p.read.Add(uint64(n))
		if a.j.Checksum != nil {
			a.sum = a.sum.Update(b)
		}
		full <- part{buffer, n, a.offset}
		a.offset += uint64(n)
	}
	return nil
}

// patience is how long a piece may take to be read.
func (a *attempt) patience() time.Duration {
	if a.source < len(a.j.Sources)-1 {
		return a.p.cfg.Stall / hurry
	}
	return a.p.cfg.Stall
}

// write writes a piece to all targets that are still good; it fails when none is left.
func (a *attempt) write(ctx context.Context, d *desk, p part) error {
	var left atomic.Int64
	var wg sync.WaitGroup
	for i := range a.j.Targets {
		if a.result.Targets[i].Err != nil {
			continue
		}
		wg.Go(func() {
			if a.writeTo(ctx, d, p, i) {
				left.Add(1)
			}
		})
	}
	wg.Wait()
	if left.Load() > 0 {
		a.j.done.Store(p.offset + uint64(p.n))
		return nil
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if len(a.result.Targets) == 0 {
		return nil
	}
	a.lost.Store(true)
	return a.result.Targets[0].Err
}

// writeTo writes a piece to one target and reports whether it is there.
func (a *attempt) writeTo(ctx context.Context, d *desk, p part, i int) bool {
	t, at := &a.result.Targets[i], a.j.Targets[i]
	if a.j.TargetGone != nil {
		if err := a.j.TargetGone(i); err != nil {
			t.Err = &Error{TargetUnreachable, at, err}
			return false
		}
	}
	if err := a.p.limit.wait(ctx, p.n); err != nil {
		return false // the whole has been given up
	}
	to := Place{at.Owner, at.Address + p.offset}
	b := d.buffers[p.buffer][:p.n]
	err := a.p.call(ctx, d, a.p.cfg.Stall, func(ctx context.Context) error { return a.p.cfg.Carrier.Write(ctx, to, b) })
	if err != nil {
		t.Err, t.Unsettled = reach(ctx, TargetUnreachable, at, err), true
		return false
	}
	a.p.written.Add(uint64(p.n))
	return true
}
