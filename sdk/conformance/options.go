package conformance

import (
	"context"
	"io"
	"time"
)

// Options say what is tested and how. Path is needed, the rest has defaults.
type Options struct {
	// Path of the executable, and what it is run with. A name without a slash is looked up in
	// PATH.
	Path string
	Args []string
	// Env are variables, "KEY=value", for the connector besides PATH, HOME, TMPDIR, LANG, TZ
	// and those of the contract. Nothing else is inherited.
	Env []string

	// URI, ClusterID and Options are given to Configure as they are. Without a URI the cases
	// that need a source are skipped, except for a connector that calls itself "file" and
	// takes a path: it gets a temporary file.
	URI       string
	ClusterID string
	Options   map[string]string

	// Source changes what is at the source, from outside of the connector. Nil: FileSource for
	// URIs that begin with file://, else the connector's own Save where it is writable, which
	// can do less.
	Source Source

	// Cases are the names of the cases to run, with * for any part of a name between slashes,
	// as in "save/*"; empty means all. A name that matches no case is an error of Run.
	Cases []string

	// Patience multiplies every limit of time, for slow machines (above 1) or to give up
	// sooner (below 1); 0 means 1.
	Patience float64

	// Progress is called with each result as it comes, from one goroutine at a time.
	Progress func(Result)
	// Logs takes what the connector writes to standard error, line by line. Nil drops it.
	Logs io.Writer
}

// Source changes what a connector reads, the way other people's tools do. A method that can't
// do it returns an error that wraps errors.ErrUnsupported and says why: the cases that need it
// are skipped with these words. Every other error ends the case as failed.
type Source interface {
	// Set makes document, at most 64 MiB, the content of the source, as one change.
	Set(ctx context.Context, document []byte) error
	// Delete makes the source hold no document, while it answers.
	Delete(ctx context.Context) error
	// Break makes the source unusable without changing what it holds: its server stops, its
	// permissions go.
	Break(ctx context.Context) error
	// Restore undoes Break, and returns when the source can be used again.
	Restore(ctx context.Context) error
	// Second puts document at another place that the same connector can be configured for,
	// and returns the URI of it.
	Second(ctx context.Context, document []byte) (uri string, err error)
}

// Status is how a case ended.
type Status string

// The ways a case ends.
const (
	// Pass: what the case asks for was seen.
	Pass Status = "pass"
	// Fail: the connector broke the contract; the reason says how.
	Fail Status = "fail"
	// Skip: the case could not be run; the reason says why.
	Skip Status = "skip"
)

// Result is the outcome of one case.
type Result struct {
	// Case is its stable name, like "watch/heartbeat".
	Case string
	// About says in a sentence what it asks for.
	About string
	// Status is how it ended.
	Status Status
	// Reason is one line for people; empty when it passed and there is nothing to tell.
	Reason string
	// Took is how long it ran.
	Took time.Duration
}

// Case is what can be asked for by name.
type Case struct {
	// Name is stable: it does not change as long as the case asks for the same.
	Name string
	// About says in a sentence what it asks for.
	About string
}

// Cases lists all cases in the order in which they run.
func Cases() []Case {
	list := make([]Case, 0, len(cases))
	for _, c := range cases {
		list = append(list, Case{Name: c.name, About: c.about})
	}
	return list
}
