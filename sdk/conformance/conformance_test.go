package conformance

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// programs is the folder of the executables under test.
var programs string

// TestMain builds the connectors that are tested, and looks for what the tests leave behind.
func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	tmp, err := os.MkdirTemp("", "kit")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		panic(err)
	}
	programs = filepath.Join(tmp, "bin")
	build := exec.Command("go", "build", "-o", programs+"/", "./testdata/connectors/broken", "./testdata/connectors/raw", "./cmd/mooncake_master")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("%v: %s\n", err, out)
		os.Exit(1)
	}
	code := m.Run()
	for deadline := 250; code == 0; deadline-- {
		left, _ := filepath.Glob(filepath.Join(tmp, "mooncake-kit-*"))
		if len(left) == 0 && runtime.NumGoroutine() == 1 {
			break
		}
		if deadline == 0 {
			stacks := make([]byte, 1<<20)
			fmt.Printf("left over: %v\n%s\n", left, stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(tmp)
	os.Exit(code)
}

// uri names a file of the test's own.
func uri(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "policy.yaml") }

func table(t *testing.T, r Report) string {
	t.Helper()
	var text bytes.Buffer
	if err := r.Table(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestGoodConnectors wants all cases to pass on connectors that do nothing wrong, and the
// skipped ones to be those that can't apply to them.
func TestGoodConnectors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		program string
		args    []string
		uri     bool
		skipped []string
	}{
		{"stock file connector", "mooncake_master", []string{"connector", "serve", "file"}, false, []string{"save/read-only"}},
		{"SDK", "broken", []string{"good"}, true, []string{"save/read-only"}},
		{"contract alone", "raw", []string{"good"}, true, []string{"save/read-only", "life/logs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := Options{Path: filepath.Join(programs, tt.program), Args: tt.args, Patience: 4}
			file := ""
			if tt.uri {
				opts.URI = uri(t)
				file = strings.TrimPrefix(opts.URI, "file://")
				if err := os.WriteFile(file, []byte("version: 1\ntenants: [{name: mine, quota: 1GB}]\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			told := 0
			opts.Progress = func(Result) { told++ }
			r, err := Run(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed() || len(r.Results) != len(Cases()) || told != len(Cases()) {
				t.Errorf("%d results, %d told:\n%s", len(r.Results), told, table(t, r))
			}
			var skipped []string
			for _, result := range r.Results {
				if result.Status == Skip {
					skipped = append(skipped, result.Case)
				}
			}
			if strings.Join(skipped, " ") != strings.Join(sorted(tt.skipped), " ") {
				t.Errorf("skipped %v, want %v", skipped, tt.skipped)
			}
			if file != "" {
				if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "name: mine") {
					t.Errorf("the source was not put back: %q, %v", text, err)
				}
				if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
					t.Errorf("left beside the source: %v", left)
				}
			}
		})
	}
}

// sorted puts names in the order of Cases.
func sorted(names []string) []string {
	var list []string
	for _, c := range cases {
		for _, name := range names {
			if name == c.name {
				list = append(list, name)
			}
		}
	}
	return list
}

// wrong are connectors with one fault each, the case that must find it, and what it must say.
var wrong = []struct{ program, mode, name, reason string }{
	{"raw", "stdout", "handshake/stdout", `nothing else may be written there: got "Welcome to the raw connector"`},
	{"raw", "stdout-later", "handshake/stdout", `after the handshake line it wrote "now serving" to standard output`},
	{"raw", "plaintext", "handshake/stdout", "no certificate in the sixth field"},
	{"raw", "wrong-version", "handshake/stdout", "it chose connector protocol 2, the host offered 1 only"},
	{"raw", "wrong-version", "handshake/choice", "offered protocols 1 and 9999 it chose 2"},
	{"raw", "claims-version", "handshake/newer-host", "it claims to speak protocol 9999, which does not exist"},
	{"raw", "claims-version", "handshake/older-host", "it claims to speak protocol 0, which does not exist"},
	{"raw", "mute", "handshake/by-hand", "run by hand it ends with status 0, want 1"},
	{"raw", "open-tls", "handshake/tls", "it answers a caller that shows no certificate"},
	{"raw", "no-health", "health/plugin", `for "plugin" ended with Unimplemented`},
	{"raw", "slow", "describe/answer", "Describe was not answered in time"},
	{"broken", "unstable", "describe/answer", "it must always be the same"},
	{"broken", "one-at-a-time", "start/together", "while 1 others run: it ended without a handshake line"},
	{"broken", "side-effects", "configure/side-effects", "Configure made a document"},
	{"broken", "accepts-anything", "configure/notes", "Configure accepted the option"},
	{"broken", "configure-once", "configure/twice", "it refuses the configuration the kit was given: uri: configured already"},
	{"broken", "keeps-first", "configure/replaces", "Load still gives"},
	{"broken", "silent", "watch/first", "no first snapshot within"},
	{"raw", "wrong-hash", "watch/first", "whose sha256 is not that of its document"},
	{"raw", "crowd", "watch/first", "the limit is 67108864 (64 MiB), and a master refuses more"},
	{"raw", "repeats", "watch/from-revision", "begins with a snapshot of it; it must be left out"},
	{"broken", "restless", "watch/from-revision", "although nothing changed"},
	{"broken", "deaf", "watch/change", "no snapshot of what was put at the source within"},
	{"broken", "one-watch", "watch/two", "Watch 1 of two: no snapshot of what was put at the source within"},
	{"broken", "repairs", "watch/bytes", "although the source holds bytes that are no YAML"},
	{"broken", "repairs", "watch/blank", "although the source holds an empty document"},
	{"broken", "drops-nobody", "watch/nobody", "no snapshot of what was put at the source within"},
	{"broken", "drops-last", "watch/storm", "no snapshot of the last of 1000 edits within"},
	{"broken", "ignores-cancel", "watch/cancel", "Watch calls are still under way in the connector"},
	{"raw", "threads", "watch/cancel", "threads more than before"},
	{"raw", "no-heartbeat", "watch/heartbeat", "no heartbeat at the beginning within"},
	{"raw", "one-heartbeat", "watch/heartbeat", "no heartbeat within"},
	{"broken", "leaks-goroutines", "watch/leaks", "300 Watch calls left something behind: tasks (goroutines) grew from"},
	{"broken", "leaks-threads", "watch/leaks", "tasks (goroutines) grew from"},
	{"broken", "leaks-files", "watch/leaks", "open descriptors grew from"},
	{"broken", "leaks-memory", "watch/leaks", "memory in bytes grew from"},
	{"raw", "threads", "watch/leaks", "threads grew from"},
	{"broken", "empty-when-down", "source/absent", "Load gave an empty policy"},
	{"broken", "empty-when-down", "source/deleted", "Watch gave an empty policy"},
	{"broken", "empty-when-down", "source/down", `Watch gave an empty policy ("version: 1 tenants: []") although the source is down; it must say unavailable`},
	{"broken", "gives-up", "source/down", "the source is back: no snapshot"},
	{"broken", "needs-source", "source/down-at-start", "the source is down: it refuses the configuration"},
	{"broken", "truncates", "limits/100k-tenants", "no snapshot of"},
	{"broken", "truncates", "limits/largest", "no snapshot of 67108864 bytes"},
	{"broken", "no-limit", "limits/too-large", "the connector gave a document of 67108865 bytes, the limit is 67108864"},
	{"raw", "small-messages", "limits/save", "ended with ResourceExhausted"},
	{"broken", "stale-load", "save/load", "Load at once gives"},
	{"broken", "says-saved", "save/load", "Load at once gives"},
	{"broken", "loses-conflict", "save/conflict", "answers SAVED, want CONFLICT: somebody's change would be lost"},
	{"broken", "loses-conflict", "save/overtaken", "answers SAVED, want CONFLICT: their change is lost"},
	{"broken", "races", "save/race", "were both answered SAVED: one of them is lost"},
	{"broken", "only-replaces", "save/create", "where there is nothing, answers UNAVAILABLE: there is nothing to replace"},
	{"broken", "secretly-writable", "save/read-only", "answers Save with SAVED, want READ_ONLY"},
	{"broken", "says-saved", "save/down", "the source is down, but Save answers SAVED"},
	{"broken", "ignores-stop", "life/stop", "Stop was not answered in time"},
	{"broken", "leaves-child", "life/stop", "after Stop processes of its group still run"},
	{"raw", "orphan", "life/parent-killed", "processes of its group still run"},
	{"broken", "bad-logs", "life/logs", `line 1 on standard error: a JSON object without "@message"`},
}

// TestBrokenConnectors wants each fault to be found by its case, with the right words.
func TestBrokenConnectors(t *testing.T) {
	for _, tt := range wrong {
		t.Run(tt.mode+"/"+strings.ReplaceAll(tt.name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Options{
				Path: filepath.Join(programs, tt.program), Args: []string{tt.mode}, URI: uri(t),
				Env: []string{"BROKEN_LOCK=" + filepath.Join(t.TempDir(), "lock")}, Cases: []string{tt.name}, Patience: patience(tt.reason),
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Results) != 1 || r.Results[0].Status != Fail || r.Results[0].Case != tt.name || !strings.Contains(r.Results[0].Reason, tt.reason) || !r.Failed() {
				t.Errorf("want %s to fail with %q:\n%s", tt.name, tt.reason, table(t, r))
			}
		})
	}
}

// patience is small for faults that show only in that something does not happen.
func patience(reason string) float64 {
	for _, late := range []string{"within", "in time", "still run", "is back", "no snapshot"} {
		if strings.Contains(reason, late) {
			return 0.6
		}
	}
	for _, late := range []string{"grew from", "more than before"} { // it is waited for that they go away
		if strings.Contains(reason, late) {
			return 1
		}
	}
	return 2
}

// TestEveryCaseCanFail keeps cases out that nothing fails.
func TestEveryCaseCanFail(t *testing.T) {
	fails := map[string]bool{}
	for _, tt := range wrong {
		fails[tt.name] = true
	}
	for _, c := range Cases() {
		if !fails[c.Name] {
			t.Errorf("no broken connector fails %s", c.Name)
		}
		if c.About == "" {
			t.Errorf("%s says nothing about what it asks for", c.Name)
		}
	}
}

// TestSkips wants what can't be run to be skipped with the reason, never passed.
func TestSkips(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Options{Path: filepath.Join(programs, "broken"), Args: []string{"good"}, Cases: []string{"source/*", "save/*", "health/plugin"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range r.Results {
		if want := result.Case != "health/plugin"; want != (result.Status == Skip && result.Reason == "no URI was given") {
			t.Errorf("%+v", result)
		}
	}
	// What a source command can't do; what nobody can.
	command := filepath.Join(t.TempDir(), "source")
	target := uri(t)
	script := "#!/bin/sh\ncase $1 in set) cat > " + strings.TrimPrefix(target, "file://") + ";; delete) exit 3;; *) echo sorry >&2; exit 1;; esac\n"
	if err := os.WriteFile(command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err = Run(t.Context(), Options{
		Path: filepath.Join(programs, "broken"), Args: []string{"good"}, URI: target, Source: CommandSource("/bin/sh", command),
		Cases: []string{"watch/change", "source/deleted", "source/down"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		status Status
		reason string
	}{{Pass, ""}, {Skip, "the source command says that it can't delete"}, {Fail, "the source command sh break: exit status 1: sorry"}} {
		if got := r.Results[i]; got.Status != want.status || got.Reason != want.reason {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	// A source that only the connector itself can change.
	r, err = Run(t.Context(), Options{
		Path: filepath.Join(programs, "broken"), Args: []string{"good"}, URI: uri(t), Source: nil,
		Cases: []string{"handshake/choice"},
	})
	if err != nil || r.Failed() {
		t.Errorf("%v\n%s", err, table(t, r))
	}
}

// TestSaveSource runs cases whose source is changed by the connector's own Save.
func TestSaveSource(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Options{
		Path: filepath.Join(programs, "broken"), Args: []string{"good"}, URI: uri(t), Source: SaveSource(),
		Cases: []string{"watch/change", "watch/storm", "save/overtaken", "source/deleted", "limits/too-large"}, Patience: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range r.Results {
		want := Pass
		if result.Case == "source/deleted" || result.Case == "limits/too-large" {
			want = Skip
		}
		if result.Status != want {
			t.Errorf("%+v, want %s", result, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for want, opts := range map[string]Options{
		"the path of a connector's executable is needed": {},
		"/no/such/file: no such file or directory":       {Path: "/no/such/file"},
		`no case is called "save/nothing"`:               {Path: "/bin/sh", Cases: []string{"save/nothing"}},
		"patience -1 is negative; 1 is the usual":        {Path: "/bin/sh", Patience: -1},
		`case "[": syntax error in pattern`:              {Path: "/bin/sh", Cases: []string{"["}},
	} {
		if _, err := Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestNoConnector runs programs that are none.
func TestNoConnector(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Options{Path: "/bin/false", Cases: []string{"handshake/stdout", "watch/first"}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := r.Results[0], r.Results[1]; a.Status != Fail || a.Reason != "it ended without a handshake line (exit status 1)" ||
		b.Status != Skip || b.Reason != "it does not start, see the first case" {
		t.Errorf("%+v", r.Results)
	}
}

func TestReports(t *testing.T) {
	r := Report{Command: "./x a", Connector: "x 1", Took: 1500 * time.Millisecond, Results: []Result{
		{Case: "a/one", About: "one", Status: Pass, Took: time.Second},
		{Case: "a/two", About: "two", Status: Fail, Reason: `said "no" <&>`, Took: time.Millisecond},
		{Case: "b/three", About: "three", Status: Skip, Reason: "no URI was given"},
	}}
	if got, want := table(t, r), "x 1: ./x a\npass  a/one    1s   \nfail  a/two    1ms  said \"no\" <&>\nskip  b/three  0s   no URI was given\n1 passed, 1 failed, 1 skipped in 1.5s\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var tap bytes.Buffer
	if err := r.TAP(&tap); err != nil {
		t.Fatal(err)
	}
	if want := "TAP version 13\n# x 1: ./x a\n1..3\nok 1 - a/one\nnot ok 2 - a/two\n  ---\n  message: \"said \\\"no\\\" <&>\"\n  asks: \"two\"\n  ...\n" +
		"ok 3 - b/three # SKIP no URI was given\n# 1 passed, 1 failed, 1 skipped in 1.5s\n"; tap.String() != want {
		t.Errorf("%q, want %q", tap.String(), want)
	}
	var junit bytes.Buffer
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Tests != 3 || suite.Failures != 1 || suite.Skipped != 1 ||
		suite.Cases[1].Name != "a/two" || suite.Cases[1].Failure.Message != `said "no" <&>` || suite.Cases[0].Failure != nil {
		t.Errorf("%v: %s", err, junit.String())
	}
	full := errors.New("disk full")
	if err := r.Table(refuses{full}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

type refuses struct{ err error }

func (r refuses) Write([]byte) (int, error) { return 0, r.err }

// TestSame knows documents that mean the same.
func TestSame(t *testing.T) {
	if !same(padded(document(7), 1000), document(7)) || same(document(7), document(8)) || same([]byte("["), []byte("]")) || !same([]byte("["), []byte("[")) {
		t.Error("same")
	}
	for size := 200; size < 420; size++ {
		if got := padded(document(7), size); len(got) != size || !same(got, document(7)) {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
	}
	if !same(crowd(1000), append([]byte("# many\n"), crowd(1000)...)) || same(crowd(1000), crowd(999)) {
		t.Error("same crowds")
	}
}
