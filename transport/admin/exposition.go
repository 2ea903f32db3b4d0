package admin

import (
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// exposition prints families in the Prometheus text format, version 0.0.4. The library's own
// printer is not used for one reason: the released masters write the bounds of histogram
// buckets with six decimals, and rules may compare that label as text.
func exposition(families []*dto.MetricFamily) []byte {
	var b []byte
	for _, f := range families {
		name := f.GetName()
		b = append(b, "# HELP "+name+" "+escapeHelp(f.GetHelp())+"\n# TYPE "+name+" "+strings.ToLower(f.GetType().String())+"\n"...)
		for _, m := range f.Metric {
			switch {
			case m.Counter != nil:
				b = appendSample(b, name, m.Label, "", m.Counter.GetValue())
			case m.Gauge != nil:
				b = appendSample(b, name, m.Label, "", m.Gauge.GetValue())
			case m.Untyped != nil:
				b = appendSample(b, name, m.Label, "", m.Untyped.GetValue())
			case m.Histogram != nil:
				h := m.Histogram
				for _, bucket := range h.Bucket {
					if !math.IsInf(bucket.GetUpperBound(), 1) {
						le := strconv.FormatFloat(bucket.GetUpperBound(), 'f', 6, 64)
						b = appendSample(b, name+"_bucket", m.Label, le, float64(bucket.GetCumulativeCount()))
					}
				}
				b = appendSample(b, name+"_bucket", m.Label, "+Inf", float64(h.GetSampleCount()))
				b = appendSample(b, name+"_sum", m.Label, "", h.GetSampleSum())
				b = appendSample(b, name+"_count", m.Label, "", float64(h.GetSampleCount()))
			case m.Summary != nil:
				for _, q := range m.Summary.Quantile {
					label := []*dto.LabelPair{{Name: new("quantile"), Value: new(strconv.FormatFloat(q.GetQuantile(), 'g', -1, 64))}}
					b = appendSample(b, name, append(label, m.Label...), "", q.GetValue())
				}
				b = appendSample(b, name+"_sum", m.Label, "", m.Summary.GetSampleSum())
				b = appendSample(b, name+"_count", m.Label, "", float64(m.Summary.GetSampleCount()))
			}
		}
	}
	return b
}

func appendSample(b []byte, name string, labels []*dto.LabelPair, le string, v float64) []byte {
	b = append(b, name...)
	separator := byte('{')
	for _, l := range labels {
		b = append(b, separator)
		b = append(b, l.GetName()+`="`+escapeLabel(l.GetValue())+`"`...)
		separator = ','
	}
	if le != "" {
		b = append(b, separator)
		b = append(b, `le="`+le+`"`...)
		separator = ','
	}
	if separator == ',' {
		b = append(b, '}')
	}
	b = append(b, ' ')
	if v == math.Trunc(v) && math.Abs(v) < 1e19 {
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	} else {
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	return append(b, '\n')
}

func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

func escapeHelp(s string) string { return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s) }

// validText makes any bytes a label value: the library refuses what is not UTF-8.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
