package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The series of a Go master's metrics that say what its garbage collector costs.
const (
	seriesGCCPU       = "go_cpu_classes_gc_total_cpu_seconds_total"
	seriesAssist      = "go_cpu_classes_gc_mark_assist_cpu_seconds_total"
	seriesPauseSum    = "go_sched_pauses_total_gc_seconds_sum"
	seriesPauseBucket = "go_sched_pauses_total_gc_seconds_bucket"
)

// goMetrics are the values of those series that a master exposes. A master that is not in Go
// has none.
type goMetrics struct {
	values map[string]float64
	pauses pauses
}

// pauses is a histogram of how long the collector stopped the program. counts are how many
// pauses were not longer than each bound in seconds, of which the last is infinite.
type pauses struct {
	bounds []float64
	counts []float64
}

// maxMetrics bounds how much of an answer is read.
const maxMetrics = 64 << 20

// scrape reads them. An address that does not answer is an error; missing series are not.
func scrape(ctx context.Context, hostPort string) (*goMetrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+hostPort+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading metrics from %s: %s", hostPort, resp.Status)
	}
	return parseGoMetrics(io.LimitReader(resp.Body, maxMetrics))
}

func parseGoMetrics(r io.Reader) (*goMetrics, error) {
	m := &goMetrics{values: map[string]float64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		bound, isBucket := strings.CutPrefix(name, seriesPauseBucket+`{le="`)
		switch name {
		case seriesGCCPU, seriesAssist, seriesPauseSum:
		default:
			if !isBucket {
				continue
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("metrics: %s has the value %q", name, value)
		}
		if !isBucket {
			m.values[name] = v
			continue
		}
		le, err := strconv.ParseFloat(strings.TrimSuffix(bound, `"}`), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %s is no bucket with a bound", name)
		}
		m.pauses.bounds, m.pauses.counts = append(m.pauses.bounds, le), append(m.pauses.counts, v)
	}
	return m, lines.Err()
}

// found reports whether there was any of the series.
func (m *goMetrics) found() bool { return len(m.values) > 0 }

// pausesSince are the pauses after an earlier reading of the same master.
func (m *goMetrics) pausesSince(before *goMetrics) pauses {
	p := pauses{bounds: m.pauses.bounds, counts: slices.Clone(m.pauses.counts)}
	if len(before.pauses.counts) == len(p.counts) {
		for i := range p.counts {
			p.counts[i] -= before.pauses.counts[i]
		}
	}
	return p
}

// count is how many pauses there were.
func (p pauses) count() float64 {
	if len(p.counts) == 0 {
		return 0
	}
	return p.counts[len(p.counts)-1]
}

// quantile is a bound in seconds that the given part of the pauses did not pass. It is not
// known without pauses, or when some were longer than all bounds.
func (p pauses) quantile(q float64) (float64, bool) {
	all := p.count()
	for i, n := range p.counts {
		if all > 0 && n >= q*all {
			return p.bounds[i], !math.IsInf(p.bounds[i], 1)
		}
	}
	return 0, false
}
