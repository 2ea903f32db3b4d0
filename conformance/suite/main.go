// Command suite runs the checks that need whole processes, real files and faults, and prints
// what it measured. Every check ends by itself and leaves no process behind.
//
//	suite -master bin/mooncake_master policy-latency -rounds 200
//	suite -master bin/mooncake_master connector-kill -rounds 200
//	suite -master bin/mooncake_master bad-input
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// check is one of the things suite can do.
type check struct {
	name string
	help string
	run  func(ctx context.Context, env *environment, args []string) error
}

var checks = []check{
	{"policy-latency", "time from a saved policy file to the quota in force; a storm of saves", policyLatency},
	{"connector-kill", "the connector killed with -9 again and again, under traffic; then the master", connectorKill},
	{"file-faults", "a policy file and its connector damaged in every way, under traffic", fileFaultRounds},
	{"file-size", "very many tenants in a policy file", fileSize},
	{"etcd-latency", "time from a change in etcd to the quota in force; a storm of changes", etcdLatency},
	{"etcd-faults", "etcd and its connector killed, stopped, compacted, filled with garbage, under traffic", etcdFaultRounds},
	{"etcd-writers", "two masters and ten operators change the same document in etcd", etcdWriters},
	{"etcd-size", "how many tenants fit into an etcd, and many more with its limit raised", etcdSize},
	{"segment-faults", "memory lent between processes that die, stop, go silent, lie and start anew", segmentFaults},
	{"trace", "the same random operations on the C++ master and this one, every answer compared", trace},
	{"kv-events", "what is published about objects, read with libzmq", kvEvents},
	{"bad-input", "malformed policies, frames and HTTP requests against a running master", badInput},
}

// environment is what every check gets.
type environment struct {
	master string // path of the binary
	dir    string // scratch, removed at the end
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == segmentChild {
		runChild()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	master := flags.String("master", "bin/mooncake_master", "the master to check")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: suite [-master PATH] CHECK [flags]")
		for _, c := range checks {
			fmt.Fprintf(flags.Output(), "  %-16s %s\n", c.name, c.help)
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == flags.Arg(0) })
	if i < 0 {
		flags.Usage()
		return fmt.Errorf("%q is no check, must be one of %s", flags.Arg(0), strings.Join(names(), ", "))
	}
	path, err := filepath.Abs(*master)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mooncake-suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := checks[i].run(ctx, &environment{master: path, dir: dir}, flags.Args()[1:]); err != nil {
		return fmt.Errorf("%s: %w", checks[i].name, err)
	}
	fmt.Printf("%s: 1 passed, 0 failed\n", checks[i].name)
	return nil
}

func names() []string {
	var all []string
	for _, c := range checks {
		all = append(all, c.name)
	}
	return all
}
