package admin

import (
	"strconv"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/transport/exposition"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

type kind = exposition.Kind

// The kinds of families.
const (
	counter   = exposition.Counter
	gauge     = exposition.Gauge
	histogram = exposition.Histogram
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
	b = exposition.AppendHead(b, f.name, f.help, f.kind)
	head := len(b)
	switch {
	case f.value != nil:
		if v := f.value(r); v != 0 || !f.used {
			b = exposition.AppendValue(append(b, f.name...), v)
		}
	case f.each != nil:
		f.each(r, func(v float64, labels ...string) {
			b = append(b, f.name...)
			for i, value := range labels {
				b = exposition.AppendLabel(b, i == 0, f.labels[i], value)
			}
			if len(labels) > 0 {
				b = append(b, '}')
			}
			b = exposition.AppendValue(b, v)
		})
	default:
		h := f.buckets(r)
		if h.Count == 0 && f.absent != "" {
			break
		}
		for i, bound := range h.Bounds {
			b = exposition.AppendLabel(append(append(b, f.name...), "_bucket"...), true, "le", strconv.FormatFloat(bound, 'f', 6, 64))
			b = exposition.AppendValue(append(b, '}'), float64(h.Counts[i]))
		}
		b = exposition.AppendValue(append(append(b, f.name...), `_bucket{le="+Inf"}`...), float64(h.Count))
		b = exposition.AppendValue(append(append(b, f.name...), "_sum"...), h.Sum)
		b = exposition.AppendValue(append(append(b, f.name...), "_count"...), float64(h.Count))
	}
	if len(b) == head {
		return b[:start]
	}
	return b
}
