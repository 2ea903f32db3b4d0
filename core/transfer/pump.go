package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Timer returns a channel that delivers once after d; stop gives the timer up.
type Timer func(d time.Duration) (c <-chan time.Time, stop func())

// After is the Timer of the real clock.
func After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Config says what a pump may use. The zero value of a field that has a default is that default.
type Config struct {
	Carrier Carrier
	// Now tells the time, in nanoseconds since any fixed instant, and never goes back. After is by the same
	// clock; the default is the real one.
	Now   func() int64
	After Timer

	Memory      int    // bytes of buffers in all; default 64 MiB
	Concurrency int    // objects that are carried at the same moment; default 8. More of them take turns
	Bandwidth   uint64 // most bytes written per second, over all; 0 = no limit
	// Stall is how long one piece may take to be read or written; default 30 s. A source has a tenth of it to read
	// from as long as there is another one.
	Stall   time.Duration
	Timeout time.Duration // how long one object may take in all; 0 = no limit
}

// The defaults of Config, and the bounds of what is derived from it.
const (
	DefaultMemory      = 64 << 20
	DefaultConcurrency = 8
	DefaultStall       = 30 * time.Second

	buffersPerTurn = 2       // one is read into while the other one is written
	mostPiece      = 4 << 20 // bytes
	leastPiece     = 64 << 10
	turnPieces     = 8           // what one object may carry while others wait for a turn
	hurry          = 10          // of Stall, the part that a source has where there is another one
	grace          = time.Second // how long a call of the carrier may take to return once it has been given up
)

// LeastMemory is how much memory a pump of a concurrency needs, in bytes.
func LeastMemory(concurrency int) int { return buffersPerTurn * leastPiece * concurrency }

// Validate says what is wrong with a configuration, naming fields.
func (c *Config) Validate() error {
	if c.Memory < 0 || c.Concurrency < 0 || c.Stall < 0 || c.Timeout < 0 {
		return fmt.Errorf("Memory %d, Concurrency %d, Stall %v and Timeout %v must not be negative", c.Memory, c.Concurrency, c.Stall, c.Timeout)
	}
	d := c.filled()
	if least := LeastMemory(d.Concurrency); d.Memory < least {
		return fmt.Errorf("Memory is %d bytes, a Concurrency of %d takes %d at least", d.Memory, d.Concurrency, least)
	}
	return nil
}

// filled returns the configuration with defaults put in.
func (c *Config) filled() Config {
	d := *c
	if d.Memory == 0 {
		d.Memory = DefaultMemory
	}
	if d.Concurrency == 0 {
		d.Concurrency = DefaultConcurrency
	}
	if d.Stall == 0 {
		d.Stall = DefaultStall
	}
	if d.After == nil {
		d.After = After
	}
	return d
}

// piece is how many bytes are moved at a time.
func (c *Config) piece() int {
	n := min(mostPiece, c.Memory/(buffersPerTurn*c.Concurrency))
	if c.Bandwidth > 0 { // so that what is limited doesn't come in large lumps
		n = min(n, int(min(max(c.Bandwidth/4, leastPiece), mostPiece)))
	}
	return max(n, leastPiece)
}

// Pump carries objects. It is safe for concurrent use.
type Pump struct {
	cfg     Config
	size    int // of a piece
	limit   bucket
	desks   desks
	running atomic.Int64
	read    atomic.Uint64
	written atomic.Uint64
}

// New returns a pump. A configuration that Validate refuses is used as far as that is possible.
func New(cfg Config) *Pump {
	p := &Pump{cfg: cfg.filled()}
	p.size = p.cfg.piece()
	p.limit = bucket{now: p.cfg.Now, after: p.cfg.After, rate: p.cfg.Bandwidth}
	p.desks = desks{carrier: p.cfg.Carrier, size: p.size, most: p.cfg.Concurrency}
	return p
}

// Close gives the memory back as far as it isn't used, the rest as soon as it isn't any more, and lets nothing
// begin any more. Transfers under way are their callers' to cancel.
func (p *Pump) Close() { p.desks.close() }

// Stats say what a pump does and has done.
type Stats struct {
	Running       int           // objects that are being carried or wait for their turn
	Read, Written uint64        // bytes since start
	Waited        time.Duration // for bandwidth, since start, of all objects together
	BufferBytes   int           // memory in use now
	Abandoned     int           // turns that wait for calls of the carrier that were given up
}

// Stats returns what the pump does and has done.
func (p *Pump) Stats() Stats {
	bytes, abandoned := p.desks.stats()
	return Stats{
		Running: int(p.running.Load()), Read: p.read.Load(), Written: p.written.Load(),
		Waited: time.Duration(p.limit.waited.Load()), BufferBytes: bytes, Abandoned: abandoned,
	}
}

// Job is one object to be carried. Its fields are not changed while it is.
type Job struct {
	Size     uint64  // bytes
	Sources  []Place // where the same bytes lie; they are tried in this order
	Targets  []Place // where they go; all are written
	Checksum *uint64 // of the object's bytes, see Sum; nil = it has none
	// SourceGone and TargetGone say, by index, why a place isn't to be read or written any more; nil functions say
	// that none is. They are called before every piece and must not block.
	SourceGone, TargetGone func(i int) error

	done atomic.Uint64
}

// Done returns how many bytes have been written to the targets that are written slowest. It falls back to 0 when
// another source has to be tried.
func (j *Job) Done() uint64 { return j.done.Load() }

// Result is what became of a job.
type Result struct {
	// Err is nil if every target has been written whole, and the first thing that went wrong otherwise.
	Err error
	// Source is the index of the source that all bytes in the targets come from; -1 if no target was written whole.
	Source int
	// Bad says what was wrong with the sources that were tried before it, or with all.
	Bad []error
	// Targets has an entry for each target.
	Targets []TargetResult
}

// TargetResult is what became of one target.
type TargetResult struct {
	Err error // nil: it has been written whole
	// Unsettled says that a write was given up of which nobody knows whether it still arrives: the memory
	// isn't to be used for anything else for a while.
	Unsettled bool
}

// Unsettled reports whether any target is.
func (r *Result) Unsettled() bool {
	for _, t := range r.Targets {
		if t.Unsettled {
			return true
		}
	}
	return false
}

// Carry carries one object and returns when that is done, has failed, or ctx has ended.
func (p *Pump) Carry(ctx context.Context, j *Job) Result {
	p.running.Add(1)
	defer p.running.Add(-1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.cfg.Timeout > 0 {
		defer p.alarm(ctx, p.cfg.Timeout, func() {
			cancel(&Error{Cause: TimedOut, Err: fmt.Errorf("it took longer than %v", p.cfg.Timeout)})
		})()
	}
	result := Result{Source: -1, Targets: make([]TargetResult, len(j.Targets))}
	if len(j.Sources) == 0 {
		result.fail(&Error{Cause: SourceUnreachable, Err: errors.New("there is none")})
		return result
	}
	var err error
	for i := range j.Sources {
		j.done.Store(0)
		a := &attempt{p: p, j: j, source: i, result: &result}
		if err = a.carry(ctx); err == nil {
			result.Source = i
			break
		}
		if !a.lost.Load() && ctx.Err() == nil {
			result.Bad = append(result.Bad, err)
		}
		if ctx.Err() != nil || a.lost.Load() || CauseOf(err) == NoMemory {
			break
		}
	}
	result.fail(err)
	return result
}

// fail notes what went wrong with all targets that nothing else is wrong with; nil is nothing.
func (r *Result) fail(err error) {
	r.Err = err
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Err == nil {
			t.Err = err
		} else if r.Err == nil {
			r.Err = t.Err
		}
	}
}

// alarm calls f after d unless ctx has ended or the function that it returns has been called; that one waits
// until neither will happen any more.
func (p *Pump) alarm(ctx context.Context, d time.Duration, f func()) (off func()) {
	c, stop := p.cfg.After(d)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-c:
			f()
		case <-quit:
		case <-ctx.Done():
		}
	})
	return func() {
		close(quit)
		stop()
		wg.Wait()
	}
}

// Reach reads one byte of a place, to see whether it can be reached within a while.
func (p *Pump) Reach(ctx context.Context, at Place, within time.Duration) error {
	b := make([]byte, 1)
	return p.try(ctx, at, within, func(ctx context.Context) error { return p.cfg.Carrier.Read(ctx, at, b) })
}

// Connect connects to the owner of a place within a while.
func (p *Pump) Connect(ctx context.Context, c Connector, at Place, within time.Duration) error {
	return p.try(ctx, at, within, func(ctx context.Context) error { return c.Connect(ctx, at) })
}

// try does something with a place that takes a while at most.
func (p *Pump) try(ctx context.Context, at Place, within time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer p.alarm(ctx, within, func() { cancel(&Error{Cause: TimedOut, At: at}) })()
	return reach(ctx, SourceUnreachable, at, p.call(ctx, nil, p.cfg.Stall, do))
}

// errAbandoned is within the error of a call that did not even return after it was given up.
var errAbandoned = errors.New("and did not stop when asked to")

// call makes one call of the carrier, which may take a while. The desk, if any, isn't used again
// before the call has returned, which may be later than call does.
func (p *Pump) call(ctx context.Context, d *desk, within time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	c, stop := p.cfg.After(within)
	defer stop()
	p.desks.use(d)
	go func() { // its owner is the desk, which waits for it
		err := do(ctx)
		p.desks.leave(d)
		done <- err
	}()
	var err error
	select {
	case err = <-done:
		return err
	case <-c:
		err = &Error{Cause: Stalled, Err: fmt.Errorf("nothing came in %v", within)}
	case <-ctx.Done():
		err = ended(ctx)
	}
	cancel()
	patience, stop := p.cfg.After(grace)
	defer stop()
	select {
	case <-done:
		return err
	case <-patience:
		own := err.(*Error)
		return &Error{own.Cause, own.At, errors.Join(own.Err, errAbandoned)}
	}
}
