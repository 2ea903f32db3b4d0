package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// defaultOurs starts this master where make puts it.
const defaultOurs = "bin/mooncake_master --rpc_port={rpc_port} --metrics_port={metrics_port}"

// tableCommand measures rows of the table and says which figures are met.
func tableCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("table", flag.ContinueOnError)
	c := campaign{progress: stderr}
	f.StringVar(&c.ours, "ours", defaultOurs, "`command` line of this master")
	f.StringVar(&c.theirs, "theirs", "", "`command` line of the master that it is compared with")
	f.StringVar(&c.floor, "floor", "", "`command` line of the least that a master could cost; default: mooncake_bench echo")
	f.StringVar(&c.coreTest, "core_test", "", "test `binary` of the core, for the row scaling")
	f.StringVar(&c.engine, "engine", "", "the original's transfer_engine_bench, for the rows segment")
	f.StringVar(&c.python, "python", "", "Python `interpreter` that has the original's client, for the rows segment-client")
	f.StringVar(&c.node, "node", "", "`command` line of this project's storage node, for the same rows")
	f.StringVar(&c.verbs, "verbs", "", "`library` of software devices that stands in for libibverbs, for the row segment-rdma; SOFTVERBS_DIR says where its devices are")
	f.IntVar(&c.rounds, "rounds", 0, "runs of every side; 0: as many as the row says")
	f.DurationVar(&c.length, "duration", 0, "length of the measured windows; 0: what the row says")
	f.IntVar(&c.pin, "pin", unset, "`core` to bind everything to, -1 for none; default: what the row says")
	f.BoolVar(&c.quick, "quick", false, "a short run of everything, to see that it works; its figures say nothing")
	path := f.String("json", "", "`file` to append one line of JSON per point to; - is standard output, and the table goes to standard error")
	list := f.Bool("list", false, "print the rows and about how long each takes, and measure nothing")
	var names []string
	for rest := args; ; rest = f.Args()[1:] { // flags may stand behind rows
		if err := parse(f, rest, stdout); err != nil {
			return err
		}
		if f.NArg() == 0 {
			break
		}
		names = append(names, f.Arg(0))
	}
	if err := errors.Join(between("rounds", c.rounds, 0, 10_000), between("duration", c.length, 0, maxRun), between("pin", c.pin, unset, 1023)); err != nil {
		return err
	}
	if c.floor == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.floor = strconv.Quote(self) + " echo --rpc_port={rpc_port}"
	}
	rows, err := selectRows(tableRows(), names)
	if err != nil {
		return err
	}
	if *list {
		return printRows(stdout, rows)
	}
	out, err := openOutput(*path, stdout, stderr)
	if err != nil {
		return err
	}
	defer out.close()
	var all []record
	begun := time.Now()
	done := func(r *record) error {
		all = append(all, *r)
		return out.line(r)
	}
	for _, r := range rows {
		if err := c.measure(ctx, &r, done); err != nil {
			// What is measured by then is shown all the same.
			return errors.Join(err, printRecords(out.table, all))
		}
	}
	fmt.Fprintf(stderr, "measured %d points in %.0f s\n", len(all), time.Since(begun).Seconds())
	if err := printRecords(out.table, all); err != nil {
		return err
	}
	if n, of := missed(all); n > 0 && !c.quick {
		return fmt.Errorf("%d of %d figures missed", n, of)
	}
	return nil
}

// measure runs one row.
func (b *campaign) measure(ctx context.Context, r *row, done func(*record) error) error {
	if r.scaling {
		return b.scaling(ctx, r.name, done)
	}
	for i := range r.transfers {
		if err := b.transfer(ctx, r.name, &r.transfers[i], done); err != nil {
			return err
		}
	}
	for i := range r.trials {
		if err := b.run(ctx, r.name, &r.trials[i], done); err != nil {
			return err
		}
	}
	return nil
}

// selectRows finds rows by their names, or by what stands before a dash in them; no names are
// all rows.
func selectRows(rows []row, names []string) ([]row, error) {
	if len(names) == 0 {
		return rows, nil
	}
	var chosen []row
	for _, name := range names {
		found := false
		for _, r := range rows {
			if r.name == name || strings.HasPrefix(r.name, name+"-") {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			var known []string
			for _, r := range rows {
				known = append(known, r.name)
			}
			return nil, usageError{fmt.Sprintf("%q is no row, want one of %s, or what they begin with before a dash", name, strings.Join(known, ", "))}
		}
	}
	return chosen, nil
}

func printRows(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d s\t%s\n", r.name, r.seconds, r.about)
	}
	return t.Flush()
}

// missed counts the checks that something was asked of, and those of them that failed.
func missed(all []record) (missed, asked int) {
	for _, r := range all {
		for _, c := range r.Checks {
			switch c.Verdict {
			case verdictMissed:
				missed++
				asked++
			case verdictMet:
				asked++
			}
		}
	}
	return missed, asked
}

// scales are the units in which figures are shown that are not in their own.
var scales = map[string]struct {
	factor float64
	unit   string
}{figGC: {100, " %"}, figAssist: {100, " %"}, figPause: {100, " %"}}

// shown is a value of the check's figure.
func (c *check) shown(v float64) string {
	if s, ok := scales[c.Figure]; ok {
		return number(v*s.factor) + s.unit
	}
	return number(v)
}

// cells are a check in words: side, its figure, that of the base, the ratio with its spread,
// what is asked, the verdict.
func (c *check) cells() (cells [6]string) {
	cells = [6]string{c.Side, c.shown(c.A), "-", "-", "-", c.Verdict}
	if c.Pairs == 0 {
		cells[1] = "-"
	}
	if c.Against != "" {
		cells[2] = c.shown(c.B)
		cells[3] = fmt.Sprintf("%s (%s–%s)", number(c.Median), number(c.Min), number(c.Max))
		if c.Low95 != nil {
			cells[3] = fmt.Sprintf("%s (%s–%s; 95 %%: %s–%s)", number(c.Median), number(c.Min), number(c.Max), number(*c.Low95), number(*c.High95))
		}
	} else if c.Pairs > 1 {
		cells[1] += fmt.Sprintf(" (%s–%s)", c.shown(c.Min), c.shown(c.Max))
	}
	switch {
	case c.Most != nil:
		cells[4] = "≤ " + number(*c.Most)
		switch {
		case *c.Most == 0:
			cells[4] = "0"
		case c.OfLow:
			cells[4] = "lower end " + cells[4]
		}
	case c.Least != nil:
		cells[4] = "≥ " + number(*c.Least)
	}
	return cells
}

var tableHead = []string{"row", "point", "figure", "side", "its figure", "base", "ratio (spread)", "asked", "verdict"}

// printRecords writes one line per check.
func printRecords(w io.Writer, all []record) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(tableHead, "\t"))
	for _, r := range all {
		for _, c := range r.Checks {
			cells := c.cells()
			if r.Quick && c.Verdict != verdictReported {
				cells[5] = "quick"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Row, r.Point, c.Figure, strings.Join(cells[:], "\t"))
		}
	}
	return t.Flush()
}

// printMarkdown writes the same as a table in Markdown.
func printMarkdown(w io.Writer, all []record) error {
	_, err := fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(tableHead, " | "), strings.Repeat("---|", len(tableHead)))
	for _, r := range all {
		for _, c := range r.Checks {
			cells := c.cells()
			_, lineErr := fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.Row, r.Point, c.Figure, strings.Join(cells[:], " | "))
			err = errors.Join(err, lineErr)
		}
	}
	return err
}
