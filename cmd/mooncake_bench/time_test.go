package main

import (
	"math"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	p := newPacer(1000, 1e6) // one per microsecond
	for i := range 3 {
		at, due := p.take(3000)
		if !due || at != int64(1000*(i+1)) {
			t.Fatalf("%d: %d %v", i, at, due)
		}
	}
	if at, due := p.take(3999); due {
		t.Errorf("issued one for %d before its time", at)
	}
	if p.at() != 4000 {
		t.Errorf("next at %d", p.at())
	}
	// Rates that do not divide a second must not drift.
	p = newPacer(0, 3)
	for range 3_000_000 {
		p.take(math.MaxInt64)
	}
	if p.at() != 1e15 {
		t.Errorf("after a million seconds the schedule is at %d", p.at())
	}
}

// fakeClock is a clock that a test moves.
type fakeClock struct{ now atomic.Int64 }

func (c *fakeClock) read() int64 { return c.now.Load() }

// stalled is a load against an echo that is only there to have connections; the test plays
// the master.
func stalled(t *testing.T, spec loadSpec, w *window, c *fakeClock) *load {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	space := newKeyspace(1, 1000, keyNamer{length: 64})
	var stop atomic.Bool
	x, err := newLoad(spec, 0, &target{
		addr: l.Addr().(*net.TCPAddr), dialect: dialects[0], space: space, clients: []uuid{{First: 1}}, size: 1, now: c.read, stop: &stop,
	}, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	return x
}

// answerAll plays a master that answers everything that is in flight now.
func (l *load) answerAll(t *testing.T, body []byte, now int64) {
	t.Helper()
	for i := range l.slots {
		if s := &l.slots[i]; s.busy {
			if err := l.answer(s, body, now); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCoordinatedOmission lets a master stall for 100 ms under an open loop of one operation
// per millisecond with one slot: the hundred operations that were due meanwhile count with
// the time they waited, although only one request was in flight.
func TestCoordinatedOmission(t *testing.T) {
	c := &fakeClock{}
	w := &window{length: int64(time.Second), onBegin: func() {}, onEnd: func() {}}
	l := stalled(t, loadSpec{work: work{opExist, 1}, conns: 1, outstanding: 1, rate: 1000}, w, c)
	l.pacer = newPacer(0, 1000)
	l.free = []*slot{&l.slots[0]}
	body := encodedTrue()
	ms := int64(time.Millisecond)
	for now := int64(0); now < 1000*ms; now += ms / 10 {
		w.advance(now)
		if err := l.dispatch(now); err != nil {
			t.Fatal(err)
		}
		if now >= 500*ms && now < 600*ms {
			continue // the master stalls
		}
		l.answerAll(t, body, now)
	}
	w.advance(1000 * ms)
	l.missed()
	h := l.rec.latency
	if n := h.TotalCount(); n != 1000 {
		t.Errorf("%d latencies of 1000 intended operations", n)
	}
	// Of the 1000, those intended from 500 to 600 ms waited: up to 100 ms, evenly spread, plus
	// the time to work off the queue, one per 0.1 ms.
	if got := time.Duration(h.ValueAtQuantile(99.9)); got < 95*time.Millisecond || got > 101*time.Millisecond {
		t.Errorf("p99.9 is %v", got)
	}
	if got := time.Duration(h.ValueAtQuantile(95)); got < 45*time.Millisecond || got > 60*time.Millisecond {
		t.Errorf("p95 is %v", got)
	}
	if l.rec.unsent != 0 {
		t.Errorf("%d unsent", l.rec.unsent)
	}
}

// TestUnsent lets a master die under an open loop: what was due and never sent counts.
func TestUnsent(t *testing.T) {
	c := &fakeClock{}
	w := &window{length: int64(time.Second), onBegin: func() {}, onEnd: func() {}}
	l := stalled(t, loadSpec{work: work{opExist, 1}, conns: 1, outstanding: 1, rate: 100}, w, c)
	l.pacer = newPacer(0, 100)
	l.free = []*slot{&l.slots[0]}
	w.advance(0)
	for _, now := range []int64{0, 1e8, 9e8} {
		if err := l.dispatch(now); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(1e9)
	if w.now() != measuring {
		t.Fatal("a window in which nothing has ended is over")
	}
	w.any.Store(true) // as if something else had ended
	w.advance(1e9)
	l.answerAll(t, encodedTrue(), 2e9)
	l.missed()
	if l.rec.unsent != 99 || l.rec.latency.TotalCount() != 100 {
		t.Errorf("%d unsent, %d latencies", l.rec.unsent, l.rec.latency.TotalCount())
	}
	if got := l.rec.latency.Max(); got < 199e7 || got > 201e7 {
		t.Errorf("longest %v", time.Duration(got))
	}
	if l.rec.ops != 0 {
		t.Errorf("%d operations ended after the window and count as throughput", l.rec.ops)
	}
}

// TestClosedLoopWindow counts exactly what ends within the window.
func TestClosedLoopWindow(t *testing.T) {
	c := &fakeClock{}
	edges := []string{}
	w := &window{warm: 100, length: 1000, onBegin: func() { edges = append(edges, "begin") }, onEnd: func() { edges = append(edges, "end") }}
	l := stalled(t, loadSpec{work: work{opExist, 1}, conns: 2, outstanding: 3}, w, c)
	for i := range l.slots {
		if err := l.begin(&l.slots[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, now := range []int64{0, 50, 99, 100, 600, 1099, 1100, 1101} {
		w.advance(now)
		l.answerAll(t, encodedTrue(), now)
	}
	if want := uint64(3 * 6); l.rec.ops != want || l.rec.keys != want { // at 100, 600 and 1099
		t.Errorf("%d operations, want %d", l.rec.ops, want)
	}
	if !slices.Equal(edges, []string{"begin", "end"}) || l.inFlight != 0 {
		t.Errorf("%v, %d in flight", edges, l.inFlight)
	}
	// What ended at 600 was sent at 100.
	if got := l.rec.latency.ValueAtQuantile(50); got < 495 || got > 505 {
		t.Errorf("median %d", got)
	}
}

// TestPartialPut ends only the keys whose start went well.
func TestPartialPut(t *testing.T) {
	c := &fakeClock{}
	w := &window{length: 1e9, onBegin: func() {}, onEnd: func() {}}
	l := stalled(t, loadSpec{work: work{opPut, 4}, conns: 1, outstanding: 1}, w, c)
	w.advance(0)
	s := &l.slots[0]
	if err := l.begin(s, 0); err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(s.keys)
	if err := l.answer(s, encodedStarts(0, -200, 0, -1700), 10); err != nil {
		t.Fatal(err)
	}
	if s.step != 1 || !slices.Equal(s.keys, []uint64{first[0], first[2]}) || s.request.call != callBatchPutEnd {
		t.Fatalf("step %d, keys %v of %v", s.step, s.keys, first)
	}
	if err := l.answer(s, encodedEnds(0, -704), 30); err != nil {
		t.Fatal(err)
	}
	r := l.rec
	if r.ops != 1 || r.keys != 1 || r.codes[-200] != 1 || r.codes[-1700] != 1 || r.codes[-704] != 1 || r.latency.Max() != 30 {
		t.Errorf("%+v", r)
	}
	// Nothing accepted: the slot pauses.
	if err := l.answer(s, encodedStarts(-200, -200, -200, -200), 40); err != nil {
		t.Fatal(err)
	}
	if r.failedOps != 1 || len(l.paused) != 1 || l.inFlight != 0 || l.paused[0].wake != 40+refusedPause {
		t.Errorf("%d failed, %d paused, %d in flight", r.failedOps, len(l.paused), l.inFlight)
	}
	if err := l.resume(40 + refusedPause); err != nil || l.inFlight != 1 {
		t.Errorf("%v, %d in flight after the pause", err, l.inFlight)
	}
}

func TestInterval95(t *testing.T) {
	var values []float64
	for i := range 20 {
		values = append(values, float64(i))
		low, high, ok := interval95(values)
		switch n := i + 1; {
		case n < 6 && ok:
			t.Errorf("%d values gave an interval", n)
		case n == 6 && (!ok || low != 0 || high != 5):
			t.Errorf("6 values: %v %v %v", low, high, ok)
		case n == 20 && (low != 5 || high != 14): // the sixth and the fifteenth, as tables have it
			t.Errorf("20 values: %v %v", low, high)
		}
	}
}

func TestRatios(t *testing.T) {
	side := func(cpu ...float64) (all []result) {
		for _, v := range cpu {
			all = append(all, result{Figures: map[string]float64{figCPU: v, figOps: 1, figGC: 0}})
		}
		return all
	}
	got := ratios(side(1, 3, 2), side(2, 2, 8))
	if len(got) != 2 || got[1].Figure != figCPU {
		t.Fatalf("%+v", got)
	}
	r := got[1]
	if r.Median != 0.5 || r.Min != 0.25 || r.Max != 1.5 || r.A != 2 || r.B != 2 || r.Pairs != 3 || r.Low95 != nil {
		t.Errorf("%+v", r)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v", m)
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
}
