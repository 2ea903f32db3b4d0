package admin

import (
	"math"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/mooncake-go/mooncake-master/core"
)

func TestCumulate(t *testing.T) {
	h := &metrics.Float64Histogram{
		Counts:  []uint64{1, 2, 0, 4, 8},
		Buckets: []float64{math.Inf(-1), 1, 2, 3, 4, math.Inf(1)},
	}
	bounds := []float64{0.5, 1, 2.5, 4, 9}
	want := core.Histogram{Bounds: bounds, Counts: []uint64{0, 1, 3, 7, 7}, Sum: 1*1 + 2*2 + 4*4 + 8*4, Count: 15}
	if got := cumulate(h, bounds); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRuntimeMetrics finds a collection that took place.
func TestRuntimeMetrics(t *testing.T) {
	before := readRuntime()
	runtime.GC()
	after := readRuntime()
	for _, i := range []int{0, 3} {
		if a, b := after.values[i], before.values[i]; a <= b {
			t.Errorf("%s was %v before a collection and is %v after it", runtimeSamples[i], b, a)
		}
	}
	if after.goroutines < 1 {
		t.Errorf("%d goroutines", after.goroutines)
	}
	a, b := cumulate(after.pauses, pauseBounds), cumulate(before.pauses, pauseBounds)
	if a.Count <= b.Count || a.Sum <= b.Sum {
		t.Errorf("%d pauses of %v s before a collection, %d of %v s after it", b.Count, b.Sum, a.Count, a.Sum)
	}
	if last := a.Counts[len(a.Counts)-1]; len(a.Counts) != len(pauseBounds) || last > a.Count {
		t.Errorf("%+v", a)
	}
}
