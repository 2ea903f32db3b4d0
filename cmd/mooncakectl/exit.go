package main

import (
	"context"
	"errors"
	"fmt"
)

// The exit statuses. They do not change.
const (
	exitOK          = 0
	exitFailed      = 1   // it did not work, a document is not valid, a case failed
	exitUsage       = 2   // the command line makes no sense
	exitConflict    = 3   // the source holds another revision than expected
	exitUnreachable = 4   // no master answers, or none of them is active
	exitHeld        = 5   // the document removes too many tenants
	exitInterrupted = 130 // a signal came
)

// failure is an error that knows its exit status and what to do next.
type failure struct {
	code int
	text string
	hint string // "" when there is nothing to add
}

func (f *failure) Error() string { return f.text }

func failed(format string, args ...any) *failure {
	return &failure{code: exitFailed, text: fmt.Sprintf(format, args...)}
}

func misused(format string, args ...any) *failure {
	return &failure{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

func (f *failure) hinting(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// asFailure gives every error an exit status.
func asFailure(ctx context.Context, err error) *failure {
	var f *failure
	var no *refusal
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &no):
		return no.failure()
	case ctx.Err() != nil:
		return &failure{code: exitInterrupted, text: "interrupted"}
	}
	return failed("%v", err)
}

// errSaid ends a command with status 1 that has said all there is to say.
var errSaid = &failure{code: exitFailed}
