package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// limit says how far a figure of one side of a trial may be from that of its base.
type limit struct {
	figure string
	side   string  // label of the side that is judged; "" is every side but the base
	most   float64 // of the median ratio; 0: no such bound
	least  float64 // of the median ratio; 0: no such bound
	low    bool    // most is for the lower end of the 95 % interval of the median ratio
	none   bool    // the figure itself has to be 0 in every run
	own    bool    // the figure itself is reported, not a ratio
}

// The verdicts of a check.
const (
	verdictMet      = "met"
	verdictMissed   = "MISSED"
	verdictReported = "reported" // nothing was asked
)

// check is one figure of one point, and what was asked of it.
type check struct {
	Figure  string  `json:"figure"`
	Side    string  `json:"side"`
	Against string  `json:"against,omitempty"` // absent: the figure stands for itself
	A       float64 `json:"a"`                 // median
	B       float64 `json:"b,omitempty"`       // median
	Median  float64 `json:"median,omitempty"`  // of A/B of each pair
	Min     float64 `json:"min,omitempty"`
	Max     float64 `json:"max,omitempty"`
	Pairs   int     `json:"pairs"`
	// Low95 and High95 bound the median ratio, by bootstrap; absent below six pairs.
	Low95   *float64 `json:"low95,omitempty"`
	High95  *float64 `json:"high95,omitempty"`
	Most    *float64 `json:"most,omitempty"`
	OfLow   bool     `json:"of_low,omitempty"` // Most is for Low95
	Least   *float64 `json:"least,omitempty"`
	Verdict string   `json:"verdict"`
}

// bootstrapDraws is how many samples the interval is taken from.
const bootstrapDraws = 10_000

// fewestPairs is below what number of pairs there is no interval.
const fewestPairs = 6

// bootstrap95 returns the interval that holds the medians of 95 of 100 samples of the values,
// each as large as they are and drawn with replacement. The same values give the same interval.
func bootstrap95(values []float64) (low, high float64, ok bool) {
	if len(values) < fewestPairs {
		return 0, 0, false
	}
	rng := rand.New(rand.NewPCG(uint64(len(values)), 95))
	medians, sample := make([]float64, bootstrapDraws), make([]float64, len(values))
	for i := range medians {
		for k := range sample {
			sample[k] = values[rng.IntN(len(values))]
		}
		medians[i] = median(sample)
	}
	slices.Sort(medians)
	tail := bootstrapDraws / 40
	return medians[tail], medians[bootstrapDraws-1-tail], true
}

// judge holds the results of a point against the limits. base is the label of the side that
// the others are compared with.
func judge(sides []side, base string, limits []limit) ([]check, error) {
	var all []check
	at := slices.IndexFunc(sides, func(s side) bool { return s.Label == base })
	for _, l := range limits {
		for i := range sides {
			s := &sides[i]
			if l.side != "" && l.side != s.Label {
				continue
			}
			if l.none || l.own {
				all = append(all, judgeOwn(s, l))
				continue
			}
			if i == at {
				continue
			}
			if at < 0 {
				return nil, fmt.Errorf("no side is called %q to compare %s with", base, s.Label)
			}
			pairs := pair(l.figure, s.Results, sides[at].Results)
			if len(pairs) == 0 || len(pairs) < len(s.Results) {
				return nil, fmt.Errorf("%s of %s and %s is known of only %d of %d pairs", l.figure, s.Label, base, len(pairs), len(s.Results))
			}
			all = append(all, judgePairs(pairs, l, s.Label, base))
		}
	}
	return all, nil
}

// values are a figure in all results that have it.
func values(figure string, results []result) []float64 {
	var all []float64
	for _, r := range results {
		if v, ok := r.Figures[figure]; ok {
			all = append(all, v)
		}
	}
	return all
}

// pair pairs the results of two sides in which both have a positive figure.
func pair(figure string, a, b []result) [][2]float64 {
	var pairs [][2]float64
	for i := range min(len(a), len(b)) {
		x, y := a[i].Figures[figure], b[i].Figures[figure]
		if x > 0 && y > 0 {
			pairs = append(pairs, [2]float64{x, y})
		}
	}
	return pairs
}

// judgeOwn judges a figure that stands for itself.
func judgeOwn(s *side, l limit) check {
	c := check{Figure: l.figure, Side: s.Label, Verdict: verdictReported}
	list := values(l.figure, s.Results)
	if c.Pairs = len(list); c.Pairs > 0 {
		c.A, c.Min, c.Max = median(list), slices.Min(list), slices.Max(list)
	}
	if l.none {
		c.Most, c.Verdict = new(0.0), verdictMissed
		if c.Pairs == len(s.Results) && c.Max == 0 {
			c.Verdict = verdictMet
		}
	}
	return c
}

// judgePairs judges the ratio of the first to the second of each pair.
func judgePairs(pairs [][2]float64, l limit, label, base string) check {
	var a, b, q []float64
	for _, p := range pairs {
		a, b, q = append(a, p[0]), append(b, p[1]), append(q, p[0]/p[1])
	}
	c := check{
		Figure: l.figure, Side: label, Against: base, A: median(a), B: median(b),
		Median: median(q), Min: slices.Min(q), Max: slices.Max(q), Pairs: len(q), Verdict: verdictReported,
	}
	if low, high, ok := bootstrap95(q); ok {
		c.Low95, c.High95 = &low, &high
	}
	met := true
	if l.most > 0 {
		c.Most = &l.most
		held := c.Median
		if l.low && c.Low95 != nil {
			held, c.OfLow = *c.Low95, true
		}
		met = held <= l.most
	}
	if l.least > 0 {
		c.Least = &l.least
		met = met && c.Median >= l.least
	}
	switch {
	case c.Most == nil && c.Least == nil:
	case met:
		c.Verdict = verdictMet
	default:
		c.Verdict = verdictMissed
	}
	return c
}
