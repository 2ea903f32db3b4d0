package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Version is the version of this master.
const Version = "0.1.0"

// Main runs the master with a command line, without the program name, until ctx ends, and
// returns the exit status.
func Main(ctx context.Context, args []string, env Environment, stdout, stderr io.Writer) int {
	out := Load(args, env)
	fmt.Fprint(stdout, out.Stdout)
	fmt.Fprint(stderr, out.Stderr)
	if out.Config == nil {
		return out.ExitCode
	}
	if err := run(ctx, out, env, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "ERROR: "+oneLine(err.Error()))
		return 1
	}
	return 0
}

func run(ctx context.Context, out Outcome, env Environment, stdout, stderr io.Writer) (err error) {
	sink, closeLog, err := out.Config.Log.Open(time.Now(), os.Getpid(), stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	log := hclog.New(&hclog.LoggerOptions{Name: "master", Level: out.Config.Log.Level(), Output: lines{sink}, DisableTime: false})
	for _, w := range out.Warnings {
		log.Warn(w)
	}
	s, err := Build(out.Config, env.Version, log)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Fprintln(stdout, s.Addresses())
	select {
	case <-ctx.Done():
		log.Info("stopping: a signal asked for it")
	case err = <-s.Failed():
	}
	return errors.Join(err, s.Close())
}
