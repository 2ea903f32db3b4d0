package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asMaster makes the test binary serve as a master for compare: "echo" is the floor, anything
// else misbehaves in the way that it says.
const asMaster = "MOONCAKE_BENCH_TEST_MASTER"

func TestMain(m *testing.M) {
	switch os.Getenv(asMaster) {
	case "":
		os.Exit(m.Run())
	case "echo":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(bench(ctx, []string{"echo", "--rpc_port", os.Args[1]}, os.Stdout, os.Stderr))
	case "fails":
		os.Stderr.WriteString("no such flag --rpc_prot\n")
		os.Exit(3)
	case "policy":
		text, err := os.ReadFile(os.Args[2])
		if err != nil || !bytes.Contains(text, []byte("tenant-000001")) {
			os.Exit(4)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(bench(ctx, []string{"echo", "--rpc_port", os.Args[1]}, os.Stdout, os.Stderr))
	case "segment":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(bench(ctx, os.Args[1:], os.Stdout, os.Stderr))
	case "dies":
		ctx, stop := context.WithTimeout(context.Background(), 400*time.Millisecond)
		defer stop()
		bench(ctx, []string{"echo", "--rpc_port", os.Args[1]}, os.Stdout, os.Stderr)
		os.Exit(9)
	}
}

func self(t *testing.T, how, args string) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return asMaster + "=" + how + " " + strconv.Quote(path) + " " + args
}

func TestCompareAndReport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.jsonl")
	var out, errOut bytes.Buffer
	code := bench(t.Context(), []string{
		"compare", "--a", self(t, "echo", "{rpc_port}"), "--b", self(t, "policy", "{rpc_port} {policy}"), "--a_label", "<ours> & co", "--rounds", "2",
		"--work", "exist:1,put:8,get:3", "--conns", "1,3", "--duration", "20ms", "--warmup", "0s", "--keys", "200", "--tenants", "2", "--json", file, "--all_figures",
	}, &out, &errOut)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	if !strings.Contains(out.String(), "put:8 x3 t2: A is <ours> & co, B is B") || !strings.Contains(out.String(), "master cpu/op A/B") {
		t.Errorf("%s", out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != 6 {
		t.Fatalf("%d lines", len(lines))
	}
	var c comparison
	if err := json.Unmarshal(lines[3], &c); err != nil {
		t.Fatal(err)
	}
	if c.Setting.Work != "put:8" || c.Setting.Conns != 3 || len(c.A.Results) != 2 || len(c.B.Results) != 2 {
		t.Errorf("%+v", c)
	}
	for _, figure := range []string{figOps, figCPU, figP99, figStart} {
		if r, ok := c.of(figure); !ok || r.Pairs != 2 || !(r.Min <= r.Median && r.Median <= r.Max && r.Min > 0) {
			t.Errorf("%s: %+v", figure, r)
		}
	}
	// A run's lines go into the same charts.
	run := c.A.Results[0]
	run.Label = "alone"
	line, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, "run.jsonl")
	if err := os.WriteFile(second, append(line, "\n\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	charts := filepath.Join(dir, "charts")
	if code := bench(t.Context(), []string{"report", "--out", charts, file, second}, &out, &errOut); code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	paths := strings.Fields(out.String())
	if len(paths) < 7 {
		t.Errorf("only %d charts: %v", len(paths), paths)
	}
	for _, path := range paths {
		checkXML(t, path)
	}
	put, err := os.ReadFile(filepath.Join(charts, "latency_put_8.svg"))
	if err != nil || !bytes.Contains(put, []byte("alone put:8 x3 t2")) || !bytes.Contains(put, []byte("&lt;ours&gt; &amp; co put:8 x1 t2")) {
		t.Errorf("%v: %s", err, put)
	}
}

// checkXML fails unless a file is one well-formed element named svg.
func checkXML(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	elements, root := 0, ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if elements++; elements == 1 {
				root = e.Name.Local
			}
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s %s=%q", path, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	if root != "svg" || elements < 10 {
		t.Errorf("%s: %d elements in %q", path, elements, root)
	}
}

func TestChartExtremes(t *testing.T) {
	bars := &barChart{title: "\x01 \xff <&>", rows: []barRow{{name: "tiny", value: 1e-9, up: 1e-8, asked: 2}, {name: "huge", value: 1e6, low: 1, up: 1e9, missed: true}}}
	lines := &lineChart{title: "t", marks: []string{"p50"}, lines: []lineRow{{"one", []float64{1}}, {"", []float64{1e7}}}}
	growth := &growthChart{title: "g", marks: []string{"1", "10"}, lines: []growthLine{{"<none>", nil}, {"one", map[string]float64{"10": 1e7}}}}
	for i, draw := range []func(io.Writer) error{bars.draw, lines.draw, growth.draw} {
		path := filepath.Join(t.TempDir(), "c.svg")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(draw(f), f.Close()); err != nil {
			t.Fatal(i, err)
		}
		checkXML(t, path)
	}
}

func TestCompareFailures(t *testing.T) {
	good := self(t, "echo", "{rpc_port}")
	tests := []struct{ name, b, duration, want string }{
		{"no such program", "/nowhere/master {rpc_port}", "10ms", "starting /nowhere/master"},
		{"does not start", self(t, "fails", "{rpc_port}"), "10ms", "no such flag --rpc_prot"},
		{"dies", self(t, "dies", "{rpc_port}"), "600ms", "B: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := bench(t.Context(), []string{"compare", "--a", good, "--b", test.b, "--work", "ping", "--rounds", "1", "--warmup", "0s", "--duration", test.duration}, &out, &errOut)
			if code != exitFailed || !strings.Contains(errOut.String(), test.want) {
				t.Errorf("exit status %d: %s", code, errOut.String())
			}
		})
	}
}

func TestPinned(t *testing.T) {
	var out, errOut bytes.Buffer
	before := affinity(t)
	code := bench(t.Context(), []string{"compare", "--a", self(t, "echo", "{rpc_port}"), "--b", self(t, "echo", "{rpc_port}"), "--work", "ping", "--rounds", "1", "--duration", "50ms", "--pin", "0", "--json", "-"}, &out, &errOut)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	var c comparison
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	if c.Setting.Pin == nil || *c.Setting.Pin != 0 {
		t.Errorf("%+v", c.Setting)
	}
	// On one core the two together cannot use more than one.
	if r := c.A.Results[0]; r.Figures[figCores] > 1.05 {
		t.Errorf("the master used %v cores of one", r.Figures[figCores])
	}
	if after := affinity(t); after != before {
		t.Errorf("affinity is %s afterwards, was %s", after, before)
	}
}

func affinity(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "Cpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func TestParseCommand(t *testing.T) {
	tests := []struct {
		text string
		want commandLine
		err  string
	}{
		{"bin/m --p={rpc_port}", commandLine{words: []string{"bin/m", "--p={rpc_port}"}}, ""},
		{`GOGC=50 X= m 'a  b' "c \"d" e\ f ''`, commandLine{env: []string{"GOGC=50", "X="}, words: []string{"m", "a  b", `c "d`, "e f", ""}}, ""},
		{"./a=b c", commandLine{words: []string{"./a=b", "c"}}, ""},
		{"m 'a", commandLine{}, "' is not closed"},
		{"  ", commandLine{}, "no command"},
		{"A=1", commandLine{}, "no command"},
	}
	for _, test := range tests {
		got, err := parseCommand(test.text)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v", test.text, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: %+v %v", test.text, got, err)
		}
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("7/stat", "7 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 300 100 13 14 15 16 17 18 19 20 50 22 23")
	write("stat", "cpu  100 1 20 5000 70 3 4 2 9 9\ncpu0 1 1\n")
	p := proc(dir)
	u, err := p.usage(7)
	if err != nil || u.user != 300 || u.system != 100 || u.rss != 50*uint64(os.Getpagesize()) || u.cpu != 4*time.Second || u.userShare() != 0.75 {
		t.Errorf("%+v %v", u, err)
	}
	write("7/task/7/schedstat", "1000000 5 6\n")
	write("7/task/8/schedstat", "2000005 5 6\n")
	if u, err = p.usage(7); err != nil || u.cpu != 3000005 {
		t.Errorf("%+v %v", u, err)
	}
	if busy, err := p.busy(); err != nil || busy != 1300*time.Millisecond {
		t.Errorf("%v %v", busy, err)
	}
	if _, err := p.usage(8); err == nil {
		t.Error("a process that is not there was read")
	}
	write("9/stat", "9 (x) S 1")
	if _, err := p.usage(9); err == nil {
		t.Error("half a line was read")
	}
	m, err := parseGoMetrics(strings.NewReader(goMetricsPage))
	if err != nil || !reflect.DeepEqual(m.values, map[string]float64{seriesGCCPU: 1.5, seriesAssist: 0.25, seriesPauseSum: 3}) {
		t.Errorf("%v %v", m, err)
	}
	own, err := proc("/proc").usage(os.Getpid())
	if err != nil || own.cpu <= 0 || own.rss == 0 {
		t.Errorf("%+v %v", own, err)
	}
}
