package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// store is a source of the policy document. FILL IN: yours, in place of fileStore.
type store interface {
	// get reads the document. Where there is none the error is an *sdk.Unavailable: of kind
	// sdk.Absent only if the source has answered and holds none, sdk.Auth if it refuses us,
	// sdk.Invalid if what is there can't be a document, else sdk.Unreachable. The revision is
	// another one for another content: a version, an ETag, a hash.
	get(ctx context.Context) (sdk.Document, error)

	// put replaces the document if its revision is still the expected one, "" for none, in one
	// step: if your source has no compare-and-swap, return sdk.ErrReadOnly always, or somebody's
	// change will be lost. Errors: sdk.ErrConflict, sdk.ErrReadOnly, *sdk.Unavailable, wrapped or
	// not.
	put(ctx context.Context, document []byte, expected string) (revision string, err error)
}

var _ store = (*fileStore)(nil)

// fileStore keeps the document in a file. It stands here so that everything works; for files
// there is the master's own connector, which also guards against other writers.
type fileStore struct {
	path   string
	saving sync.Mutex
}

func (s *fileStore) get(context.Context) (sdk.Document, error) {
	info, err := os.Stat(s.path)
	if err == nil && info.Size() > sdk.MaxDocument {
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Invalid, Reason: fmt.Sprintf("%s has %d bytes, the limit is %d", s.path, info.Size(), sdk.MaxDocument)}
	}
	content, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Absent, Reason: s.path + " does not exist"}
	case errors.Is(err, fs.ErrPermission):
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Auth, Reason: err.Error()}
	case err != nil:
		return sdk.Document{}, &sdk.Unavailable{Kind: sdk.Unreachable, Reason: err.Error()}
	}
	return sdk.Document{Content: content, Revision: revision(content)}, nil
}

func (s *fileStore) put(ctx context.Context, document []byte, expected string) (string, error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	now, err := s.get(ctx)
	var why *sdk.Unavailable
	if err != nil && (!errors.As(err, &why) || why.Kind != sdk.Absent) {
		return "", err
	}
	if now.Revision != expected {
		return "", fmt.Errorf("%w: %s is at %q", sdk.ErrConflict, s.path, now.Revision)
	}
	// A reader sees the old document or the new one, never half of it.
	next := s.path + ".next"
	if err := os.WriteFile(next, document, 0o600); err != nil {
		return "", &sdk.Unavailable{Kind: sdk.Unreachable, Reason: err.Error()}
	}
	if err := os.Rename(next, s.path); err != nil {
		return "", &sdk.Unavailable{Kind: sdk.Unreachable, Reason: err.Error()}
	}
	return revision(document), nil
}

func revision(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
