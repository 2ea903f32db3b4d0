package main

import (
	"io"
	"math"
	"strconv"
)

// barChart shows ratios as horizontal bars with their spread, a line at one and a mark at what
// is asked of each.
type barChart struct {
	title string
	rows  []barRow
}

type barRow struct {
	name           string
	value, low, up float64
	asked          float64 // 0: nothing
	missed         bool
}

const (
	labelWidth = 260.0
	plotWidth  = 480.0
	rowHeight  = 24.0
	margin     = 20.0
)

func (c *barChart) draw(w io.Writer) error {
	top := 2.5 * margin
	d := &drawing{width: labelWidth + plotWidth + 110, height: top + rowHeight*float64(len(c.rows)) + 2*margin}
	most := 1.0
	for _, r := range c.rows {
		most = math.Max(most, math.Max(r.up, r.asked))
	}
	step := niceStep(most)
	most = math.Ceil(most/step) * step
	x := func(v float64) float64 { return labelWidth + v/most*plotWidth }
	bottom := top + rowHeight*float64(len(c.rows))
	d.text(margin/2, margin, "start", c.title)
	for v := 0.0; v <= most+step/2; v += step {
		d.line(x(v), top, x(v), bottom, grid, 0.5)
		d.text(x(v), bottom+margin*0.9, "middle", strconv.FormatFloat(v, 'g', 3, 64))
	}
	for i, r := range c.rows {
		y := top + rowHeight*float64(i)
		colour := palette[0]
		if r.missed || r.asked == 0 && r.value > 1 {
			colour = palette[1]
		}
		middle := y + rowHeight/2
		d.text(labelWidth-8, middle+4, "end", r.name)
		d.bar(x(0), y+5, x(r.value)-x(0), rowHeight-10, colour)
		d.line(x(r.low), middle, x(r.up), middle, ink, 1.5)
		d.line(x(r.low), middle-4, x(r.low), middle+4, ink, 1.5)
		d.line(x(r.up), middle-4, x(r.up), middle+4, ink, 1.5)
		if r.asked > 0 {
			d.line(x(r.asked), y+2, x(r.asked), y+rowHeight-2, bound, 2)
		}
		d.text(x(math.Max(math.Max(r.value, r.up), r.asked))+8, middle+4, "start", number(r.value))
	}
	d.line(x(1), top-4, x(1), bottom+4, ink, 1.5)
	return d.writeTo(w, c.title)
}

// niceStep is a round distance of grid lines, of which up to about eight fit into most.
func niceStep(most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, f := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2} {
		if most/(step*f) <= 8 {
			return step * f
		}
	}
	return 2 * step
}

// growthChart shows how the cost of works changes as something grows, as multiples of what it
// is at the smallest.
type growthChart struct {
	title string
	marks []string // what it grows to, along the bottom
	lines []growthLine
	asked float64 // 0: nothing
}

type growthLine struct {
	name   string
	values map[string]float64 // by mark
}

func (c *growthChart) draw(w io.Writer) error {
	const height = 240.0
	top, left := 2.5*margin, 70.0
	d := &drawing{width: left + plotWidth + margin, height: top + height + 2*margin + rowHeight*float64(len(c.lines)+1)}
	most := math.Max(1, c.asked)
	for _, l := range c.lines {
		for _, v := range l.values {
			most = math.Max(most, v)
		}
	}
	step := niceStep(most)
	most = math.Ceil(most/step) * step
	y := func(v float64) float64 { return top + height*(1-v/most) }
	x := func(i int) float64 { return left + plotWidth*(float64(i)+0.5)/float64(len(c.marks)) }
	d.text(margin/2, margin, "start", c.title)
	for v := 0.0; v <= most+step/2; v += step {
		d.line(left, y(v), left+plotWidth, y(v), grid, 0.5)
		d.text(left-8, y(v)+4, "end", strconv.FormatFloat(v, 'g', 3, 64))
	}
	row := top + height + 2*margin
	if c.asked > 0 {
		d.line(left, y(c.asked), left+plotWidth, y(c.asked), bound, 2)
		d.line(left, row-6, left+22, row-6, bound, 2)
		d.text(left+30, row, "start", "asked at most")
	}
	for i, m := range c.marks {
		d.text(x(i), top+height+margin*0.9, "middle", m)
	}
	for i, l := range c.lines {
		colour := palette[i%len(palette)]
		var points [][2]float64
		for k, m := range c.marks {
			if v, ok := l.values[m]; ok {
				points = append(points, [2]float64{x(k), y(v)})
				d.dot(x(k), y(v), colour)
			}
		}
		d.path(points, colour)
		row += rowHeight
		d.bar(left, row-9, 22, 6, colour)
		d.text(left+30, row, "start", l.name)
	}
	return d.writeTo(w, c.title)
}

// lineChart shows latencies at the percentiles of figures, on a logarithmic scale.
type lineChart struct {
	title string
	marks []string // along the bottom
	lines []lineRow
}

type lineRow struct {
	name   string
	values []float64 // one per mark, positive
}

func (c *lineChart) draw(w io.Writer) error {
	const height = 300.0
	top, left := 2.5*margin, 70.0
	d := &drawing{width: left + plotWidth + margin, height: top + height + 2*margin + rowHeight*float64(len(c.lines))}
	low, high := math.Inf(1), 0.0
	for _, l := range c.lines {
		for _, v := range l.values {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if to <= from {
		to = from + 1
	}
	y := func(v float64) float64 { return top + height*(to-math.Log10(v))/(to-from) }
	x := func(i int) float64 { return left + plotWidth*(float64(i)+0.5)/float64(len(c.marks)) }
	d.text(margin/2, margin, "start", c.title)
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		d.line(left, y(v), left+plotWidth, y(v), grid, 0.5)
		d.text(left-8, y(v)+4, "end", microseconds(v))
	}
	for i, m := range c.marks {
		d.text(x(i), top+height+margin*0.9, "middle", m)
	}
	for i, l := range c.lines {
		colour := palette[i%len(palette)]
		var points [][2]float64
		for k, v := range l.values {
			points = append(points, [2]float64{x(k), y(v)})
			d.dot(x(k), y(v), colour)
		}
		d.path(points, colour)
		row := top + height + 2*margin + rowHeight*float64(i)
		d.bar(left, row-9, 22, 6, colour)
		d.text(left+30, row, "start", l.name)
	}
	return d.writeTo(w, c.title)
}

// microseconds prints a power of ten with a fitting unit.
func microseconds(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + " s"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " us"
}
