package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// converge is how soon after the source's return its document has to be in force.
const converge = 5 * time.Second

// fault is one thing that goes wrong. It returns when the source is well again; what follows is
// a new document. Documents it writes itself are numbered by next.
type fault struct {
	name string
	do   func(ctx context.Context, f *faults) error
}

var etcdFaults = []fault{
	{"etcd killed", func(ctx context.Context, f *faults) error {
		f.etcd.kill()
		f.pause()
		return f.etcd.start()
	}},
	{"etcd stopped and continued", func(ctx context.Context, f *faults) error {
		return f.stopped(f.etcd.cmd.Process.Pid)
	}},
	{"compacted and defragmented", func(ctx context.Context, f *faults) error {
		var last int64
		for range 20 {
			r, err := f.client.Put(ctx, etcdKey, f.next())
			if err != nil {
				return err
			}
			last = r.Header.Revision
		}
		if _, err := f.client.Compact(ctx, last, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
		_, err := f.client.Defragment(ctx, f.etcd.client)
		return err
	}},
	{"compacted while the connector is stopped", func(ctx context.Context, f *faults) error {
		pid, err := f.connector()
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		for range 20 {
			r, err := f.client.Put(ctx, etcdKey, f.next())
			if err == nil {
				_, err = f.client.Compact(ctx, r.Header.Revision)
			}
			if err != nil {
				return errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
			}
		}
		return syscall.Kill(pid, syscall.SIGCONT)
	}},
	{"key deleted", func(ctx context.Context, f *faults) error {
		_, err := f.client.Delete(ctx, etcdKey)
		f.pause()
		return err
	}},
	{"garbage", func(ctx context.Context, f *faults) error {
		texts := []string{"\x00\xff\xfe", "version: 1\ntenants:\n  - name: tenant-a\n    quota: -1\n", "version: 7\n", "[", "version: 1\ntenants:\n  - name: tenant-a\n"}
		_, err := f.client.Put(ctx, etcdKey, texts[rand.IntN(len(texts))])
		f.pause()
		return err
	}},
	{"empty value", func(ctx context.Context, f *faults) error {
		_, err := f.client.Put(ctx, etcdKey, "")
		f.pause()
		return err
	}},
	{"connector killed", func(ctx context.Context, f *faults) error {
		pid, err := f.connector()
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}},
	{"connector stopped and continued", func(ctx context.Context, f *faults) error {
		pid, err := f.connector()
		if err != nil {
			return err
		}
		return f.stopped(pid)
	}},
}

// faults is what they happen to.
type faults struct {
	etcd   *member
	client *clientv3.Client
	master *process
	newest atomic.Int64 // number of the newest document that was written or is about to be
	seen   map[int]bool // every connector process there was
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

func (f *faults) stopped(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	f.pause()
	return syscall.Kill(pid, syscall.SIGCONT)
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

// etcdFaultRounds makes one thing after the other go wrong while clients write.
func etcdFaultRounds(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("etcd-faults", flag.ContinueOnError)
	rounds := flags.Int("rounds", 1000, "faults")
	clients := flags.Int("clients", 4, "clients that write meanwhile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, c, err := e.etcd(ctx)
	if err != nil {
		return err
	}
	defer func() { m.kill() }()
	defer c.Close()
	f := &faults{etcd: m, client: c, seen: map[int]bool{}}
	if err := write(ctx, c, f.next()); err != nil {
		return err
	}
	if f.master, err = e.startOn(ctx, m); err != nil {
		return err
	}
	defer f.master.kill()
	work, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var ops, reads atomic.Int64
	failures := make(chan error, *clients+1)
	wg.Go(func() {
		if err := f.sample(work, &reads); err != nil {
			failures <- err
		}
	})
	for n := range *clients {
		wg.Go(func() {
			if err := traffic(work, f.master.rpc, uint64(n+1), &ops); err != nil {
				failures <- fmt.Errorf("client %d: %w", n, err)
			}
		})
	}
	slowest := map[string]time.Duration{}
	warm, before := max(1, *rounds/5), footprint{}
	for i := range *rounds {
		fault := etcdFaults[i%len(etcdFaults)]
		if err := fault.do(ctx, f); err != nil {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, err)
		}
		well := time.Now()
		if err := write(ctx, c, f.next()); err != nil {
			return fmt.Errorf("round %d, %s: etcd does not come back: %w", i, fault.name, err)
		}
		if stored := time.Now(); fault.name == "etcd killed" {
			well = stored // it takes a moment to start
		}
		want := uint64(1<<30 + f.newest.Load())
		if !await(converge-time.Since(well), func() bool {
			quota, err := f.master.requested("tenant-a")
			state, err2 := f.master.connectorState()
			return err == nil && err2 == nil && quota == want && state == "ready"
		}) {
			quota, err := f.master.requested("tenant-a")
			state, err2 := f.master.connectorState()
			return fmt.Errorf("round %d, %s: %s after the source is well quota is %d, want %d, connector is %q, %w: %s",
				i, fault.name, converge, quota, want, state, errors.Join(err, err2), f.master.tail())
		}
		slowest[fault.name] = max(slowest[fault.name], time.Since(well))
		if len(failures) > 0 {
			return fmt.Errorf("round %d, %s: %w", i, fault.name, <-failures)
		}
		if i == warm {
			before = f.footprint()
		}
	}
	after := f.footprint()
	stop()
	wg.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	for _, fault := range etcdFaults {
		if took, ok := slowest[fault.name]; ok {
			fmt.Printf("%-42s slowest to converge %v\n", fault.name, took.Round(time.Millisecond))
		}
	}
	fmt.Printf("%d faults, %d calls by %d clients without an error, %d looks at the policy; after %d rounds %s, after all %s\n",
		*rounds, ops.Load(), *clients, reads.Load(), warm, before, after)
	if after.descriptors > before.descriptors+4 || after.threads > before.threads+8 || after.master > before.master+64<<20 || after.connector > before.connector+32<<20 {
		return fmt.Errorf("it holds more than before: %s, then %s", before, after)
	}
	if _, err := f.connector(); err != nil {
		return err
	}
	f.master.kill()
	if !await(5*time.Second, func() bool { return len(left(f.seen)) == 0 }) {
		return fmt.Errorf("processes %v are left 5 s after the master was killed", left(f.seen))
	}
	return nil
}

// footprint is what master and connector hold.
type footprint struct {
	descriptors, threads int
	master, connector    int64 // resident bytes
}

func (f *faults) footprint() footprint {
	pid, err := f.connector()
	if err != nil {
		return footprint{}
	}
	own := f.master.cmd.Process.Pid
	return footprint{descriptors(own) + descriptors(pid), int(statusOf(own, "Threads:") + statusOf(pid, "Threads:")), memory(own), memory(pid)}
}

func (p footprint) String() string {
	return fmt.Sprintf("%d descriptors, %d threads, %d MiB master, %d MiB connector", p.descriptors, p.threads, p.master>>20, p.connector>>20)
}
