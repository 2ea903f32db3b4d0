package main

import (
	"fmt"
	"io"
	"strings"
)

// drawing is an SVG picture under construction. Everything is placed in pixels from the top
// left corner.
type drawing struct {
	width, height float64
	body          strings.Builder
}

// Colours that stay apart for colour-blind readers and in print, on light and dark pages.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"}

// Classes of lines, which look different on dark pages.
const (
	ink   = "ink"
	grid  = "grid"
	bound = "bound" // what is asked
)

// style follows the page's scheme of colours as far as whoever shows the picture says.
const style = `<style>
text { fill: #444 } .ink { stroke: #444 } .grid { stroke: #bbb } .bound { stroke: #d55e00; stroke-dasharray: 4 2 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .ink { stroke: #ccc } .grid { stroke: #555 } }
</style>`

// escape makes text safe inside XML. Characters that XML can't hold become a question mark.
func escape(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(strings.ToValidUTF8(text, "?")))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string, width float64) {
	fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, class, width)
}

func (d *drawing) bar(x, y, w, h float64, colour string) {
	fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, max(w, 0), h, colour)
}

func (d *drawing) dot(x, y float64, colour string) {
	fmt.Fprintf(&d.body, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, colour)
}

// path joins points by straight lines.
func (d *drawing) path(points [][2]float64, colour string) {
	var list []string
	for _, p := range points {
		list = append(list, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	fmt.Fprintf(&d.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(list, " "), colour)
}

// text writes a line; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escape(text))
}

// writeTo writes the picture with a title for readers that can't see it.
func (d *drawing) writeTo(w io.Writer, title string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" font-size="13" role="img">
<title>%s</title>
%s
%s</svg>
`, d.width, d.height, d.width, d.height, escape(title), style, d.body.String())
	return err
}
