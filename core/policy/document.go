package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// ConflictError says that the source holds another revision than the one expected.
type ConflictError struct {
	Current string // what it holds, "" for nothing
	Err     error
}

// Error is the reason.
func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *ConflictError) Unwrap() error { return e.Err }

// InvalidError says that a document given by a caller is not valid.
type InvalidError struct{ Err error }

// Error names the line.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *InvalidError) Unwrap() error { return e.Err }

// Current is a document as it is shown.
type Current struct {
	Document
	ContentHash string // "" when there is no document
	// Of the policy in force only.
	Origin  string
	Since   time.Time
	Tenants int
	// Of the source only: why the document is not valid, nil if it is.
	Invalid error
}

// InForce returns the document in force; its content must not be changed.
func (m *Manager) InForce() Current {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &m.force
	return Current{
		Document: Document{Content: f.content, Revision: f.revision}, ContentHash: hexOf(f.sum),
		Origin: f.origin, Since: f.since, Tenants: len(f.set),
	}
}

// AtSource reads the document that the source holds now, and puts nothing in force. Errors are
// those of Source.Load.
func (m *Manager) AtSource(ctx context.Context) (Current, error) {
	ctx, cancel := context.WithTimeout(ctx, m.SaveTimeout)
	defer cancel()
	doc, err := m.Source.Load(ctx)
	if err != nil {
		return Current{}, err
	}
	_, _, invalid := check(doc.Content)
	return Current{Document: doc, ContentHash: hexOf(sha256.Sum256(doc.Content)), Invalid: invalid}, nil
}

// Replace saves a whole document at the source in place of the expected revision, "" standing
// for none, and puts it in force. It does not try again when somebody else was faster. Mass
// removals need confirm. Errors: *InvalidError, *RemovalError, *ConflictError, and *Failure,
// under which ErrReadOnly and *Unavailable are found.
func (m *Manager) Replace(ctx context.Context, document []byte, expected string, confirm bool) (Applied, error) {
	set, _, err := check(document)
	if err != nil {
		return Applied{}, &InvalidError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, m.SaveTimeout)
	defer cancel()
	if err := m.acquire(ctx); err != nil {
		return Applied{}, persistent(fmt.Errorf("waiting for another change: %w", err))
	}
	defer m.release()
	if why := m.removal(m.policies(), set); why != nil && !confirm {
		return Applied{}, why
	}
	m.direct = false
	revision, err := m.save(ctx, document, expected)
	switch {
	case errors.Is(err, ErrConflict):
		is, gone := m.reload(ctx, "reload after a conflict")
		var absent *Unavailable
		if gone != nil && is.Revision == "" && !(errors.As(gone, &absent) && absent.Kind == Absent) {
			return Applied{}, persistent(errors.Join(err, gone))
		}
		return Applied{}, &ConflictError{Current: is.Revision, Err: err}
	case err != nil:
		return Applied{}, persistent(err)
	}
	done, err := m.adopt(Document{Content: document, Revision: revision}, "document through the admin interface", true)
	if err != nil {
		return Applied{}, persistent(err)
	}
	return done, nil
}

// save saves a document. When the connector dies of it, what the source then holds tells
// whether it was saved.
func (m *Manager) save(ctx context.Context, document []byte, expected string) (string, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		revision, err := m.Source.Save(ctx, document, expected)
		if !errors.Is(err, ErrInterrupted) {
			return revision, err
		}
		var is Document
		for load := err; errors.Is(load, ErrInterrupted); {
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("given up: %w", err)
			case <-time.After(pause):
			}
			is, load = m.Source.Load(ctx)
		}
		switch {
		case is.Revision != "" && bytes.Equal(is.Content, document):
			return is.Revision, nil
		case is.Revision != "" && is.Revision != expected:
			return "", fmt.Errorf("%w: revision %s", ErrConflict, is.Revision)
		}
	}
}
