package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// reportCommand draws charts of what run and compare wrote.
func reportCommand(_ context.Context, args []string, stdout, _ io.Writer) error {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	out := f.String("out", ".", "`directory` for the charts; it is made if needed")
	markdown := f.Bool("markdown", false, "print the rows of a table in Markdown, and draw nothing")
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return usageError{"no files, want what run, compare or table wrote with --json"}
	}
	var all records
	for _, path := range f.Args() {
		if err := all.read(path); err != nil {
			return err
		}
	}
	if *markdown {
		return printMarkdown(stdout, all.rows)
	}
	charts := append(all.charts(), all.rowCharts()...)
	if len(charts) == 0 {
		return errors.New("nothing to draw: the files hold no results with figures")
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return wrong("out", "%v", err)
	}
	for _, c := range charts {
		path := filepath.Join(*out, c.file)
		var picture bytes.Buffer
		if err := c.draw(&picture); err != nil {
			return err
		}
		if err := os.WriteFile(path, picture.Bytes(), 0o644); err != nil {
			return wrong("out", "%v", err)
		}
		fmt.Fprintln(stdout, path)
	}
	return nil
}

// records are the results of any number of files.
type records struct {
	runs        []result
	comparisons []comparison
	rows        []record // one per row and point, the latest
}

// read adds a file of JSON lines.
func (r *records) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return usageError{err.Error()}
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var kind struct{ Kind string }
		if err := json.Unmarshal(lines.Bytes(), &kind); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		switch kind.Kind {
		case "run":
			var one result
			err = json.Unmarshal(lines.Bytes(), &one)
			r.runs = append(r.runs, one)
		case "compare":
			var one comparison
			err = json.Unmarshal(lines.Bytes(), &one)
			r.comparisons = append(r.comparisons, one)
		case "row":
			var one record
			err = json.Unmarshal(lines.Bytes(), &one)
			r.keep(one)
		default:
			err = fmt.Errorf("kind is %q, want run, compare or row", kind.Kind)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// chart is one picture to be drawn.
type chart struct {
	file string
	draw func(io.Writer) error
}

// drawn are the figures of which ratios get a chart.
var drawn = []struct{ figure, file, title string }{
	{figCPU, "ratio_cpu_per_op", "processor time of the master per operation"},
	{figCPUKey, "ratio_cpu_per_key", "processor time of the master per key"},
	{figOps, "ratio_throughput", "operations per second"},
	{figP99, "ratio_p99", "99th percentile of latency"},
	{figPerObject, "ratio_bytes_per_object", "resident memory per object"},
}

// charts decides what is drawn: the ratios of each figure, and the latencies of each work.
func (r *records) charts() []chart {
	var all []chart
	for _, d := range drawn {
		c := &barChart{}
		for i := range r.comparisons {
			one := &r.comparisons[i]
			if q, ok := one.of(d.figure); ok {
				c.title = fmt.Sprintf("%s, %s / %s", d.title, one.A.Label, one.B.Label)
				c.rows = append(c.rows, barRow{name: one.Setting.title(), value: q.Median, low: q.Min, up: q.Max})
			}
		}
		if len(c.rows) > 0 {
			all = append(all, chart{d.file + ".svg", c.draw})
		}
	}
	var works []string
	lines := map[string][]lineRow{}
	add := func(s setting, label string, results []result) {
		row, ok := latencyRow(strings.TrimSpace(label+" "+s.title()), results)
		if !ok {
			return
		}
		if lines[s.Work] == nil {
			works = append(works, s.Work)
		}
		lines[s.Work] = append(lines[s.Work], row)
	}
	for i := range r.comparisons {
		one := &r.comparisons[i]
		add(one.Setting, one.A.Label, one.A.Results)
		add(one.Setting, one.B.Label, one.B.Results)
	}
	for _, one := range r.runs {
		add(one.Setting, one.Label, []result{one})
	}
	for _, w := range works {
		c := &lineChart{title: "latency of " + w, marks: []string{"p50", "p95", "p99", "p99.9", "max"}, lines: lines[w]}
		all = append(all, chart{"latency_" + fileName(w) + ".svg", c.draw})
	}
	return all
}

// fileName keeps what is safe in the name of a file.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text)
}

// latencyRow is the median over several runs of each percentile.
func latencyRow(name string, results []result) (lineRow, bool) {
	row := lineRow{name: name}
	for _, figure := range []string{figP50, figP95, figP99, figP999, figMax} {
		var values []float64
		for _, r := range results {
			if v := r.Figures[figure]; v > 0 {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			return row, false
		}
		row.values = append(row.values, median(values))
	}
	return row, true
}
