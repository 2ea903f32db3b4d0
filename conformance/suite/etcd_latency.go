package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"
)

// etcdLatency measures the time from the moment a change is sent to etcd until the quota is in
// force, and then writes a storm of changes, of which the last has to be in force at the end.
func etcdLatency(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("etcd-latency", flag.ContinueOnError)
	rounds := flags.Int("rounds", 500, "changes, one after the other")
	limit := flags.Duration("limit", 50*time.Millisecond, "what the 99th percentile has to stay under")
	storm := flags.Int("storm", 1000, "changes of the storm")
	during := flags.Duration("during", 10*time.Second, "how long it lasts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, c, err := e.etcd(ctx)
	if err != nil {
		return err
	}
	defer m.kill()
	defer c.Close()
	if err := write(ctx, c, goodPolicy(0)); err != nil {
		return err
	}
	p, err := e.startOn(ctx, cluster{m})
	if err != nil {
		return err
	}
	defer p.kill()
	var took, behind []time.Duration
	for n := 1; n <= *rounds; n++ {
		sent := time.Now()
		if err := write(ctx, c, goodPolicy(n)); err != nil {
			return err
		}
		stored := time.Now()
		if err := p.awaitQuota(uint64(1<<30+n), 10*time.Second); err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
		took, behind = append(took, time.Since(sent)), append(behind, time.Since(stored))
		time.Sleep(time.Duration(n%7) * 3 * time.Millisecond)
	}
	p99 := percentile(took, 99)
	fmt.Printf("%d changes: from sent to in force median %v, p99 %v, max %v; from stored to in force median %v, p99 %v\n", *rounds,
		percentile(took, 50), p99, percentile(took, 100), percentile(behind, 50), percentile(behind, 99))
	err = p.storm(*rounds, *storm, *during, func(n int) error { return write(ctx, c, goodPolicy(n)) })
	err = errors.Join(err, p.stop())
	if p99 > *limit {
		err = errors.Join(err, fmt.Errorf("p99 is %v, must be under %v", p99, *limit))
	}
	return err
}

// storm makes many changes, numbered on from last, evenly over a time. The last has to be in force
// soon afterwards.
func (p *process) storm(last, changes int, during time.Duration, change func(n int) error) error {
	began := time.Now()
	for i := 1; i <= changes; i++ {
		time.Sleep(time.Until(began.Add(during * time.Duration(i) / time.Duration(changes))))
		last++
		if err := change(last); err != nil {
			return fmt.Errorf("storm: %w", err)
		}
	}
	ended := time.Now()
	if err := p.awaitQuota(uint64(1<<30+last), 10*time.Second); err != nil {
		return fmt.Errorf("after the storm: %w", err)
	}
	took := time.Since(ended)
	time.Sleep(300 * time.Millisecond)
	if err := p.awaitQuota(uint64(1<<30+last), 0); err != nil {
		return fmt.Errorf("after the storm the last change was in force, then another: %w", err)
	}
	fmt.Printf("%d changes in %v: the last is in force %v after it was made\n", changes, ended.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond/10))
	return nil
}

// awaitQuota waits until tenant-a has a quota.
func (p *process) awaitQuota(want uint64, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(500 * time.Microsecond) {
		got, err := p.requested("tenant-a")
		if err != nil {
			return err
		}
		if got == want {
			return nil
		}
		if time.Now().After(end) {
			state, err := p.connectorState()
			return fmt.Errorf("quota is %d after %s, want %d; connector is %q, %w", got, limit, want, state, err)
		}
	}
}

// percentile sorts and rounds.
func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)*p/100, len(d)-1)].Round(time.Millisecond / 10)
}
