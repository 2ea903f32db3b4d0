package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The series of a Go program's own metrics that say what its garbage collector costs.
const (
	seriesGCCPU   = "go_cpu_classes_gc_total_cpu_seconds_total"
	seriesGCPause = "go_gc_duration_seconds_sum"
	seriesGCCount = "go_gc_duration_seconds_count"
)

// goMetrics are the values of those series that a master exposes. A master that is not in Go
// has none.
type goMetrics map[string]float64

// maxMetrics bounds how much of an answer is read.
const maxMetrics = 64 << 20

// scrape reads them. An address that does not answer is an error; missing series are not.
func scrape(ctx context.Context, hostPort string) (goMetrics, error) {
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

func parseGoMetrics(r io.Reader) (goMetrics, error) {
	m := goMetrics{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		switch name {
		case seriesGCCPU, seriesGCPause, seriesGCCount:
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if !ok || err != nil {
				return nil, fmt.Errorf("metrics: %s has the value %q", name, value)
			}
			m[name] = v
		}
	}
	return m, lines.Err()
}
