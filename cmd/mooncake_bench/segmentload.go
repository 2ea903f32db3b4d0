package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// The figures of transfers. A GB is a thousand million bytes.
const (
	figBandwidth   = "gb_per_s"
	figOwnPerGB    = "own_cpu_s_per_gb"
	figTargetPerGB = "target_cpu_s_per_gb"
	figCPUPerGB    = "cpu_s_per_gb" // of both ends
)

// segmentSession measures transfers to and from one target.
type segmentSession struct {
	settings *segmentSettings
	metadata segment.Metadata
	adapter  *rdma.Adapter // nil for TCP
	carrier  *segment.Carrier
	pid      int // of the target, if it is a process of this machine; 0: not known
	now      clock

	base, size uint64 // the memory there that may be used
	served     bool   // it is lent to be written to
}

// openSegment finds the target's memory.
func openSegment(ctx context.Context, s *segmentSettings, pid int) (_ *segmentSession, err error) {
	start := time.Now()
	x := &segmentSession{settings: s, pid: pid, now: func() int64 { return int64(time.Since(start)) }}
	if x.metadata, err = segment.OpenMetadata(s.metadata, s.cluster, time.Now); err != nil {
		return nil, wrong("metadata", "%v", err)
	}
	if x.adapter, err = s.adapter(); err != nil {
		return nil, errors.Join(err, x.metadata.Close())
	}
	x.carrier = segment.NewCarrier(segment.CarrierConfig{
		Metadata: x.metadata, Lanes: s.lanes, DataVersion: s.version, RDMA: x.adapter, Now: time.Now,
	})
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	found, err := x.metadata.Descriptor(ctx, s.target)
	if err != nil {
		return nil, fmt.Errorf("--target %s: %w", s.target, err)
	}
	if !found.Speaks(s.protocol) {
		return nil, wrong("protocol", "%s speaks %v, not %s", s.target, found.Protocol, s.protocol)
	}
	for _, b := range found.Buffers {
		if b.Length > x.size && (s.protocol != segment.ProtocolRDMA || len(b.RKey) > 0) {
			x.base, x.size = b.Addr, b.Length
		}
	}
	if x.size == 0 {
		return nil, fmt.Errorf("--target %s lends no memory", s.target)
	}
	if x.size > servedHead {
		head, release, err := x.carrier.Buffer(servedHead)
		if err != nil {
			return nil, err
		}
		defer release()
		if err := x.carrier.Read(ctx, segment.Place{Owner: s.target, Address: x.base}, head); err != nil {
			return nil, err
		}
		if string(head[:len(servedMark)]) == servedMark {
			x.served, x.base, x.size = true, x.base+servedHead, x.size-servedHead
		}
	}
	for _, p := range s.points() {
		if p.span() > x.size {
			return nil, wrong("block_size", "%v needs %s at the target, which lends %d bytes", p, formatSize(p.span()), x.size)
		}
		if (p.write || s.verify) && !x.served && !s.overwrite {
			return nil, wrong("overwrite", "%v would write over what lies in the memory of %s, which isn't lent by mooncake_bench segment serve; only --overwrite allows that, or --operation read without --verify", p, s.target)
		}
	}
	return x, nil
}

func (x *segmentSession) close() (err error) {
	x.carrier.Close()
	closeAdapter(x.adapter, &err)
	return errors.Join(err, x.metadata.Close())
}

// bay is one transfer that is always under way.
type bay struct {
	session *segmentSession
	point   segmentPoint
	at      segment.Place
	data    []byte
	check   []byte // where what was written is read back
	seed    pattern
	rec     *recorder
}

// measure measures one point.
func (x *segmentSession) measure(ctx context.Context, p segmentPoint) (_ *result, err error) {
	s := x.settings
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bays := make([]*bay, p.inFlight)
	for i := range bays {
		one := &bay{session: x, point: p, seed: seedOf(), rec: newRecorder(), at: segment.Place{Owner: s.target, Address: x.base + uint64(i)*p.block}}
		for _, b := range []*[]byte{&one.data, &one.check} {
			if b == &one.check && !(s.verify && p.write) {
				continue
			}
			var release func()
			if *b, release, err = x.carrier.Buffer(int(p.block)); err != nil {
				return nil, err
			}
			defer release()
		}
		one.seed.fill(one.data)
		bays[i] = one
	}
	var before, after segmentEdge
	w := &window{warm: int64(s.warm), length: int64(s.length), start: x.now()}
	w.onBegin = func() { before = x.edge() }
	w.onEnd = func() { after = x.edge() }
	var wait sync.WaitGroup
	for _, one := range bays {
		wait.Go(func() {
			if err := one.run(ctx, w); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(before.err, after.err); err != nil {
		return nil, err
	}
	all := newRecorder()
	for _, one := range bays {
		all.merge(one.rec)
	}
	r := &result{Kind: "segment", Figures: map[string]float64{}, Ops: all.ops, Seconds: float64(w.end.Load()-w.begin.Load()) / 1e9}
	r.Segment = &segmentSetting{
		Operation: operation(p.write), Block: p.block, InFlight: p.inFlight, Protocol: s.protocol, Metadata: s.metadata,
		Target: s.target, Lanes: s.lanes, Verified: s.verify, Warm: s.warm.Seconds(),
	}
	gb := float64(all.ops) * float64(p.block) / 1e9
	r.Figures[figOps] = float64(all.ops) / r.Seconds
	r.Figures[figBandwidth] = gb / r.Seconds
	latencies(r.Figures, all.latency)
	r.Figures[figOwnPerGB] = (after.own - before.own).Seconds() / gb
	if x.pid != 0 {
		r.Figures[figTargetPerGB] = (after.target - before.target).Seconds() / gb
		r.Figures[figCPUPerGB] = r.Figures[figOwnPerGB] + r.Figures[figTargetPerGB]
	}
	return r, nil
}

// segmentEdge is the processor time that was used up to an edge of the window.
type segmentEdge struct {
	own, target time.Duration
	err         error
}

func (x *segmentSession) edge() (e segmentEdge) {
	e.own = ownCPU()
	if x.pid != 0 {
		e.target, e.err = processCPU(x.pid)
	}
	return e
}

// run transfers until the window is over.
func (o *bay) run(ctx context.Context, w *window) error {
	c, now, verify := o.session.carrier, o.session.now, o.session.settings.verify
	if verify && !o.point.write {
		if err := c.Write(ctx, o.at, o.data); err != nil {
			return err
		}
		clear(o.data)
	}
	for w.now() != over {
		begun := now()
		var err error
		if o.point.write {
			err = c.Write(ctx, o.at, o.data)
		} else {
			err = c.Read(ctx, o.at, o.data)
		}
		ended := now()
		if err != nil {
			return err
		}
		if verify {
			if err := o.verify(ctx); err != nil {
				return err
			}
		}
		if w.now() == measuring {
			o.rec.ops++
			o.rec.time(ended - begun)
			w.any.Store(true)
		}
		w.advance(now())
	}
	return nil
}

// verify checks what was transferred, and leaves the buffer such that the next transfer can't pass by doing
// nothing.
func (o *bay) verify(ctx context.Context) error {
	got := o.data
	if o.point.write {
		got = o.check
		if err := o.session.carrier.Read(ctx, o.at, got); err != nil {
			return fmt.Errorf("reading back what was written: %w", err)
		}
	}
	if err := o.seed.check(got); err != nil {
		return fmt.Errorf("the content at %#x of %s is wrong: %w", o.at.Address, o.at.Owner, err)
	}
	if o.point.write {
		o.seed++
		o.seed.fill(o.data)
	} else {
		clear(o.data)
	}
	return nil
}
