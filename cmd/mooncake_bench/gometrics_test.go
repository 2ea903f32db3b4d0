package main

import (
	"strings"
	"testing"
)

const goMetricsPage = `# HELP x
go_cpu_classes_gc_total_cpu_seconds_total 1.5e0
go_cpu_classes_gc_mark_assist_cpu_seconds_total 0.25
go_sched_pauses_total_gc_seconds_bucket{le="0.000010"} 2
go_sched_pauses_total_gc_seconds_bucket{le="0.000100"} 90
go_sched_pauses_total_gc_seconds_bucket{le="0.001000"} 102
go_sched_pauses_total_gc_seconds_bucket{le="+Inf"} 102
go_sched_pauses_total_gc_seconds_sum 3
master_x{a="b c"} 1
`

func TestPauses(t *testing.T) {
	before, err := parseGoMetrics(strings.NewReader(goMetricsPage))
	if err != nil {
		t.Fatal(err)
	}
	more := strings.NewReplacer(`10"} 2`, `10"} 3`, " 90\n", " 189\n", " 102\n", " 202\n").Replace(goMetricsPage)
	after, err := parseGoMetrics(strings.NewReader(more))
	if err != nil {
		t.Fatal(err)
	}
	// 1 pause of up to 10 us, 98 of up to 100 us, 1 of up to 1 ms since.
	p := after.pausesSince(before)
	for _, test := range []struct{ q, want float64 }{{0.01, 1e-5}, {0.5, 1e-4}, {0.99, 1e-4}, {1, 1e-3}} {
		if got, ok := p.quantile(test.q); !ok || got != test.want {
			t.Errorf("quantile %v is %v (%v), want %v", test.q, got, ok, test.want)
		}
	}
	if p.count() != 100 {
		t.Errorf("%v pauses", p.count())
	}
	// Nothing happened, or something that is beyond all bounds.
	if v, ok := before.pausesSince(before).quantile(0.99); ok {
		t.Errorf("%v without pauses", v)
	}
	beyond, err := parseGoMetrics(strings.NewReader(strings.Replace(goMetricsPage, `+Inf"} 102`, `+Inf"} 110`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := beyond.pauses.quantile(1); ok {
		t.Errorf("%v is given for a pause beyond all bounds", v)
	}
	figures := map[string]float64{figCores: 0.5}
	collector(figures, before, after, usage{cpu: 1}, 2)
	if figures[figPauses] != 100 || figures[figPauseMax] != 1000 || figures[figPauseP99] != 100 || figures[figGC] != 0 {
		t.Errorf("%v", figures)
	}
	for _, page := range []string{"go_sched_pauses_total_gc_seconds_sum x\n", `go_sched_pauses_total_gc_seconds_bucket{le="x"} 1`, `go_sched_pauses_total_gc_seconds_bucket{le="1"}`} {
		if m, err := parseGoMetrics(strings.NewReader(page)); err == nil {
			t.Errorf("%q was read as %v", page, m)
		}
	}
}
