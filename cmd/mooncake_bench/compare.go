package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// side is one of the two masters that are compared.
type side struct {
	Label   string   `json:"label"`
	Command string   `json:"command"`
	Results []result `json:"results"`

	line commandLine
}

// comparison is what is known about one point after all rounds.
type comparison struct {
	Kind    string  `json:"kind"` // "compare"
	Setting setting `json:"setting"`
	A       side    `json:"a"`
	B       side    `json:"b"`
	Ratios  []ratio `json:"ratios"`
}

// compareCommand starts two masters in turn and measures each.
func compareCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	var cfg settings
	cfg.define(f)
	var a, b side
	f.StringVar(&a.Command, "a", "", "`command` line of the first master; {rpc_port} {metrics_port} {policy} {dir} are replaced, NAME=value in front sets its environment")
	f.StringVar(&b.Command, "b", "", "`command` line of the second master")
	f.StringVar(&a.Label, "a_label", "A", "name of the first master in results")
	f.StringVar(&b.Label, "b_label", "B", "name of the second master in results")
	rounds := f.Int("rounds", 3, "pairs of runs per point")
	all := f.Bool("all_figures", false, "print every figure of every point, not only the table")
	quota := uint64(0)
	sizeVar(f, &quota, "tenant_quota", "quota of each tenant in the file {policy}; default: the capacity divided among them")
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if err := errors.Join(noArguments(f), cfg.check(), between("rounds", *rounds, 1, 10_000)); err != nil {
		return err
	}
	for name, s := range map[string]*side{"a": &a, "b": &b} {
		var err error
		if s.line, err = parseCommand(s.Command); err != nil {
			return wrong(name, "%v", err)
		}
		if !s.line.uses("rpc_port") {
			return wrong(name, "the command line does not say {rpc_port}, so that the master would listen elsewhere")
		}
	}
	if cfg.seed == 0 {
		cfg.seed = 1
	}
	out, err := openOutput(cfg.json, stdout, stderr)
	if err != nil {
		return err
	}
	defer out.close()
	s := newSession(&cfg)
	var done []comparison
	for _, p := range cfg.points() {
		c := comparison{Kind: "compare", Setting: cfg.setting(p), A: a, B: b}
		for round := range *rounds {
			fmt.Fprintf(stderr, "measuring %v, round %d of %d\n", p, round+1, *rounds)
			for _, x := range []*side{&c.A, &c.B} {
				r, err := s.fresh(ctx, []point{p}, x, quota)
				if err != nil {
					return fmt.Errorf("%v, round %d, %s: %w", p, round+1, x.Label, err)
				}
				x.Results = append(x.Results, r...)
			}
		}
		c.Ratios = ratios(c.A.Results, c.B.Results)
		done = append(done, c)
		if err := out.line(&c); err != nil {
			return err
		}
	}
	if *all {
		for i := range done {
			if err := printAll(out.table, &done[i]); err != nil {
				return err
			}
		}
	}
	return printComparisons(out.table, done)
}

// fresh measures points at a master that is started for them and stopped afterwards.
func (s *session) fresh(ctx context.Context, points []point, x *side, quota uint64) (all []result, err error) {
	m, err := startMaster(ctx, x.line, s.settings, quota)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	if s.settings.pin >= 0 {
		restore, err := pinSelf(s.settings.pin)
		if err != nil {
			return nil, err
		}
		defer restore()
	}
	if all, err = s.measureAll(ctx, points, m.place, 0); err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Label = x.Label
		all[i].Figures[figStart] = float64(m.started.Microseconds()) / 1e3
	}
	return all, nil
}

// of returns the ratio of one figure.
func (c *comparison) of(figure string) (ratio, bool) {
	for _, r := range c.Ratios {
		if r.Figure == figure {
			return r, true
		}
	}
	return ratio{}, false
}

// compared are the figures of the table of ratios.
var compared = []struct{ head, figure string }{
	{"master cpu/op", figCPU},
	{"cpu/key", figCPUKey},
	{"ops/s", figOps},
	{"p50", figP50},
	{"p99", figP99},
	{"rss", figRSS},
	{"B/object", figPerObject},
	{"start", figStart},
}

// printComparisons writes one line per point: A/B as median and, in brackets, its spread.
func printComparisons(w io.Writer, all []comparison) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "work\tcpu us/op A\tB\t")
	for _, c := range compared {
		fmt.Fprint(t, c.head, " A/B\t")
	}
	fmt.Fprint(t, "failed A\tB\t\n")
	for i := range all {
		c := &all[i]
		fmt.Fprint(t, c.Setting.title(), "\t")
		cpu, _ := c.of(figCPU)
		fmt.Fprint(t, number(cpu.A), "\t", number(cpu.B), "\t")
		for _, col := range compared {
			r, ok := c.of(col.figure)
			if !ok {
				fmt.Fprint(t, "-\t")
				continue
			}
			fmt.Fprintf(t, "%s\t", r.spread())
		}
		fmt.Fprintf(t, "%s\t%s\t\n", troublesOf(c.A.Results), troublesOf(c.B.Results))
	}
	return t.Flush()
}

// spread is the ratio in words: median, and in brackets minimum and maximum.
func (r ratio) spread() string {
	return fmt.Sprintf("%s [%s-%s]", number(r.Median), number(r.Min), number(r.Max))
}

// printAll writes all figures of one point.
func printAll(w io.Writer, c *comparison) error {
	fmt.Fprintf(w, "%s: A is %s, B is %s\n", c.Setting.title(), c.A.Label, c.B.Label)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "figure\tA\tB\tA/B\tmin\tmax\t95 % from\tto\t\n")
	for _, r := range c.Ratios {
		low, high := "-", "-"
		if r.Low95 != nil {
			low, high = number(*r.Low95), number(*r.High95)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Figure, number(r.A), number(r.B), number(r.Median), number(r.Min), number(r.Max), low, high)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// troublesOf sums up what went wrong over all rounds.
func troublesOf(results []result) string {
	sum := result{Failures: map[string]uint64{}, FillFailed: map[string]uint64{}}
	for _, r := range results {
		for c, n := range r.Failures {
			sum.Failures[c] += n
		}
		for c, n := range r.FillFailed {
			sum.FillFailed[c] += n
		}
		sum.Misses += r.Misses
		sum.Unsent += r.Unsent
		sum.FailedPings += r.FailedPings
	}
	return strings.ReplaceAll(sum.troubles(), "\t", " ")
}
