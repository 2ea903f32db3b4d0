package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
)

// stored is what put prints for programs.
type stored struct {
	Tenant string `json:"tenant_id"`
	Key    string `json:"key"`
	Bytes  uint64 `json:"bytes"`
}

func (v *values) put() *cobra.Command {
	replace, replicas := false, uint64(1)
	var prefer []string
	cmd := &cobra.Command{
		Use:   "put KEY [FILE]",
		Short: "Store a file, or standard input, as the value of a key",
		Long: `Store a file, or standard input where none is named or it is -, as the value of a key. A key
that has a value keeps it, unless --replace is given.`,
		Example: "  mooncakectl put page-1 page.bin --tenant tenant-a\n  echo hello | mooncakectl put greeting",
		Args:    takes(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 2 {
				name = args[1]
			}
			if replicas == 0 {
				return misused("--replicas=0: want 1 or more")
			}
			from, bytes, err := v.input(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer from.Close()
			if bytes == 0 {
				return failed("%s: it is empty, and a value has at least one byte", label(name))
			}
			ctx := cmd.Context()
			c, err := v.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			options := []client.Option{client.Replicas(replicas)}
			if len(prefer) > 0 {
				options = append(options, client.Prefer(prefer...))
			}
			store := c.PutFrom
			if replace {
				store = c.UpsertFrom
			}
			shown := v.t.flow("put "+args[0], bytes)
			err = store(ctx, args[0], bytes, io.TeeReader(from, shown), options...)
			shown.end()
			if errors.Is(err, errcode.ObjectNotFound) {
				return failed("value %q of tenant %q: the master knows nothing of this write any more: it began anew meanwhile, or the write was given up", args[0], v.tenant).hinting("put it again")
			}
			if err != nil {
				return v.about(ctx, args[0], err)
			}
			if v.t.json {
				return v.t.printJSON(stored{v.tenant, args[0], bytes})
			}
			v.t.note("%s is stored as %s of tenant %s", size(bytes), printable(args[0]), printable(v.tenant))
			return nil
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "take the place of the value that the key has")
	cmd.Flags().Uint64Var(&replicas, "replicas", replicas, "how many copies to keep, on different segments")
	cmd.Flags().StringArrayVar(&prefer, "segment", nil, "a segment to try first, may be given several times")
	return cmd
}

// label is how messages call an input.
func label(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// input opens a file, or standard input for "-", and says how many bytes there are. What has no size is read into a
// file of its own first.
func (v *values) input(ctx context.Context, name string) (io.ReadCloser, uint64, error) {
	var from io.Reader = v.t.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, failed("%v", err)
		}
		from = f
	}
	if f, ok := from.(*os.File); ok {
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = errors.New("it is a folder")
		}
		if err != nil {
			return nil, 0, failed("%s: %v", label(name), err)
		}
		if info.Mode().IsRegular() {
			at, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, 0, failed("%s: %v", label(name), err)
			}
			return f, uint64(max(info.Size()-at, 0)), nil
		}
	}
	return v.spool(ctx, from, label(name))
}

// spooled is a temporary file that goes when it is closed.
type spooled struct{ *os.File }

// Close removes the file.
func (s spooled) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }

// spool copies what has no size into a temporary file. Nothing can interrupt the read of a terminal or of a pipe that
// stands still, so when ctx ends nobody waits for it: it ends with the program.
func (v *values) spool(ctx context.Context, from io.Reader, name string) (io.ReadCloser, uint64, error) {
	f, err := os.CreateTemp("", "mooncakectl-*")
	if err != nil {
		return nil, 0, failed("%s: %v", name, err)
	}
	s := spooled{f}
	var n int64
	copied := make(chan error, 1)
	go func() {
		m, err := io.Copy(f, from)
		n = m
		copied <- err
	}()
	select {
	case <-ctx.Done():
		return nil, 0, errors.Join(ctx.Err(), s.Close())
	case err = <-copied:
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, failed("%s: %v", name, errors.Join(err, s.Close()))
	}
	return s, uint64(n), nil
}

func (v *values) remove() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "rm KEY...",
		Short: "Remove the values of keys",
		Args:  takes(1, 1<<20),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := v.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			removed := []string{}
			var failures []error
			for _, key := range args {
				if err := c.Remove(ctx, key, force); err != nil {
					failures = append(failures, v.about(ctx, key, err))
				} else {
					removed = append(removed, key)
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			if err := v.sayRemoved(removed); err != nil {
				return err
			}
			return v.t.several(ctx, cmd, failures)
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also values that were read a moment ago")
	return cmd
}

func (v *values) sayRemoved(keys []string) error {
	if v.t.json {
		return v.t.printJSON(map[string]any{"tenant_id": v.tenant, "removed": keys})
	}
	for _, key := range keys {
		fmt.Fprintf(v.t.out, "%s is removed\n", printable(key))
	}
	return nil
}

// several complains of all failures but the last, which it returns.
func (t *tool) several(ctx context.Context, cmd *cobra.Command, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	last := len(failures) - 1
	for _, err := range failures[:last] {
		t.complain(cmd.CommandPath(), asFailure(ctx, err))
	}
	return failures[last]
}
