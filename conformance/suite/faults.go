package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// converge is how soon after the source's return its document has to be in force.
const converge = 5 * time.Second

// fault is one thing that goes wrong with a source of policies. It returns when the source is
// well again; what follows is a new document. Documents it writes itself are made by next.
type fault[S any] struct {
	name string
	do   func(ctx context.Context, s S) error
	kind kind
}

// kind is what a round with a fault has to know about it.
type kind int

const (
	usual kind = iota
	// late: the source needs a moment to start when do has returned. It is well once it has taken
	// the next document.
	late
	// deadly: the connector does not survive it.
	deadly
)

// faults is the master they happen to, and what is known of its source.
type faults struct {
	master *process
	newest atomic.Int64  // number of the newest document that was written or is about to be
	seen   map[int]bool  // every connector process there was
	during time.Duration // slowest to converge while a fault went on that leaves the source alive
}

// next is another valid document.
func (f *faults) next() string { return goodPolicy(int(f.newest.Add(1))) }

// pause lets a fault last a while.
func (f *faults) pause() { time.Sleep(rand.N(200 * time.Millisecond)) }

// connector returns the connector's process.
func (f *faults) connector() (int, error) {
	var found []int
	if !await(10*time.Second, func() bool { found = children(f.master.cmd.Process.Pid); return len(found) == 1 }) {
		return 0, fmt.Errorf("the master has children %v, want the connector alone", found)
	}
	f.seen[found[0]] = true
	return found[0], nil
}

// killConnector ends the connector with -9.
func (f *faults) killConnector() error {
	pid, err := f.connector()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// stopConnector stops the connector while something is done.
func (f *faults) stopConnector(do func() error) error {
	pid, err := f.connector()
	if err != nil {
		return err
	}
	return stopped(do, pid)
}

// stopped stops processes while something is done, then continues them.
func stopped(do func() error, pids ...int) error {
	var errs []error
	for _, pid := range pids {
		errs = append(errs, syscall.Kill(pid, syscall.SIGSTOP))
	}
	errs = append(errs, do())
	for _, pid := range pids {
		errs = append(errs, syscall.Kill(pid, syscall.SIGCONT))
	}
	return errors.Join(errs...)
}

// lasting is what is done while something is stopped: nothing, for a while.
func (f *faults) lasting() error { f.pause(); return nil }

// settled waits until the newest document is in force and the connector is ready.
func (f *faults) settled(limit time.Duration) error {
	want := uint64(1<<30 + f.newest.Load())
	if await(limit, func() bool {
		quota, err := f.master.requested("tenant-a")
		state, err2 := f.master.connectorState()
		return err == nil && err2 == nil && quota == want && state == "ready"
	}) {
		return nil
	}
	quota, err := f.master.requested("tenant-a")
	state, err2 := f.master.connectorState()
	return errors.Join(fmt.Errorf("%s after the source is well quota is %d, want %d, connector is %q: %s", converge, quota, want, state, f.master.tail()), err, err2)
}

// sample reads the policy in force over and over: it has to be one that was valid at the source,
// and never an older one than before.
func (f *faults) sample(ctx context.Context, reads *atomic.Int64) error {
	for newest := uint64(0); ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		quota, err := f.master.requested("tenant-a")
		if err != nil {
			return err
		}
		if quota < 1<<30 || quota > 1<<30+uint64(f.newest.Load()) {
			return fmt.Errorf("the quota in force is %d, which the source has never said", quota)
		}
		if quota < newest {
			return fmt.Errorf("the quota in force is %d, an older one than %d before", quota, newest)
		}
		newest = quota
		other, err := f.master.requested("tenant-b")
		if err != nil || other != 64<<20 {
			return fmt.Errorf("the quota of tenant-b is %d, %w", other, err)
		}
		reads.Add(1)
	}
	return nil
}

// faultFlags are those of every check with faults.
type faultFlags struct{ rounds, clients *int }

func newFaultFlags(name string) (*flag.FlagSet, faultFlags) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	return flags, faultFlags{flags.Int("rounds", 1000, "faults"), flags.Int("clients", 4, "clients that write meanwhile")}
}

// suffer makes one thing after the other go wrong while clients write, and kills the master at
// the end. Rounds below the number of faults are raised to it. In the second half the connector
// stays the same process, so that what it does not give back shows. write gives the source a
// document, again and again until it has it.
func suffer[S any](ctx context.Context, f *faults, source S, all []fault[S], set faultFlags, write func(ctx context.Context, text string) error) error {
	rounds, clients := max(*set.rounds, len(all)), *set.clients
	work, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var ops, reads atomic.Int64
	failures := make(chan error, clients+1)
	wg.Go(func() {
		if err := f.sample(work, &reads); err != nil {
			failures <- err
		}
	})
	for n := range clients {
		wg.Go(func() {
			if err := traffic(work, f.master.rpc, uint64(n+1), &ops); err != nil {
				failures <- fmt.Errorf("client %d: %w", n, err)
			}
		})
	}
	slowest, count := map[string]time.Duration{}, map[string]int{}
	half := max(rounds/2, len(all))
	mild := slices.DeleteFunc(slices.Clone(all), func(f fault[S]) bool { return f.kind == deadly })
	var early, middle footprint
	began := time.Now()
	for i := range rounds {
		fault := all[i%len(all)]
		if i >= half {
			fault = mild[i%len(mild)]
		}
		switch i {
		case rounds / 5:
			early = f.footprint()
		case half + len(mild):
			middle = f.footprint()
		}
		if err := fault.do(ctx, source); err != nil {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, err)
		}
		well := time.Now()
		if err := write(ctx, f.next()); err != nil {
			return fmt.Errorf("round %d, %s: the source does not come back: %w", i, fault.name, err)
		}
		if fault.kind == late {
			well = time.Now()
		}
		if err := f.settled(converge - time.Since(well)); err != nil {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, err)
		}
		slowest[fault.name] = max(slowest[fault.name], time.Since(well))
		count[fault.name]++
		if len(failures) > 0 {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, <-failures)
		}
		if _, err := f.connector(); err != nil {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, err)
		}
	}
	took := time.Since(began)
	after := f.footprint()
	stop()
	wg.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	worst := time.Duration(0)
	for _, fault := range all {
		worst = max(worst, slowest[fault.name])
		fmt.Printf("%-46s %4d times, slowest to converge %v\n", fault.name, count[fault.name], slowest[fault.name].Round(time.Millisecond))
	}
	fmt.Printf("%d faults in %v, slowest to converge %v; %d calls by %d clients without an error; %d looks at the policy in force, each valid at the source\n",
		rounds, took.Round(time.Second), worst.Round(time.Millisecond), ops.Load(), clients, reads.Load())
	if f.during > 0 {
		fmt.Printf("while a part of the source was gone: slowest to converge %v\n", f.during.Round(time.Millisecond))
	}
	fmt.Printf("after %d rounds %s\n", rounds/5, early)
	if middle.pid != 0 {
		fmt.Printf("after %d rounds %s\n", half+len(mild), middle)
	}
	fmt.Printf("after %d rounds %s\n", rounds, after)
	if err := after.flat(early); err != nil {
		return err
	}
	if middle.pid != 0 {
		if middle.pid != after.pid {
			return errors.New("the connector is another process than half way, though nothing has killed it")
		}
		if err := after.flat(middle); err != nil {
			return err
		}
	}
	f.master.kill()
	if !await(5*time.Second, func() bool { return len(left(f.seen)) == 0 }) {
		return fmt.Errorf("processes %v are left 5 s after the master was killed", left(f.seen))
	}
	fmt.Printf("%d connector processes seen, none left after the master was killed\n", len(f.seen))
	return nil
}

// footprint is what a master and its connector hold.
type footprint struct {
	pid        int // the connector's
	goroutines int // the master's
	descriptors,
	threads,
	memory [2]int64 // the master's, the connector's; memory is resident bytes
}

// footprint looks again until nothing is in passing: what a request or a start holds for a moment
// does not count.
func (f *faults) footprint() footprint {
	var least footprint
	for i := range 10 {
		pid, err := f.connector()
		if err != nil {
			return footprint{}
		}
		now := footprint{pid: pid, goroutines: f.master.goroutines()}
		for i, pid := range []int{f.master.cmd.Process.Pid, pid} {
			now.descriptors[i], now.threads[i], now.memory[i] = int64(descriptors(pid)), statusOf(pid, "Threads:"), memory(pid)
		}
		if i == 0 {
			least = now
		}
		least.goroutines = min(least.goroutines, now.goroutines)
		for i := range least.descriptors {
			least.descriptors[i] = min(least.descriptors[i], now.descriptors[i])
		}
		time.Sleep(20 * time.Millisecond)
	}
	return least
}

func (p footprint) String() string {
	return fmt.Sprintf("master: %d descriptors, %d goroutines, %d threads, %d MiB; connector: %d descriptors, %d threads, %d MiB",
		p.descriptors[0], p.goroutines, p.threads[0], p.memory[0]>>20, p.descriptors[1], p.threads[1], p.memory[1]>>20)
}

// flat says whether no more is held than before.
func (p footprint) flat(before footprint) error {
	if before.goroutines <= 0 || p.goroutines <= 0 || before.pid == 0 || p.pid == 0 {
		return fmt.Errorf("master or connector could not be looked at: %s, then %s", before, p)
	}
	more := p.goroutines > before.goroutines+8
	for i, grow := range []int64{64 << 20, 32 << 20} {
		more = more || p.descriptors[i] > before.descriptors[i]+4 || p.threads[i] > before.threads[i]+8 || p.memory[i] > before.memory[i]+grow
	}
	if more {
		return fmt.Errorf("it holds more than before: %s, then %s", before, p)
	}
	return nil
}

// goroutines asks a master how many it has, 0 when it does not say.
func (p *process) goroutines() int {
	resp, err := http.Get(p.http + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			var n float64
			if _, err := fmt.Sscan(rest, &n); err == nil {
				return int(n)
			}
		}
	}
	return 0
}
