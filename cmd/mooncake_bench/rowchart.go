package main

import (
	"slices"
	"strings"
)

// keep adds a record in place of an earlier one of the same row and point.
func (r *records) keep(one record) {
	at := slices.IndexFunc(r.rows, func(old record) bool { return old.Row == one.Row && old.Point == one.Point })
	if at < 0 {
		r.rows = append(r.rows, one)
		return
	}
	r.rows[at] = one
}

// ratioCharts are the charts of what is compared with the other master.
var ratioCharts = []struct {
	file, title string
	figures     []string
}{
	{"rows_cpu", "processor time of the master, ours / theirs", []string{figCPU, figCPUKey}},
	{"rows_p99", "99th percentile of latency, ours / theirs", []string{figP99}},
	{"rows_throughput", "operations per second, ours / theirs", []string{figOps}},
	{"rows_memory_and_start", "bytes per object and time to start, ours / theirs", []string{figPerObject, figStart}},
}

// growthCharts are the charts of rows in which this master is compared with itself.
var growthCharts = []struct{ prefix, title string }{
	{"growth-objects", "processor time per operation as objects grow"},
	{"growth-connections", "processor time per operation as connections grow"},
	{"growth-tenants", "processor time per operation as tenants grow"},
}

// rowCharts draws the rows of a table.
func (r *records) rowCharts() []chart {
	var all []chart
	for _, d := range ratioCharts {
		c := &barChart{title: d.title}
		for _, one := range r.rows {
			for _, k := range one.Checks {
				if k.Against != "theirs" || k.Side != "ours" || !slices.Contains(d.figures, k.Figure) {
					continue
				}
				name, _, _ := strings.Cut(one.Row+" "+one.Point, " beside ")
				row := barRow{name: name, value: k.Median, low: k.Min, up: k.Max, missed: k.Verdict == verdictMissed}
				if k.Most != nil {
					row.asked = *k.Most
				} else if k.Least != nil {
					row.asked = *k.Least
				}
				c.rows = append(c.rows, row)
			}
		}
		if len(c.rows) > 0 {
			all = append(all, chart{d.file + ".svg", c.draw})
		}
	}
	for _, d := range growthCharts {
		c := &growthChart{title: d.title}
		for _, one := range r.rows {
			if strings.HasPrefix(one.Row, d.prefix) {
				c.add(&one)
			}
		}
		if len(c.lines) > 0 {
			all = append(all, chart{strings.ReplaceAll(d.prefix, "-", "_") + ".svg", c.draw})
		}
	}
	return all
}

// add adds the checks of a point to the line of its work.
func (c *growthChart) add(r *record) {
	for _, k := range r.Checks {
		if k.Against == "" {
			continue
		}
		at := slices.IndexFunc(c.lines, func(l growthLine) bool { return l.name == r.Point })
		if at < 0 {
			at = len(c.lines)
			c.lines = append(c.lines, growthLine{r.Point, map[string]float64{}})
		}
		for mark, v := range map[string]float64{k.Against: 1, k.Side: k.Median} {
			c.lines[at].values[mark] = v
		}
		for _, mark := range []string{k.Against, k.Side} {
			if !slices.Contains(c.marks, mark) {
				c.marks = append(c.marks, mark)
			}
		}
		if k.Most != nil {
			c.asked = *k.Most
		}
	}
}
