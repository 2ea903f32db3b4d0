package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A pipe or a terminal on which nothing comes can't be read to its end, and doesn't hold up who interrupts.
func TestPutOfAStandingPipeIsInterrupted(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() { done <- ctlContext(ctx, nil, r, "put", "k", "--rpc", "127.0.0.1:1") }()
	if _, err := w.Write([]byte("beginning")); err != nil { // it is being read
		t.Fatal(err)
	}
	cancel()
	got := <-done
	got.want(t, exitInterrupted, "", "interrupted")
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// What a link leads to is replaced, and the link stays.
func TestGetThroughALink(t *testing.T) {
	t.Parallel()
	run, folder := store(t), t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	run("new", "put", "k", "-t", "a").want(t, exitOK, "", "3B is stored")
	run("", "get", "k", link, "-t", "a").want(t, exitOK, "", "are in "+link)
	if got, err := os.ReadFile(target); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "target" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	run("", "get", "k", "/dev/stdout", "-t", "a").want(t, exitOK, "new", "")
	run("", "get", "k", "-t", "a", "--metadata", "http://127.0.0.1:1/metadata").want(t, exitFailed, "", "looked up by --metadata=http://127.0.0.1:1/metadata")
}
