// Package sdk is what the author of a tenant-quota connector imports: implement Connector,
// call Serve from main, and the master can run the executable. Everything about processes,
// gRPC, TLS, heartbeats and the contract in proto/connector/v1 is done here.
//
//	func main() { sdk.Serve(&myConnector{}) }
//
// A connector carries whole documents between its source and the master; it does not read
// them. Package sdk/policydoc can, for connectors that make documents from something else.
//
// Starting a process must be cheap and without side effects: a master may start it only to check
// a configuration, and start it again whenever it ends.
//
// # What stays as it is
//
// Within major version 1 of the SDK exported names of this package and of policydoc,
// connectortest and conformance keep their meaning; new ones may come. Fields may be added to
// structs: write literals with field names. Connector gets no further method; a new ability is
// an interface of its own that a connector may have.
//
// The protocol between master and connector has a number, ProtocolVersion. A master speaks the
// newest protocol N and the one before it, N-1, and so does this SDK: a connector built with
// last year's SDK runs under this year's master, and the reverse. The two choose the newest
// they have in common; where there is none both say what they speak and which of them to
// upgrade. Within one protocol messages only gain fields that the other side may ignore. A
// protocol is given up in a release whose notes say so, never before its successor was out for
// a release.
//
// # Units
//
// Documents and limits are in bytes, quotas (package policydoc) in bytes as uint64, times are
// time.Duration, revisions are opaque text. Errors that a caller may want to tell apart are
// ErrConflict, ErrReadOnly, *Unavailable with its Kind, and *ConfigError; wrapping them is fine.
//
// # Standard output
//
// Importing this package in a process that a master started takes over file descriptor 1: it
// belongs to the contract, and what the author's code prints goes to standard error instead.
//
// Invariant: what a Watch delivers reaches the master in order, the newest last; what was
// overtaken before it could be sent is dropped. Locks: only inside one stream's outbox.
package sdk

// Version of this SDK, told to the master in Describe.
const Version = "1.0.0"

// ProtocolVersion is the connector protocol this SDK speaks.
const ProtocolVersion = 1

// CookieKey and CookieValue are the environment variable by which a master shows that it
// started the process. They keep people from running a connector by mistake; they are no
// secret.
const (
	CookieKey   = "MOONCAKE_CONNECTOR_PLUGIN"
	CookieValue = "policy-connector-v1"
)

// HostPIDKey is the environment variable that holds the process id of the master.
const HostPIDKey = "MOONCAKE_CONNECTOR_HOST_PID"

// MaxDocument is the largest document, in bytes, that can be carried.
const MaxDocument = 64 << 20

// MaxMessage is the size of a gRPC message, in bytes, that both sides accept and send: the
// largest document and some room for what comes with it.
const MaxMessage = MaxDocument + 64<<10
