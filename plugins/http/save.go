package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// Save implements sdk.Connector.
func (c *Connector) Save(ctx context.Context, document []byte, expected string) (string, error) {
	c.saving.Lock()
	defer c.saving.Unlock()
	v, _ := c.current()
	switch {
	case v == nil:
		return "", errNotConfigured
	case !v.settings.save:
		return "", fmt.Errorf("%w: the option save is off", sdk.ErrReadOnly)
	case int64(len(document)) > v.settings.maxBytes:
		return "", &sdk.Unavailable{Kind: sdk.Invalid, Reason: fmt.Sprintf("the document would have %d bytes, at most %d are accepted (option max_bytes)",
			len(document), v.settings.maxBytes)}
	}
	etag, err := v.precondition(ctx, expected)
	if err != nil {
		return "", err
	}
	return v.put(ctx, document, expected, etag)
}

// precondition looks whether the expected revision is still there, and returns the ETag under
// which the server can check it again; "" when nothing is to be there. The server's check is
// what counts. Ours names the conflict for servers that look at If-Match too loosely.
func (v *server) precondition(ctx context.Context, expected string) (string, error) {
	now, why := v.get(ctx, "", 0)
	switch {
	case why != nil && why.Kind == sdk.Absent && expected == "":
		return "", nil
	case why != nil && why.Kind == sdk.Absent:
		return "", fmt.Errorf("%w: %s", sdk.ErrConflict, why.Reason)
	case why != nil:
		return "", why.Unavailable
	case expected == "":
		return "", fmt.Errorf("%w: %s: it holds a document, where none was expected", sdk.ErrConflict, v.settings.shown)
	case hashOf(now.document().Revision) != hashOf(expected):
		return "", fmt.Errorf("%w: %s: it holds revision %s, expected was %s", sdk.ErrConflict, v.settings.shown, now.document().Revision, expected)
	case !strong(now.etag):
		return "", fmt.Errorf("%w: %s: the server gives no strong ETag, so a save could overwrite somebody else's change", sdk.ErrReadOnly, v.settings.shown)
	}
	return now.etag, nil
}

// hashOf a revision is its last word, see revision.
func hashOf(revision string) string { return revision[strings.LastIndexByte(revision, ' ')+1:] }

// put stores the document where the server still has the ETag, or nothing if it is "".
func (v *server) put(ctx context.Context, document []byte, expected, etag string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, v.settings.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPut, v.settings.address.String(), bytes.NewReader(document))
	if err != nil {
		return "", v.trouble(sdk.Permanent, "%v", err).Unavailable
	}
	req.Header.Set("Content-Type", "application/yaml")
	if etag == "" {
		req.Header.Set("If-None-Match", "*")
	} else {
		req.Header.Set("If-Match", etag)
	}
	resp, why := v.send(req)
	if why != nil {
		return v.settle(ctx, document, expected, why)
	}
	defer resp.Body.Close()
	// The connection can be used again when the answer is read.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	switch code := resp.StatusCode; {
	case code == http.StatusOK, code == http.StatusCreated, code == http.StatusNoContent:
		// Servers that keep something else than what was sent must not name an ETag here.
		if etag := usable(resp.Header.Get("ETag")); etag != "" {
			return revision(etag, document), nil
		}
		saved := revision("", document)
		if now, why := v.get(ctx, "", 0); why == nil && hashOf(now.document().Revision) == saved {
			saved = now.document().Revision
		}
		return saved, nil
	case code == http.StatusPreconditionFailed, code == http.StatusConflict:
		return "", fmt.Errorf("%w: %s: the server answers %s", sdk.ErrConflict, v.settings.shown, status(resp))
	case code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		return "", fmt.Errorf("%w: %s: the server answers %s to PUT", sdk.ErrReadOnly, v.settings.shown, status(resp))
	case code == http.StatusAccepted:
		return v.settle(ctx, document, expected, v.trouble(sdk.Unreachable, "the server answers %s, which is not yet a save", status(resp)))
	case code == http.StatusRequestEntityTooLarge:
		return "", v.trouble(sdk.Invalid, "the server answers %s: it takes no document of %d bytes", status(resp), len(document)).Unavailable
	case code >= 500:
		// A proxy may have lost the answer of a server that did store it.
		return v.settle(ctx, document, expected, v.refused(resp))
	}
	return "", v.refused(resp).Unavailable
}

// settle finds out what became of a save whose answer is missing.
func (v *server) settle(ctx context.Context, document []byte, expected string, why *trouble) (string, error) {
	sum := sha256.Sum256(document)
	now, unknown := v.get(ctx, "", 0)
	switch {
	case unknown == nil && hashOf(now.document().Revision) == hex.EncodeToString(sum[:]):
		return now.document().Revision, nil
	case unknown == nil && hashOf(now.document().Revision) == hashOf(expected),
		unknown != nil && unknown.Kind == sdk.Absent && expected == "":
		return "", why.Unavailable
	case unknown == nil:
		return "", fmt.Errorf("%w: %s", sdk.ErrConflict, why.Reason)
	}
	return "", errors.Join(why.Unavailable, fmt.Errorf("whether it was saved is not known: %s", unknown.Reason))
}
