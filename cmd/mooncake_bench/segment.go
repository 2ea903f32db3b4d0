package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// segmentSettings are what moving bytes to and from somebody's memory can be told.
type segmentSettings struct {
	target string // "": a process is started that lends memory
	lending
	lanes     int // 0: the default
	version   int // of the TCP protocol at most; 0: the newest
	writes    []bool
	blocks    []uint64
	inFlight  []int
	warm      time.Duration
	length    time.Duration
	verify    bool
	overwrite bool
	json      string
}

// define declares the flags on f.
func (s *segmentSettings) define(f *flag.FlagSet) {
	*s = segmentSettings{writes: []bool{false, true}, blocks: []uint64{4 << 10, 64 << 10, 1 << 20, 64 << 20}, inFlight: []int{1, 16}}
	s.lending.define(f)
	f.StringVar(&s.target, "target", "", "`name` of who lends the memory, as its mooncake_bench segment serve says, or any segment of a store; default: one is started here")
	f.Var(listValue{func(text string) (err error) {
		s.writes, err = parseList(text, parseOperation)
		return err
	}, func() string { return joinedBy(s.writes, operation) }}, "operation", "`list` of read, write")
	f.Var(listValue{func(text string) (err error) {
		s.blocks, err = parseList(text, parseSize)
		return err
	}, func() string { return joinedBy(s.blocks, formatSize) }}, "block_size", "`list` of sizes of one transfer, with an optional unit KiB, MiB, GiB")
	f.Var(listValue{func(text string) (err error) {
		s.inFlight, err = parseList(text, func(t string) (int, error) { return parseCount(t, 1, maxInFlight) })
		return err
	}, func() string { return joined(s.inFlight) }}, "in_flight", "`list` of numbers of transfers under way at a time; each is measured with each operation and block size")
	f.DurationVar(&s.warm, "warmup", 300*time.Millisecond, "time before the measured window")
	f.DurationVar(&s.length, "duration", 2*time.Second, "length of the measured window")
	f.BoolVar(&s.verify, "verify", false, "check every byte that was read or written; bandwidth and processor time then include the checking, latencies don't")
	f.BoolVar(&s.overwrite, "overwrite", false, "write even to memory that isn't lent by mooncake_bench segment serve: what lies there is lost")
	f.IntVar(&s.lanes, "lanes", 0, "most TCP connections to the target; 0 is the default of clients")
	f.IntVar(&s.version, "tcp_version", 0, "newest version of the TCP protocol to speak, 1 or 2; 0 is the newest")
	f.StringVar(&s.json, "json", "", "`file` for one line of JSON per result; - is standard output, and the table goes to standard error")
}

// maxInFlight bounds the transfers under way: each is a goroutine with a block of memory at both ends.
const maxInFlight = 4096

func operation(write bool) string {
	if write {
		return "write"
	}
	return "read"
}

func parseOperation(text string) (write bool, err error) {
	switch text {
	case "read", "write":
		return text == "write", nil
	}
	return false, fmt.Errorf("%q, want read or write", text)
}

func joinedBy[T any](list []T, format func(T) string) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, format(v))
	}
	return strings.Join(parts, ",")
}

// check says what is wrong with the values, each error naming its flag.
func (s *segmentSettings) check() error {
	err := errors.Join(
		s.lending.check(s.target == ""),
		between("warmup", s.warm, 0, maxRun),
		between("duration", s.length, time.Millisecond, maxRun),
		between("lanes", s.lanes, 0, 1024),
		between("tcp_version", s.version, 0, 2),
	)
	if err != nil {
		return err
	}
	if s.target == "" {
		return s.sized()
	}
	if _, _, err := net.SplitHostPort(s.target); err != nil && s.metadata == segment.P2P {
		return wrong("target", "%q, want HOST:PORT as printed by mooncake_bench segment serve", s.target)
	}
	return nil
}

// sized chooses how much a process that is started here lends, unless that was said.
func (s *segmentSettings) sized() error {
	need := uint64(0)
	for _, p := range s.points() {
		need = max(need, p.span()+servedHead)
	}
	switch {
	case s.size == 0:
		s.size = need
	case s.size < need:
		return wrong("size", "%s is too little, the transfers asked for need %s", formatSize(s.size), formatSize(need))
	}
	return nil
}

// segmentPoint is one measurement that is asked for.
type segmentPoint struct {
	write    bool
	block    uint64
	inFlight int
}

// span is how much memory the target needs.
func (p segmentPoint) span() uint64 { return p.block * uint64(p.inFlight) }

// String returns for example "read 4KiB x16".
func (p segmentPoint) String() string {
	return operation(p.write) + " " + formatSize(p.block) + " x" + strconv.Itoa(p.inFlight)
}

// points are all combinations, in the order in which they are measured.
func (s *segmentSettings) points() (all []segmentPoint) {
	for _, w := range s.writes {
		for _, b := range s.blocks {
			for _, n := range s.inFlight {
				all = append(all, segmentPoint{w, b, n})
			}
		}
	}
	return all
}

// segmentSetting is what a result says about how it was got.
type segmentSetting struct {
	Operation string  `json:"operation"`
	Block     uint64  `json:"block_size"`
	InFlight  int     `json:"in_flight"`
	Protocol  string  `json:"protocol,omitempty"`
	Metadata  string  `json:"metadata,omitempty"`
	Target    string  `json:"target,omitempty"`
	Lanes     int     `json:"lanes,omitempty"` // absent: the default
	Verified  bool    `json:"verified,omitempty"`
	Warm      float64 `json:"warmup_s"`
}

// segmentCommand measures, or lends memory if the first word is serve.
func segmentCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return segmentServe(ctx, args[1:], stdout, stderr)
	}
	f := flag.NewFlagSet("segment", flag.ContinueOnError)
	var s segmentSettings
	s.define(f)
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if err := errors.Join(noArguments(f), s.check()); err != nil {
		return err
	}
	out, err := openOutput(s.json, stdout, stderr)
	if err != nil {
		return err
	}
	defer out.close()
	return s.run(ctx, stderr, func(all []result, r *result) error {
		if r != nil {
			return out.line(r)
		}
		return printSegmentResults(out.table, all)
	})
}

// run measures all points and hands over each result, and at the end all of them with nil.
func (s *segmentSettings) run(ctx context.Context, progress io.Writer, done func([]result, *result) error) (err error) {
	pid := 0
	if s.target == "" {
		child, err := s.lending.start(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, child.stop()) }()
		s.target, pid = child.name, child.cmd.Process.Pid
	}
	session, err := openSegment(ctx, s, pid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.close()) }()
	var all []result
	for _, p := range s.points() {
		fmt.Fprintf(progress, "measuring %v\n", p)
		r, err := session.measure(ctx, p)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		all = append(all, *r)
		if err := done(all, r); err != nil {
			return err
		}
	}
	return done(all, nil)
}

// segmentColumns are the figures of the table.
var segmentColumns = []struct {
	head, figure string
	scale        float64
}{
	{"GB/s", figBandwidth, 1},
	{"transfers/s", figOps, 1},
	{"p50 us", figP50, 1},
	{"p99 us", figP99, 1},
	{"max us", figMax, 1},
	{"cpu s/GB here", figOwnPerGB, 1},
	{"there", figTargetPerGB, 1},
	{"both", figCPUPerGB, 1},
}

// printSegmentResults writes the table of several results.
func printSegmentResults(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "transfers\t")
	for _, c := range segmentColumns {
		fmt.Fprint(t, c.head, "\t")
	}
	fmt.Fprintln(t)
	for _, r := range results {
		title := segmentPoint{r.Segment.Operation == "write", r.Segment.Block, r.Segment.InFlight}.String()
		if r.Segment.Verified {
			title += ", verified"
		}
		fmt.Fprint(t, title, "\t")
		for _, c := range segmentColumns {
			if v, ok := r.Figures[c.figure]; ok {
				fmt.Fprint(t, number(v*c.scale), "\t")
			} else {
				fmt.Fprint(t, "-\t")
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// child is a process of this program that lends memory.
type child struct {
	cmd    *exec.Cmd
	name   string
	exited chan error
}

// seedOf makes the content of one run differ from that of every other.
func seedOf() pattern { return pattern(rand.Uint64()) }
