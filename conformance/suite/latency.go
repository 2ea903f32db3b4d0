package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// editStyles are the ways in which a policy file is saved.
var editStyles = []struct {
	name string
	save func(path, text string, n int) error
}{
	{"mv", func(path, text string, n int) error {
		temp := fmt.Sprintf("%s.new.%d", path, n)
		if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Rename(temp, path)
	}},
	{"in place", func(path, text string, _ int) error { return os.WriteFile(path, []byte(text), 0o644) }},
	{"editor", func(path, text string, _ int) error {
		// As editors do: the old file becomes the backup, then the new one is written.
		if err := os.Rename(path, path+"~"); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}},
}

// policyLatency measures the time from the last write of a save until the quota is in force, and
// then makes a storm of saves, of which the last has to be in force at the end.
func policyLatency(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("policy-latency", flag.ContinueOnError)
	rounds := flags.Int("rounds", 200, "edits of each style")
	limit := flags.Duration("limit", 150*time.Millisecond, "what the 99th percentile has to stay under")
	storm := flags.Int("storm", 1000, "changes of the storm, in turn in each style")
	during := flags.Duration("during", 10*time.Second, "how long it lasts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := filepath.Join(e.dir, "tenants.yaml")
	if err := os.WriteFile(path, []byte(goodPolicy(0)), 0o644); err != nil {
		return err
	}
	p, err := e.start(ctx, "--enable_multi_tenants=true", "--tenant_quota_connector_type=file", "--tenant_quota_connector_uri="+path)
	if err != nil {
		return err
	}
	defer p.kill()
	n := 0
	var errs []error
	for _, style := range editStyles {
		var took []time.Duration
		for range *rounds {
			n++
			if err := style.save(path, goodPolicy(n), n); err != nil {
				return err
			}
			saved := time.Now()
			if err := p.awaitQuota(uint64(1<<30+n), 10*time.Second); err != nil {
				return fmt.Errorf("%s: edit %d: %w", style.name, n, err)
			}
			took = append(took, time.Since(saved))
			// Edits come at odd moments of the connector's debounce.
			time.Sleep(time.Duration(n%7) * 9 * time.Millisecond)
		}
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		fmt.Printf("%-9s %d edits: median %v, p99 %v, max %v\n", style.name, len(took), took[len(took)/2].Round(time.Millisecond/10), p99.Round(time.Millisecond/10), took[len(took)-1].Round(time.Millisecond/10))
		if p99 > *limit {
			errs = append(errs, fmt.Errorf("%s: p99 is %v, must be under %v", style.name, p99, *limit))
		}
	}
	errs = append(errs, p.storm(n, *storm, *during, func(n int) error {
		return editStyles[n%len(editStyles)].save(path, goodPolicy(n), n)
	}))
	return errors.Join(append(errs, p.stop())...)
}
