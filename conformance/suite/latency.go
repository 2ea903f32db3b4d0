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

// policyLatency measures the time from the last write of a save until the quota is in force.
func policyLatency(ctx context.Context, e *environment, args []string) error {
	flags := flag.NewFlagSet("policy-latency", flag.ContinueOnError)
	rounds := flags.Int("rounds", 200, "edits of each style")
	limit := flags.Duration("limit", 150*time.Millisecond, "what the 99th percentile has to stay under")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := filepath.Join(e.dir, "tenants.yaml")
	text := func(n int) string {
		return fmt.Sprintf("version: 1\ntenants:\n  - name: tenant-a\n    quota: %d\n", 1_000_000+n)
	}
	if err := os.WriteFile(path, []byte(text(0)), 0o644); err != nil {
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
			if err := style.save(path, text(n), n); err != nil {
				return err
			}
			saved := time.Now()
			for {
				got, err := p.requested("tenant-a")
				if err != nil {
					return err
				}
				if got == uint64(1_000_000+n) {
					break
				}
				if time.Since(saved) > 10*time.Second {
					return fmt.Errorf("%s: edit %d is not in force after 10 s: quota is %d", style.name, n, got)
				}
				time.Sleep(500 * time.Microsecond)
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
	return errors.Join(append(errs, p.stop())...)
}
