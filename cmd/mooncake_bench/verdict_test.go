package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// sideOf makes a side with one result per value of a figure.
func sideOf(label, figure string, values ...float64) side {
	s := side{Label: label}
	for _, v := range values {
		s.Results = append(s.Results, result{Figures: map[string]float64{figure: v}})
	}
	return s
}

func TestJudge(t *testing.T) {
	ours := []float64{1, 2, 3}
	tests := []struct {
		name    string
		limit   limit
		theirs  []float64
		ratio   float64
		verdict string
	}{
		{"below", limit{figure: figCPU, most: 0.5}, []float64{2, 4, 6.1}, 0.5, verdictMet},
		{"the middle pair decides", limit{figure: figCPU, most: 0.5}, []float64{100, 3.9, 1}, 2 / 3.9, verdictMissed},
		{"at least", limit{figure: figCPU, least: 1.3}, []float64{0.5, 1, 1.5}, 2, verdictMet},
		{"too little", limit{figure: figCPU, least: 2.1}, []float64{0.5, 1, 1.5}, 2, verdictMissed},
		{"nothing asked", limit{figure: figCPU}, []float64{1, 1, 1}, 2, verdictReported},
	}
	for _, test := range tests {
		sides := []side{sideOf("ours", figCPU, ours...), sideOf("theirs", figCPU, test.theirs...)}
		checks, err := judge(sides, "theirs", []limit{test.limit})
		if err != nil || len(checks) != 1 {
			t.Fatalf("%s: %v, %v", test.name, checks, err)
		}
		c := checks[0]
		if c.Verdict != test.verdict || math.Abs(c.Median-test.ratio) > 1e-12 || c.Side != "ours" || c.Against != "theirs" || c.A != 2 || c.Pairs != 3 || c.Low95 != nil {
			t.Errorf("%s: %+v, want %s of %v", test.name, c, test.verdict, test.ratio)
		}
		if !(c.Min <= c.Median && c.Median <= c.Max) {
			t.Errorf("%s: %v is not between %v and %v", test.name, c.Median, c.Min, c.Max)
		}
	}
}

func TestJudgeSides(t *testing.T) {
	sides := []side{sideOf("1k", figCPU, 2, 2), sideOf("1M", figCPU, 3, 3), sideOf("10M", figCPU, 4, 4)}
	checks, err := judge(sides, "1k", []limit{{figure: figCPU, most: 1.5}})
	if err != nil || len(checks) != 2 {
		t.Fatalf("%v, %v", checks, err)
	}
	if checks[0].Side != "1M" || checks[0].Verdict != verdictMet || checks[1].Side != "10M" || checks[1].Verdict != verdictMissed {
		t.Errorf("%+v", checks)
	}
	checks, err = judge(sides, "1k", []limit{{figure: figCPU, side: "10M", most: 2}})
	if err != nil || len(checks) != 1 || checks[0].Side != "10M" || checks[0].Verdict != verdictMet {
		t.Errorf("%+v, %v", checks, err)
	}
	if _, err := judge(sides, "2k", []limit{{figure: figCPU}}); err == nil || !strings.Contains(err.Error(), `"2k"`) {
		t.Errorf("a base that is not there: %v", err)
	}
	// A figure that is not known of every run cannot be judged.
	delete(sides[1].Results[1].Figures, figCPU)
	if _, err := judge(sides, "1k", []limit{{figure: figCPU}}); err == nil || !strings.Contains(err.Error(), "1 of 2 pairs") {
		t.Errorf("half of the pairs: %v", err)
	}
}

func TestJudgeOwn(t *testing.T) {
	none := limit{figure: figRefused, none: true}
	for _, test := range []struct {
		side    side
		verdict string
	}{
		{sideOf("ours", figRefused, 0, 0), verdictMet},
		{sideOf("ours", figRefused, 0, 1), verdictMissed},
		{sideOf("ours", figCPU, 0, 1), verdictMissed}, // not known
	} {
		checks, err := judge([]side{test.side}, "", []limit{none})
		if err != nil || len(checks) != 1 || checks[0].Verdict != test.verdict || checks[0].Against != "" || *checks[0].Most != 0 {
			t.Errorf("%+v, %v, want %s", checks, err, test.verdict)
		}
	}
	checks, err := judge([]side{sideOf("ours", figGC, 0.01, 0.03)}, "", []limit{{figure: figGC, own: true}})
	if err != nil || checks[0].A != 0.02 || checks[0].Verdict != verdictReported {
		t.Errorf("%+v, %v", checks, err)
	}
	if cells := checks[0].cells(); cells[1] != "2.00 % (1.00 %–3.00 %)" || cells[4] != "-" {
		t.Errorf("%q", cells)
	}
}

// TestLowerEnd: a median that is over the limit is met while the interval reaches below.
func TestLowerEnd(t *testing.T) {
	on := []float64{0.98, 1.00, 1.01, 1.05, 1.06, 1.07, 1.08, 1.12}
	off := make([]float64, len(on))
	for i := range off {
		off[i] = 1
	}
	sides := []side{sideOf("on", figCPU, on...), sideOf("off", figCPU, off...)}
	checks, err := judge(sides, "off", []limit{{figure: figCPU, most: 1.03, low: true}, {figure: figCPU, most: 1.03}})
	if err != nil {
		t.Fatal(err)
	}
	if c := checks[0]; math.Abs(c.Median-1.055) > 1e-12 || c.Verdict != verdictMet || !c.OfLow || *c.Low95 > 1.03 {
		t.Errorf("%+v", c)
	}
	if c := checks[1]; c.Verdict != verdictMissed || c.OfLow {
		t.Errorf("%+v", c)
	}
	if cells := checks[0].cells(); cells[4] != "lower end ≤ 1.03" || !strings.Contains(cells[3], "95 %: ") {
		t.Errorf("%q", cells)
	}
	for i := range on {
		sides[0].Results[i].Figures[figCPU] += 0.1
	}
	if checks, err = judge(sides, "off", []limit{{figure: figCPU, most: 1.03, low: true}}); err != nil || checks[0].Verdict != verdictMissed {
		t.Errorf("%+v, %v", checks, err)
	}
}

// TestBootstrap draws many sets from a distribution whose median is known, and counts how often
// the interval holds it.
func TestBootstrap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const sets = 60
	held := 0
	for range sets {
		values := make([]float64, 20)
		for i := range values {
			values[i] = math.Exp(r.NormFloat64() / 10) // median 1
		}
		low, high, ok := bootstrap95(values)
		if !ok || !(low <= median(values) && median(values) <= high) {
			t.Fatalf("%v to %v (%v) does not hold %v", low, high, ok, median(values))
		}
		if again, _, _ := bootstrap95(values); again != low {
			t.Fatalf("%v, then %v", low, again)
		}
		if low <= 1 && 1 <= high {
			held++
		}
	}
	if held < sets*85/100 {
		t.Errorf("%d of %d intervals hold the median", held, sets)
	}
	if low, high, ok := bootstrap95([]float64{2, 2, 2, 2, 2, 2}); !ok || low != 2 || high != 2 {
		t.Errorf("%v to %v (%v), want 2", low, high, ok)
	}
	if _, _, ok := bootstrap95([]float64{1, 2, 3, 4, 5}); ok {
		t.Error("an interval from five values")
	}
}

func TestGains(t *testing.T) {
	const text = `goos: linux
BenchmarkExist128                	     100	     20000 ns/op	       0 B/op	       0 allocs/op
BenchmarkExist128-2              	     100	     11000 ns/op	       0 B/op	       0 allocs/op
BenchmarkControl128       	     100	     30000 ns/op
BenchmarkControl128-2     	     100	     15000 ns/op
PASS
`
	gains, err := gainsOf(text)
	if err != nil || len(gains) != 2 || gains["Exist128"] != 20.0/11 || gains["Control128"] != 2 {
		t.Fatalf("%v, %v", gains, err)
	}
	for name, broken := range map[string]string{
		"neither 1 nor 2 cores": strings.ReplaceAll(text, "128-2", "128-4"),
		"did not run on 1 and":  strings.ReplaceAll(text, "Control128-2", "Control64-2"),
		"benchmark line":        strings.ReplaceAll(text, "20000 ns", "x ns"),
	} {
		if got, err := gainsOf(broken); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, %v; want an error about %q", got, err, name)
		}
	}
	records, err := scalingRecords("scaling", map[string][]float64{"Get128": {1.9, 1.7, 1.85}, "Exist128": {1.6, 1.5, 1.7}, "Control128": {2, 1.9, 2}})
	if err != nil || len(records) != 2 {
		t.Fatalf("%v, %v", records, err)
	}
	exist, get := records[0].Checks[0], records[1].Checks[0]
	if records[0].Point != "Exist128" || exist.Verdict != verdictMissed || exist.Median != 1.6/2 || exist.Pairs != 3 {
		t.Errorf("%+v", exist)
	}
	if get.Verdict != verdictMet || get.Median != 1.85/2 || *get.Least != scalingLeast {
		t.Errorf("%+v", get)
	}
	if _, err := scalingRecords("scaling", map[string][]float64{"Get128": {1}}); err == nil {
		t.Error("a row without a control")
	}
}
