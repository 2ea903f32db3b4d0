package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// connectorKill kills the connector process over and over while clients write, and at the end
// the master itself. No client may see an error, the policy stays in force, the connector comes
// back by itself, and nothing is left running.
func connectorKill(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("connector-kill", flag.ContinueOnError)
	rounds := flags.Int("rounds", 200, "how often the connector is killed")
	clients := flags.Int("clients", 4, "clients that write meanwhile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := filepath.Join(e.dir, "tenants.yaml")
	if err := os.WriteFile(path, []byte("version: 1\ntenants:\n  - name: tenant-a\n    quota: 1GB\n  - name: tenant-b\n    quota: 64MB\n"), 0o644); err != nil {
		return err
	}
	p, err := e.start(ctx, "--enable_multi_tenants=true", "--tenant_quota_connector_type=file", "--tenant_quota_connector_uri="+path)
	if err != nil {
		return err
	}
	defer p.kill()

	work, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var ops atomic.Int64
	failures := make(chan error, *clients)
	for n := range *clients {
		wg.Go(func() {
			if err := traffic(work, p.rpc, uint64(n+1), &ops); err != nil {
				failures <- fmt.Errorf("client %d: %w", n, err)
			}
		})
	}
	everChild := map[int]bool{}
	var slowest time.Duration
	for i := range *rounds {
		var victims []int
		if !await(10*time.Second, func() bool { victims = children(p.cmd.Process.Pid); return len(victims) == 1 }) {
			return fmt.Errorf("round %d: the master has %d children, want the connector alone", i, len(victims))
		}
		everChild[victims[0]] = true
		if err := syscall.Kill(victims[0], syscall.SIGKILL); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		killed := time.Now()
		quota, err := p.requested("tenant-a")
		if err != nil || quota != 1<<30 {
			return fmt.Errorf("round %d: quota is %d after the kill, %w", i, quota, err)
		}
		if !await(15*time.Second, func() bool {
			now := children(p.cmd.Process.Pid)
			state, err := p.connectorState()
			return err == nil && state == "ready" && len(now) == 1 && now[0] != victims[0]
		}) {
			state, err := p.connectorState()
			return fmt.Errorf("round %d: connector is %q 15 s after the kill (%v): %s", i, state, err, p.tail())
		}
		slowest = max(slowest, time.Since(killed))
		if len(failures) > 0 {
			return <-failures
		}
	}
	// The policy is still the file's: an edit reaches the master.
	if err := os.WriteFile(path, []byte("version: 1\ntenants:\n  - name: tenant-a\n    quota: 2GB\n  - name: tenant-b\n    quota: 64MB\n"), 0o644); err != nil {
		return err
	}
	if !await(5*time.Second, func() bool { q, err := p.requested("tenant-a"); return err == nil && q == 2<<30 }) {
		return errors.New("an edit after all the kills is not in force after 5 s")
	}
	stop()
	wg.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	last := children(p.cmd.Process.Pid)
	for _, pid := range last {
		everChild[pid] = true
	}
	p.kill()
	if !await(5*time.Second, func() bool { return len(left(everChild)) == 0 }) {
		return fmt.Errorf("processes %v are left 5 s after the master was killed", left(everChild))
	}
	fmt.Printf("%d kills, %d calls by %d clients without an error, slowest return to ready %v, %d connector processes seen, none left\n",
		*rounds, ops.Load(), *clients, slowest.Round(time.Millisecond), len(everChild))
	return nil
}

func left(pids map[int]bool) []int {
	var alive []int
	for pid := range pids {
		if running(pid) {
			alive = append(alive, pid)
		}
	}
	return alive
}
