package core_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/object"
)

// TestScenarios runs the files of testdata/core. A file holds scenarios, each on a master of
// its own. "== name setting=value ..." begins one; the settings are fields of core.Config, and
// the words strict and quiet (no eviction of the pool). Every other line is a command, and
// after " = " what it must answer; without that a code must be OK and anything else may be
// anything. Codes are written as numbers, sizes as 10, 4K or 1M, and keys as tenant/key, where
// Go's escapes may be used. The commands are the methods of scenario whose names begin with
// Do. A word c2 makes client 2 the caller; otherwise it is client 1.
//
// Every scenario ends with the check of all invariants, then everything is removed, and
// nothing may be charged or allocated.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../testdata/core/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runFile(t, file)
		})
	}
}

type line struct {
	at   int
	text string
}

func runFile(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var name string
	var lines []line
	run := func() {
		if len(lines) > 0 {
			head, body := name, lines
			t.Run(strings.Fields(head)[0], func(t *testing.T) { runScenario(t, filepath.Base(file), head, body) })
		}
		lines = nil
	}
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		switch {
		case strings.HasPrefix(text, "== "):
			run()
			name = text[3:]
		case text != "" && text[0] != '#':
			lines = append(lines, line{n, text})
		}
	}
	run()
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
}

func runScenario(t *testing.T, file, head string, lines []line) {
	m := mastertest.New(t, func(c *core.Config) {
		for _, setting := range strings.Fields(head)[1:] {
			configure(t, c, setting)
		}
	})
	s := &scenario{Master: m}
	for _, l := range lines {
		command, want, expects := strings.Cut(l.text, " = ")
		if strings.HasSuffix(command, " =") { // an empty answer
			command, expects = strings.TrimSuffix(command, " ="), true
		}
		got := s.run(t, command)
		if _, isCode := got.(errcode.Code); isCode && !expects {
			want, expects = "0", true
		}
		if text := show(got); expects && text != strings.TrimSpace(want) {
			t.Errorf("%s:%d: %s\n\tanswers %s (%v), want %s", file, l.at, command, text, got, want)
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
	field := reflect.ValueOf(c).Elem().FieldByName(name)
	if !field.IsValid() {
		t.Fatalf("no setting %q", name)
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
type scenario struct{ *mastertest.Master }

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
	method := reflect.ValueOf(s).MethodByName("Do" + strings.ToUpper(words[0][:1]) + words[0][1:])
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

// keys splits tenant/key,key,...
func (c *call) keys(i int) (tenantName string, keys []string) {
	tenantName, list := c.key(i)
	return tenantName, strings.Split(list, ",")
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
