package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/core/connector"
	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// execFlags are what a connector is run with.
type execFlags struct {
	dir, level string
	sum        string
	config     sdk.Config
	options    []string
	count      int
	limit      time.Duration
	from       string
	expected   string
}

func (t *tool) connectorExec() *cobra.Command {
	f := &execFlags{level: "info"}
	cmd := &cobra.Command{
		Use:   "exec PATH|TYPE [COMMAND]",
		Short: "Run a connector as a master does and show what it says; without COMMAND, commands are read",
		Long: `Run a connector as a master does: same handshake, same encryption, same environment, same calls.
Its log lines go to standard error. COMMAND is one of

  describe         what it says of itself
  configure        whether it accepts --uri, --cluster-id and --option
  load             the document; --output=json also tells the revision
  watch            every event, until interrupted, or --count events or --for a time
  save FILE        replace the document if it has the revision --expected (default: the one it has now)

Without COMMAND they are read from standard input, one a line; help lists them.`,
		Example: `  mooncakectl connector exec file --uri tenants.yaml watch
  mooncakectl connector exec ./mooncake-connector-x --uri x://y load`,
		Args: takes(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := pairs(f.options)
			if err != nil {
				return err
			}
			if hclog.LevelFromString(f.level) == hclog.NoLevel {
				return misused("--log-level=%s: want trace, debug, info, warn, error or off", f.level)
			}
			f.config.Options = options
			return t.exec(cmd, args, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config.URI, "uri", "", "where the document is, the master's --tenant_quota_connector_uri")
	flags.StringVar(&f.config.ClusterID, "cluster-id", "", "the master's --cluster_id")
	flags.StringArrayVar(&f.options, "option", nil, "NAME=VALUE, an option of the connector; may be repeated")
	flags.StringVar(&f.dir, "dir", "", "folder of executables mooncake-connector-TYPE")
	flags.StringVar(&f.sum, "sha256", "", "SHA-256 that the executable must have, the master's --tenant_quota_connector_sha256")
	flags.StringVar(&f.level, "log-level", f.level, "which of the connector's log lines to show: trace, debug, info, warn, error, off")
	flags.IntVar(&f.count, "count", 0, "watch: end after so many events, heartbeats not counted; 0 = never")
	flags.DurationVar(&f.limit, "for", 0, "watch: end after this time; 0 = never")
	flags.StringVar(&f.from, "from", "", "watch: the revision that is known already")
	flags.StringVar(&f.expected, "expected", "", "save: the revision to replace; '' creates the document")
	return cmd
}

// console is a connector that is being run for a person.
type console struct {
	*tool
	*connector.Once
	config sdk.Config
}

func (t *tool) exec(cmd *cobra.Command, args []string, f *execFlags) error {
	ctx := cmd.Context()
	verb := ""
	if len(args) > 1 {
		verb = args[1]
	}
	switch want := map[string]int{"": 1, "describe": 2, "configure": 2, "load": 2, "watch": 2, "save": 3}[verb]; {
	case want == 0:
		return misused("%q is no command of a connector: want describe, configure, load, watch or save FILE", verb)
	case len(args) != want && verb == "save":
		return misused("save wants a FILE")
	case len(args) != want:
		return misused("%s takes no argument, got %q", verb, args[2])
	}
	o, err := t.open(ctx, find(args[0], f.dir, f.sum), f.level)
	if err != nil {
		return err
	}
	defer o.Close()
	c := &console{tool: t, Once: o, config: f.config}
	switch verb {
	case "":
		return c.converse(ctx)
	case "describe":
		return t.printAbout(aboutOf(o))
	case "configure":
		return c.configure(ctx, true)
	}
	if err := c.configure(ctx, false); err != nil {
		return err
	}
	switch verb {
	case "load":
		return c.load(ctx)
	case "save":
		var expected *string
		if cmd.Flags().Changed("expected") {
			expected = &f.expected
		}
		return c.save(ctx, args[2], expected)
	}
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	return c.watch(ctx, f.from, f.count)
}

// configure says what the connector thinks of the configuration: if it refuses, or if loud.
func (c *console) configure(ctx context.Context, loud bool) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.Configure(ctx, c.config)
	var refused *sdk.ConfigError
	switch {
	case errors.As(err, &refused):
		f := failed("the connector refuses its configuration: %s", refused.Error())
		for _, n := range refused.Notes {
			switch name, isOption := strings.CutPrefix(n.Field, "options."); {
			case isOption:
				return f.hinting("options are given with --option %s=VALUE; mooncakectl connector info shows them", name)
			case n.Field == "uri" && c.config.URI == "":
				return f.hinting("--uri says where the document is")
			}
		}
		return f
	case err != nil || !loud:
		return err
	case c.json:
		return c.printJSON(map[string]bool{"accepted": true})
	}
	fmt.Fprintln(c.out, "the configuration is accepted")
	return nil
}

// loaded is a document as a connector gave it.
type loaded struct {
	Revision string `json:"revision"`
	SHA256   string `json:"sha256"`
	Bytes    int    `json:"bytes"`
	Valid    bool   `json:"valid"`
	Tenants  int    `json:"tenants"`
	Error    string `json:"error,omitempty"` // why it is not valid
}

func describeDocument(doc sdk.Document) loaded {
	sum := sha256.Sum256(doc.Content)
	l := loaded{Revision: doc.Revision, SHA256: hex.EncodeToString(sum[:]), Bytes: len(doc.Content)}
	parsed, err := policydoc.Parse(doc.Content)
	if err != nil {
		l.Error = err.Error()
		return l
	}
	l.Valid, l.Tenants = true, len(parsed.Tenants)
	return l
}

func (l *loaded) text() string {
	text := fmt.Sprintf("revision %s, %d bytes, sha256 %s..., ", l.Revision, l.Bytes, l.SHA256[:12])
	if !l.Valid {
		return text + "not valid: " + l.Error
	}
	return text + "valid: " + plural(l.Tenants, "tenant")
}

func (c *console) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	doc, err := c.Load(ctx)
	if err != nil {
		return unavailable(err)
	}
	l := describeDocument(doc)
	if c.json {
		return c.printJSON(struct {
			loaded
			Document string `json:"document"`
		}{l, string(doc.Content)})
	}
	if _, err := c.out.Write(doc.Content); err != nil {
		return err
	}
	c.note("%s", l.text())
	return nil
}

// unavailable explains an error of Load or Save.
func unavailable(err error) error {
	var gone *sdk.Unavailable
	if !errors.As(err, &gone) {
		return err
	}
	f := failed("no document: %s", gone.Error())
	if gone.Final {
		return f.hinting("the connector says that it will not get better by itself")
	}
	return f
}

func (c *console) save(ctx context.Context, name string, expected *string) error {
	text, err := c.read(name, sdk.MaxDocument)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if expected == nil {
		doc, err := c.Load(ctx)
		var gone *sdk.Unavailable
		if err != nil && !(errors.As(err, &gone) && gone.Kind == sdk.Absent) {
			return unavailable(err)
		}
		expected = &doc.Revision
	}
	revision, err := c.Save(ctx, text, *expected)
	switch {
	case errors.Is(err, sdk.ErrConflict):
		f := failed("not saved, expected revision %s: %v", none(*expected), err)
		f.code = exitConflict
		return f.hinting("load it to see what is there now")
	case err != nil:
		return failed("not saved: %v", err)
	case c.json:
		return c.printJSON(map[string]string{"revision": revision, "replaced": *expected})
	}
	fmt.Fprintf(c.out, "saved: revision %s, in place of %s\n", revision, none(*expected))
	return nil
}

// watchEvent is one event for programs.
type watchEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"` // snapshot, unavailable, heartbeat
	*loaded
	Kind      string `json:"kind,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Retryable *bool  `json:"retryable,omitempty"`
}

// watch shows events until ctx ends, which is no error, or count of them have come.
func (c *console) watch(ctx context.Context, from string, count int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := 0
	var broken error
	err := c.Watch(ctx, from, func(s connector.Seen) {
		if broken != nil {
			return
		}
		if broken = c.event(s); broken != nil { // nobody reads it
			cancel()
			return
		}
		if seen++; s.Heartbeat {
			seen--
		}
		if count > 0 && seen >= count {
			cancel()
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

func (c *console) event(s connector.Seen) error {
	e := watchEvent{Time: c.now(), Event: "heartbeat"}
	color, text := faint, ""
	switch {
	case s.Document != nil:
		l := describeDocument(*s.Document)
		e.Event, e.loaded, text, color = "snapshot", &l, l.text(), green
		if !l.Valid {
			color = yellow
		}
	case s.Unavailable != nil:
		again := !s.Unavailable.Final
		e.Event, e.Kind, e.Reason, e.Retryable = "unavailable", s.Unavailable.Kind.String(), s.Unavailable.Reason, &again
		text, color = s.Unavailable.Error(), red
		if !again {
			text += " (it does not go on trying)"
		}
	}
	if c.json {
		return c.printLine(e)
	}
	line := e.Time.Format("15:04:05.000") + "  " + paint(c.colorOut, color, e.Event)
	if text != "" {
		line += strings.Repeat(" ", len("unavailable")-len(e.Event)+2) + printable(text)
	}
	_, err := fmt.Fprintln(c.out, line)
	return err
}

const consoleHelp = `describe               what the connector says of itself
configure [URI]        configure it, anew with another URI
load                   the document
watch [REVISION]       show events from now on, in the background; unwatch ends it
save FILE [REVISION]   replace the document; '' as REVISION creates it
wait DURATION          wait, like 2s: for scripts
quit                   stop the connector and end`

// converse reads commands. What goes wrong is said and does not end it; at a terminal it does
// not count either.
func (c *console) converse(ctx context.Context) (last error) {
	live := isTerminal(c.stdin)
	watching, unwatch := c.watcher(ctx)
	defer unwatch()
	do := func(line string) (quit bool) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			return false
		}
		var err error
		if verb := words[0]; verb == "quit" || verb == "exit" {
			return true
		} else if verb == "watch" {
			watching(strings.Join(words[1:], " "))
		} else if verb == "unwatch" {
			unwatch()
		} else {
			err = c.command(ctx, verb, words[1:])
		}
		if err != nil && ctx.Err() == nil {
			f := asFailure(ctx, err)
			c.complain(words[0], f)
			if !live {
				last = &failure{code: f.code}
			}
		}
		return false
	}
	if c.config.URI != "" {
		do("configure")
	}
	lines := make(chan string)
	go func() { // ends with the input, or with the process
		defer close(lines)
		for in := bufio.NewScanner(c.stdin); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		if live {
			fmt.Fprint(c.err, "> ")
		}
		select {
		case line, more := <-lines:
			if !more || do(line) {
				if last != nil {
					return errSaid
				}
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watcher returns what starts a watch in the background and what ends it.
func (c *console) watcher(ctx context.Context) (start func(from string), stop func()) {
	end := func() {}
	stop = func() { end(); end = func() {} }
	start = func(from string) {
		stop()
		watch, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := c.watch(watch, from, 0); err != nil {
				c.complain("watch", asFailure(ctx, err))
			}
		}()
		end = func() { cancel(); <-ended }
	}
	return start, stop
}

func (c *console) command(ctx context.Context, verb string, args []string) error {
	switch n := len(args); {
	case verb == "help" && n == 0:
		fmt.Fprintln(c.out, consoleHelp)
		return nil
	case verb == "describe" && n == 0:
		return c.printAbout(aboutOf(c.Once))
	case verb == "configure" && n <= 1:
		if n == 1 {
			c.config.URI = args[0]
		}
		return c.configure(ctx, true)
	case verb == "load" && n == 0:
		return c.load(ctx)
	case verb == "save" && (n == 1 || n == 2):
		if n == 1 {
			return c.save(ctx, args[0], nil)
		}
		expected := strings.Trim(args[1], `'"`)
		return c.save(ctx, args[0], &expected)
	case verb == "wait" && n == 1:
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return failed("%q is no duration, like 2s", args[0])
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return nil
	}
	return failed("%q is no command, or has another number of arguments", strings.Join(append([]string{verb}, args...), " ")).hinting("help lists them")
}
