package sdk

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConflict is returned by Save when the source holds another revision than the expected.
var ErrConflict = errors.New("the source holds another revision")

// ErrReadOnly is returned by Save when the source can't be written.
var ErrReadOnly = errors.New("the source is read-only")

// Kind classifies what keeps a document away.
type Kind int

// The kinds of Unavailable.
const (
	// Unreachable: the source does not answer.
	Unreachable Kind = iota
	// Absent: the source answers and holds no document.
	Absent
	// Auth: the source refuses us.
	Auth
	// Invalid: what is there can't be a document, for instance because it is too large.
	Invalid
	// Permanent: it will not get better without a person.
	Permanent
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Absent:
		return "absent"
	case Auth:
		return "auth"
	case Invalid:
		return "invalid"
	case Permanent:
		return "permanent"
	}
	return "unreachable"
}

// Unavailable says that there is no document to be had, and why. It is an error for Load and
// Save and an event for Watch.
type Unavailable struct {
	// Kind of trouble.
	Kind Kind
	// Reason for people, naming the source.
	Reason string
	// Final: the connector does not go on trying by itself.
	Final bool
}

// Error reads "unreachable: reason".
func (u *Unavailable) Error() string { return u.Kind.String() + ": " + u.Reason }

// ConfigError refuses a configuration.
type ConfigError struct {
	// Notes say what is wrong; there is at least one.
	Notes []ConfigNote
}

// ConfigNote is one complaint.
type ConfigNote struct {
	// Field is "uri", "cluster_id", or "options." and the option's name.
	Field string
	// Message says what is wrong and what would be right.
	Message string
}

// Refuse makes a ConfigError with one note.
func Refuse(field, format string, args ...any) *ConfigError {
	return &ConfigError{Notes: []ConfigNote{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// Error reads "uri: message; options.x: message".
func (e *ConfigError) Error() string {
	var parts []string
	for _, n := range e.Notes {
		parts = append(parts, n.Field+": "+n.Message)
	}
	return strings.Join(parts, "; ")
}
