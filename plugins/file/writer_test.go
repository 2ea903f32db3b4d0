package file

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// TestWatchSlowWriter writes a document in pieces, as a slow disk does: no beginning of it is
// told, however long it takes, and the whole as soon as the file is closed.
func TestWatchSlowWriter(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags int
		text  string
	}{
		{"from nothing", os.O_WRONLY | os.O_TRUNC, "0123456789"},
		{"over the old one", os.O_WRONLY, "0123456789"},
		{"appended", os.O_WRONLY | os.O_APPEND, "0123456789"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, path, "first")
			c := slowPoll(t, path)
			r := watching(t, c)
			r.await(t, "doc first")
			f, err := os.OpenFile(path, tt.flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, letter := range tt.text {
				if _, err := f.WriteString(string(letter)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			r.await(t, "unreachable") // a writer that does not end is told
			if _, err := c.Load(t.Context()); unavailableKind(err) != sdk.Unreachable {
				t.Errorf("load while it is written: %v", err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			whole := mustRead(t, path)
			closed := time.Now()
			r.await(t, "doc "+whole)
			if took := time.Since(closed); took > settleLoad {
				t.Errorf("told %v after the writer had ended", took)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if want := []string{"doc first", "unreachable", "doc " + whole}; !slices.Equal(r.events, want) {
				t.Errorf("events %q, want %q", r.events, want)
			}
		})
	}
}

// TestLoadOpenForLong takes a file as it is that somebody has open and does not write to.
func TestLoadOpenForLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "one")
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := time.Now().Add(-stillOpen)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if doc, err := configured(t, path).Load(t.Context()); err != nil || string(doc.Content) != "one" {
		t.Errorf("%q, %v", doc.Content, err)
	}
}

func TestFinished(t *testing.T) {
	for _, tt := range []struct {
		same    bool
		writers writers
		still   time.Duration
		want    bool
	}{
		{true, nobody, 0, true},
		{false, nobody, time.Hour, false},
		{true, somebody, stillOpen - 1, false},
		{true, somebody, stillOpen, true},
		{true, unknown, stillUnknown - 1, false},
		{true, unknown, stillUnknown, true},
		{false, unknown, time.Hour, false},
	} {
		if got := (content{same: tt.same, writers: tt.writers}).finished(tt.still); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestStillness(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var s stillness
	at := func(change time.Time) time.Duration {
		t.Helper()
		if err := os.Chtimes(path, change, change); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return s.of(info)
	}
	write(t, path, "x")
	if got := at(time.Now().Add(-time.Hour)); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("changed an hour ago: %v", got)
	}
	// A clock that is ahead does not make it older nor keep it new.
	ahead := time.Now().Add(time.Hour)
	if got := at(ahead); got < 0 || got > time.Minute {
		t.Errorf("changed in an hour: %v", got)
	}
	s.since = s.since.Add(-time.Minute)
	if got := at(ahead); got < time.Minute {
		t.Errorf("changed in an hour, unchanged for a minute: %v", got)
	}
}
