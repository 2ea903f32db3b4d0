package master

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const scenarioDir = "testdata/scenarios"

// lines returns the lines of a file, without the space around them.
func lines(t *testing.T, file string) (all []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// acceptanceCases reads the list of all cases, as "suite case".
func acceptanceCases(t *testing.T) map[string]bool {
	cases := map[string]bool{}
	for _, line := range lines(t, scenarioDir+"/cases.txt") {
		switch {
		case line == "" || line[0] == '#':
		case cases[line]:
			t.Errorf("%q is listed twice", line)
		default:
			cases[line] = true
		}
	}
	return cases
}

// scenarioCases reads which cases each scenario stands for; a scenario is called "file name".
func scenarioCases(t *testing.T) map[string][]string {
	found := map[string][]string{}
	files, err := filepath.Glob(scenarioDir + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		var scenario string
		for _, line := range lines(t, file) {
			if head, ok := strings.CutPrefix(line, "== "); ok {
				scenario = filepath.Base(file) + " " + strings.Fields(head)[0]
				if found[scenario] != nil {
					t.Errorf("two scenarios are called %s", scenario)
				}
				found[scenario] = []string{}
			} else if name, ok := strings.CutPrefix(line, "# case: "); ok {
				found[scenario] = append(found[scenario], name)
			}
		}
	}
	return found
}

// goTests returns the tests of a package and every string in its test files, for subtests.
func goTests(t *testing.T, dir string) (tests map[string]bool, literals []string) {
	t.Helper()
	tests = map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					tests[n.Name.Name] = true
				}
			case *ast.BasicLit:
				literals = append(literals, strings.Trim(n.Value, "\"`"))
			}
			return true
		})
	}
	return tests, literals
}

var whereForm = regexp.MustCompile("^`([^`]+)` (.+)$")

// TestAcceptanceTable checks that docs/acceptance.md is true: it has a row for each of the listed cases and
// for no other; what a row names exists, and a scenario that it names says that it stands for the case; a
// scenario that stands for a case is in its row; what is not applicable has a reason.
func TestAcceptanceTable(t *testing.T) {
	cases, scenarios := acceptanceCases(t), scenarioCases(t)
	rows := map[string][]string{}
	var suite string
	for _, line := range lines(t, "docs/acceptance.md") {
		if head, ok := strings.CutPrefix(line, "## "); ok {
			suite = head
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 || strings.TrimSpace(cells[0]) == "case" {
			continue
		}
		name := suite + " " + strings.TrimSpace(cells[0])
		if rows[name] != nil {
			t.Errorf("%s has two rows", name)
		}
		if !cases[name] {
			t.Errorf("%s has a row and is no listed case", name)
		}
		rows[name] = []string{}
		where := strings.TrimSpace(cells[1])
		if reason, ok := strings.CutPrefix(where, "not applicable: "); ok {
			if len(strings.Fields(reason)) < 3 {
				t.Errorf("%s is not applicable without a reason", name)
			}
			continue
		}
		for _, place := range strings.Split(where, ", ") {
			m := whereForm.FindStringSubmatch(place)
			if m == nil {
				t.Errorf("%s: %q is no place", name, place)
				continue
			}
			rows[name] = append(rows[name], m[1]+" "+m[2])
			checkPlace(t, name, m[1], m[2], scenarios)
		}
	}
	for name := range cases {
		if rows[name] == nil {
			t.Errorf("%s has no row", name)
		}
	}
	for scenario, its := range scenarios {
		for _, name := range its {
			if !slices.Contains(rows[name], scenario) {
				t.Errorf("%s stands for %q, whose row does not say so", scenario, name)
			}
		}
	}
}

// checkPlace checks that what a row names is there: a scenario, a test of a package, or something in
// another file.
func checkPlace(t *testing.T, name, where, what string, scenarios map[string][]string) {
	info, err := os.Stat(where)
	switch {
	case !strings.Contains(where, "/") && strings.HasSuffix(where, ".txt"):
		if !slices.Contains(scenarios[where+" "+what], name) {
			t.Errorf("%s: scenario %s of %s does not say that it stands for it", name, what, where)
		}
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case info.IsDir():
		test, sub, _ := strings.Cut(what, "/")
		tests, literals := goTests(t, where)
		if !tests[test] {
			t.Errorf("%s: %s has no test %s", name, where, test)
		}
		if sub != "" && !slices.Contains(literals, sub) {
			t.Errorf("%s: %s of %s has no subtest %q", name, test, where, sub)
		}
	default:
		content, err := os.ReadFile(where)
		if err != nil || !strings.Contains(string(content), what) {
			t.Errorf("%s: %s says nothing of %q", name, where, what)
		}
	}
}
