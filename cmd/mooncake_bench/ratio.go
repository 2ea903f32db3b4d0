package main

import (
	"math"
	"slices"
)

// ratio compares one figure of two masters over several pairs of runs.
type ratio struct {
	Figure string  `json:"figure"`
	A      float64 `json:"a"`      // median
	B      float64 `json:"b"`      // median
	Median float64 `json:"median"` // of A/B of each pair
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Pairs  int     `json:"pairs"`
	// Low95 and High95 bound the median of the ratio with a confidence of at least 95 %, from
	// the order of the pairs alone; absent below six pairs, which can't say so much.
	Low95  *float64 `json:"low95,omitempty"`
	High95 *float64 `json:"high95,omitempty"`
}

// median returns the middle of the values, NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// interval95 returns the narrowest interval between two of the values that holds the median
// of what they are drawn from with a probability of at least 95 %: how many of n values fall
// below that median is binomial with one half, whatever their distribution.
func interval95(values []float64) (low, high float64, ok bool) {
	n := len(values)
	s := slices.Sorted(slices.Values(values))
	rank, below := 0, math.Pow(0.5, float64(n)) // probability that at most rank values fall below
	term := below
	if 2*below > 0.05 {
		return 0, 0, false
	}
	for {
		term *= float64(n-rank) / float64(rank+1)
		if 2*(below+term) > 0.05 {
			return s[rank], s[n-1-rank], true
		}
		below += term
		rank++
	}
}

// ratios compares all figures that both sides of every pair have and that are positive.
func ratios(a, b []result) []ratio {
	var out []ratio
	for _, name := range figureOrder {
		var as, bs, qs []float64
		for i := range min(len(a), len(b)) {
			x, hasA := a[i].Figures[name]
			y, hasB := b[i].Figures[name]
			if hasA && hasB && x > 0 && y > 0 {
				as, bs, qs = append(as, x), append(bs, y), append(qs, x/y)
			}
		}
		if len(qs) == 0 || len(qs) < min(len(a), len(b)) {
			continue
		}
		r := ratio{Figure: name, A: median(as), B: median(bs), Median: median(qs), Min: slices.Min(qs), Max: slices.Max(qs), Pairs: len(qs)}
		if low, high, ok := interval95(qs); ok {
			r.Low95, r.High95 = &low, &high
		}
		out = append(out, r)
	}
	return out
}
