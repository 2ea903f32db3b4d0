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
	// settleStep and settleSteps bound how long a reader waits for a writer to finish.
	settleStep  = 10 * time.Millisecond
	settleSteps = 50
)

// content is a file as it was read.
type content struct {
	content []byte
	info    fs.FileInfo
}

// read reads the file a path leads to. Somebody in the middle of writing it is waited for, half
// a second at most. Errors are *sdk.Unavailable.
func read(ctx context.Context, path string) (content, error) {
	var got content
	err := error(syscall.EAGAIN)
	for try := 0; try < settleSteps; try++ {
		if try > 0 {
			select {
			case <-ctx.Done():
				return content{}, &sdk.Unavailable{Kind: sdk.Unreachable, Reason: ctx.Err().Error()}
			case <-time.After(settleStep):
			}
		}
		var quiet bool
		got, quiet, err = readOnce(path)
		if err == nil && quiet || err != nil && !errors.Is(err, syscall.EAGAIN) {
			break
		}
	}
	if err != nil {
		return content{}, unavailable(path, err)
	}
	return got, nil
}

// readOnce reads a file and tells whether it was quiet: nobody has it open for writing, and it
// did not change while it was read.
func readOnce(path string) (got content, quiet bool, err error) {
	// Not blocking, so that a pipe under this name does not hold us for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return content{}, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return content{}, false, err
	}
	if !before.Mode().IsRegular() {
		return content{}, false, errNotRegular
	}
	if before.Size() > sdk.MaxDocument {
		return content{}, false, errTooLarge
	}
	written := beingWritten(f)
	var b bytes.Buffer
	b.Grow(int(before.Size()) + bytes.MinRead)
	if _, err := io.Copy(&b, io.LimitReader(f, sdk.MaxDocument+1)); err != nil {
		return content{}, false, err
	}
	if b.Len() > sdk.MaxDocument {
		return content{}, false, errTooLarge
	}
	after, err := f.Stat()
	if err != nil {
		return content{}, false, err
	}
	same := before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) && int64(b.Len()) == after.Size()
	return content{content: b.Bytes(), info: after}, same && !written, nil
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("larger than %d bytes", sdk.MaxDocument)
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
