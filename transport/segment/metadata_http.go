package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const metadataTimeout = 10 * time.Second

// httpShelf is a store that speaks HTTP, as the master has one.
type httpShelf struct {
	base   string
	client *http.Client
}

func newHTTPShelf(base string) *httpShelf {
	return &httpShelf{base: base, client: &http.Client{Timeout: metadataTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()}}
}

func (s *httpShelf) get(ctx context.Context, key string) ([]byte, error) {
	return s.call(ctx, http.MethodGet, key, nil)
}

func (s *httpShelf) put(ctx context.Context, key string, text []byte) error {
	_, err := s.call(ctx, http.MethodPut, key, text)
	return err
}

// swap relies on the store's refusal to replace one handshake address by another: where two take over the same
// abandoned one at the same time, the slower one may miss that.
func (s *httpShelf) swap(ctx context.Context, key string, old, text []byte) error {
	if old != nil {
		if err := s.delete(ctx, key); err != nil {
			return err
		}
	}
	err := s.put(ctx, key, text)
	var refused *refusal
	if errors.As(err, &refused) && strings.HasPrefix(refused.text, "Duplicate ") {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

func (s *httpShelf) remove(ctx context.Context, _ []byte, keys ...string) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, s.delete(ctx, key))
	}
	return errors.Join(errs...)
}

// delete deletes a key. What isn't there needs no deleting.
func (s *httpShelf) delete(ctx context.Context, key string) error {
	_, err := s.call(ctx, http.MethodDelete, key, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (s *httpShelf) close() error {
	s.client.CloseIdleConnections()
	return nil
}

// refusal is an answer that is neither good nor "not found".
type refusal struct{ method, key, status, text string }

func (r *refusal) Error() string {
	return fmt.Sprintf("%s of key %s: %s: %.200s", r.method, r.key, r.status, r.text)
}

func (s *httpShelf) call(ctx context.Context, method, key string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base+"?key="+escape(key), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w: key %s", ErrNotFound, key)
	case resp.StatusCode != http.StatusOK:
		return nil, &refusal{method, key, resp.Status, string(bytes.TrimSpace(text))}
	}
	return text, nil
}

// escape writes a key as the released clients do. Stores compare keys as they are written.
func escape(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "+", "%20") }
