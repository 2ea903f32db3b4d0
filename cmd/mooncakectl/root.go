package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// tool is one run of a command line.
type tool struct {
	surroundings
	screen

	masters string
	timeout time.Duration
	output  string
	color   string

	terminals [2]bool // whether people see stdout and stderr

	begun bool   // the command line made sense, the command itself has begun
	peers *peers // nil until the first call
}

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// defaultMaster is where a master's admin interface listens by default.
const defaultMaster = "127.0.0.1:9003"

// run runs a command line without the program's name and returns the exit status.
func run(ctx context.Context, args []string, in surroundings) int {
	terminals := [2]bool{isTerminal(in.stdout), isTerminal(in.stderr)}
	in.stdout, in.stderr = &lockedWriter{w: in.stdout}, &lockedWriter{w: in.stderr}
	t := &tool{surroundings: in, terminals: terminals}
	root := t.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(in.stdin)
	root.SetOut(in.stdout)
	root.SetErr(in.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !t.begun {
		err = t.misuse(cmd, err)
		if slices.Contains(args, "--output=json") || slices.Contains(args, "-ojson") {
			t.output = outputJSON
		}
		t.prepare()
	}
	f := asFailure(ctx, err)
	if f != errSaid {
		t.complain(cmd.CommandPath(), f)
	}
	return f.code
}

// misuse makes an error of the command line one of status 2 that says where help is.
func (t *tool) misuse(cmd *cobra.Command, err error) error {
	if f, ok := err.(*failure); ok {
		return f
	}
	return misused("%v", err).hinting("%s --help says what there is", cmd.CommandPath())
}

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mooncakectl",
		Short: "Look after the tenants, policies, connectors, segments and values of a Mooncake Store",
		Long: `mooncakectl looks after a Mooncake Store: tenants and their quotas, whole policies with a look
at what they would do, connectors, segments to be drained, and the values that are stored.

Exit statuses: 0 done; 1 it did not work, a document is not valid, a case failed; 2 the command
line makes no sense; 3 conflict, the source holds another revision; 4 no master answers or none
is active; 5 the document removes too many tenants; 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return t.start(cmd)
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&t.masters, "master", "", "address HOST:PORT of the master's admin interface (its --metrics_port); several with commas between them, the active one is used (default $MOONCAKE_MASTER or "+defaultMaster+")")
	flags.DurationVar(&t.timeout, "timeout", 15*time.Second, "how long a master or a connector may take for one answer")
	flags.StringVarP(&t.output, "output", "o", outputTable, "table, or json for programs")
	flags.StringVar(&t.color, "color", "auto", "auto (on a terminal, unless $NO_COLOR is set), always or never")
	group(root)
	root.AddCommand(t.valueCommands()...)
	root.AddCommand(t.tenantCommand(), t.policyCommand(), t.connectorCommand(), t.drainCommand(), t.transferCommand(), t.versionCommand())
	return root
}

// start runs before every command.
func (t *tool) start(cmd *cobra.Command) error {
	outputs := []string{outputTable, outputJSON}
	if more, ok := cmd.Annotations["outputs"]; ok {
		outputs = append(outputs, strings.Fields(more)...)
	}
	if !slices.Contains(outputs, t.output) {
		return misused("--output=%s: want %s", t.output, strings.Join(outputs, ", "))
	}
	if !slices.Contains([]string{"auto", "always", "never"}, t.color) {
		return misused("--color=%s: want auto, always or never", t.color)
	}
	if t.timeout <= 0 {
		return misused("--timeout=%s: want more than 0, like 15s", t.timeout)
	}
	t.prepare()
	t.begun = true
	return nil
}

// prepare sets up the output.
func (t *tool) prepare() {
	auto := t.color != "never" && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb"
	t.screen = screen{
		out: t.stdout, err: t.stderr, json: t.output == outputJSON,
		colorOut: t.color == "always" || auto && t.terminals[0],
		colorErr: t.color == "always" || auto && t.terminals[1],
		live:     t.terminals[1] && t.output != outputJSON,
	}
}

// group makes a command that only holds others say so when none of them is named.
func group(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		f := misused("%q is no command of %s", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return f.hinting("did you mean %s?", strings.Join(near, " or "))
		}
		return f.hinting("%s --help lists them", cmd.CommandPath())
	}
}

// takes checks the number of arguments; an error repeats how the command is used.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return misused("got %s, want: %s", plural(n, "argument"), strings.TrimSuffix(cmd.UseLine(), " [flags]")).hinting("%s --help says more", cmd.CommandPath())
		}
		return nil
	}
}

// read reads a file, or standard input for "-".
func (t *tool) read(name string, limit int64) ([]byte, error) {
	if name == "-" {
		return limited(t.stdin, "standard input", limit)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, failed("%v", err)
	}
	defer f.Close()
	return limited(f, name, limit)
}

func limited(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, failed("%s: %v", name, err)
	case int64(len(text)) > limit:
		return nil, failed("%s: it has more than %d bytes, the most that a policy may have", name, limit)
	}
	return text, nil
}

func (t *tool) versionCommand() *cobra.Command {
	var server bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which versions this tool is made of, and with --server the master's",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions()
			if server {
				if err := t.call(cmd.Context(), "GET", "/version", nil, &v.Master); err != nil {
					return err
				}
			}
			if t.json {
				return t.printJSON(v)
			}
			fmt.Fprintf(t.out, "mooncakectl %s, connector protocol %d, SDK %s, %s\n", v.Version, v.Protocol, v.SDK, v.Go)
			if v.Master != nil {
				fmt.Fprintf(t.out, "master %s, client protocol %s\n", v.Master.Display, v.Master.Protocol)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&server, "server", false, "ask the master for its version too")
	return cmd
}
