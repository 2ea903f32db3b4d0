package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"
)

// fileSize gives a master a policy file with very many tenants, and then takes all but one away.
func fileSize(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("file-size", flag.ContinueOnError)
	many := flags.Int("tenants", 100_000, "tenants of the document")
	limit := flags.Duration("limit", 2*time.Second, "how long a change may take to be in force")
	grow := flags.Int64("grow", 200, "how many MiB the master's memory may grow at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := filepath.Join(e.dir, "tenants.yaml")
	if err := save(path, goodPolicy(0)); err != nil {
		return err
	}
	p, err := e.start(ctx, "--enable_multi_tenants=true", "--tenant_quota_connector_type=file", "--tenant_quota_connector_uri="+path)
	if err != nil {
		return err
	}
	defer p.kill()
	text := string(policyOf(*many))
	err = p.grows(*many, *limit, *grow, func() error { return save(path, text) })
	if err != nil {
		return errors.Join(err, p.stop())
	}
	changed := fmt.Sprintf("version: 1\ntenants:\n  - name: tenant-%06d\n    quota: 1\n", *many-1)
	began := time.Now()
	if err := save(path, changed); err != nil {
		return err
	}
	if err := p.awaitTenant(fmt.Sprintf("tenant-%06d", *many-1), 1, 20*time.Second); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("all but one removed: in force after %v\n", took.Round(time.Millisecond))
	if took > *limit {
		err = fmt.Errorf("it may take %v", *limit)
	}
	return errors.Join(err, p.stop())
}

// grows gives a master a document made by policyOf and waits until it is in force; it prints the
// time and what the processes used at their peaks.
func (p *process) grows(tenants int, limit time.Duration, grow int64, give func() error) error {
	own := p.cmd.Process.Pid
	time.Sleep(time.Second) // it has settled
	before := memory(own)
	began := time.Now()
	if err := give(); err != nil {
		return err
	}
	if err := p.awaitTenant(fmt.Sprintf("tenant-%06d", tenants-1), uint64(tenants)<<20, 20*time.Second); err != nil {
		return err
	}
	took := time.Since(began)
	time.Sleep(time.Second) // what it does afterwards counts too
	peak := statusOf(own, "VmHWM:") << 10
	var plugin int64
	for _, pid := range children(own) {
		plugin = max(plugin, statusOf(pid, "VmHWM:")<<10)
	}
	fmt.Printf("%d tenants: in force after %v; master from %d to %d MiB at its peak, connector %d MiB at its peak\n",
		tenants, took.Round(time.Millisecond), before>>20, peak>>20, plugin>>20)
	if took > limit || peak-before > grow<<20 {
		return fmt.Errorf("it may take %v and %d MiB", limit, grow)
	}
	return nil
}

// awaitTenant waits until a tenant has a quota.
func (p *process) awaitTenant(tenant string, want uint64, limit time.Duration) error {
	var got uint64
	var err error
	if !await(limit, func() bool { got, err = p.requested(tenant); return err == nil && got == want }) {
		return fmt.Errorf("the quota of %s is %d after %s, want %d; %w: %s", tenant, got, limit, want, err, p.tail())
	}
	return nil
}
