package policy

import (
	"context"
	"errors"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Source is where the document is kept: a connector, seen from here. Calls may overlap.
type Source interface {
	// Load returns the document as it is now, with everything that a Save before it did. The
	// error is an *Unavailable when the source is reached and gives no document.
	Load(ctx context.Context) (Document, error)
	// Watch calls deliver for whatever happens, one call at a time, until ctx ends, and
	// returns then. It lives through every fault of the source. While deliver does not return,
	// events may be dropped for newer ones.
	Watch(ctx context.Context, deliver func(Event))
	// Save replaces the document if its revision is the expected one; "" creates it. Errors:
	// ErrConflict, ErrReadOnly, ErrInterrupted, *Unavailable, or others.
	Save(ctx context.Context, document []byte, expected string) (revision string, err error)
	// Status tells how the connector is.
	Status() SourceStatus
}

// Document is a text and what its source calls this state of it.
type Document struct {
	Content  []byte
	Revision string // opaque, never empty
}

// Event is one thing that happened at the source. At most one field is set; with none, only
// the source's status has changed.
type Event struct {
	Document    *Document
	Unavailable *Unavailable
}

// Kind classifies what keeps the document away.
type Kind string

// The kinds of Unavailable.
const (
	Absent      Kind = "absent"      // the source holds no document
	Unreachable Kind = "unreachable" // the source does not answer
	Auth        Kind = "auth"        // the source refuses us
	Invalid     Kind = "invalid"     // what is there can't be a document
	Permanent   Kind = "permanent"   // it will not get better by itself
)

// Unavailable says why there is no document to be had.
type Unavailable struct {
	Kind   Kind
	Reason string // for people, names the source
}

// Error returns the reason.
func (u *Unavailable) Error() string { return u.Reason }

var (
	// ErrConflict is returned by Save when the source holds another revision.
	ErrConflict = errors.New("the source holds another revision")
	// ErrReadOnly is returned by Save when the source can't be written.
	ErrReadOnly = errors.New("the source is read-only")
	// ErrInterrupted is returned when the connector died during a call: a save may have
	// happened or not.
	ErrInterrupted = errors.New("the connector was interrupted")
)

// The states of a source, and of the policy as a whole.
const (
	Starting = "starting" // not ready for the first time yet
	Ready    = "ready"
	Degraded = "degraded" // the last good policy is in force, changes at the source are not seen
	Stopped  = "stopped"
	// Of the policy as a whole only.
	Stale    = "stale"               // a stored policy is in force, the source was not seen since the start
	Held     = "degraded: held"      // the source's document waits for a person
	NoPolicy = "degraded: no policy" // there is none, all writes are refused
)

// SourceStatus tells how a connector is.
type SourceStatus struct {
	Type   string // "file"
	Origin string // for messages: the flag and value that name the source
	// AbsentIsEmpty: no document at the start is an empty policy.
	AbsentIsEmpty bool
	State         string    // one of the constants
	Since         time.Time // of the state
	LastError     string    // "" when there was none
	LastErrorTime time.Time
	Restarts      uint64 // starts of the process after the first
}

// Enforcer is what policies are put in force with; *core.Master is one.
type Enforcer interface {
	// Policies returns the policies in force, sorted by name.
	Policies() []tenant.Policy
	// ApplyPolicies replaces all of them at once by a validated set.
	ApplyPolicies(set []tenant.Policy)
	// BeginRemoval closes an empty tenant to writes, or says why not: ObjectNotFound without a
	// policy, TenantNotEmpty.
	BeginRemoval(name string) errcode.Code
	// CancelRemoval opens it again.
	CancelRemoval(name string)
	// PreviewPolicies tells what ApplyPolicies would do, and does nothing.
	PreviewPolicies(set []tenant.Policy) tenant.Preview
}

// Clock tells the time of day.
type Clock interface{ Now() time.Time }
