package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
)

// runCommand measures a master that somebody else started.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	var cfg settings
	cfg.define(f)
	addr := f.String("addr", "", "`HOST:PORT` of the master's RPC port")
	pid := f.Int("pid", 0, "process of the master, for its processor time and memory; 0: leave them out")
	metrics := f.String("metrics", "", "`HOST:PORT` of the master's metrics, for the cost of its garbage collection")
	label := f.String("label", "", "name of the master in results")
	policy := f.String("write_policy", "", "`file` to which to write a policy for the tenants, and do nothing else")
	quota := uint64(0)
	sizeVar(f, &quota, "tenant_quota", "quota of each tenant in that policy; default: the capacity divided among them")
	if err := parse(f, args, stdout); err != nil {
		return err
	}
	if err := errors.Join(noArguments(f), cfg.check()); err != nil {
		return err
	}
	if *policy != "" {
		return writePolicy(*policy, &cfg, quota)
	}
	if _, _, err := net.SplitHostPort(*addr); err != nil {
		return wrong("addr", "%q, want HOST:PORT of a master", *addr)
	}
	if *pid != 0 {
		if _, err := proc("/proc").usage(*pid); err != nil {
			return wrong("pid", "%v", err)
		}
	}
	if cfg.seed == 0 {
		cfg.seed = rand.Uint64()
	}
	if cfg.pin >= 0 {
		restore, err := pinSelf(cfg.pin)
		if err != nil {
			return err
		}
		defer restore()
	}
	out, err := openOutput(cfg.json, stdout, stderr)
	if err != nil {
		return err
	}
	defer out.close()
	s := newSession(&cfg)
	var results []result
	for i, p := range cfg.points() {
		fmt.Fprintf(stderr, "measuring %v\n", p)
		r, err := s.measure(ctx, p, place{addr: *addr, pid: *pid, metrics: *metrics, unmount: true}, i)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		r.Label = *label
		results = append(results, *r)
		if err := out.line(r); err != nil {
			return err
		}
	}
	return printResults(out.table, results)
}

// output is where results go.
type output struct {
	table io.Writer
	json  io.Writer // nil: nowhere
	file  *os.File  // nil: not a file
}

func openOutput(path string, stdout, stderr io.Writer) (*output, error) {
	switch path {
	case "":
		return &output{table: stdout}, nil
	case "-":
		return &output{table: stderr, json: stdout}, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, wrong("json", "%v", err)
	}
	return &output{table: stdout, json: f, file: f}, nil
}

// line writes one line of JSON.
func (o *output) line(v any) error {
	if o.json == nil {
		return nil
	}
	if err := writeJSON(o.json, v); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

func (o *output) close() {
	if o.file != nil {
		// Every line was written before; nothing is buffered that closing could lose.
		o.file.Close()
	}
}
