package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOwnModule copies this folder out of the repository and builds it as a module of its own,
// as its author would, with the SDK of this repository. FILL IN: in your copy remove this file.
func TestOwnModule(t *testing.T) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := strings.TrimSpace(string(out))
	mod, err := os.ReadFile(home)
	if err != nil {
		t.Fatal(err)
	}
	const sdk = "github.com/mooncake-go/mooncake-master"
	if !strings.HasPrefix(string(mod), "module "+sdk+"\n") {
		t.Skip("this is a module of its own already")
	}
	// The versions are those of the repository, so that nothing has to be fetched.
	text := regexp.MustCompile(`^module .*`).ReplaceAllString(string(mod), "module example.com/mooncake-connector-mine")
	text += "\nrequire " + sdk + " v1.0.0\n\nreplace " + sdk + " => " + filepath.Dir(home) + "\n"
	folder := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(filepath.Dir(home), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"go.mod": text, "go.sum": string(sums)}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(source)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vet := exec.Command("go", "vet", ".") // the tests are compiled as well
	vet.Dir = folder
	vet.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
