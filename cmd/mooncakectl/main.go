package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
)

func main() {
	// The stock connectors are processes of this executable as they are of the master's.
	if served(os.Args) {
		code, _ := app.Connector(os.Args[1:], os.Stderr)
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], process())
	stop()
	os.Exit(code)
}

// served reports whether a command line is one of the processes that this executable starts of
// itself: a stock connector, or the guard beside another.
func served(line []string) bool {
	return len(line) > 2 && line[1] == "connector" && (len(line) == 4 && line[2] == "serve" || len(line) == 3 && line[2] == "guard")
}

// surroundings are what a command line runs in.
type surroundings struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	now            func() time.Time
}

func process() surroundings {
	return surroundings{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, now: time.Now}
}
