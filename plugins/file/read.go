package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

const (
	// settleStep is the pause between two looks at a file that somebody is writing to, and
	// settleSlow the one after settleSteps of them.
	settleStep  = 10 * time.Millisecond
	settleSlow  = 50 * time.Millisecond
	settleSteps = 25
	// settleSave is how long a save waits for a writer to finish, and settleLoad a load.
	settleSave = 500 * time.Millisecond
	settleLoad = 2 * time.Second
	// stillOpen is how long a file must not have changed that somebody has open for writing, to
	// be taken as it is: a writer on a slow disk makes pauses.
	stillOpen = 30 * time.Second
	// stillUnknown is the same where nobody can tell whether it is open for writing.
	stillUnknown = time.Second
)

// content is a file as it was read.
type content struct {
	content []byte
	info    fs.FileInfo
	same    bool    // it did not change while it was read
	writers writers // when it was opened
}

// writers is what is known of those who have a file open for writing.
type writers int

const (
	nobody writers = iota
	somebody
	unknown // the file system does not tell, or not us
)

// finished reports whether what was read is all of it: nobody has the file open for writing, or
// it has not changed for so long that whoever has does nothing with it.
func (c content) finished(still time.Duration) bool {
	switch {
	case !c.same:
		return false
	case c.writers == nobody:
		return true
	case c.writers == unknown:
		return still >= stillUnknown
	}
	return still >= stillOpen
}

// read reads the file a path leads to, again and again until it is enough or the time is over;
// then it is the last that was read. Errors are *sdk.Unavailable.
func read(ctx context.Context, path string, limit time.Duration, enough func(content) bool) (content, error) {
	end := time.Now().Add(limit)
	for try := 1; ; try++ {
		got, err := readOnce(path)
		switch {
		case err == nil && enough(got):
			return got, nil
		case err != nil && !errors.Is(err, syscall.EAGAIN):
			return content{}, unavailable(path, err)
		}
		step := settleStep
		if try > settleSteps {
			step = settleSlow
		}
		if time.Now().Add(step).After(end) {
			if err != nil {
				return content{}, unavailable(path, err)
			}
			return got, nil
		}
		select {
		case <-ctx.Done():
			return content{}, &sdk.Unavailable{Kind: sdk.Unreachable, Reason: ctx.Err().Error()}
		case <-time.After(step):
		}
	}
}

// readOnce reads a file as it is, and what is known of its writers.
func readOnce(path string) (content, error) {
	// Not blocking, so that a pipe under this name does not hold us for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return content{}, err
	}
	if !before.Mode().IsRegular() {
		return content{}, errNotRegular
	}
	if before.Size() > sdk.MaxDocument {
		return content{}, errTooLarge
	}
	writers := writersOf(f)
	var b bytes.Buffer
	b.Grow(int(before.Size()) + bytes.MinRead)
	if _, err := io.Copy(&b, io.LimitReader(f, sdk.MaxDocument+1)); err != nil {
		return content{}, err
	}
	if b.Len() > sdk.MaxDocument {
		return content{}, errTooLarge
	}
	after, err := f.Stat()
	if err != nil {
		return content{}, err
	}
	same := before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) && int64(b.Len()) == after.Size()
	return content{content: b.Bytes(), info: after, same: same, writers: writers}, nil
}

// stillness remembers since when a file is as it is.
type stillness struct {
	version string
	since   time.Time
}

// of returns for how long a file has not changed, as far as its time stamp and what was seen of
// it before tell. Clocks of other machines may be wrong: what they say is to come is not counted.
func (s *stillness) of(info fs.FileInfo) time.Duration {
	now := time.Now()
	if version := versionOf(info); version != s.version {
		s.version, s.since = version, now
	}
	return max(now.Sub(s.since), now.Sub(info.ModTime()))
}

// versionOf says in a few words which file this is and when it was changed.
func versionOf(info fs.FileInfo) string {
	s := fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode())
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s += fmt.Sprint(" ", sys.Dev, sys.Ino)
	}
	return s
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("larger than %d bytes", sdk.MaxDocument)
	errUnfinished = fmt.Errorf("somebody is writing to it: it counts once it is closed, or has not changed for %s", stillOpen)
)

// unavailable says why a file can't be read.
func unavailable(path string, err error) *sdk.Unavailable {
	u := &sdk.Unavailable{Kind: sdk.Unreachable}
	var pathErr *fs.PathError
	cause := err
	if errors.As(err, &pathErr) {
		cause = pathErr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		u.Kind = sdk.Absent
	case errors.Is(err, fs.ErrPermission):
		u.Kind = sdk.Auth
	case errors.Is(err, errNotRegular):
		u.Kind = sdk.Invalid
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			cause = errors.New("it is a folder")
		}
	case errors.Is(err, errTooLarge), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		u.Kind = sdk.Invalid
	}
	u.Reason = fmt.Sprintf("failed to open tenant quota policy file '%s': %v", path, cause)
	return u
}

// trail is the way to a file through symbolic links.
type trail struct {
	// names are the absolute names whose replacement leads somewhere else: each link passed,
	// and the file itself, which is last. It need not exist.
	names []string
}

func (t trail) target() string { return t.names[len(t.names)-1] }

// follow walks a path, link by link. The last name is the file, whether it is there or not.
func follow(path string) (trail, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return trail{}, err
	}
	var t trail
	done, todo := "/", strings.Split(strings.TrimPrefix(abs, "/"), "/")
	for links := 0; len(todo) > 0; {
		name := filepath.Join(done, todo[0])
		todo = todo[1:]
		to, err := os.Readlink(name)
		if err != nil { // not a link, or not there
			done = name
			continue
		}
		if links++; links > 40 {
			return trail{}, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		t.names = append(t.names, name)
		if filepath.IsAbs(to) {
			done = "/"
		}
		todo = append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), todo...)
	}
	t.names = append(t.names, done)
	return t, nil
}
