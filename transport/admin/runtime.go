package admin

import (
	"math"
	"runtime"
	"runtime/metrics"

	"github.com/mooncake-go/mooncake-master/core"
)

// runtimeSamples are the numbers of the Go runtime that are printed: processor time of the garbage
// collector, the part of it that requests had to give, and how long it stopped everything.
var runtimeSamples = [...]string{
	"/cpu/classes/gc/total:cpu-seconds",
	"/cpu/classes/gc/mark/assist:cpu-seconds",
	"/cpu/classes/gc/mark/idle:cpu-seconds",
	"/gc/cycles/total:gc-cycles",
	"/sched/pauses/total/gc:seconds",
}

// runtimeSample is what the runtime said at one scrape, in the order of runtimeSamples.
type runtimeSample struct {
	values     [len(runtimeSamples) - 1]float64
	pauses     *metrics.Float64Histogram // nil if it does not say
	goroutines int
}

func readRuntime() runtimeSample {
	var all [len(runtimeSamples)]metrics.Sample
	for i, name := range runtimeSamples {
		all[i].Name = name
	}
	metrics.Read(all[:])
	r := runtimeSample{goroutines: runtime.NumGoroutine()}
	for i := range all {
		switch v := all[i].Value; v.Kind() {
		case metrics.KindFloat64:
			r.values[i] = v.Float64()
		case metrics.KindUint64:
			r.values[i] = float64(v.Uint64())
		case metrics.KindFloat64Histogram:
			r.pauses = v.Float64Histogram()
		}
	}
	return r
}

// runtimeFamilies have the names of the Go client library of Prometheus.
var runtimeFamilies = []family{
	ofRuntime("go_cpu_classes_gc_total_cpu_seconds_total", "processor time of the garbage collector, idle time that it used among it", 0),
	ofRuntime("go_cpu_classes_gc_mark_assist_cpu_seconds_total", "processor time that goroutines gave to the garbage collector because they allocated", 1),
	ofRuntime("go_cpu_classes_gc_mark_idle_cpu_seconds_total", "otherwise idle processor time that the garbage collector used", 2),
	ofRuntime("go_gc_cycles_total_gc_cycles_total", "garbage collections", 3),
	{name: "go_goroutines", help: "goroutines there are", kind: gauge, value: func(r *reading) float64 { return float64(r.runtime.goroutines) }},
	{name: "go_sched_pauses_total_gc_seconds", help: "how long the garbage collector stopped the program each time", kind: histogram, absent: untilObserved, buckets: func(r *reading) core.Histogram {
		if r.runtime.pauses == nil {
			return core.Histogram{}
		}
		return cumulate(r.runtime.pauses, pauseBounds)
	}},
}

func ofRuntime(name, help string, i int) family {
	return family{name: name, help: help, kind: counter, value: func(r *reading) float64 { return r.runtime.values[i] }}
}

// pauseBounds are the upper bounds of the buckets of pauses, in seconds.
var pauseBounds = func() []float64 {
	var bounds []float64
	for _, decade := range []float64{1e-5, 1e-4, 1e-3, 1e-2, 1e-1} {
		for _, f := range []float64{1, 1.5, 2, 3, 5, 7} {
			bounds = append(bounds, math.Round(decade*f*1e6)/1e6)
		}
	}
	return append(bounds, 1)
}()

// cumulate counts a histogram of the runtime into buckets with other bounds. What the runtime
// counts together is counted at its upper bound; so is the sum, which therefore is never too
// small. Of what has no upper bound the lower is taken.
func cumulate(h *metrics.Float64Histogram, bounds []float64) core.Histogram {
	out := core.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds))}
	next := 0
	for i, n := range h.Counts {
		up := h.Buckets[i+1]
		for next < len(bounds) && bounds[next] < up {
			out.Counts[next] = out.Count
			next++
		}
		out.Count += n
		if math.IsInf(up, 1) {
			up = h.Buckets[i]
		}
		if n > 0 {
			out.Sum += float64(n) * up
		}
	}
	for ; next < len(bounds); next++ {
		out.Counts[next] = out.Count
	}
	return out
}
