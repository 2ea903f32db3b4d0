package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// unsupported says that a source can't do something.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errors.ErrUnsupported, fmt.Sprintf(format, args...))
}

// FileSource changes a document that is kept in the file of that path. Set replaces the file
// by rename. Break puts a folder into its place.
func FileSource(path string) Source { return &fileSource{path: path} }

type fileSource struct {
	path   string
	scheme string // before the path in a URI
}

// suffixes of the files that a fileSource makes beside the document's.
const (
	newSuffix    = ".conformance-new"
	awaySuffix   = ".conformance-away"
	secondSuffix = ".conformance-second"
)

func (s *fileSource) Set(_ context.Context, document []byte) error { return replace(s.path, document) }

func replace(path string, document []byte) error {
	if err := os.WriteFile(path+newSuffix, document, 0o600); err != nil {
		return err
	}
	return os.Rename(path+newSuffix, path)
}

// overwrite saves in place, as simple tools do.
func (s *fileSource) overwrite(_ context.Context, document []byte) error {
	return os.WriteFile(s.path, document, 0o600)
}

// recreate removes the file and makes it again after a moment.
func (s *fileSource) recreate(ctx context.Context, document []byte) error {
	if err := s.Delete(ctx); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	return os.WriteFile(s.path, document, 0o600)
}

func (s *fileSource) Delete(context.Context) error {
	if err := os.Remove(s.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func (s *fileSource) Break(context.Context) error {
	if err := os.Rename(s.path, s.path+awaySuffix); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Mkdir(s.path, 0o700)
}

func (s *fileSource) Restore(context.Context) error {
	if err := os.Remove(s.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Rename(s.path+awaySuffix, s.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func (s *fileSource) Second(_ context.Context, document []byte) (string, error) {
	return s.scheme + s.path + secondSuffix, replace(s.path+secondSuffix, document)
}

func (s *fileSource) remove() error {
	if err := os.Remove(s.path + secondSuffix); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// CommandSource changes the source by an author's command. It is run with one more argument,
// the name of what to do:
//
//	set       the document is on standard input
//	delete    the source shall hold no document, and answer
//	break     the source shall not be usable, and keep what it holds
//	restore   undoes break; end when the source can be used again
//	second    the document on standard input goes to another place; its URI is printed
//
// Status 0 says that it is done, 3 that this command can't do it: the cases that need it are
// skipped. Any other fails the case, with what the command wrote to standard error. It has the
// environment of the kit and 60 seconds.
func CommandSource(command string, args ...string) Source {
	return &commandSource{command: append([]string{command}, args...)}
}

type commandSource struct{ command []string }

const (
	commandLimit       = 60 * time.Second
	commandUnsupported = 3
)

func (s *commandSource) Set(ctx context.Context, document []byte) error {
	_, err := s.run(ctx, "set", document)
	return err
}

func (s *commandSource) Delete(ctx context.Context) error {
	_, err := s.run(ctx, "delete", nil)
	return err
}

func (s *commandSource) Break(ctx context.Context) error {
	_, err := s.run(ctx, "break", nil)
	return err
}

func (s *commandSource) Restore(ctx context.Context) error {
	_, err := s.run(ctx, "restore", nil)
	return err
}

func (s *commandSource) Second(ctx context.Context, document []byte) (string, error) {
	uri, err := s.run(ctx, "second", document)
	return strings.TrimSpace(uri), err
}

func (s *commandSource) run(ctx context.Context, verb string, input []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	args := append(append([]string{}, s.command[1:]...), verb)
	cmd := exec.CommandContext(ctx, s.command[0], args...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second // what it left running may hold the pipes
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well and left something running
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case errors.As(err, &exit) && exit.ExitCode() == commandUnsupported:
		return "", unsupported("the source command says that it can't %s", verb)
	}
	return "", fmt.Errorf("the source command %s %s: %w: %s", filepath.Base(s.command[0]), verb, err, shorten(complaint.String()))
}
