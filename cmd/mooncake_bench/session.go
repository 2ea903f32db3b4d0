package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// place is a master that can be measured.
type place struct {
	addr    string
	pid     int    // 0: not known, and no processor time or memory
	metrics string // HOST:PORT, "" where there is none
	unmount bool   // whether it lives on after the measurement
}

// session measures points.
type session struct {
	settings *settings
	proc     proc
	now      clock
}

func newSession(s *settings) *session {
	start := time.Now()
	return &session{settings: s, proc: "/proc", now: func() int64 { return int64(time.Since(start)) }}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// snapshot is what is read at an edge of the window.
type snapshot struct {
	at     int64
	master usage
	own    time.Duration
	busy   time.Duration
	err    error
}

func (s *session) snapshot(pid int) (snap snapshot) {
	snap.at, snap.own = s.now(), ownCPU()
	if pid == 0 {
		return snap
	}
	var busyErr error
	snap.busy, busyErr = s.proc.busy()
	snap.master, snap.err = s.proc.usage(pid)
	snap.err = errors.Join(snap.err, busyErr)
	return snap
}

// measure stores objects and then measures one point. number tells points in front of one
// master apart.
func (s *session) measure(ctx context.Context, p point, at place, number int) (*result, error) {
	all, err := s.measureAll(ctx, []point{p}, at, number)
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// measureAll stores objects, as many as the first point needs, and measures all points one
// after the other.
func (s *session) measureAll(ctx context.Context, points []point, at place, number int) (all []result, err error) {
	cfg := s.settings
	addr, err := net.ResolveTCPAddr("tcp", at.addr)
	if err != nil {
		return nil, fmt.Errorf("address %q of the master: %w", at.addr, err)
	}
	seed := keyNamer{salt: cfg.seed}.scramble(uint64(number))
	pool, err := mountNodes(ctx, at.addr, cfg.dialect, cfg.segments, cfg.segmentSize, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.close(ctx, at.unmount)) }()

	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	t := &target{
		addr: addr, dialect: cfg.dialect, clients: pool.ids, size: cfg.size, seed: seed, now: s.now, stop: &stop,
		space: newKeyspace(cfg.tenants, uint64(cfg.filled(points[0].work)), keyNamer{length: cfg.keyLength, salt: seed}),
	}
	for i, p := range points {
		res := result{Kind: "run", Setting: cfg.setting(p), Figures: map[string]float64{}}
		if i == 0 {
			if err := s.fill(ctx, t, at, &res); err != nil {
				return nil, fmt.Errorf("storing objects: %w", err)
			}
		}
		if err := s.window(ctx, p, t, at, &res); err != nil {
			return nil, err
		}
		res.FailedPings = pool.failedPings.Load()
		all = append(all, res)
	}
	return all, nil
}

// window measures one point at a master that holds its objects.
func (s *session) window(ctx context.Context, p point, t *target, at place, res *result) (err error) {
	cfg := s.settings
	w := &window{warm: int64(cfg.warm), length: int64(cfg.length)}
	if p.work.op == opRemove {
		w.warm = 0 // it would use up what is to be measured
	}
	var before, after snapshot
	w.onBegin = func() { before = s.snapshot(at.pid) }
	w.onEnd = func() { after = s.snapshot(at.pid) }
	var gcBefore, gcAfter *goMetrics
	if at.metrics != "" {
		if gcBefore, err = scrape(ctx, at.metrics); err != nil {
			return err
		}
	}
	gcStart := s.now()
	loads, err := runLoads(ctx, s.specs(p), t, w)
	if err != nil {
		return err
	}
	if at.metrics != "" {
		if gcAfter, err = scrape(ctx, at.metrics); err != nil {
			return err
		}
	}
	if err := errors.Join(before.err, after.err); err != nil {
		return err
	}
	all := newRecorder()
	for _, l := range loads {
		if !l.spec.beside {
			all.merge(l.rec)
		}
	}
	seconds := float64(w.end.Load()-w.begin.Load()) / 1e9
	if seconds <= 0 || all.ops+all.failedOps == 0 {
		return fmt.Errorf("%v: no operation ended within the measured %.3f s", p, seconds)
	}
	res.Seconds = seconds
	res.Ops, res.FailedOps, res.Misses, res.Unsent = all.ops, all.failedOps, all.misses, all.unsent
	res.Failures = byCode(all.codes)
	rates(res.Figures, all, seconds)
	latencies(res.Figures, all.latency)
	costs(res.Figures, all, before, after, at.pid != 0)
	collector(res.Figures, gcBefore, gcAfter, after.master.since(before.master), float64(s.now()-gcStart)/1e9)
	for _, l := range loads {
		if l.spec.beside {
			b := besideResult{Work: l.spec.work.String(), Conns: l.spec.conns, Ops: float64(l.rec.ops) / seconds, P99: us(l.rec.latency.ValueAtQuantile(99))}
			if len(l.rec.codes) > 0 {
				b.Failures = byCode(l.rec.codes)
			}
			res.Beside = append(res.Beside, b)
		}
	}
	return nil
}

// specs divides a point among threads and adds what goes on beside it.
func (s *session) specs(p point) []loadSpec {
	cfg := s.settings
	var specs []loadSpec
	left := p.conns
	for i := range cfg.threads {
		n := left / (cfg.threads - i)
		left -= n
		specs = append(specs, loadSpec{
			name: p.work.String(), work: p.work, mix: cfg.mix, conns: n, outstanding: cfg.outstanding,
			rate: cfg.rate * float64(n) / float64(p.conns),
		})
	}
	for _, b := range cfg.beside {
		specs = append(specs, loadSpec{name: b.String(), work: b.work, mix: cfg.mix, conns: b.conns, outstanding: 1, rate: b.rate, beside: true})
	}
	for i := range specs {
		if i > 0 {
			specs[i].slot = specs[i-1].slot + specs[i-1].conns*specs[i-1].outstanding
		}
		specs[i].slots = cfg.slots(p)
	}
	return specs
}

// fill stores the objects that a point begins with and sees what they cost in memory.
func (s *session) fill(ctx context.Context, t *target, at place, res *result) error {
	if t.space.filled == 0 {
		return nil
	}
	cfg := s.settings
	var before, after snapshot
	w := &window{onBegin: func() { before = s.snapshot(at.pid) }, onEnd: func() { after = s.snapshot(at.pid) }}
	spec := loadSpec{name: "fill", work: work{opFill, cfg.fillBatch}, conns: cfg.fillConns, outstanding: 1}
	loads, err := runLoads(ctx, []loadSpec{spec}, t, w)
	if err != nil {
		return err
	}
	if err := errors.Join(before.err, after.err); err != nil {
		return err
	}
	rec := loads[0].rec
	if rec.keys == 0 {
		return fmt.Errorf("none of %d was accepted: %v", t.space.stored(), byCode(rec.codes))
	}
	if len(rec.codes) > 0 {
		res.FillFailed = byCode(rec.codes)
	}
	res.Figures[figFill] = float64(rec.keys) / (float64(w.end.Load()-w.begin.Load()) / 1e9)
	if at.pid != 0 && after.master.rss > before.master.rss {
		res.Figures[figPerObject] = float64(after.master.rss-before.master.rss) / float64(rec.keys)
	}
	return nil
}

// runLoads connects loads, runs each in a thread of its own, and waits for all.
func runLoads(ctx context.Context, specs []loadSpec, t *target, w *window) (loads []*load, err error) {
	defer func() {
		for _, l := range loads {
			l.close()
		}
	}()
	for i, spec := range specs {
		l, err := newLoad(spec, i, t, w)
		if err != nil {
			return nil, err
		}
		loads = append(loads, l)
		if !spec.beside {
			w.running.Add(1)
		}
	}
	w.start = t.now()
	errs := make([]error, len(loads))
	var wait sync.WaitGroup
	for i, l := range loads {
		wait.Go(func() {
			if errs[i] = l.run(); errs[i] != nil {
				t.stop.Store(true)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return loads, nil
}

// us turns nanoseconds into microseconds.
func us[N int64 | time.Duration](ns N) float64 { return float64(ns) / 1e3 }

func rates(fig map[string]float64, r *recorder, seconds float64) {
	fig[figOps] = float64(r.ops) / seconds
	fig[figKeys] = float64(r.keys) / seconds
	failed := uint64(0)
	for _, n := range r.codes {
		failed += n
	}
	fig[figRefused] = float64(failed)
	fig[figFailed] = float64(failed) / float64(max(r.keys+failed, 1))
}

func latencies(fig map[string]float64, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	fig[figMean] = h.Mean() / 1e3
	for name, q := range map[string]float64{figP50: 50, figP95: 95, figP99: 99, figP999: 99.9} {
		fig[name] = us(h.ValueAtQuantile(q))
	}
	fig[figMax] = us(h.Max())
}

func costs(fig map[string]float64, r *recorder, before, after snapshot, master bool) {
	ops, elapsed := float64(max(r.ops, 1)), after.at-before.at
	own := after.own - before.own
	fig[figOwn] = us(own) / ops
	if !master || elapsed <= 0 {
		return
	}
	used := after.master.since(before.master)
	fig[figCPU] = us(used.cpu) / ops
	fig[figCPUKey] = us(used.cpu) / float64(max(r.keys, 1))
	fig[figUser] = us(used.cpu) * used.userShare() / ops
	fig[figRSS] = float64(used.rss)
	fig[figCores] = float64(used.cpu) / float64(elapsed)
	// Ticks are coarse: on a quiet machine this may come out a little below zero.
	fig[figOther] = float64(after.busy-before.busy-used.cpu-own) / float64(elapsed)
}

// collector says what garbage collection cost. The metrics are read a little before and after
// the window, warming included, and taken as shares of that longer time.
func collector(fig map[string]float64, before, after *goMetrics, used usage, seconds float64) {
	if before == nil || after == nil {
		return
	}
	if cores, ok := fig[figCores]; ok && used.cpu > 0 {
		for series, figure := range map[string]string{seriesGCCPU: figGC, seriesAssist: figAssist} {
			if v, has := after.values[series]; has {
				fig[figure] = (v - before.values[series]) / (cores * seconds)
			}
		}
	}
	if sum, has := after.values[seriesPauseSum]; has {
		fig[figPause] = (sum - before.values[seriesPauseSum]) / seconds
		pauses := after.pausesSince(before)
		fig[figPauses] = float64(pauses.count())
		if p99, ok := pauses.quantile(0.99); ok {
			longest, _ := pauses.quantile(1)
			fig[figPauseP99], fig[figPauseMax] = 1e6*p99, 1e6*longest
		}
	}
}
