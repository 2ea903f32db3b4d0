package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"
)

// trial is one set of measurements of a row: the same points at several sides, which take
// turns.
type trial struct {
	sides    []variant
	base     string   // label of the side that the others are compared with
	args     []string // of the load at every side
	flags    string   // of every master that is not an echo
	rounds   int
	together bool // all points at one master, which is filled once
	limits   []limit
}

// variant is one side of a trial as a row describes it.
type variant struct {
	label  string
	master string   // ours, theirs or floor
	flags  string   // of the master
	args   []string // of the load, beyond those of the trial
}

// The masters of variants.
const (
	masterOurs   = "ours"
	masterTheirs = "theirs"
	masterEcho   = "floor" // named as the flag
)

// strictFlags turn strict tenants on, in this master and in the other.
const strictFlags = "--enable_multi_tenants=true --tenant_quota_connector_type=file --tenant_quota_connector_uri={policy}"

// campaign is what a whole table is measured with.
type campaign struct {
	ours, theirs string // command lines
	floor        string // command line of the echo
	coreTest     string // test binary of the core
	engine       string // the original's transfer_engine_bench
	python       string // interpreter that has the original's client
	node         string // command line of this project's storage node
	verbs        string // library of software devices for RDMA
	rounds       int    // 0: what the row says
	length       time.Duration
	pin          int // unset: what the row says
	quick        bool
	progress     io.Writer
}

// unset is a core that nobody asked for.
const unset = -2

// record is what is known of one point of a row.
type record struct {
	Kind   string  `json:"kind"` // "row"
	Row    string  `json:"row"`
	Point  string  `json:"point"`
	Quick  bool    `json:"quick,omitempty"` // far too short to judge by
	Sides  []side  `json:"sides,omitempty"`
	Checks []check `json:"checks"`
}

// contender is a side that is ready to be measured.
type contender struct {
	side
	session *session
	points  []point
	quota   uint64
}

// quickShare is by how much quick runs are smaller.
const quickShare = 50

// contender makes a side of a trial.
func (b *campaign) contender(t *trial, v variant) (*contender, error) {
	c := &contender{side: side{Label: v.label}}
	switch v.master {
	case masterOurs:
		c.Command = b.ours
	case masterTheirs:
		c.Command = b.theirs
	case masterEcho:
		c.Command = b.floor
	}
	if c.Command == "" {
		return nil, wrong(v.master, "no command line, and this row starts that master")
	}
	if v.master != masterEcho {
		for _, more := range []string{t.flags, v.flags} {
			if more != "" {
				c.Command += " " + more
			}
		}
	}
	var err error
	if c.line, err = parseCommand(c.Command); err != nil {
		return nil, wrong(v.master, "%v", err)
	}
	if !c.line.uses("rpc_port") {
		return nil, wrong(v.master, "the command line does not say {rpc_port}, so that the master would listen elsewhere")
	}
	var cfg settings
	f := flag.NewFlagSet("row", flag.ContinueOnError)
	cfg.define(f)
	sizeVar(f, &c.quota, "tenant_quota", "")
	if err := parse(f, slices.Concat(t.args, v.args), io.Discard); err != nil {
		return nil, err
	}
	b.adjust(&cfg, c)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c.session, c.points = newSession(&cfg), cfg.points()
	return c, nil
}

// adjust applies what the command line says about every row.
func (b *campaign) adjust(cfg *settings, c *contender) {
	cfg.seed = 1
	if b.length > 0 {
		cfg.length = b.length
	}
	if b.pin != unset {
		cfg.pin = b.pin
	}
	if !b.quick {
		return
	}
	cfg.length, cfg.warm = 100*time.Millisecond, 20*time.Millisecond
	const mib = 1 << 20
	if cfg.segmentSize < 64<<30 {
		cfg.segmentSize = (cfg.segmentSize/quickShare + mib - 1) / mib * mib
	}
	if cfg.keys > 0 {
		cfg.keys = max(cfg.keys/quickShare, 256*int64(cfg.tenants)/quickShare, 256, int64(cfg.tenants))
	} else if cfg.keys < 0 {
		cfg.keys = 10_000
	}
	c.quota /= quickShare
}

// run measures a trial and hands over one record per point.
func (b *campaign) run(ctx context.Context, name string, t *trial, done func(*record) error) error {
	var sides []*contender
	for _, v := range t.sides {
		c, err := b.contender(t, v)
		if err != nil {
			return err
		}
		sides = append(sides, c)
	}
	rounds := t.rounds
	switch {
	case b.rounds > 0:
		rounds = b.rounds
	case b.quick:
		rounds = 1
	}
	count := len(sides[0].points)
	size := 1
	if t.together {
		size = count
	}
	for from := 0; from < count; from += size {
		results := make([][][]result, len(sides)) // by side, round and point
		for round := range rounds {
			fmt.Fprintf(b.progress, "%s: %v, round %d of %d\n", name, joined(sides[0].points[from:from+size]), round+1, rounds)
			order := make([]int, len(sides))
			for i := range order {
				order[i] = i
			}
			if round%2 == 1 {
				slices.Reverse(order) // so that a drift of the machine favours nobody
			}
			for _, i := range order {
				x := sides[i]
				one, err := x.session.fresh(ctx, x.points[from:from+size], &x.side, x.quota)
				if err != nil {
					return fmt.Errorf("%s, round %d, %s: %w", name, round+1, x.Label, err)
				}
				results[i] = append(results[i], one)
			}
		}
		for k := range size {
			r := &record{Kind: "row", Row: name, Point: t.title(sides, from+k), Quick: b.quick}
			for i, c := range sides {
				s := c.side
				for _, one := range results[i] {
					s.Results = append(s.Results, one[k])
				}
				r.Sides = append(r.Sides, s)
			}
			var err error
			if r.Checks, err = judge(r.Sides, t.base, t.limits); err != nil {
				return fmt.Errorf("%s, %s: %w", name, r.Point, err)
			}
			if err := done(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// title names a point; what differs between the sides is left to their labels.
func (t *trial) title(sides []*contender, i int) string {
	title := func(c *contender) string { return c.session.settings.setting(c.points[i]).title() }
	first := title(sides[0])
	for _, c := range sides[1:] {
		if title(c) != first {
			return c.points[i].work.String()
		}
	}
	return first
}
