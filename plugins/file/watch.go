package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mooncake-go/mooncake-master/sdk"
)

const (
	// quiet is how long no event must have come before the file is read.
	quiet = 50 * time.Millisecond
	// patience is the longest time events can put off reading.
	patience = 100 * time.Millisecond
	// thorough is after how many looks without a visible change the file is read all the same:
	// time stamps of some file systems are coarse.
	thorough = 15
)

// Watch implements sdk.Connector.
func (c *Connector) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	for ctx.Err() == nil {
		path, poll, changed := c.config()
		w := &watch{c: c, path: path, sink: sink}
		if notify, err := fsnotify.NewWatcher(); err != nil {
			c.logger.Warn("no notices of changes from the system, looking at the file instead", "every", poll, "error", err)
		} else {
			w.notify = notify
		}
		w.run(ctx, poll, changed)
		if w.notify != nil {
			if err := w.notify.Close(); err != nil {
				return fmt.Errorf("closing the file watcher: %w", err)
			}
		}
	}
	return nil
}

// watch follows one path.
type watch struct {
	c      *Connector
	path   string
	sink   sdk.Sink
	notify *fsnotify.Watcher // nil: polling only
	names  []string          // of the trail when it was last walked
	seen   string            // what a look said when the file was last read
}

func (w *watch) run(ctx context.Context, poll time.Duration, changed <-chan struct{}) {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	calm, late := stopped(), stopped()
	pending, looks := false, 0
	read := func() {
		// Nobody tells when a writer has ended.
		if pending = w.read(ctx); pending {
			calm.Reset(quiet)
		}
	}
	read()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case e, open := <-events:
			if !open {
				return
			}
			if !slices.Contains(w.names, filepath.Clean(e.Name)) {
				continue
			}
			if !pending {
				pending = true
				late.Reset(patience)
			}
			calm.Reset(quiet)
			continue
		case err := <-faults:
			// Events were lost (queue overflow): read to be sure.
			w.c.logger.Debug("file watcher", "error", err)
		case <-calm.C:
		case <-late.C:
		case <-tick.C:
			if looks++; pending || w.look() == w.seen && looks < thorough {
				continue
			}
		}
		calm.Stop()
		late.Stop()
		looks = 0
		read()
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// read tells the sink what the file holds, and whether somebody is still writing to it. The
// folders are watched before the file is read, so that no change falls between.
func (w *watch) read(ctx context.Context) (unfinished bool) {
	for range 3 { // the way may change while we walk it; the next look comes anyhow
		names := []string{w.path}
		if t, err := follow(w.path); err == nil {
			names = t.names
		}
		known := slices.Equal(names, w.names)
		w.names = names
		w.watchFolders()
		w.seen = w.look()
		f, done, err := w.c.load(ctx)
		unfinished = !done
		var why *sdk.Unavailable
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			w.sink.Snapshot(f.document())
		case errors.As(err, &why):
			w.sink.Unavailable(why)
		}
		if known {
			return unfinished
		}
	}
	return unfinished
}

// watchFolders asks for notices about every folder a name of the trail is in. Asking again is
// harmless and needed: a folder may have been made anew under its old name.
func (w *watch) watchFolders() {
	if w.notify == nil {
		return
	}
	folders := map[string]bool{}
	for _, name := range w.names {
		folders[filepath.Dir(name)] = true
	}
	for _, old := range w.notify.WatchList() {
		if !folders[old] {
			_ = w.notify.Remove(old) // gone already when it fails
		}
	}
	for folder := range folders {
		if err := w.notify.Add(folder); err != nil {
			w.c.logger.Debug("folder is not watched, looking at the file instead", "folder", folder, "error", err)
		}
	}
}

// look says in a few words which file the path leads to and when it was changed.
func (w *watch) look() string {
	info, err := os.Stat(w.path)
	if err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return errno.Error()
		}
		return err.Error()
	}
	return versionOf(info)
}
