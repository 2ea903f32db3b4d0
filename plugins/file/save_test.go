package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// configured makes a connector on a path and, at the end, checks that no file of ours is left
// in the folder.
func configured(t *testing.T, path string) *Connector {
	t.Helper()
	c := New(hclog.NewNullLogger())
	if err := c.Configure(t.Context(), sdk.Config{URI: path}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noLeftovers(t, filepath.Dir(path)) })
	return c
}

func noLeftovers(t *testing.T, folder string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(folder, ownPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	c := configured(t, path)
	ctx := t.Context()
	if _, err := c.Load(ctx); unavailableKind(err) != sdk.Absent {
		t.Errorf("absent file: %v", err)
	}
	if _, err := c.Save(ctx, []byte("one"), "0123"); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("save over a file that is gone: %v", err)
	}
	rev, err := c.Save(ctx, []byte("one"), "")
	if err != nil || mustRead(t, path) != "one" {
		t.Fatalf("create: %v", err)
	}
	doc, err := c.Load(ctx)
	if err != nil || string(doc.Content) != "one" || doc.Revision != rev {
		t.Fatalf("load: %+v, %v", doc, err)
	}
	if _, err := c.Save(ctx, []byte("two"), ""); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("create over a file: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	rev2, err := c.Save(ctx, []byte("two"), rev)
	if err != nil || rev2 == rev || mustRead(t, path) != "two" {
		t.Fatalf("replace: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if sys := info.Sys().(*syscall.Stat_t); os.Getuid() == 0 && (sys.Uid != 12 || sys.Gid != 34) {
		t.Errorf("owner %d:%d", sys.Uid, sys.Gid)
	}
	if _, err := c.Save(ctx, []byte("three"), rev); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("stale revision: %v", err)
	}
	if _, err := c.Save(ctx, make([]byte, sdk.MaxDocument+1), rev2); unavailableKind(err) != sdk.Invalid {
		t.Errorf("too large: %v", err)
	}
}

func unavailableKind(err error) sdk.Kind {
	var u *sdk.Unavailable
	if errors.As(err, &u) {
		return u.Kind
	}
	return -1
}

func TestSaveThroughLinks(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"real", "links"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	real := filepath.Join(dir, "real", "p.yaml")
	write(t, real, "one")
	link := filepath.Join(dir, "links", "policy.yaml")
	if err := os.Symlink("../real/p.yaml", link); err != nil {
		t.Fatal(err)
	}
	c := configured(t, link)
	if _, err := c.Save(t.Context(), []byte("two"), revision([]byte("one"))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	if mustRead(t, real) != "two" {
		t.Error("the file it leads to was not saved")
	}
	noLeftovers(t, filepath.Dir(real))
	// A link that leads nowhere: the file is made there.
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), []byte("three"), ""); err != nil || mustRead(t, real) != "three" {
		t.Errorf("create through a link: %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if f, err := os.Create(large); err != nil || f.Truncate(sdk.MaxDocument+1) != nil || f.Close() != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "plain"), "x")
	tests := []struct {
		path, reason string
		kind         sdk.Kind
	}{
		{filepath.Join(dir, "none"), "no such file or directory", sdk.Absent},
		{filepath.Join(dir, "plain", "x"), "not a directory", sdk.Absent},
		{dir, "it is a folder", sdk.Invalid},
		{large, "larger than 67108864 bytes", sdk.Invalid},
		{pipe, "not a regular file", sdk.Invalid},
		{loop, "too many levels of symbolic links", sdk.Invalid},
	}
	for _, tt := range tests {
		_, err := configured(t, tt.path).Load(t.Context())
		want := fmt.Sprintf("%s: failed to open tenant quota policy file '%s': %s", tt.kind, tt.path, tt.reason)
		if err == nil || err.Error() != want || unavailableKind(err) != tt.kind {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if u := unavailable("p", &os.PathError{Op: "open", Path: "p", Err: syscall.EACCES}); u.Kind != sdk.Auth {
		t.Errorf("permission: %v", u)
	}
	s := &save{target: "p"}
	for _, err := range []error{syscall.EROFS, syscall.EACCES, &os.LinkError{Op: "x", Err: syscall.EPERM}} {
		if got := s.failed("x", err); !errors.Is(got, sdk.ErrReadOnly) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := s.failed("x", syscall.ENOSPC); unavailableKind(got) != sdk.Unreachable {
		t.Errorf("disk full: %v", got)
	}
}

func TestConfigure(t *testing.T) {
	c := New(hclog.NewNullLogger())
	for _, tt := range []struct {
		config sdk.Config
		want   string
	}{
		{sdk.Config{}, "uri: tenant quota file connector requires a non-empty uri: the path of the policy file"},
		{sdk.Config{URI: "x", Options: map[string]string{"pol": "1s"}}, "options.pol: unknown option; the file connector has the option poll"},
		{sdk.Config{URI: "x", Options: map[string]string{"poll": "fast"}}, `options.poll: "fast" is not a duration between 100ms and 1h, like 2s`},
		{sdk.Config{URI: "x", Options: map[string]string{"poll": "1ms"}}, `options.poll: "1ms" is not a duration between 100ms and 1h, like 2s`},
	} {
		var refused *sdk.ConfigError
		if err := c.Configure(t.Context(), tt.config); !errors.As(err, &refused) || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestSaveAgainstWriters lets somebody else edit the file all the while, in every way editors
// do. Each edit adds a letter, each save a digit; both read what is there first. No edit may be
// lost, and every save that succeeded must be there unless an edit that began before it ended
// after it.
func TestSaveAgainstWriters(t *testing.T) {
	styles := map[string]func(path string, text []byte) error{
		"rename into place": func(path string, text []byte) error {
			if err := os.WriteFile(path+".new", text, 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"write in place": func(path string, text []byte) error { return os.WriteFile(path, text, 0o644) },
		"write in place, slowly": func(path string, text []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			for _, b := range text {
				if _, err := f.Write([]byte{b}); err != nil {
					return err
				}
				time.Sleep(50 * time.Microsecond)
			}
			return nil
		},
	}
	for name, edit := range styles {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, path, "x")
			c := configured(t, path)
			const edits = 60
			var done atomic.Bool
			failed := make(chan error, 1)
			go func() {
				defer done.Store(true)
				for i := range edits {
					text, err := os.ReadFile(path)
					if err == nil {
						err = edit(path, append(text, "a"[0], byte('A'+i%26)))
					}
					if err != nil {
						failed <- err
						return
					}
					time.Sleep(time.Duration(i%7) * time.Millisecond)
				}
				failed <- nil
			}()
			saves, conflicts := 0, 0
			for !done.Load() {
				doc, err := c.Load(t.Context())
				if unavailableKind(err) == sdk.Unreachable {
					continue // whoever writes slowly leaves few moments in between
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.Save(t.Context(), append(bytes.Clone(doc.Content), '1'), doc.Revision)
				switch {
				case err == nil:
					saves++
				case errors.Is(err, sdk.ErrConflict):
					conflicts++
				default:
					t.Fatal(err)
				}
			}
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			text := mustRead(t, path)
			var want strings.Builder
			for i := range edits {
				want.WriteByte('a')
				want.WriteByte(byte('A' + i%26))
			}
			got := strings.Map(func(r rune) rune {
				if r == '1' || r == 'x' {
					return -1
				}
				return r
			}, text)
			if got != want.String() {
				t.Errorf("edits in the file:\n%s\nwant\n%s", got, want.String())
			}
			t.Logf("%d saves, %d there, %d conflicts", saves, strings.Count(text, "1"), conflicts)
			if asides, _ := filepath.Glob(path + ".conflict*"); len(asides) > 0 {
				t.Errorf("kept aside: %v", asides)
			}
		})
	}
}

// TestSaveMeetsWriter holds the file open for writing across the save.
func TestSaveMeetsWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	c := configured(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Save(ctx, []byte("ours"), revision([]byte("one")))
		ended <- err
	}()
	time.Sleep(700 * time.Millisecond) // the save has read "one" by now and swapped
	if _, err := f.WriteAt([]byte("TWO"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("save: %v", err)
	}
	if got := mustRead(t, path); got != "TWO" {
		t.Errorf("file says %q", got)
	}
}

// TestSaveMeetsEndlessWriter never closes the file: it stays in place, so that what is written
// later is not lost.
func TestSaveMeetsEndlessWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	c := configured(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := c.Save(t.Context(), []byte("ours"), revision([]byte("one"))); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("save: %v", err)
	}
	if _, err := f.WriteAt([]byte("TWO"), 0); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, path); got != "TWO" {
		t.Errorf("file says %q", got)
	}
}

// TestSaveWithoutHelp goes the ways taken where the file system has no leases or no swap.
func TestSaveWithoutHelp(t *testing.T) {
	prepared := func(t *testing.T) (*save, content, string) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, "one")
		old, err := readOnce(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &save{c: configured(t, path), target: path, document: []byte("ours")}
		if err := s.prepare(&old); err != nil {
			t.Fatal(err)
		}
		s.leased = false
		endLease(s.file)
		return s, old, path
	}
	t.Run("no swap", func(t *testing.T) {
		s, old, path := prepared(t)
		rev, err := s.rename(old)
		s.discard()
		if err != nil || rev != revision([]byte("ours")) || mustRead(t, path) != "ours" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
	t.Run("no swap, edited meanwhile", func(t *testing.T) {
		s, old, path := prepared(t)
		write(t, path, "edit")
		_, err := s.rename(old)
		s.discard()
		if !errors.Is(err, sdk.ErrConflict) || mustRead(t, path) != "edit" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
	t.Run("no leases, edited meanwhile", func(t *testing.T) {
		s, old, path := prepared(t)
		write(t, path+".new", "edit")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if err := exchange(s.ours, path); err != nil {
			t.Fatal(err)
		}
		state, now := s.examine(old.content)
		if state != touched || string(now) != "edit" {
			t.Errorf("%v %q", state, now)
		}
		if err := s.restore(now); err != nil || mustRead(t, path) != "edit" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
	t.Run("no leases, edited twice", func(t *testing.T) {
		s, _, path := prepared(t)
		write(t, path, "edit")
		if err := exchange(s.ours, path); err != nil {
			t.Fatal(err)
		}
		write(t, path+".new", "later edit") // over ours, before it is taken back
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if err := s.restore([]byte("edit")); err != nil || mustRead(t, path) != "later edit" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
	t.Run("no leases, ours edited in place", func(t *testing.T) {
		s, _, path := prepared(t)
		write(t, path, "edit")
		if err := exchange(s.ours, path); err != nil {
			t.Fatal(err)
		}
		write(t, path, "ours, edited")
		if err := s.restore([]byte("edit")); err != nil || mustRead(t, path) != "ours, edited" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
	t.Run("removed meanwhile", func(t *testing.T) {
		s, _, path := prepared(t)
		write(t, path, "edit")
		if err := exchange(s.ours, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := s.restore([]byte("edit")); err != nil || mustRead(t, path) != "edit" {
			t.Errorf("%v: %q", err, mustRead(t, path))
		}
	})
}

// TestRecoverRestoring finds a save that was killed while it gave way.
func TestRecoverRestoring(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, "to")
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, restoringName(".77", path, info), "torn edit")
		want := "torn edit"
		if replaced {
			want = "newer"
			write(t, path+".new", want)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		configured(t, path)
		if got := mustRead(t, path); got != want {
			t.Errorf("replaced %v: the policy is %q", replaced, got)
		}
	}
}

func TestRecover(t *testing.T) {
	rev := func(s string) string { return revision([]byte(s)) }
	tests := []struct {
		name, ours, there string // "" in there: no policy file
		draft             bool
		want              string
		aside             string
	}{
		{"draft", "half", "old", true, "old", ""},
		{"before the swap", "new", "old", false, "old", ""},
		{"after the swap", "old", "new", false, "new", ""},
		{"an edit came out", "edit", "new", false, "edit", ""},
		{"an edit came out and was put back", "edit", "edit", false, "edit", ""},
		{"an edit came out and the policy was removed", "edit", "", false, "edit", ""},
		{"an edit came out, another came after", "edit", "later", false, "later", "edit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			if tt.there != "" {
				write(t, path, tt.there)
			}
			own := filepath.Join(filepath.Dir(path), strings.Replace(draftPattern(path), "*", "77", 1))
			if !tt.draft {
				own = completeName(own, path, rev("old"), rev("new"))
			}
			write(t, own, tt.ours)
			configured(t, path)
			if got := mustRead(t, path); got != tt.want {
				t.Errorf("the policy is %q", got)
			}
			asides, _ := filepath.Glob(path + ".conflict-*")
			switch {
			case tt.aside == "" && len(asides) > 0:
				t.Errorf("kept aside: %v", asides)
			case tt.aside != "" && (len(asides) != 1 || mustRead(t, asides[0]) != tt.aside):
				t.Errorf("kept aside: %v", asides)
			}
		})
	}
}
