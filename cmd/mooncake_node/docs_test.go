package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// TestDocs finds every flag and its default in the guide.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	new(options).flags(func(string) string { return "" }).VisitAll(func(f *flag.Flag) {
		for row := range strings.Lines(string(page)) {
			if name, rest, ok := strings.Cut(strings.TrimPrefix(row, "| "), " | "); ok && strings.Contains(name, "`--"+f.Name+"`") {
				if value, _, _ := strings.Cut(rest, " | "); f.DefValue != "" && f.DefValue != "false" && !strings.Contains(value, "`"+strings.TrimSuffix(f.DefValue, "0s")+"`") {
					t.Errorf("docs/node.md says that --%s is %s by default, it is %s", f.Name, value, f.DefValue)
				}
				return
			}
		}
		t.Errorf("docs/node.md does not say what --%s is", f.Name)
	})
}
