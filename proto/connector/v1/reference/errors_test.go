package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheCatalogueIsTrue: every message of the error catalogue is one that the code has. A
// message that was reworded there would otherwise never be found by who looks it up.
func TestTheCatalogueIsTrue(t *testing.T) {
	const root = "../../../.."
	var code strings.Builder
	for _, folder := range []string{"core", "cmd/mooncake_master", "sdk"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	catalogue, err := os.ReadFile(filepath.Join(root, "docs/connectors/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The code has verbs where the catalogue has dots, and joins what one part and another say
	// with a colon or a semicolon.
	parts := regexp.MustCompile(`…|; |: `)
	all := regexp.MustCompile(`%[+#]?[.0-9]*[a-zA-Z]`).ReplaceAllString(code.String(), "…")
	messages := 0
	for line := range strings.Lines(string(catalogue)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			messages++
			for _, part := range parts.Split(m[1], -1) {
				if part = strings.Trim(part, " ':"); part != "" && !strings.Contains(all, part) {
					t.Errorf("no code says %q of %q", part, m[1])
				}
			}
		}
	}
	if messages < 35 {
		t.Errorf("only %d messages were looked for", messages)
	}
}
