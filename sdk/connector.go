package sdk

import "context"

// Connector is what an author writes. Methods may be called concurrently, Configure included.
// Contexts end when the master gives up waiting.
type Connector interface {
	// Describe tells what the connector is. It is called before Configure, answers at once and
	// always the same, and touches no source.
	Describe() Description

	// Configure says which source to use. It may come again and then replaces the former
	// configuration as a whole. A *ConfigError changes nothing and its notes reach the
	// operator. It need not reach the source.
	Configure(ctx context.Context, config Config) error

	// Load reads the document as it is at the source now. Where there is none the error is an
	// *Unavailable; any other error counts as unreachable.
	Load(ctx context.Context) (Document, error)

	// Watch tells the sink what happens to the document until ctx ends, then returns. It begins
	// with the current state; saying the same twice is harmless, the SDK leaves it out, and so
	// is saying what the master has already. Returning while ctx lives ends the stream with the
	// error, and the master starts over.
	Watch(ctx context.Context, from string, sink Sink) error

	// Save replaces the document if its revision is still the expected one ("" creates it
	// where there is none) and returns the new revision, when it is stored durably. Errors:
	// ErrConflict, ErrReadOnly, *Unavailable, possibly wrapped; any other counts as
	// unavailable. With an error the source is as if Save had not been called.
	Save(ctx context.Context, document []byte, expected string) (revision string, err error)

	// Stop lets go of everything; the process ends after it returned.
	Stop(ctx context.Context) error
}

// Sink takes the events of a Watch. Its methods never block and may be called concurrently.
type Sink interface {
	// Snapshot says that this is the document now. The slice must not be changed afterwards.
	Snapshot(doc Document)
	// Unavailable says that there is no document to be had now.
	Unavailable(why *Unavailable)
}

// Description tells what a connector is.
type Description struct {
	// Name for people: "file", "etcd".
	Name string
	// Version of the connector, free form.
	Version string
	// Writable: Save can succeed.
	Writable bool
	// Watches: changes are noticed by themselves rather than by looking now and then.
	Watches bool
	// OptionsSchema is a JSON Schema of Config.Options; empty when there are none.
	OptionsSchema string
	// AbsentIsEmpty: a source without a document at the start of the master means an empty
	// policy. Otherwise the master does not start.
	AbsentIsEmpty bool
}

// Config names the source.
type Config struct {
	// URI in the connector's own terms.
	URI string
	// ClusterID of the master, for sources that several clusters share.
	ClusterID string
	// Options by name; never nil.
	Options map[string]string
}

// Document is a document as it is at the source.
type Document struct {
	// Content byte for byte, at most MaxDocument bytes. Neither text nor valid by necessity.
	Content []byte
	// Revision is opaque to the master, never empty, and another one for another content.
	Revision string
}
