package admin

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// kind is the type of a family as the page names it.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// family is one family of metrics. It holds no numbers: they are read at each scrape. Exactly one of value,
// each and buckets is set.
type family struct {
	name, help string
	kind       kind
	// since is the first release that has the family; 0 for those that both have and for our own.
	since wire.Release
	// labels are the names of the labels that each gives values for.
	labels []string
	// absent says when the family is not printed; "" is never.
	absent string

	value   func(*reading) float64
	each    func(r *reading, emit func(v float64, labels ...string))
	buckets func(*reading) core.Histogram

	used bool // value is printed only if it is not 0
}

// What is said of families that are not always there.
const (
	untilUsed     = "until it is not 0"
	untilObserved = "until something was observed"
	notStrict     = "without `--enable_multi_tenants`"
	noConnector   = "where no policy is read from a source"
)

// whenUsed is a family that is printed once it is not 0, as the released masters do with some.
func whenUsed(f family) family {
	f.absent, f.used = untilUsed, true
	return f
}

// from014 marks families that came with release 0.3.14.
func from014(list ...family) []family {
	for i := range list {
		list[i].since = wire.R0314
	}
	return list
}

// append prints the family in the Prometheus text format, version 0.0.4: nothing where there is nothing to
// say. The bounds of buckets have six decimals as in the released masters, since rules may compare
// that label as text.
func (f *family) append(b []byte, r *reading) []byte {
	if f.since > r.release {
		return b
	}
	start := len(b)
	b = append(append(append(append(b, "# HELP "...), f.name...), ' '), escapeHelp(f.help)...)
	b = append(append(append(append(b, "\n# TYPE "...), f.name...), ' '), f.kind...)
	b = append(b, '\n')
	head := len(b)
	switch {
	case f.value != nil:
		if v := f.value(r); v != 0 || !f.used {
			b = appendValue(append(b, f.name...), v)
		}
	case f.each != nil:
		f.each(r, func(v float64, labels ...string) {
			b = append(b, f.name...)
			for i, value := range labels {
				b = appendLabel(b, i == 0, f.labels[i], value)
			}
			if len(labels) > 0 {
				b = append(b, '}')
			}
			b = appendValue(b, v)
		})
	default:
		h := f.buckets(r)
		if h.Count == 0 && f.absent != "" {
			break
		}
		for i, bound := range h.Bounds {
			b = appendLabel(append(append(b, f.name...), "_bucket"...), true, "le", strconv.FormatFloat(bound, 'f', 6, 64))
			b = appendValue(append(b, '}'), float64(h.Counts[i]))
		}
		b = appendValue(append(append(b, f.name...), `_bucket{le="+Inf"}`...), float64(h.Count))
		b = appendValue(append(append(b, f.name...), "_sum"...), h.Sum)
		b = appendValue(append(append(b, f.name...), "_count"...), float64(h.Count))
	}
	if len(b) == head {
		return b[:start]
	}
	return b
}

func appendLabel(b []byte, first bool, name, value string) []byte {
	if first {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	b = append(append(b, name...), `="`...)
	return append(append(b, escapeLabel(value)...), '"')
}

func appendValue(b []byte, v float64) []byte {
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
