package admin

import (
	"math"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestCumulate(t *testing.T) {
	h := &metrics.Float64Histogram{
		Counts:  []uint64{1, 2, 0, 4, 8},
		Buckets: []float64{math.Inf(-1), 1, 2, 3, 4, math.Inf(1)},
	}
	count, sum, buckets := cumulate(h, []float64{0.5, 1, 2.5, 4, 9})
	want := map[float64]uint64{0.5: 0, 1: 1, 2.5: 3, 4: 7, 9: 7}
	if count != 15 || sum != 1*1+2*2+4*4+8*4 || !reflect.DeepEqual(buckets, want) {
		t.Errorf("%d pauses of %v s, %v, want %v", count, sum, buckets, want)
	}
}

// TestRuntimeMetrics finds a collection that took place.
func TestRuntimeMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(newRuntimeCollector()); err != nil {
		t.Fatal(err)
	}
	gather := func() map[string]*dto.Metric {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]*dto.Metric{}
		for _, f := range families {
			found[f.GetName()] = f.Metric[0]
		}
		return found
	}
	before := gather()
	runtime.GC()
	after := gather()
	for _, name := range []string{"go_cpu_classes_gc_total_cpu_seconds_total", "go_gc_cycles_total_gc_cycles_total"} {
		if a, b := after[name].GetCounter().GetValue(), before[name].GetCounter().GetValue(); a <= b {
			t.Errorf("%s was %v before a collection and is %v after it", name, b, a)
		}
	}
	if after["go_cpu_classes_gc_mark_assist_cpu_seconds_total"] == nil || after["go_cpu_classes_gc_mark_idle_cpu_seconds_total"] == nil {
		t.Errorf("series are missing: %v", after)
	}
	if n := after["go_goroutines"].GetGauge().GetValue(); n < 1 {
		t.Errorf("%v goroutines", n)
	}
	const pauses = "go_sched_pauses_total_gc_seconds"
	a, b := after[pauses].GetHistogram(), before[pauses].GetHistogram()
	if a.GetSampleCount() <= b.GetSampleCount() || a.GetSampleSum() <= b.GetSampleSum() {
		t.Errorf("%d pauses of %v s before a collection, %d of %v s after it", b.GetSampleCount(), b.GetSampleSum(), a.GetSampleCount(), a.GetSampleSum())
	}
	if n := len(a.Bucket); n != len(pauseBounds) || a.Bucket[n-1].GetCumulativeCount() > a.GetSampleCount() {
		t.Errorf("%v", a)
	}
}
