package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The figures of a result by their names in JSON. One that could not be read is absent.
const (
	figOps       = "ops_per_s"
	figKeys      = "keys_per_s"
	figMean      = "mean_us"
	figP50       = "p50_us"
	figP95       = "p95_us"
	figP99       = "p99_us"
	figP999      = "p99_9_us"
	figMax       = "max_us"
	figCPU       = "master_cpu_us_per_op"
	figCPUKey    = "master_cpu_us_per_key"
	figUser      = "master_user_us_per_op"
	figOwn       = "own_cpu_us_per_op"
	figCores     = "master_cores" // processor time per time
	figOther     = "other_cores"  // what neither master nor generator used
	figRSS       = "rss_bytes"
	figPerObject = "bytes_per_object"
	figGC        = "gc_cpu_share"    // of the master's processor time
	figAssist    = "gc_assist_share" // the part of it that slowed requests down
	figPause     = "gc_pause_share"  // of the window
	figPauses    = "gc_pauses"       // number of them
	figPauseP99  = "gc_pause_p99_us"
	figPauseMax  = "gc_pause_max_us"
	figFill      = "fill_keys_per_s"
	figStart     = "start_ms" // from exec to the first answer
	figFailed    = "failed_share"
	figRefused   = "failed_keys"
)

// figureOrder is the order in which figures are printed.
var figureOrder = []string{
	figOps, figKeys, figMean, figP50, figP95, figP99, figP999, figMax, figCPU, figCPUKey, figUser, figOwn,
	figCores, figOther, figRSS, figPerObject, figGC, figAssist, figPause, figPauses, figPauseP99, figPauseMax, figFill, figStart, figFailed, figRefused,
}

// result is one measurement.
type result struct {
	Kind    string             `json:"kind"` // "run" or "segment"
	Label   string             `json:"label,omitempty"`
	Setting setting            `json:"setting,omitzero"`
	Segment *segmentSetting    `json:"segment,omitempty"` // of transfers, which have no other setting
	Seconds float64            `json:"seconds"`           // length of the window
	Figures map[string]float64 `json:"figures"`

	Ops         uint64            `json:"ops"`
	FailedOps   uint64            `json:"failed_ops"`   // operations in which every key failed
	Misses      uint64            `json:"misses"`       // keys looked up that were not there
	Failures    map[string]uint64 `json:"failures"`     // keys by code
	Unsent      uint64            `json:"unsent"`       // open loop: due in the window and never sent
	FailedPings uint64            `json:"failed_pings"` // of the make-believe clients
	FillFailed  map[string]uint64 `json:"fill_failures,omitempty"`
	Beside      []besideResult    `json:"beside,omitempty"`
}

// besideResult is what went on beside the measured work.
type besideResult struct {
	Work     string            `json:"work"`
	Conns    int               `json:"conns"`
	Ops      float64           `json:"ops_per_s"`
	P99      float64           `json:"p99_us"`
	Failures map[string]uint64 `json:"failures,omitempty"`
}

// byCode makes the JSON form of failures.
func byCode(codes map[int32]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for c, n := range codes {
		out[strconv.Itoa(int(c))] = n
	}
	return out
}

// writeJSON writes one line.
func writeJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// number prints a figure with about four digits.
func number(v float64) string {
	switch {
	case v >= 1000:
		text := strconv.FormatFloat(v, 'f', 0, 64)
		var out []string
		for len(text) > 3 {
			out = append([]string{text[len(text)-3:]}, out...)
			text = text[:len(text)-3]
		}
		return strings.Join(append([]string{text}, out...), ",")
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1 || v <= 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// columns are the figures of the table of a run.
var columns = []struct {
	head, figure string
	scale        float64
}{
	{"ops/s", figOps, 1},
	{"keys/s", figKeys, 1},
	{"p50 us", figP50, 1},
	{"p95 us", figP95, 1},
	{"p99 us", figP99, 1},
	{"p99.9 us", figP999, 1},
	{"max us", figMax, 1},
	{"cpu us/op", figCPU, 1},
	{"cpu us/key", figCPUKey, 1},
	{"user us/op", figUser, 1},
	{"own us/op", figOwn, 1},
	{"rss MiB", figRSS, 1.0 / (1 << 20)},
	{"B/object", figPerObject, 1},
	{"gc %", figGC, 100},
	{"other cores", figOther, 1},
}

// printResults writes the table of several results.
func printResults(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "work\t")
	for _, c := range columns {
		fmt.Fprint(t, c.head, "\t")
	}
	fmt.Fprintln(t, "failed\t")
	for _, r := range results {
		fmt.Fprint(t, r.Setting.title(), "\t")
		for _, c := range columns {
			if v, ok := r.Figures[c.figure]; ok {
				fmt.Fprint(t, number(v*c.scale), "\t")
			} else {
				fmt.Fprint(t, "-\t")
			}
		}
		fmt.Fprint(t, r.troubles(), "\t\n")
	}
	return t.Flush()
}

// troubles says in few words what went wrong.
func (r *result) troubles() string {
	var parts []string
	add := func(what string, n uint64) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", what, n))
		}
	}
	for _, c := range sortedKeys(r.Failures) {
		add(c, r.Failures[c])
	}
	for _, c := range sortedKeys(r.FillFailed) {
		add("fill"+c, r.FillFailed[c])
	}
	add("missed", r.Misses)
	add("unsent", r.Unsent)
	add("pings", r.FailedPings)
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, " ")
}
