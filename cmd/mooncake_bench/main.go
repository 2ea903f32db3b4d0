package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const synopsis = `mooncake_bench loads a Mooncake Store master and says what its operations cost.

  mooncake_bench run --addr HOST:PORT [--pid PID] [flags]     measure a running master
  mooncake_bench compare --a "CMD..." --b "CMD..." [flags]    start two masters in turn and print ratios A/B
  mooncake_bench table [flags] [ROW...]                       measure what this master has to show, row by row
  mooncake_bench report [--out DIR] FILES...                  draw charts of results written by --json
  mooncake_bench echo --rpc_port PORT                         the least that a master could cost: frames, no work
  mooncake_bench segment [flags]                              bandwidth and latency of transfers between two processes here
  mooncake_bench segment serve --name HOST:PORT [flags]       lend memory to a mooncake_bench segment --target elsewhere

Each has --help. A typical comparison, both masters and the generator on core 0:

  mooncake_bench compare --pin 0 --rounds 5 --work exist:1,get:128,put:32 --conns 8 --json out.jsonl \
    --a "bin/mooncake_master --rpc_port={rpc_port} --metrics_port={metrics_port}" \
    --b "/opt/mooncake/mooncake_master --rpc_port={rpc_port} --metrics_port={metrics_port}"
`

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

// bench runs a command line without the program's name and returns the exit status.
func bench(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"run": runCommand, "compare": compareCommand, "table": tableCommand, "report": reportCommand, "echo": echoCommand,
		"segment": segmentCommand,
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch name {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, synopsis)
		return 0
	}
	command := commands[name]
	if command == nil {
		fmt.Fprintf(stderr, "mooncake_bench: %q is no command, want run, compare, table, report, echo or segment\n\n%s", name, synopsis)
		return exitUsage
	}
	err := command(ctx, args[1:], stdout, stderr)
	var misuse usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &misuse):
		fmt.Fprintf(stderr, "mooncake_bench %s: %v\nmooncake_bench %s --help lists the flags\n", name, err, name)
		return exitUsage
	}
	fmt.Fprintf(stderr, "mooncake_bench %s: %v\n", name, err)
	return exitFailed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
