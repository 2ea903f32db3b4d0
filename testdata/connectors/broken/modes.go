package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// authors are the ways in which an author can go wrong with the SDK.
var authors = map[string]func(*connector) sdk.Connector{
	"good": func(c *connector) sdk.Connector { return c },

	// About itself and its configuration.
	"unstable":         func(c *connector) sdk.Connector { return &unstable{connector: c} },
	"one-at-a-time":    oneAtATime,
	"side-effects":     func(c *connector) sdk.Connector { return sideEffects{c} },
	"accepts-anything": func(c *connector) sdk.Connector { return acceptsAnything{c} },
	"configure-once":   func(c *connector) sdk.Connector { return &once{connector: c, refuse: true} },
	"keeps-first":      func(c *connector) sdk.Connector { return &once{connector: c} },
	"needs-source":     func(c *connector) sdk.Connector { return needsSource{c} },

	// About what it tells.
	"empty-when-down": func(c *connector) sdk.Connector { return emptyWhenDown{c} },
	"repairs":         func(c *connector) sdk.Connector { return repairs{c} },
	"drops-nobody":    func(c *connector) sdk.Connector { return dropsNobody{c} },
	"silent":          func(c *connector) sdk.Connector { return silent{c} },
	"deaf":            func(c *connector) sdk.Connector { return deaf{c} },
	"restless":        func(c *connector) sdk.Connector { return restless{c} },
	"one-watch":       func(c *connector) sdk.Connector { return &oneWatch{connector: c} },
	"drops-last":      func(c *connector) sdk.Connector { return dropsLast{c} },
	"gives-up":        func(c *connector) sdk.Connector { return givesUp{c} },
	"truncates":       func(c *connector) sdk.Connector { return truncates{c} },
	"no-limit":        func(c *connector) sdk.Connector { return noLimit{c} },

	// About what it leaves behind.
	"ignores-cancel":   func(c *connector) sdk.Connector { return ignoresCancel{c} },
	"leaks-goroutines": func(c *connector) sdk.Connector { return &leaks{connector: c, what: "goroutines"} },
	"leaks-files":      func(c *connector) sdk.Connector { return &leaks{connector: c, what: "files"} },
	"leaks-memory":     func(c *connector) sdk.Connector { return &leaks{connector: c, what: "memory"} },
	"leaks-threads":    func(c *connector) sdk.Connector { return &leaks{connector: c, what: "threads"} },
	"ignores-stop":     func(c *connector) sdk.Connector { return ignoresStop{c} },
	"leaves-child":     leavesChild,
	"bad-logs": func(c *connector) sdk.Connector {
		fmt.Fprintln(os.Stderr, `{"level":"info","msg":"not the keys of the contract"}`)
		return c
	},

	// About saving.
	"loses-conflict":    func(c *connector) sdk.Connector { return losesConflict{c} },
	"races":             func(c *connector) sdk.Connector { return races{c} },
	"stale-load":        func(c *connector) sdk.Connector { return &staleLoad{connector: c} },
	"only-replaces":     func(c *connector) sdk.Connector { return onlyReplaces{c} },
	"secretly-writable": func(c *connector) sdk.Connector { return secretlyWritable{c} },
	"says-saved":        func(c *connector) sdk.Connector { return saysSaved{c} },
}

// unstable describes itself differently each time.
type unstable struct {
	*connector
	times atomic.Int32
}

func (u *unstable) Describe() sdk.Description {
	d := u.connector.Describe()
	d.Version = fmt.Sprint(u.times.Add(1))
	return d
}

// oneAtATime takes a lock that a second process does not get.
func oneAtATime(c *connector) sdk.Connector {
	path := os.Getenv("BROKEN_LOCK")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "another one runs:", err)
		os.Exit(1)
	}
	_ = f.Close()
	return unlocks{c, path}
}

type unlocks struct {
	*connector
	path string
}

func (u unlocks) Stop(context.Context) error { return os.Remove(u.path) }

// sideEffects makes the file in Configure.
type sideEffects struct{ *connector }

func (s sideEffects) Configure(ctx context.Context, config sdk.Config) error {
	if err := s.connector.Configure(ctx, config); err != nil {
		return err
	}
	if _, err := os.Stat(s.file()); os.IsNotExist(err) {
		_, err = write(s.file(), policydoc.Print(nil))
		return err
	}
	return nil
}

// acceptsAnything ignores options that it does not know.
type acceptsAnything struct{ *connector }

func (a acceptsAnything) Configure(ctx context.Context, config sdk.Config) error {
	config.Options = nil
	return a.connector.Configure(ctx, config)
}

// once takes only the first configuration.
type once struct {
	*connector
	refuse bool
	done   atomic.Bool
}

func (o *once) Configure(ctx context.Context, config sdk.Config) error {
	switch again := o.done.Swap(true); {
	case again && o.refuse:
		return sdk.Refuse("uri", "configured already")
	case again:
		return nil
	}
	return o.connector.Configure(ctx, config)
}

// needsSource does not take a configuration whose source is not there.
type needsSource struct{ *connector }

func (n needsSource) Configure(ctx context.Context, config sdk.Config) error {
	if err := n.connector.Configure(ctx, config); err != nil {
		return err
	}
	if _, err := n.connector.Load(ctx); err != nil {
		return sdk.Refuse("uri", "%v", err)
	}
	return nil
}

// changed is a connector that says something else than the source.
func (c *connector) changed(ctx context.Context, sink sdk.Sink, f func(sdk.Document, error) (sdk.Document, error)) error {
	return c.follow(ctx, func(doc sdk.Document, err error) {
		doc, err = f(doc, err)
		tell(sink, doc, err)
	})
}

func made(content []byte) sdk.Document {
	return sdk.Document{Content: content, Revision: revision(content)}
}

// emptyWhenDown takes trouble for an empty policy.
type emptyWhenDown struct{ *connector }

func orEmpty(doc sdk.Document, err error) (sdk.Document, error) {
	if err != nil {
		return made(policydoc.Print(nil)), nil
	}
	return doc, nil
}

func (e emptyWhenDown) Load(ctx context.Context) (sdk.Document, error) {
	return orEmpty(e.connector.Load(ctx))
}

func (e emptyWhenDown) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return e.changed(ctx, sink, orEmpty)
}

// repairs makes an empty policy of what it can't read.
type repairs struct{ *connector }

func (r repairs) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return r.changed(ctx, sink, func(doc sdk.Document, err error) (sdk.Document, error) {
		if _, bad := policydoc.Parse(doc.Content); err == nil && bad != nil {
			return made(policydoc.Print(nil)), nil
		}
		return doc, err
	})
}

// dropsNobody takes an empty list of tenants for a mistake.
type dropsNobody struct{ *connector }

func (d dropsNobody) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return d.follow(ctx, func(doc sdk.Document, err error) {
		if parsed, bad := policydoc.Parse(doc.Content); err != nil || bad != nil || len(parsed.Tenants) > 0 {
			tell(sink, doc, err)
		}
	})
}

// silent begins with the first change.
type silent struct{ *connector }

func (s silent) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	first := true
	return s.follow(ctx, func(doc sdk.Document, err error) {
		if !first {
			tell(sink, doc, err)
		}
		first = false
	})
}

// deaf sees no change.
type deaf struct{ *connector }

func (d deaf) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	doc, err := d.connector.Load(ctx)
	tell(sink, doc, err)
	<-ctx.Done()
	return nil
}

// restless has another revision for the same document in every Watch.
type restless struct{ *connector }

func (r restless) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return r.changed(ctx, sink, func(doc sdk.Document, err error) (sdk.Document, error) {
		doc.Revision += fmt.Sprint("-", time.Now().UnixNano())
		return doc, err
	})
}

// oneWatch tells changes only to who came last.
type oneWatch struct {
	*connector
	last atomic.Int32
}

func (o *oneWatch) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	mine := o.last.Add(1)
	return o.follow(ctx, func(doc sdk.Document, err error) {
		if o.last.Load() == mine {
			tell(sink, doc, err)
		}
	})
}

// dropsLast is told of a change and looks again only half a minute later.
type dropsLast struct{ *connector }

func (d dropsLast) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	var since time.Time
	var calls int
	return d.follow(ctx, func(doc sdk.Document, err error) {
		if calls++; calls <= 2 || time.Since(since) > 30*time.Second {
			tell(sink, doc, err)
			since = time.Now()
		}
	})
}

// givesUp does not look again after a failure.
type givesUp struct{ *connector }

func (g givesUp) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	failed := false
	return g.follow(ctx, func(doc sdk.Document, err error) {
		if !failed {
			tell(sink, doc, err)
		}
		failed = failed || err != nil
	})
}

// truncates reads into a buffer of 4 MB.
type truncates struct{ *connector }

func (t truncates) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return t.changed(ctx, sink, func(doc sdk.Document, err error) (sdk.Document, error) {
		return made(doc.Content[:min(len(doc.Content), 4<<20)]), err
	})
}

// noLimit reads whatever is there.
type noLimit struct{ *connector }

func (n noLimit) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	return n.changed(ctx, sink, func(doc sdk.Document, err error) (sdk.Document, error) {
		if content, fine := os.ReadFile(n.file()); fine == nil {
			return made(content), nil
		}
		return doc, err
	})
}

// ignoresCancel watches for ever.
type ignoresCancel struct{ *connector }

func (i ignoresCancel) Watch(_ context.Context, from string, sink sdk.Sink) error {
	return i.connector.Watch(context.Background(), from, sink)
}

// leaks leaves something behind with every Watch.
type leaks struct {
	*connector
	what string
	mu   sync.Mutex
	kept []any
}

func (l *leaks) Watch(ctx context.Context, from string, sink sdk.Sink) error {
	switch l.what {
	case "goroutines":
		go func() { select {} }()
	case "threads":
		go pin()
	case "files":
		f, err := os.Open(os.Args[0])
		if err != nil {
			return err
		}
		l.keep(f)
	case "memory":
		doc, _ := l.connector.Load(ctx) // it keeps what there is
		l.keep(doc)
	}
	return l.connector.Watch(ctx, from, sink)
}

// pin keeps a thread for ever.
func pin() {
	runtime.LockOSThread()
	for {
		time.Sleep(time.Hour)
	}
}

func (l *leaks) keep(x any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, x)
}

// ignoresStop finds something to wait for.
type ignoresStop struct{ *connector }

func (i ignoresStop) Stop(ctx context.Context) error {
	select {}
}

// leavesChild has a child that it does not end.
func leavesChild(c *connector) sdk.Connector {
	if os.Getenv(sdk.CookieKey) == sdk.CookieValue {
		if err := exec.Command("sleep", "60").Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return c
}

// losesConflict saves whatever is expected.
type losesConflict struct{ *connector }

func (l losesConflict) Save(_ context.Context, document []byte, _ string) (string, error) {
	return write(l.file(), document)
}

// races compares first and writes later.
type races struct{ *connector }

func (r races) Save(ctx context.Context, document []byte, expected string) (string, error) {
	now, err := r.connector.Load(ctx)
	if err == nil && now.Revision != expected {
		return "", sdk.ErrConflict
	}
	time.Sleep(50 * time.Millisecond)
	r.saving.Lock()
	defer r.saving.Unlock()
	return write(r.file(), document)
}

// staleLoad answers Load from a cache.
type staleLoad struct {
	*connector
	mu  sync.Mutex
	doc sdk.Document
}

func (s *staleLoad) Load(ctx context.Context) (sdk.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.doc.Revision == "" {
		s.doc, err = s.connector.Load(ctx)
	}
	return s.doc, err
}

// onlyReplaces does not create.
type onlyReplaces struct{ *connector }

func (o onlyReplaces) Save(ctx context.Context, document []byte, expected string) (string, error) {
	if expected == "" {
		if _, err := o.connector.Load(ctx); err != nil {
			return "", errors.New("there is nothing to replace")
		}
	}
	return o.connector.Save(ctx, document, expected)
}

// secretlyWritable says that it is not writable, and writes.
type secretlyWritable struct{ *connector }

func (s secretlyWritable) Describe() sdk.Description {
	d := s.connector.Describe()
	d.Writable = false
	return d
}

// saysSaved writes nothing.
type saysSaved struct{ *connector }

func (saysSaved) Save(_ context.Context, document []byte, _ string) (string, error) {
	return revision(document), nil
}
