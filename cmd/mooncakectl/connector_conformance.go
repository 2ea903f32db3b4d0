package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/cmd/mooncake_master/app"
	"github.com/mooncake-go/mooncake-master/sdk/conformance"
)

// conformanceResult is one case for programs.
type conformanceResult struct {
	Case    string  `json:"case"`
	About   string  `json:"about"`
	Status  string  `json:"status"`
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (t *tool) connectorConformance() *cobra.Command {
	opts := conformance.Options{}
	var options, source []string
	var cases []string
	dir, logs, listing := "", "", false
	cmd := &cobra.Command{
		Use:   "conformance PATH|TYPE",
		Short: "Check any connector against the contract: named cases, as a table, TAP, JUnit or JSON",
		Long: `Check any connector, in whatever language it is written, against the contract: it is started as a
master does, its source is changed and broken, and each named case passes, fails or is skipped
with the reason. Ends with status 1 if a case fails.

The source that --uri names is overwritten: give it a scratch one. What it holds is put back at
the end. Sources that are no file are changed by --source-command, a program of yours that is run
with set, delete, break, restore or second as its argument; without it, by the connector's own
Save where it has one.`,
		Example: `  mooncakectl connector conformance ./mooncake-connector-x --uri x://scratch
  mooncakectl connector conformance ./mooncake-connector-x --uri x://scratch --case 'save/*' --output junit > report.xml
  mooncakectl connector conformance --list`,
		Args:        takes(0, 1),
		Annotations: map[string]string{"outputs": "tap junit"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if listing {
				return t.printCases()
			}
			if len(args) == 0 {
				return misused("which connector? Want the path of an executable, or a type")
			}
			var err error
			if opts.Options, err = pairs(options); err != nil {
				return err
			}
			if len(source) > 0 {
				opts.Source = conformance.CommandSource(source[0], source[1:]...)
			}
			if opts.Path, opts.Args, err = command(find(args[0], dir, "")); err != nil {
				return err
			}
			switch logs {
			case "":
			case "-":
				opts.Logs = t.err
			default:
				f, err := os.Create(logs)
				if err != nil {
					return failed("--logs: %v", err)
				}
				defer f.Close()
				opts.Logs = f
			}
			opts.Cases = cases
			total, done := len(conformance.Cases()), 0
			t.progress("running %d cases...", total)
			opts.Progress = func(r conformance.Result) {
				done++
				t.progress("%d of at most %d: %s %s", done, total, r.Status, r.Case)
			}
			report, err := conformance.Run(cmd.Context(), opts)
			t.progress("")
			if err != nil {
				if cmd.Context().Err() != nil {
					return err
				}
				return misused("%v", err).hinting("mooncakectl connector conformance --list names the cases")
			}
			if err := t.printReport(report); err != nil {
				return err
			}
			if report.Failed() {
				return errSaid
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.URI, "uri", "", "a scratch source that may be overwritten")
	flags.StringVar(&opts.ClusterID, "cluster-id", "", "as the master's --cluster_id")
	flags.StringArrayVar(&options, "option", nil, "NAME=VALUE, an option of the connector; may be repeated")
	flags.StringSliceVar(&cases, "case", nil, "names of cases to run, * for any part of a name between slashes; may be repeated")
	flags.StringSliceVar(&source, "source-command", nil, "a program that changes the source from outside, with arguments after commas")
	flags.Float64Var(&opts.Patience, "patience", 1, "multiplies every limit of time, for slow machines")
	flags.StringVar(&logs, "logs", "", "file for the connector's log lines; - is standard error")
	flags.StringVar(&dir, "dir", "", "folder of executables mooncake-connector-TYPE")
	flags.BoolVar(&listing, "list", false, "list the cases and what they ask for")
	return cmd
}

// command is the command line of a connector.
func command(what target) (path string, args []string, err error) {
	switch {
	case what.path != "":
		return what.path, nil, executable(what.path)
	case slices.Contains(app.Stock(), what.name):
		path, err = os.Executable()
		return path, []string{"connector", "serve", what.name}, err
	case what.spec.Dir == "":
		return "", nil, failed("there is no connector %q", what.name).hinting("want the path of an executable, with a slash in it (./%s), one of %s, or a type with --dir", what.name, strings.Join(app.Stock(), ", "))
	}
	path = what.spec.Dir + string(os.PathSeparator) + executablePrefix + what.name
	return path, nil, executable(path)
}

func (t *tool) printCases() error {
	if t.json {
		all := []map[string]string{}
		for _, c := range conformance.Cases() {
			all = append(all, map[string]string{"case": c.Name, "about": c.About})
		}
		return t.printJSON(all)
	}
	var rows [][]cell
	for _, c := range conformance.Cases() {
		rows = append(rows, []cell{left(c.Name), left(c.About)})
	}
	t.table([]string{"CASE", "ASKS FOR"}, rows)
	return nil
}

func (t *tool) printReport(r conformance.Report) error {
	write := map[string]func(io.Writer) error{"tap": r.TAP, "junit": r.JUnit, outputTable: t.reportTable(r)}[t.output]
	if write != nil {
		return write(t.out)
	}
	all := []conformanceResult{}
	for _, c := range r.Results {
		all = append(all, conformanceResult{c.Case, c.About, string(c.Status), c.Reason, c.Took.Seconds()})
	}
	return t.printJSON(map[string]any{
		"command": r.Command, "connector": r.Connector, "failed": r.Failed(), "seconds": r.Took.Seconds(), "results": all,
	})
}

// reportTable is the report for people.
func (t *tool) reportTable(r conformance.Report) func(io.Writer) error {
	return func(io.Writer) error {
		var rows [][]cell
		count := map[conformance.Status]int{}
		colors := map[conformance.Status]style{conformance.Pass: green, conformance.Fail: red, conformance.Skip: yellow}
		for _, c := range r.Results {
			count[c.Status]++
			rows = append(rows, []cell{
				left(string(c.Status)).in(colors[c.Status]), left(c.Case), number(c.Took.Round(time.Millisecond).String()), left(c.Reason),
			})
		}
		if r.Connector != "" {
			fmt.Fprintf(t.out, "%s: ", printable(r.Connector))
		}
		fmt.Fprintln(t.out, r.Command)
		t.table([]string{"", "CASE", "TOOK", "REASON"}, rows)
		_, err := fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped in %s\n", count[conformance.Pass], count[conformance.Fail],
			count[conformance.Skip], r.Took.Round(100*time.Millisecond))
		return err
	}
}
