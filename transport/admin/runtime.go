package admin

import (
	"math"
	"runtime"
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

// runtimeCollector prints what the garbage collector of this program costs: processor time,
// the part of it that requests had to give, and how long it stopped everything; and how many
// goroutines there are. The names are
// those of the Go client library of Prometheus.
type runtimeCollector struct {
	counters   []runtimeCounter
	pauses     *prometheus.Desc
	goroutines *prometheus.Desc
}

type runtimeCounter struct {
	sample string
	desc   *prometheus.Desc
}

const pausesSample = "/sched/pauses/total/gc:seconds"

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

func newRuntimeCollector() *runtimeCollector {
	c := &runtimeCollector{
		pauses:     prometheus.NewDesc("go_sched_pauses_total_gc_seconds", "how long the garbage collector stopped the program each time", nil, nil),
		goroutines: prometheus.NewDesc("go_goroutines", "goroutines there are", nil, nil),
	}
	for _, m := range []struct{ sample, name, help string }{
		{"/cpu/classes/gc/total:cpu-seconds", "go_cpu_classes_gc_total_cpu_seconds_total", "processor time of the garbage collector, idle time that it used among it"},
		{"/cpu/classes/gc/mark/assist:cpu-seconds", "go_cpu_classes_gc_mark_assist_cpu_seconds_total", "processor time that goroutines gave to the garbage collector because they allocated"},
		{"/cpu/classes/gc/mark/idle:cpu-seconds", "go_cpu_classes_gc_mark_idle_cpu_seconds_total", "otherwise idle processor time that the garbage collector used"},
		{"/gc/cycles/total:gc-cycles", "go_gc_cycles_total_gc_cycles_total", "garbage collections"},
	} {
		c.counters = append(c.counters, runtimeCounter{m.sample, prometheus.NewDesc(m.name, m.help, nil, nil)})
	}
	return c
}

// Describe is part of prometheus.Collector.
func (c *runtimeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.counters {
		ch <- m.desc
	}
	ch <- c.pauses
	ch <- c.goroutines
}

// Collect is part of prometheus.Collector.
func (c *runtimeCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.goroutines, prometheus.GaugeValue, float64(runtime.NumGoroutine()))
	samples := make([]metrics.Sample, 0, len(c.counters)+1)
	for _, m := range c.counters {
		samples = append(samples, metrics.Sample{Name: m.sample})
	}
	samples = append(samples, metrics.Sample{Name: pausesSample})
	metrics.Read(samples)
	for i, m := range c.counters {
		switch v := samples[i].Value; v.Kind() {
		case metrics.KindFloat64:
			ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, v.Float64())
		case metrics.KindUint64:
			ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(v.Uint64()))
		}
	}
	if v := samples[len(c.counters)].Value; v.Kind() == metrics.KindFloat64Histogram {
		count, sum, buckets := cumulate(v.Float64Histogram(), pauseBounds)
		ch <- prometheus.MustNewConstHistogram(c.pauses, count, sum, buckets)
	}
}

// cumulate counts a histogram of the runtime into buckets with other bounds. What the runtime
// counts together is counted at its upper bound; so is the sum, which therefore is never too
// small. Of what has no upper bound the lower is taken.
func cumulate(h *metrics.Float64Histogram, bounds []float64) (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(bounds))
	next := 0
	for i, n := range h.Counts {
		up := h.Buckets[i+1]
		for next < len(bounds) && bounds[next] < up {
			buckets[bounds[next]] = count
			next++
		}
		count += n
		if math.IsInf(up, 1) {
			up = h.Buckets[i]
		}
		if n > 0 {
			sum += float64(n) * up
		}
	}
	for ; next < len(bounds); next++ {
		buckets[bounds[next]] = count
	}
	return count, sum, buckets
}
