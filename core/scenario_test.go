package core_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

var update = flag.Bool("update", false, "fill in the answers that scenarios leave open")

// open stands in a scenario for an answer that is not known yet.
const open = "?"

// TestScenarios runs the files of testdata/scenarios. A file holds scenarios, each on a master of
// its own. "== name setting=value ..." begins one; the settings are fields of core.Config, as
// Tasks.MaxPending=3, and the words strict and quiet (no eviction of the pool). Every other line is a
// command, and after " = " what it must answer; without that a code must be OK and anything else may be
// anything. Codes are written as numbers, sizes as 10, 4K or 1M, and keys as tenant/key, where
// Go's escapes may be used. The commands are the methods of scenario whose names begin with
// Do, with hyphens where they have capitals: DoCopyStart is copy-start. A word c2 makes client 2 the
// caller; otherwise it is client 1. A line "# case: suite Case" says for which of the original's
// acceptance cases a scenario stands; docs/acceptance.md lists them.
//
// Every scenario ends with the check of all invariants, then everything is removed, and
// nothing may be charged or allocated.
//
// With -update the answers that are written as " = ?" are filled in with what the master says, and
// nothing else is changed: an answer that stands in a file is never overwritten, so a master that
// has become wrong fails with -update as without. A run that fills in anything fails, too, and so does
// one without -update that meets a "?". What has been filled in has to be compared with the specification by
// whoever commits it, line by line: it is the only thing in the diff.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "cases.txt" {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runFile(t, file)
		})
	}
}

// line is a line of a file, numbered from zero.
type line struct {
	at   int
	text string
}

func runFile(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(content), "\n")
	var name string
	var lines []line
	run := func() {
		if len(lines) > 0 {
			head, body := name, lines
			t.Run(strings.Fields(head)[0], func(t *testing.T) { runScenario(t, filepath.Base(file), head, body, all) })
		}
		lines = nil
	}
	for n, text := range all {
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "== "):
			run()
			name = text[3:]
		case text != "" && text[0] != '#':
			lines = append(lines, line{n, text})
		}
	}
	run()
	if filled := strings.Join(all, "\n"); filled != string(content) {
		if err := os.WriteFile(file, []byte(filled), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runScenario runs one scenario, whose lines are among all lines of its file.
func runScenario(t *testing.T, file, head string, lines []line, all []string) {
	m := mastertest.New(t, func(c *core.Config) {
		for _, setting := range strings.Fields(head)[1:] {
			configure(t, c, setting)
		}
	})
	s := newScenario(m)
	for _, l := range lines {
		command, want, expects := strings.Cut(l.text, " = ")
		if strings.HasSuffix(command, " =") { // an empty answer
			command, expects = strings.TrimSuffix(command, " ="), true
		}
		got := s.run(t, command)
		if _, isCode := got.(errcode.Code); isCode && !expects {
			want, expects = "0", true
		}
		text := show(got)
		switch {
		case !expects || text == strings.TrimSpace(want):
		case want == open && *update:
			all[l.at] = strings.TrimSuffix(all[l.at], open) + text
			t.Errorf("%s:%d: %s: filled in %s", file, l.at+1, command, text)
		default:
			t.Errorf("%s:%d: %s\n\tanswers %s (%v), want %s", file, l.at+1, command, text, got, want)
		}
	}
	if err := m.Check(); err != nil {
		t.Fatalf("invariants: %v", err)
	}
	m.Drain(t)
}

func configure(t *testing.T, c *core.Config, setting string) {
	name, value, _ := strings.Cut(setting, "=")
	switch name {
	case "strict":
		c.MultiTenant = true
		return
	case "quiet":
		mastertest.NoPoolEviction(c)
		return
	}
	field := reflect.ValueOf(c).Elem()
	for part := range strings.SplitSeq(name, ".") {
		if field = field.FieldByName(part); !field.IsValid() {
			t.Fatalf("no setting %q", name)
		}
	}
	switch field.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		field.SetInt(int64(d))
	case float64:
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		field.SetFloat(v)
	case bool:
		field.SetBool(value == "true")
	case int:
		v, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		field.SetInt(int64(v))
	case uint32, uint64:
		field.SetUint(parseBytes(t, value))
	default:
		field.SetString(value)
	}
}

// show writes an answer as scenarios do.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case errcode.Code:
		return strconv.Itoa(int(v))
	case uint64:
		return bytesText(v)
	case []string:
		return strings.Join(v, " ")
	case []errcode.Code:
		var words []string
		for _, c := range v {
			words = append(words, strconv.Itoa(int(c)))
		}
		return strings.Join(words, " ")
	default:
		return fmt.Sprint(v)
	}
}

func bytesText(n uint64) string {
	switch {
	case n != 0 && n%mib == 0:
		return fmt.Sprintf("%dM", n/mib)
	case n != 0 && n%1024 == 0:
		return fmt.Sprintf("%dK", n/1024)
	default:
		return strconv.FormatUint(n, 10)
	}
}

func parseBytes(t *testing.T, text string) uint64 {
	unit := uint64(1)
	switch {
	case strings.HasSuffix(text, "M"):
		unit = mib
	case strings.HasSuffix(text, "K"):
		unit = 1024
	}
	n, err := strconv.ParseUint(strings.TrimRight(text, "MK"), 10, 64)
	if err != nil {
		t.Fatalf("bad size %q", text)
	}
	return n * unit
}

func parseDuration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// scenario is a master that commands act on.
type scenario struct {
	*mastertest.Master
	tasks taskNames
}

func newScenario(m *mastertest.Master) *scenario { return &scenario{Master: m, tasks: newTaskNames()} }

// call is one command: its words without the client, and whether one was "force".
type call struct {
	t      *testing.T
	args   []string
	client uint64
	force  bool
}

func (s *scenario) run(t *testing.T, command string) any {
	words := strings.Fields(command)
	c := call{t: t, client: 1}
	for _, w := range words[1:] {
		n, err := strconv.ParseUint(strings.TrimPrefix(w, "c"), 10, 64)
		switch {
		case w == "force":
			c.force = true
		case strings.HasPrefix(w, "c") && err == nil:
			c.client = n
		default:
			if text, err := strconv.Unquote(`"` + w + `"`); err == nil {
				w = text
			}
			c.args = append(c.args, w)
		}
	}
	name := "Do"
	for part := range strings.SplitSeq(words[0], "-") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	method := reflect.ValueOf(s).MethodByName(name)
	if !method.IsValid() {
		t.Fatalf("no command %q", words[0])
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(c)})
	if len(out) == 0 {
		return nil
	}
	return out[0].Interface()
}

// key splits tenant/key.
func (c *call) key(i int) (tenantName, key string) {
	tenantName, key, found := strings.Cut(c.args[i], "/")
	if !found {
		c.t.Fatalf("%q is not tenant/key", c.args[i])
	}
	return tenantName, key
}

// keys splits tenant/key,key,... where tenant/- is no key at all.
func (c *call) keys(i int) (tenantName string, keys []string) {
	tenantName, list := c.key(i)
	if list == "-" {
		return tenantName, nil
	}
	return tenantName, strings.Split(list, ",")
}

// option takes "name=value" out of the arguments.
func (c *call) option(name string) (value string, found bool) {
	for i, arg := range c.args {
		if value, found = strings.CutPrefix(arg, name+"="); found {
			c.args = slices.Delete(c.args, i, i+1)
			return value, true
		}
	}
	return "", false
}

// config reads the options of a write from the arguments after the i-th.
func (c *call) config(i, keys int) *object.ReplicateConfig {
	cfg := mastertest.Config()
	for _, arg := range c.args[min(i, len(c.args)):] {
		name, value, has := strings.Cut(arg, "=")
		switch name {
		case "n":
			cfg.ReplicaNum = parseBytes(c.t, value)
		case "nof":
			cfg.NoFReplicaNum = parseBytes(c.t, value)
		case "dfs":
			cfg.DFSReplicaNum = parseBytes(c.t, value)
		case "hard":
			cfg.WithHardPin = true
		case "soft":
			ttl := time.Duration(-1)
			if has {
				ttl = parseDuration(c.t, value)
			}
			mastertest.SoftPin(ttl)(cfg)
		case "ttl":
			ms := uint64(parseDuration(c.t, value).Milliseconds())
			cfg.SoftPinTTLMs = &ms
		case "action":
			cfg.SoftPinAction = object.SoftPinAction(parseBytes(c.t, value))
		case "group":
			mastertest.Group(value, keys)(cfg)
		case "groups":
			ids := strings.Split(value, ",")
			cfg.GroupIDs = &ids
		case "sessions":
			ids := strings.Split(value, ",")
			cfg.SessionIDs = &ids
		case "prefer":
			cfg.PreferredSegments = strings.Split(value, ",")
		case "prefer1":
			cfg.PreferredSegment = value
		case "samenode":
			cfg.PreferAllocInSameNode = true
		case "host":
			cfg.HostID = value
		default:
			c.t.Fatalf("no option %q", arg)
		}
	}
	return cfg
}

// kind reads an optional last argument that names a replica type.
func (c *call) kind(i int) object.ReplicaType {
	if len(c.args) <= i {
		return object.ReplicaAll
	}
	n, err := strconv.Atoi(c.args[i])
	if err != nil {
		c.t.Fatal(err)
	}
	return object.ReplicaType(n)
}
