package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/core/connector"
)

// executablePrefix begins the names of connectors in --dir.
const executablePrefix = "mooncake-connector-"

// target is a connector to be run: an executable, or a type that the master would find one for.
type target struct {
	name string
	path string // "" for a type
	spec connector.Spec
}

// find takes what has a slash for a path, and everything else for a type. sum is the SHA-256
// that it must have, "" for any.
func find(name, dir, sum string) target {
	if strings.ContainsRune(name, filepath.Separator) {
		return target{name: name, path: name, spec: connector.Spec{SHA256: sum}}
	}
	return target{name: name, spec: connector.Spec{Type: name, Dir: dir, Stock: app.Stock(), SHA256: sum}}
}

// pinFlag is what pins a connector here, and pinMaster what does so in a master.
const pinFlag, pinMaster = "--sha256", "--tenant_quota_connector_sha256"

// open starts the connector as a master does.
func (t *tool) open(ctx context.Context, what target, level string) (*connector.Once, error) {
	if what.path != "" {
		if err := executable(what.path); err != nil {
			return nil, err
		}
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: what.name, Level: hclog.LevelFromString(level), Output: t.err, TimeFn: t.now})
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	o, err := connector.Open(ctx, what.path, what.spec, connector.Deps{
		Clock: clock{t.now}, Rand: random{}, Logger: logger, Version: app.Version,
		Timing: connector.Timing{Start: t.timeout, Call: t.timeout}, Guard: connector.OwnCommand("connector", "guard"),
	})
	if err != nil && strings.HasPrefix(err.Error(), pinMaster) {
		return nil, failed("%s%s", pinFlag, strings.TrimPrefix(err.Error(), pinMaster))
	}
	if err != nil && what.path == "" && !slices.Contains(what.spec.Stock, what.name) {
		return nil, failed("%v", err).hinting("a connector is named by the path of its executable, with a slash in it (./%s), or by a type: one of %s, or mooncake-connector-TYPE in --dir",
			what.name, strings.Join(what.spec.Stock, ", "))
	}
	return o, err
}

type clock struct{ now func() time.Time }

func (c clock) Now() time.Time { return c.now() }

type random struct{}

func (random) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// executable says in words what the system would say in riddles.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return failed("%v", err)
	case !info.Mode().IsRegular():
		return failed("%s is not a file", path)
	case info.Mode()&0o111 == 0:
		return failed("%s is not executable", path).hinting("chmod 755 %s", quoted(path))
	}
	return nil
}

// checksum is the SHA-256 of a file in hexadecimal.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t *tool) connectorChecksum() *cobra.Command {
	return &cobra.Command{
		Use:   "checksum FILE",
		Short: "Print an executable's SHA-256, and the flag that pins it",
		Args:  takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := executable(args[0]); err != nil {
				return err
			}
			sum, err := checksum(args[0])
			if err != nil {
				return err
			}
			flag := pinMaster + "=" + sum
			if t.json {
				return t.printJSON(map[string]string{"file": args[0], "sha256": sum, "flag": flag})
			}
			fmt.Fprintf(t.out, "%s  %s\n%s\n", sum, args[0], flag)
			return nil
		},
	}
}

// found is one line of the list.
type found struct {
	Type   string `json:"type"`
	Stock  bool   `json:"stock"`
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Verdict is "ok", or why the master would not run it.
	Verdict string `json:"verdict"`
}

func (t *tool) connectorList() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the connectors a master can run: its own, and the executables in --dir",
		Long: `List the connectors a master can run: its own, and the executables mooncake-connector-TYPE in --dir,
with their checksums and whether the master would run them. Nothing is started.`,
		Example: "  mooncakectl connector list --dir /usr/lib/mooncake/connectors",
		Args:    takes(0, 0),
		RunE: func(_ *cobra.Command, _ []string) error {
			list, err := list(dir)
			if err != nil {
				return err
			}
			if t.json {
				return t.printJSON(list)
			}
			var rows [][]cell
			for _, f := range list {
				where, sum, color := filepath.Base(f.Path), f.SHA256, green
				if f.Stock {
					where, sum = "(the master's own)", "-"
				}
				if f.Verdict != "ok" {
					color = red
				}
				rows = append(rows, []cell{left(f.Type), left(sum), left(where), left(f.Verdict).in(color)})
			}
			t.table([]string{"TYPE", "SHA256", "FILE", "VERDICT"}, rows)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of executables, the master's --tenant_quota_connector_dir")
	return cmd
}

func list(dir string) ([]found, error) {
	var all []found
	for _, kind := range app.Stock() {
		all = append(all, found{Type: kind, Stock: true, Verdict: "ok"})
	}
	if dir == "" {
		return all, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, failed("--dir=%s: no such folder", dir)
		}
		return nil, failed("--dir=%s: %v", dir, err)
	}
	for _, e := range entries {
		kind, ok := strings.CutPrefix(e.Name(), executablePrefix)
		if !ok || kind == "" {
			continue
		}
		f := found{Type: kind, Path: filepath.Join(dir, e.Name()), Verdict: "ok"}
		if slices.Contains(app.Stock(), kind) {
			f.Verdict = "never run: the master serves this type itself"
		} else if err := (connector.Spec{Type: kind, Dir: dir}).Check(); err != nil {
			f.Verdict = err.Error()
			if _, why, ok := strings.Cut(f.Verdict, " connector type '"+kind+"': "); ok { // the flags are known here
				f.Verdict = why
			}
		}
		if info, err := os.Stat(f.Path); err == nil && info.Mode().IsRegular() {
			if f.SHA256, err = checksum(f.Path); err != nil && f.Verdict == "ok" {
				f.Verdict = err.Error()
			}
		}
		all = append(all, f)
	}
	return all, nil
}
