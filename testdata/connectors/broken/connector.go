package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// connector does everything right, in the simplest way: it looks at its file every 10 ms.
type connector struct {
	mu   sync.Mutex
	path string // guarded by mu

	saving sync.Mutex // held during a Save
}

func newConnector() *connector { return &connector{} }

const look = 10 * time.Millisecond

func (c *connector) Describe() sdk.Description {
	return sdk.Description{Name: "broken", Version: "1.0.0", Writable: true, Watches: true}
}

func (c *connector) Configure(_ context.Context, config sdk.Config) error {
	for name := range config.Options {
		return sdk.Refuse("options."+name, "unknown option; there are none")
	}
	path, ok := strings.CutPrefix(config.URI, "file://")
	if !ok {
		return sdk.Refuse("uri", "%q does not begin with file://", config.URI)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.path = path
	return nil
}

func (c *connector) file() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.path
}

func (c *connector) Load(context.Context) (sdk.Document, error) { return read(c.file()) }

func read(path string) (sdk.Document, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > sdk.MaxDocument {
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Invalid, Reason: path + " is larger than 64 MiB"}
	}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Absent, Reason: path + " does not exist"}
	case err != nil:
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Unreachable, Reason: err.Error()}
	}
	return sdk.Document{Content: content, Revision: revision(content)}, nil
}

func revision(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (c *connector) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return c.follow(ctx, func(doc sdk.Document, err error) { tell(sink, doc, err) })
}

// settled is how old a file's time stamp is when a later change will have another one: stamps are as coarse as
// the kernel's ticks.
const settled = 100 * time.Millisecond

// follow calls f with what the file holds, now and after every change.
func (c *connector) follow(ctx context.Context, f func(sdk.Document, error)) error {
	for seen, told := "nothing yet", ""; ; {
		path := c.file()
		is, young := path, false
		if info, err := os.Stat(path); err == nil {
			is += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
			young = time.Since(info.ModTime()) < settled
		} else {
			is += err.Error()
		}
		if is != seen || young {
			doc, err := read(path)
			if is != seen || err == nil && doc.Revision != told {
				f(doc, err)
			}
			seen, told = is, doc.Revision
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(look):
		}
	}
}

func tell(sink sdk.Sink, doc sdk.Document, err error) {
	var why *sdk.Unavailable
	if errors.As(err, &why) {
		sink.Unavailable(why)
		return
	}
	sink.Snapshot(doc)
}

func (c *connector) Save(_ context.Context, document []byte, expected string) (string, error) {
	c.saving.Lock()
	defer c.saving.Unlock()
	path := c.file()
	now, err := read(path)
	var why *sdk.Unavailable
	switch {
	case errors.As(err, &why) && why.Kind == sdk.Absent:
	case err != nil:
		return "", err
	}
	if now.Revision != expected {
		return "", fmt.Errorf("%w: it is at %q", sdk.ErrConflict, now.Revision)
	}
	return write(path, document)
}

func write(path string, document []byte) (string, error) {
	if err := os.WriteFile(path+".saving", document, 0o600); err != nil {
		return "", err
	}
	return revision(document), os.Rename(path+".saving", path)
}

func (c *connector) Stop(context.Context) error { return nil }
