// Package master holds no code: this directory is the root of the module. Its test keeps the
// imports pointing one way.
package master

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mooncake-go/mooncake-master/"

// room says what a package outside of tests may import from this module.
var rooms = []struct {
	prefix string   // of the importing package
	may    []string // prefixes of packages of this module
	std    bool     // the standard library only, besides may
}{
	{"core/tenant", []string{}, true},
	{"core/segment", []string{}, true},
	{"core/errcode", []string{}, true},
	{"core/evict", []string{}, true},
	{"core/pattern", []string{}, false},
	{"core/client", []string{"core/segment"}, true},
	{"core/task", []string{"core/segment"}, true},
	{"core/drain", []string{"core/segment"}, true},
	{"core/tier", []string{"core/segment"}, true},
	{"core/weight", []string{}, true},
	{"core/transfer/transfertest", []string{"core/transfer"}, true},
	{"core/transfer", []string{}, true},
	{"core/object", []string{"core/segment", "core/tenant", "core/evict", "core/errcode"}, true},
	{"core/policy", []string{"core/tenant", "core/errcode", "sdk/policydoc"}, false},
	{"core/connector", []string{"core/policy", "sdk", "proto"}, false},
	{"core", []string{"core"}, false},
	{"sdk", []string{"sdk", "proto"}, false},
	{"proto", []string{}, false},
	{"plugins", []string{"sdk"}, false},
	{"templates", []string{"sdk"}, false},
	{"transport/structpack", []string{}, true},
	{"transport", []string{"core", "transport"}, false},
	{"client", []string{"core/segment", "core/errcode", "core/object", "core/transfer", "transport"}, false},
	{"conformance", []string{"client", "cmd", "core", "transport", "sdk", "plugins"}, false},
	{"cmd", []string{"cmd", "client", "core", "transport", "sdk", "plugins"}, false},
}

// forbidden are names that say nothing.
var forbidden = map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "types": true, "base": true, "misc": true}

// sources calls f for every file of the module that is not a test.
func sources(t *testing.T, f func(name, pkg string, file *ast.File) error) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "tools" || base == "build") {
				return filepath.SkipDir
			}
			if forbidden[d.Name()] {
				t.Errorf("%s: a package of that name says nothing about what it holds", name)
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		return f(name, path.Dir(filepath.ToSlash(name)), parsed)
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were looked at", files)
	}
}

// TestTimeAndRandomnessComeFromOutside keeps the wall clock and the global source of
// randomness out of the rooms whose tests move a clock of their own.
func TestTimeAndRandomnessComeFromOutside(t *testing.T) {
	sources(t, func(name, pkg string, file *ast.File) error {
		if !under(pkg, "core") && !under(pkg, "transport") {
			return nil
		}
		random := map[string]bool{}
		for _, spec := range file.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(p, "math/rand") && pkg != "core/mastertest" {
				random["rand"] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			switch {
			case !ok:
			case x.Name == "time" && (sel.Sel.Name == "Now" || sel.Sel.Name == "Since" || sel.Sel.Name == "Until"):
				t.Errorf("%s uses time.%s; take a clock from outside", name, sel.Sel.Name)
			case random[x.Name] && !strings.HasPrefix(sel.Sel.Name, "New") && ast.IsExported(sel.Sel.Name) && sel.Sel.Name != "Rand" && sel.Sel.Name != "Source":
				t.Errorf("%s uses rand.%s; take randomness from outside", name, sel.Sel.Name)
			}
			return true
		})
		return nil
	})
}

func TestImportsPointOneWay(t *testing.T) {
	sources(t, func(name, pkg string, file *ast.File) error {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, name, pkg, imported)
		}
		return nil
	})
}

func checkImport(t *testing.T, file, pkg, imported string) {
	t.Helper()
	own, inside := strings.CutPrefix(imported, module)
	for _, r := range rooms {
		if !under(pkg, r.prefix) {
			continue
		}
		if !inside {
			if r.std && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("%s imports %s; %s uses the standard library only", file, imported, r.prefix)
			}
			return
		}
		if under(own, pkg) || under(pkg, own) && r.prefix == pkg {
			return
		}
		for _, ok := range r.may {
			if under(own, ok) {
				return
			}
		}
		t.Errorf("%s imports %s; %s may import %v only", file, imported, r.prefix, r.may)
		return
	}
	t.Errorf("%s is in no room of this test", file)
}

func under(pkg, prefix string) bool { return pkg == prefix || strings.HasPrefix(pkg, prefix+"/") }
