package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// phase is how far a run has come.
type phase int32

const (
	warming phase = iota
	measuring
	over
)

// window is the measured stretch of time of a run, shared by its loads. The first load that sees
// that it is time moves it on; hooks run in that load's thread right at the edges.
type window struct {
	phase atomic.Int32
	begin atomic.Int64 // when measuring began
	end   atomic.Int64 // when it ended; 0 until then

	warm, length int64 // nanoseconds; length 0: until the loads run out of keys
	start        int64 // when warming began
	onBegin      func()
	onEnd        func()
	running      atomic.Int32 // loads that may still find work
	begun, ended sync.Once
	any          atomic.Bool // an operation has ended within
}

// now returns the phase.
func (w *window) now() phase { return phase(w.phase.Load()) }

// advance moves the window on if it is time. A window in which nothing has ended yet goes on:
// on a machine that is busy with other things it would have nothing to say.
func (w *window) advance(now int64) {
	if w.now() == warming && now-w.start >= w.warm {
		w.begun.Do(func() {
			w.onBegin()
			w.begin.Store(now)
			w.phase.Store(int32(measuring))
		})
	}
	if w.now() == measuring && w.length > 0 && now-w.begin.Load() >= w.length && w.any.Load() {
		w.finish(now)
	}
}

// finish ends the window once.
func (w *window) finish(now int64) {
	w.ended.Do(func() {
		w.end.Store(now)
		w.phase.Store(int32(over))
		w.onEnd()
	})
}

// edge is when the phase changes next, as far as that is known.
func (w *window) edge() (int64, bool) {
	switch w.now() {
	case warming:
		return w.start + w.warm, true
	case measuring:
		return w.begin.Load() + w.length, w.length > 0 && w.any.Load()
	}
	return 0, false
}

// longest is the longest latency that a histogram tells apart; anything beyond counts as it.
const longest = int64(10 * time.Minute)

// recorder counts what ended in the window. One load owns it.
type recorder struct {
	latency   *hdrhistogram.Histogram // nanoseconds, of operations that did something
	ops       uint64                  // operations in which at least one key was answered
	failedOps uint64                  // operations in which none was
	keys      uint64                  // keys answered, misses among them
	misses    uint64
	codes     map[int32]uint64 // keys that failed, by code
	unsent    uint64           // open loop: operations that were due and never sent
}

func newRecorder() *recorder {
	return &recorder{latency: hdrhistogram.New(1, longest, 3), codes: map[int32]uint64{}}
}

// time records one latency.
func (r *recorder) time(d int64) {
	// Within bounds by construction, so that recording cannot fail.
	_ = r.latency.RecordValue(min(max(d, 1), longest))
}

// merge adds what other counted.
func (r *recorder) merge(other *recorder) {
	r.latency.Merge(other.latency)
	r.ops += other.ops
	r.failedOps += other.failedOps
	r.keys += other.keys
	r.misses += other.misses
	r.unsent += other.unsent
	for c, n := range other.codes {
		r.codes[c] += n
	}
}
