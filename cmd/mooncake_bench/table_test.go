package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// table runs a command line of table against two echoes and returns the records it wrote.
func table(t *testing.T, args ...string) ([]record, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	args = append([]string{"table", "--ours", self(t, "echo", "{rpc_port}"), "--theirs", self(t, "echo", "{rpc_port}"), "--floor", self(t, "echo", "{rpc_port}"), "--json", path}, args...)
	var out, errOut bytes.Buffer
	if code := bench(t.Context(), args, &out, &errOut); code != 0 {
		t.Fatalf("%v: exit status %d: %s", args, code, errOut.String())
	}
	var all records
	if err := all.read(path); err != nil {
		t.Fatal(err)
	}
	return all.rows, out.String()
}

func TestTable(t *testing.T) {
	rows, out := table(t, "single-8", "--quick", "growth-connections", "strict-put-1")
	byRow := map[string]int{}
	for _, r := range rows {
		byRow[r.Row]++
		if !r.Quick || len(r.Checks) == 0 {
			t.Errorf("%+v", r)
		}
		for _, s := range r.Sides {
			if len(s.Results) != 1 || s.Results[0].Figures[figCPU] <= 0 || s.Results[0].Label != s.Label || s.Command == "" {
				t.Errorf("%s, %s: %+v", r.Row, r.Point, s)
			}
		}
		for _, c := range r.Checks {
			if !(c.Median > 0 && c.A > 0 && c.B > 0) || c.Pairs != 1 {
				t.Errorf("%s, %s: %+v", r.Row, r.Point, c)
			}
		}
	}
	if byRow["single-8"] != 3 || byRow["growth-connections"] != 4 || byRow["strict-put-1"] != 1 {
		t.Errorf("points per row: %v", byRow)
	}
	first := rows[0]
	if first.Point != "exist:1 x8" || len(first.Sides) != 3 || len(first.Checks) != 2 || first.Checks[1].Side != "echo" || first.Checks[1].Verdict != verdictReported {
		t.Errorf("%+v", first)
	}
	if pin := first.Sides[0].Results[0].Setting.Pin; pin == nil || *pin != 0 {
		t.Errorf("%+v is not bound to a core", first.Sides[0].Results[0].Setting)
	}
	for _, want := range []string{"verdict", "growth-connections  exist:1", " quick"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, verdictMissed) || strings.Contains(out, " "+verdictMet) {
		t.Errorf("a quick run judges:\n%s", out)
	}
}

// TestTableTurns sees that sides take turns, and that rounds and length can be told.
func TestTableTurns(t *testing.T) {
	trials := trial{
		sides: []variant{{label: "ours", master: masterOurs}, {label: "theirs", master: masterTheirs}}, base: "theirs", rounds: 9,
		args: words("--work ping,exist:3 --conns 2 --keys 50 --warmup 0s --duration 1h"), together: true,
		limits: []limit{{figure: figCPU, most: 1e6}},
	}
	var progress bytes.Buffer
	c := campaign{ours: self(t, "echo", "{rpc_port}"), theirs: self(t, "echo", "{rpc_port}"), rounds: 2, length: 20e6, pin: unset, progress: &progress}
	var points []string
	err := c.run(t.Context(), "mine", &trials, func(r *record) error {
		points = append(points, r.Point)
		if len(r.Sides[0].Results) != 2 || len(r.Sides[1].Results) != 2 || r.Checks[0].Verdict != verdictMet || r.Quick {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || strings.Join(points, ";") != "ping:1 x2;exist:3 x2" {
		t.Errorf("%v, %v", points, err)
	}
	if n := strings.Count(progress.String(), "round"); n != 2 {
		t.Errorf("%d rounds:\n%s", n, progress.String())
	}
}

func TestTableMissed(t *testing.T) {
	var all []record
	for _, verdict := range []string{verdictMet, verdictMissed, verdictReported, verdictMet} {
		all = append(all, record{Row: "r", Point: "p", Checks: []check{{Figure: figCPU, Side: "ours", Against: "theirs", A: 1, B: 2, Median: 0.5, Min: 0.4, Max: 0.6, Pairs: 3, Most: new(0.5), Verdict: verdict}}})
	}
	if n, of := missed(all); n != 1 || of != 3 {
		t.Errorf("%d of %d", n, of)
	}
	var out bytes.Buffer
	if err := printMarkdown(&out, all[:2]); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || lines[3] != "| r | p | master_cpu_us_per_op | ours | 1.00 | 2.00 | 0.500 (0.400–0.600) | ≤ 0.500 | MISSED |" {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		if strings.Count(line, "|") != len(tableHead)+1 {
			t.Errorf("%d columns in %q", strings.Count(line, "|")-1, line)
		}
	}
}

// TestRowsAreSound reads the settings of every row, as it is and quick.
func TestRowsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range tableRows() {
		if seen[r.name] || r.about == "" || r.seconds < 1 || r.scaling == (len(r.trials)+len(r.transfers) > 0) {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
		for i := range r.transfers {
			if one := &r.transfers[i]; len(one.limits()) == 0 || one.span() == 0 || one.title() == "" {
				t.Errorf("%s: %+v", r.name, one)
			}
		}
		for i := range r.trials {
			for _, quick := range []bool{false, true} {
				c := campaign{ours: "ours {rpc_port}", theirs: "theirs {rpc_port}", floor: "floor {rpc_port}", pin: unset, quick: quick}
				points := 0
				for _, v := range r.trials[i].sides {
					one, err := c.contender(&r.trials[i], v)
					if err != nil {
						t.Fatalf("%s, %s: %v", r.name, v.label, err)
					}
					if points == 0 {
						points = len(one.points)
					}
					if len(one.points) != points || points == 0 {
						t.Errorf("%s: %d points at %s, %d at the first side", r.name, len(one.points), v.label, points)
					}
				}
			}
		}
	}
	for _, name := range []string{"single", "batches", "throughput", "full-memory", "quota", "beside", "memory", "strict", "scaling", "start", "growth-objects", "growth-connections", "growth-tenants", "gc", "segment", "segment-client"} {
		if rows, err := selectRows(tableRows(), []string{name}); err != nil || len(rows) == 0 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
}

func TestSelectRows(t *testing.T) {
	rows := []row{{name: "a-1"}, {name: "a-2"}, {name: "ab"}}
	if got, err := selectRows(rows, []string{"a"}); err != nil || len(got) != 2 || got[1].name != "a-2" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := selectRows(rows, nil); err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := selectRows(rows, []string{"ab", "b"}); err == nil || !strings.Contains(err.Error(), `"b" is no row, want one of a-1, a-2, ab`) {
		t.Errorf("%v", err)
	}
}

func TestTableUsage(t *testing.T) {
	tests := []struct{ args, want string }{
		{"table nosuch", `"nosuch" is no row`},
		{"table --rounds -1", "--rounds"},
		{"table --duration -1s", "--duration"},
		{"table --pin 5000", "--pin"},
		{"table start-off", "--theirs: no command line"},
		{"table --theirs x start-off", "--theirs: the command line does not say {rpc_port}"},
		{"table --ours x --theirs {rpc_port} start-off", "--ours: the command line does not say {rpc_port}"},
		{"table scaling", "--core_test"},
		{"table --json /nowhere/x --theirs {rpc_port}", "--json"},
	}
	for _, test := range tests {
		var out, errOut bytes.Buffer
		if code := bench(t.Context(), strings.Fields(test.args), &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), test.want) {
			t.Errorf("%s: exit status %d: %s; want %q", test.args, code, errOut.String(), test.want)
		}
	}
	var out, errOut bytes.Buffer
	if code := bench(t.Context(), []string{"table", "--list"}, &out, &errOut); code != 0 || strings.Count(out.String(), "\n") != len(tableRows()) {
		t.Errorf("exit status %d: %s%s", code, out.String(), errOut.String())
	}
	// A core that fails is told with what it printed.
	code := bench(t.Context(), []string{"table", "--core_test", "/nowhere/core.test", "--quick", "scaling"}, &out, &errOut)
	if code != exitFailed || !strings.Contains(errOut.String(), "/nowhere/core.test") {
		t.Errorf("exit status %d: %s", code, errOut.String())
	}
}

func TestRowCharts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows.jsonl")
	rows := []record{
		{Kind: "row", Row: "single-8", Point: "get:1 x8", Checks: []check{{Figure: figCPU, Side: "ours", Against: "theirs", Median: 9, Verdict: verdictMissed}}},
		{Kind: "row", Row: "single-8", Point: "get:1 x8", Checks: []check{
			{Figure: figCPU, Side: "ours", Against: "theirs", Median: 0.4, Min: 0.3, Max: 0.6, Most: new(0.5), Verdict: verdictMet},
			{Figure: figCPU, Side: "echo", Against: "theirs", Median: 7, Verdict: verdictReported},
		}},
		{Kind: "row", Row: "throughput-1", Point: "get:1 x32", Checks: []check{{Figure: figOps, Side: "ours", Against: "theirs", Median: 2, Least: new(1.3), Verdict: verdictMet}}},
		{Kind: "row", Row: "growth-objects-1m", Point: "get:1 x8", Checks: []check{{Figure: figCPU, Side: "1M", Against: "10k", Median: 1.2, Most: new(1.5)}}},
		{Kind: "row", Row: "growth-objects-10m", Point: "get:1 x8", Checks: []check{{Figure: figCPU, Side: "10M", Against: "10k", Median: 1.7, Most: new(1.5)}}},
	}
	var text bytes.Buffer
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := bench(t.Context(), []string{"report", "--out", dir, path}, &out, &errOut); code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	want := map[string][]string{
		"rows_cpu.svg":        {"single-8 get:1 x8", ">0.400<"},
		"rows_throughput.svg": {"throughput-1 get:1 x32"},
		"growth_objects.svg":  {">10k<", ">1M<", ">10M<", "asked at most", "prefers-color-scheme: dark"},
	}
	if paths := strings.Fields(out.String()); len(paths) != len(want) {
		t.Errorf("%v", paths)
	}
	for file, texts := range want {
		checkXML(t, filepath.Join(dir, file))
		picture, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if !bytes.Contains(picture, []byte(text)) {
				t.Errorf("%s: %q is not in it", file, text)
			}
		}
		// The later of two lines about one point counts, and the floor is no bar.
		if bytes.Contains(picture, []byte(">9.00<")) || bytes.Contains(picture, []byte(">7.00<")) {
			t.Errorf("%s shows what it should not", file)
		}
	}
	out.Reset()
	if code := bench(t.Context(), []string{"report", "--markdown", path}, &out, &errOut); code != 0 || strings.Count(out.String(), "\n") != 7 {
		t.Errorf("exit status %d: %s%s", code, out.String(), errOut.String())
	}
}
