package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

// traceConfig is one way to run both masters, and what the trace does there.
type traceConfig struct {
	name        string
	flags, ours []string // ours are flags that only our master has
	policy      string   // a policy document; empty without tenants
	tenants     []string // the first is used most
	keys        []string
	segments    int
	segmentSize uint64
	tight       bool // memory is so short that what an upsert has left behind matters
	short       bool // leases of a millisecond
	actions     []action
	prepare     func(w *world)
}

// quiet are the flags that keep everything out of a trace that happens by itself.
var still = []string{
	"--eviction_high_watermark_ratio=1.0", "--eviction_ratio=0", "--tenant_eviction_high_watermark_ratio=0",
	"--client_active_ttl_sec=36000", "--client_suspicion_ttl_sec=36000",
	"--put_start_discard_timeout_sec=36000", "--put_start_release_timeout_sec=72000",
	"--pending_task_timeout_sec=0", "--processing_task_timeout_sec=0",
	"--max_total_pending_tasks=40", "--max_total_processing_tasks=40", "--max_total_finished_tasks=1000000",
	"--promotion_max_per_heartbeat=4",
}

// diskFlags turn the disk tier on.
var diskFlags = []string{"--enable_offload=true", "--promotion_on_hit=true"}

const tracePolicy = `version: 1
tenants:
  - name: a
    quota: 12MB
  - name: b
    quota: 4MB
  - name: default
    quota: 6MB
  - name: small
    quota: 1MB
`

func traceConfigs() []*traceConfig {
	var keys []string
	for i := range 6 {
		keys = append(keys, fmt.Sprint("k", i), fmt.Sprint("m", i))
	}
	hour, moment := "--default_kv_lease_ttl=3600000", "--default_kv_lease_ttl=1"
	prepare := (*world).mountAll
	withDisks := func(w *world) {
		w.mountAll()
		for i := range lenders {
			w.mountDisk(i)
		}
	}
	base := slices.Concat(objectActions, segmentActions, taskActions)
	tenants := []string{"a", "b", "default", "small", "ghost"}
	reject := []string{"--tenant_quota_exceeded=reject"}
	all := []*traceConfig{
		{name: "open", flags: []string{hour}, actions: slices.Concat(base, fewDiskActions), tenants: []string{"default", "a"}, prepare: prepare},
		{name: "open-1ms", flags: []string{moment}, short: true, actions: slices.Concat(base, fewDiskActions), tenants: []string{"default", "a"}, prepare: prepare},
		{name: "strict", flags: []string{hour}, policy: tracePolicy, actions: slices.Concat(base, fewDiskActions, quotaActions), tenants: tenants, prepare: prepare},
		{name: "strict-1ms", flags: []string{moment}, short: true, policy: tracePolicy, actions: slices.Concat(base, fewDiskActions, quotaActions), tenants: tenants, prepare: prepare},
		{name: "disk", flags: append([]string{hour}, diskFlags...), policy: tracePolicy, actions: slices.Concat(base, diskActions, quotaActions), tenants: tenants, prepare: withDisks},
		{name: "disk-1ms", flags: append([]string{moment}, diskFlags...), short: true, policy: tracePolicy, actions: slices.Concat(base, diskActions, quotaActions), tenants: tenants, prepare: withDisks},
	}
	for _, c := range all {
		c.flags = slices.Concat(c.flags, still)
		c.keys, c.segments, c.segmentSize = keys, 5, 2*gib
		if c.policy != "" {
			c.ours = reject
		}
	}
	// One small segment that is full most of the time.
	full := *all[0]
	full.name, full.segments, full.segmentSize, full.tight = "full", 1, 8<<20, true
	return append(all, &full)
}

// tracer runs a trace.
type tracer struct {
	e           *environment
	reference   string // path of the C++ master
	ours        string // path of what is compared with it; empty is ours
	seed        uint64
	most        int // differences to show
	verbose     bool
	found       map[string]int // unexplained differences by signature
	first       map[string]string
	allowed     map[*allowance]int
	past        *regexp.Regexp // differences to pass over
	passed      map[string]int
	operations  int
	apart       int // chapters that ended because both sides could not be brought together again
	shrink      bool
	chapterSize int
	skip        []string                  // beginnings of names of operations to leave out
	outcomes    map[string]map[string]int // how often each call was answered how; nil if nobody asks
}

// trace compares this master with the C++ one, operation by operation.
func trace(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	t := &tracer{e: e, found: map[string]int{}, first: map[string]string{}, allowed: map[*allowance]int{}, passed: map[string]int{}}
	release := flags.String("release", "0.3.14", "of the C++ master, out of conformance/install.sh")
	flags.StringVar(&t.reference, "reference", "", "path of the C++ master; default is the installed release")
	flags.StringVar(&t.ours, "against", "", "path of a C++ master to compare with the reference instead of ours; the word reference is the same once more")
	flags.Uint64Var(&t.seed, "seed", rand.Uint64()%1_000_000, "of the trace")
	ops := flags.Int("ops", 200_000, "operations in all")
	flags.IntVar(&t.chapterSize, "chapter", 10_000, "operations after which both masters start afresh")
	only := flags.String("config", "", "configurations, or with -timed groups of rules, comma separated; default is all")
	from := flags.Int("from", 0, "the chapter to begin with")
	flags.IntVar(&t.most, "most", 1, "unexplained differences to find before it ends")
	flags.BoolVar(&t.shrink, "shrink", false, "make the trace of each difference short")
	flags.BoolVar(&t.verbose, "v", false, "print every operation with both answers")
	skip := flags.String("skip", "", "operations to leave out, by the beginnings of their names, comma separated")
	past := flags.String("past", "", "a regular expression; differences whose description it matches are passed over and counted")
	outcomes := flags.Bool("outcomes", false, "print how often each call was answered how")
	timed := flags.Bool("timed", false, "the rules about time instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if t.reference == "" {
		if t.reference, err = findReference(*release); err != nil {
			return err
		}
	}
	if t.ours == "reference" {
		t.ours = t.reference
	}
	if *timed {
		return t.runTimed(ctx, *only)
	}
	if *past != "" {
		if t.past, err = regexp.Compile(*past); err != nil {
			return err
		}
	}
	if *skip != "" {
		t.skip = strings.Split(*skip, ",")
	}
	if *outcomes {
		t.outcomes = map[string]map[string]int{}
	}
	configs := traceConfigs()
	if *only != "" {
		configs = slices.DeleteFunc(configs, func(c *traceConfig) bool { return !slices.Contains(strings.Split(*only, ","), c.name) })
	}
	if len(configs) == 0 {
		return fmt.Errorf("no configuration %q", *only)
	}
	fmt.Printf("seed %d\n", t.seed)
	for i, c := range configs {
		start := time.Now()
		before := t.operations
		share := *ops * (i + 1) / len(configs)
		for chapter := *from; t.operations < share; chapter++ {
			if err := t.chapter(ctx, c, chapter, min(t.chapterSize, share-t.operations)); err != nil {
				return err
			}
			if len(t.found) >= t.most {
				return t.report()
			}
		}
		fmt.Printf("  %-12s %6d operations in %.1f s\n", c.name, t.operations-before, time.Since(start).Seconds())
	}
	return t.report()
}

// report says what differed.
func (t *tracer) report() error {
	for _, name := range slices.Sorted(maps.Keys(t.outcomes)) {
		fmt.Printf("  %-28s", name)
		for _, kind := range slices.Sorted(maps.Keys(t.outcomes[name])) {
			fmt.Printf(" %s %d", kind, t.outcomes[name][kind])
		}
		fmt.Println()
	}
	fmt.Printf("%d operations\n", t.operations)
	for _, a := range allowances {
		hint := ""
		if t.allowed[a] == 0 {
			hint = "  (never seen)"
		}
		fmt.Printf("  %6d differ as meant by %s: %s%s\n", t.allowed[a], a.row, a.what, hint)
	}
	for _, s := range slices.Sorted(maps.Keys(t.passed)) {
		fmt.Printf("  %6d passed over: %s\n", t.passed[s], s)
	}
	if t.apart > 0 {
		fmt.Printf("  %6d chapters ended where the sides could not be brought into the same state again\n", t.apart)
	}
	if len(t.found) == 0 {
		fmt.Println("no other difference")
		return nil
	}
	for _, s := range slices.Sorted(maps.Keys(t.found)) {
		fmt.Printf("%d times %s\n  first: %s\n", t.found[s], s, t.first[s])
	}
	return fmt.Errorf("%d kinds of difference that no row allows", len(t.found))
}

// chapter runs one chapter on fresh masters.
func (t *tracer) chapter(ctx context.Context, c *traceConfig, number, n int) error {
	ops := slices.DeleteFunc(newWorld(c, t.seed, number).fill(n), func(o *op) bool {
		return slices.ContainsFunc(t.skip, func(name string) bool { return strings.HasPrefix(o.name, name) })
	})
	history, bad, err := t.play(ctx, c, ops)
	t.operations += len(history)
	if err != nil {
		t.show(history, len(history)-1)
		return fmt.Errorf("seed %d, configuration %s, chapter %d: %w", t.seed, c.name, number, err)
	}
	if bad < 0 {
		return nil
	}
	d := history[bad]
	s := d.signature()
	t.found[s]++
	if t.found[s] > 1 {
		return nil
	}
	t.first[s] = fmt.Sprintf("seed %d, configuration %s, chapter %d, operation %d of %d", t.seed, c.name, number, d.n, n)
	fmt.Printf("\ndifference: %s (trace -seed %d -config %s -from %d -chapter %d)\n", t.first[s], t.seed, c.name, number, t.chapterSize)
	if !t.shrink {
		t.show(history, bad)
		return nil
	}
	return t.shorten(ctx, c, ops[:bad+1], s)
}

// play runs operations on fresh masters until the first unexplained difference, whose place in
// the history it returns, -1 if there is none.
func (t *tracer) play(ctx context.Context, c *traceConfig, ops []*op) (history []*done, bad int, err error) {
	ref, err := t.e.bring(ctx, "reference", t.reference, c)
	if err != nil {
		return nil, -1, err
	}
	defer ref.end()
	ours, err := t.e.bring(ctx, "ours", t.ours, c)
	if err != nil {
		return nil, -1, err
	}
	defer ours.end()
	var leased time.Time
	for _, o := range ops {
		if err := ctx.Err(); err != nil {
			return history, -1, err
		}
		if wait := time.Until(leased.Add(leaseEnd)); c.short && o.minds && wait > 0 {
			time.Sleep(wait)
		}
		d, err := o.both(ctx, ref, ours)
		history = append(history, d)
		if err != nil {
			return history, -1, fmt.Errorf("%v: %w: %s", o, err, t.ends(ref, ours))
		}
		if o.leases {
			leased = time.Now()
		}
		if t.outcomes != nil {
			if t.outcomes[d.name] == nil {
				t.outcomes[d.name] = map[string]int{}
			}
			t.outcomes[d.name][kindOf(d.want)]++
		}
		if t.verbose {
			fmt.Printf("%v\n    = %s\n", o, d.want)
		}
		var a *allowance
		switch {
		case d.differ():
			if a = t.allow(c, history); a == nil && t.past != nil && t.past.MatchString(d.signature()) {
				t.passed[d.signature()]++
				a = passedOver
			}
			if a == nil {
				return history, len(history) - 1, nil
			}
		case onDisk(d):
			a = besideDisk
		default:
			apart, err := lost(ctx, d, ref, ours)
			if err != nil {
				return history, -1, fmt.Errorf("after %v: %w: %s", o, err, t.ends(ref, ours))
			}
			if !apart {
				continue
			}
			a = refusedUpsert
		}
		t.allowed[a]++
		if err := a.repair(ctx, d, ref, ours); errors.Is(err, errApart) || err == nil && c.tight && a == refusedUpsert {
			t.apart++
			return history, -1, nil // the rest would tell nothing
		} else if err != nil {
			return history, -1, err
		}
	}
	return history, -1, nil
}

func (t *tracer) ends(sides ...*side) string {
	var all []string
	for _, s := range sides {
		select {
		case <-s.p.done:
			all = append(all, fmt.Sprintf("%s ended: %v: %s", s.name, s.p.cmd.ProcessState, s.p.tail()))
		default:
		}
	}
	return strings.Join(all, "\n")
}

// show prints an operation and those before it that touched the same keys.
func (t *tracer) show(history []*done, at int) {
	if at < 0 {
		return
	}
	var lines []int
	for i := at - 1; i >= 0 && len(lines) < 12; i-- {
		if d := history[i]; len(d.touches) > 0 && d.about(history[at].op) {
			lines = append(lines, i)
		}
	}
	slices.Reverse(lines)
	for _, i := range append(lines, at) {
		show(history[i])
	}
}

func show(d *done) {
	fmt.Printf("  %v\n", d.op)
	if d.want == d.got {
		fmt.Printf("      both: %s\n", d.want)
	} else {
		fmt.Printf("      reference: %s\n      ours:      %s\n", d.want, d.got)
	}
}

// shorten leaves out operations for as long as the same difference comes, and shows the rest.
func (t *tracer) shorten(ctx context.Context, c *traceConfig, ops []*op, signature string) error {
	var best []*done
	try := func(ops []*op) bool {
		history, bad, err := t.play(ctx, c, ops)
		if err != nil || bad < 0 || history[bad].signature() != signature {
			return false
		}
		best = history[:bad+1]
		return true
	}
	last := ops[len(ops)-1]
	near := slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return !o.setup && len(last.touches) > 0 && (len(o.touches) == 0 || !o.about(last)) })
	if len(near) < len(ops) && try(near) {
		ops = near
	} else if !try(ops) {
		fmt.Println("  it doesn't come again")
		return nil
	}
	tries := 0
	for size := len(ops) / 2; size >= 1 && tries < 150; size /= 2 {
		for at := 0; at < len(ops)-1 && tries < 150; {
			var less []*op
			for i, o := range ops {
				if i < at || i >= at+size || o.setup || i == len(ops)-1 {
					less = append(less, o)
				}
			}
			if len(less) == len(ops) {
				at += size
				continue
			}
			tries++
			if try(less) {
				ops = make([]*op, len(best))
				for i, d := range best {
					ops[i] = d.op
				}
			} else {
				at += size
			}
		}
	}
	fmt.Printf("  %s\n  the shortest trace after %d tries:\n", signature, tries)
	for _, d := range best {
		if !d.setup {
			show(d)
		}
	}
	return ctx.Err()
}
