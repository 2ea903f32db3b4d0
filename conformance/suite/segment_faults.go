package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// segmentFaults moves bytes between processes while peers die, stop, go silent, lie and start anew. Every
// transfer that fails does so within its deadline and with a cause; every byte of every memory is compared
// after every round; what a round has used is given back.
func segmentFaults(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("segment-faults", flag.ContinueOnError)
	rounds := flags.Int("rounds", 1000, "how many faults")
	seed := flags.Uint64("seed", rand.Uint64N(1<<32), "what happens when and to which bytes; moments are chance all the same")
	from := flags.Int("from", 0, "the round to begin with")
	protocol := flags.String("protocol", "tcp", "tcp, or rdma in a program built with -tags rdma")
	only := flags.String("only", "", "only troubles whose name this expression matches")
	verbose := flags.Bool("v", false, "tell of every round")
	l := limits{grace: time.Second, lag: &lag{}}
	flags.DurationVar(&l.deadline, "deadline", 0, "of each transfer; 0 = 2s over TCP, 5s over RDMA, where each of four ways is tried for half a second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if l.deadline == 0 {
		l.deadline = map[string]time.Duration{segment.ProtocolTCP: 2 * time.Second, segment.ProtocolRDMA: 5 * time.Second}[*protocol]
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var all []trouble
	for _, t := range troubles {
		if (t.protocol == "" || t.protocol == *protocol) && match.MatchString(t.name) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no trouble over %s matches %q", *protocol, *only)
	}
	master, err := e.start(ctx, "--enable_http_metadata_server", "--http_metadata_server_host=127.0.0.1", "--http_metadata_server_port=0")
	if err != nil {
		return err
	}
	defer master.kill()
	s := &segmentStage{limits: l, protocol: *protocol, store: master.metadata, verbose: *verbose, seen: map[string]*tally{}}
	fmt.Printf("seed %d, %s, %d troubles\n", *seed, *protocol, len(all))
	measuring, stop := context.WithCancel(ctx)
	var measure sync.WaitGroup
	measure.Go(func() { l.lag.measure(measuring) })
	defer measure.Wait()
	defer stop()
	defer s.clear()
	// Connections and files that nobody refers to any more are closed when garbage is collected. They would not be missed
	// then: so it is collected only when there is really much of it.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	// The first round makes what stays for good: threads, the connections of the runtime.
	for i := range *rounds + 1 {
		n := *from + max(i-1, 0)
		// A cycle of rounds has each trouble once, in an order of its own.
		order := rand.New(rand.NewPCG(*seed, uint64(n/len(all)))).Perm(len(all))
		t := all[order[n%len(all)]]
		if err := s.round(ctx, t, rand.New(rand.NewPCG(*seed, 1<<32+uint64(n)))); err != nil {
			return fmt.Errorf("round %d of seed %d, %s, metadata %s: %w", n, *seed, t.name, s.metadata, err)
		}
		if err := s.still(i == 0); err != nil {
			return fmt.Errorf("after round %d of seed %d, %s: %w", n, *seed, t.name, err)
		}
		if i == 0 {
			s.seen = map[string]*tally{}
		}
	}
	s.report(*rounds)
	return nil
}

// segmentStage is where the rounds happen.
type segmentStage struct {
	limits
	protocol string
	store    string // URL of the metadata store
	verbose  bool
	seen     map[string]*tally

	// Of the present round.
	rand     *rand.Rand
	metadata string
	version  int
	child    *child
	ground   *ground
	adapter  *rdma.Adapter
	carriers []*segment.Carrier
	books    []segment.Metadata
	relays   []*relay
	kept     keepsakes
	tally    *tally

	before holding // what this process holds between rounds
}

// tally is what was seen of one trouble.
type tally struct {
	rounds, transfers, setbacks int
	slowest                     time.Duration // setback
	causes                      map[string]int
}

// round lends memory in another process, has a trouble happen, and gives everything back.
func (s *segmentStage) round(ctx context.Context, t trouble, r *rand.Rand) (err error) {
	runtime.GC()
	began := time.Now()
	s.rand, s.version = r, 1+r.IntN(2)
	s.metadata = segment.P2P
	if t.named || r.IntN(2) == 0 {
		s.metadata = s.store
	}
	s.tally = s.seen[t.name]
	if s.tally == nil {
		s.tally = &tally{causes: map[string]int{}}
		s.seen[t.name] = s.tally
	}
	s.tally.rounds++
	if err = s.lend(ctx, fmt.Sprintf("127.0.0.1:%d", 20000+r.IntN(10000))); err == nil {
		err = t.do(ctx, s)
	}
	err = errors.Join(err, s.clear())
	if s.verbose {
		fmt.Printf("%-50s %v\n", t.name, time.Since(began).Round(time.Millisecond))
	}
	return err
}

// lend has a new process lend memory under a name.
func (s *segmentStage) lend(ctx context.Context, name string) error {
	c, err := newChild(ctx)
	if err != nil {
		return err
	}
	if s.child != nil {
		s.child.kill()
	}
	s.child = c
	seed := s.rand.Uint64()
	a, err := c.ask(childOrder{Do: "lend", Metadata: s.metadata, Name: name, Protocol: s.protocol, Version: s.version, Seed: seed})
	if err != nil {
		return err
	}
	s.ground = &ground{owner: a.Name, pid: c.pid(), address: a.Address, bytes: fill(seed)}
	return nil
}

// carrier makes a carrier that believes what between says.
func (s *segmentStage) carrier(b between) (*segment.Carrier, error) {
	m, err := segment.OpenMetadata(s.metadata, "", time.Now)
	if err != nil {
		return nil, err
	}
	s.books = append(s.books, m)
	b.Metadata, b.p2p = m, s.metadata == segment.P2P
	if s.adapter == nil {
		if s.adapter, err = openAdapter(s.protocol); err != nil {
			return nil, err
		}
	}
	c := segment.NewCarrier(segment.CarrierConfig{Metadata: &b, RDMA: s.adapter, DataVersion: s.version, Now: time.Now})
	s.carriers = append(s.carriers, c)
	return c, nil
}

// relay makes a relay that ends with the round.
func (s *segmentStage) relay(target string, next func() plan) (*relay, error) {
	r, err := newRelay(target, next)
	if err == nil {
		s.relays = append(s.relays, r)
	}
	return r, err
}

// traffic begins to write to and read from the owner's memory.
func (s *segmentStage) traffic(ctx context.Context, c *segment.Carrier) *work {
	return s.ground.carry(ctx, c, s.limits, s.rand.Uint64(), &s.kept)
}

// unhurried is traffic that nothing is in the way of, but a busy machine.
func (s *segmentStage) unhurried(ctx context.Context, c *segment.Carrier) *work {
	return s.ground.carry(ctx, c, limits{patience, patience, s.lag}, s.rand.Uint64(), &s.kept)
}

const patience = 30 * time.Second

// underway waits until some transfers have succeeded, and a moment longer.
func (s *segmentStage) underway(w *work) error {
	least := 1 + s.rand.IntN(20)
	if !await(patience, func() bool { return w.done() >= least }) {
		w.stop()
		back, err := w.end()
		return fmt.Errorf("only %d of %d transfers have succeeded after %v: %v, %w", w.done(), least, patience, back, err)
	}
	time.Sleep(time.Duration(s.rand.IntN(3000)) * time.Microsecond)
	return nil
}

// failed waits for the workers, each of which has to fail with one of some causes, and compares every byte
// if the owner is still there.
func (s *segmentStage) failed(w *work, causes ...any) error {
	back, err := w.end()
	s.tally.transfers += w.done()
	if err != nil {
		return err
	}
	if len(back) != stripes {
		return fmt.Errorf("%d of %d workers have failed, every one must", len(back), stripes)
	}
	for _, b := range back {
		if err := s.noted(b, causes); err != nil {
			return err
		}
	}
	return nil
}

// noted counts one setback, which must have one of some causes.
func (s *segmentStage) noted(b setback, causes []any) error {
	s.tally.setbacks++
	s.tally.slowest = max(s.tally.slowest, b.took)
	for _, c := range causes {
		switch c := c.(type) {
		case error:
			if errors.Is(b.err, c) {
				s.tally.causes[c.Error()]++
				return nil
			}
		case string:
			if regexp.MustCompile(c).MatchString(b.err.Error()) {
				s.tally.causes[c]++
				return nil
			}
		}
	}
	if lost := s.lag.since(b.began); errors.Is(b.err, context.DeadlineExceeded) && lost > s.deadline/4 {
		s.tally.causes["the machine was too busy"]++
		return nil
	}
	return fmt.Errorf("%s fails with another cause than one of %q: %w", b.what, fmt.Sprint(causes), b.err)
}

// ends tells the workers to stop, of whom none may have failed.
func (s *segmentStage) ends(w *work) error {
	w.stop()
	back, err := w.end()
	s.tally.transfers += w.done()
	if err == nil && len(back) > 0 {
		err = fmt.Errorf("%s: %w", back[0].what, back[0].err)
	}
	return err
}

// well has a carrier do some transfers without a failure, and compares every byte.
func (s *segmentStage) well(ctx context.Context, c *segment.Carrier) error {
	w := s.unhurried(ctx, c)
	if err := s.underway(w); err != nil {
		return err
	}
	if err := s.ends(w); err != nil {
		return fmt.Errorf("when all is well again: %w", err)
	}
	return s.ground.verify()
}

// clear gives everything of a round back. Buffers of failed transfers must not have been touched since.
func (s *segmentStage) clear() error {
	var errs []error
	for _, c := range s.carriers {
		c.Close()
	}
	for _, m := range s.books {
		errs = append(errs, m.Close())
	}
	if s.adapter != nil {
		errs = append(errs, s.adapter.Close())
	}
	for _, r := range s.relays {
		r.close()
	}
	if s.child != nil {
		s.child.kill()
	}
	s.carriers, s.books, s.adapter, s.relays, s.child, s.ground = nil, nil, nil, nil, nil, nil
	return errors.Join(append(errs, s.kept.check())...)
}

// holding is what a process holds.
type holding struct{ goroutines, descriptors, queuePairs, regions int }

func (h holding) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d queue pairs, %d registrations", h.goroutines, h.descriptors, h.queuePairs, h.regions)
}

func (s *segmentStage) holding() (h holding, err error) {
	h.goroutines, h.descriptors = runtime.NumGoroutine(), descriptors(os.Getpid())
	if s.protocol == segment.ProtocolRDMA {
		h.queuePairs, h.regions, err = registered(filepath.Join(os.Getenv("SOFTVERBS_DIR"), "registry"), os.Getpid())
	}
	return h, err
}

// still waits until this process holds no more than before the first round.
func (s *segmentStage) still(first bool) error {
	if first {
		var err error
		s.before, err = s.holding()
		return err
	}
	now, ok := s.least(s.before)
	if !ok {
		files, _ := filepath.Glob("/proc/self/fd/*")
		for _, name := range files {
			target, _ := os.Readlink(name)
			fmt.Fprintln(os.Stderr, name, target)
		}
		stacks := make([]byte, 1<<16)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return fmt.Errorf("more is held than before, %s instead of %s:\n%s", now, s.before, stacks)
	}
	return nil
}

// least waits until this process holds no more than before; false when it goes on holding more.
func (s *segmentStage) least(before holding) (now holding, ok bool) {
	// An endpoint that waits for its acknowledgement from somebody who has died is given up after ten seconds.
	return now, await(20*time.Second, func() bool {
		var err error
		now, err = s.holding()
		return err == nil && now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && now.queuePairs <= before.queuePairs && now.regions <= before.regions
	})
}

// report prints what was seen.
func (s *segmentStage) report(rounds int) {
	var names []string
	total := tally{}
	for name, t := range s.seen {
		names = append(names, name)
		total.transfers, total.setbacks, total.slowest = total.transfers+t.transfers, total.setbacks+t.setbacks, max(total.slowest, t.slowest)
	}
	slices.Sort(names)
	for _, name := range names {
		t := s.seen[name]
		var causes []string
		for c := range t.causes {
			causes = append(causes, c)
		}
		slices.SortFunc(causes, func(a, b string) int { return cmp.Compare(t.causes[b], t.causes[a]) })
		fmt.Printf("%-58s %4d rounds, %6d transfers, %5d setbacks, slowest %v\n", name, t.rounds, t.transfers, t.setbacks, t.slowest.Round(time.Millisecond))
		for _, c := range causes {
			fmt.Printf("    %5d: %s\n", t.causes[c], c)
		}
	}
	fmt.Printf("%d rounds over %s: %d transfers succeeded, %d failed within their deadline of %v and with a cause, the slowest after %v; every byte compared; held before and after: %s\n",
		rounds, s.protocol, total.transfers, total.setbacks, s.deadline, total.slowest.Round(time.Millisecond), s.before)
}
