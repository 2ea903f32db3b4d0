// Package exposition writes metrics in the Prometheus text format, version 0.0.4, piece by piece onto a page.
// It keeps nothing.
package exposition

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentType is what a page is served as.
const ContentType = "text/plain; version=0.0.4"

// Kind is the type of a family as the page names it.
type Kind string

// The kinds of families.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// AppendHead begins a family: the two lines before its samples.
func AppendHead(b []byte, name, help string, kind Kind) []byte {
	b = append(append(append(append(b, "# HELP "...), name...), ' '), escapeHelp(help)...)
	b = append(append(append(append(b, "\n# TYPE "...), name...), ' '), kind...)
	return append(b, '\n')
}

// AppendSample writes one sample: labels has a name and a value for each label in turn.
func AppendSample(b []byte, name string, v float64, labels ...string) []byte {
	b = append(b, name...)
	for i := 0; i+1 < len(labels); i += 2 {
		b = AppendLabel(b, i == 0, labels[i], labels[i+1])
	}
	if len(labels) > 1 {
		b = append(b, '}')
	}
	return AppendValue(b, v)
}

// AppendLabel writes one label of a sample behind its name, the first with the brace before it; the caller
// closes it behind the last.
func AppendLabel(b []byte, first bool, name, value string) []byte {
	if first {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	b = append(append(b, name...), `="`...)
	return append(append(b, escapeLabel(value)...), '"')
}

// AppendValue ends a sample.
func AppendValue(b []byte, v float64) []byte {
	b = append(b, ' ')
	switch {
	case math.IsInf(v, 1):
		b = append(b, "+Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e19:
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	default:
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	return append(b, '\n')
}

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// escapeLabel makes any bytes the value of a label: the format is UTF-8.
func escapeLabel(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return labelEscapes.Replace(s)
}

func escapeHelp(s string) string { return helpEscapes.Replace(s) }
