package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// trouble is why there is no document.
type trouble struct {
	*sdk.Unavailable
	// later is how long the server wants to be left alone; 0 if it did not say.
	later time.Duration
}

// laterMost bounds what a server may ask for.
const laterMost = 10 * time.Minute

func (v *server) trouble(kind sdk.Kind, format string, args ...any) *trouble {
	return &trouble{Unavailable: &sdk.Unavailable{Kind: kind, Reason: v.settings.shown + ": " + fmt.Sprintf(format, args...)}}
}

// get asks for the document. With an ETag the answer may be that it is the same; with wait the
// server may hold the answer back as long as it is.
func (v *server) get(ctx context.Context, etag string, wait time.Duration) (answer, *trouble) {
	ctx, cancel := context.WithTimeout(ctx, v.settings.timeout+wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.settings.address.String(), nil)
	if err != nil {
		return answer{}, v.trouble(sdk.Permanent, "%v", err)
	}
	req.Header.Set("Accept", "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.5")
	req.Header.Set("Cache-Control", "no-cache") // for caches between us and the server
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	seconds := int(wait / time.Second)
	if seconds > 0 {
		req.Header.Set("Prefer", "wait="+strconv.Itoa(seconds))
	}
	resp, failed := v.send(req)
	if failed != nil {
		return answer{}, failed
	}
	defer resp.Body.Close()
	waited := seconds > 0 && strings.Contains(strings.ToLower(resp.Header.Get("Preference-Applied")), "wait")
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return answer{same: true, etag: etag, waited: waited}, nil
	case resp.StatusCode != http.StatusOK:
		return answer{}, v.refused(resp)
	}
	content, failed := v.body(ctx, resp)
	if failed != nil {
		return answer{}, failed
	}
	return answer{content: content, etag: usable(resp.Header.Get("ETag")), waited: waited}, nil
}

// send makes a request with our credentials. The answer's body is the caller's to close.
func (v *server) send(req *http.Request) (*http.Response, *trouble) {
	req.Header.Set("User-Agent", "mooncake-connector-http/"+Version)
	if err := v.authorize(req); err != nil {
		return nil, v.trouble(sdk.Auth, "%v", err)
	}
	resp, err := v.client().Do(req)
	if err != nil && req.Method == http.MethodGet && req.Context().Err() == nil && lost(err) {
		// A connection that was kept for the next request may have ended since.
		v.close()
		resp, err = v.client().Do(req.Clone(req.Context()))
	}
	if err != nil {
		return nil, v.broken(req.Context(), err)
	}
	return resp, nil
}

// lost tells whether a connection ended, rather than never came to be.
func lost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// body reads the whole document, or says why what came is none.
func (v *server) body(ctx context.Context, resp *http.Response) ([]byte, *trouble) {
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, v.trouble(sdk.Invalid, "the document is encoded as %s although we did not ask for it", coding)
	}
	most := v.settings.maxBytes
	if resp.ContentLength > most {
		return nil, v.trouble(sdk.Invalid, "the document has %d bytes, at most %d are accepted (option max_bytes)", resp.ContentLength, most)
	}
	if resp.ContentLength < 0 && resp.ProtoMajor < 2 && len(resp.TransferEncoding) == 0 {
		return nil, v.trouble(sdk.Invalid, "the answer does not say where it ends (no Content-Length), so a part of it could not be told from the whole")
	}
	var b bytes.Buffer
	if resp.ContentLength > 0 {
		b.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(resp.Body, most+1)); err != nil {
		return nil, v.broken(ctx, fmt.Errorf("the answer broke off after %d bytes: %w", b.Len(), err))
	}
	if int64(b.Len()) > most {
		return nil, v.trouble(sdk.Invalid, "the document has more than %d bytes (option max_bytes)", most)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // whatever it says is fine, but a page for people
	if kind == "text/html" && bytes.HasPrefix(bytes.TrimSpace(b.Bytes()), []byte("<")) {
		return nil, v.trouble(sdk.Invalid, "the answer is a web page, not a policy; is it the way to a login?")
	}
	return b.Bytes(), nil
}

// refused reads an answer that is no document.
func (v *server) refused(resp *http.Response) *trouble {
	kind, hint := sdk.Unreachable, ""
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusGone:
		kind = sdk.Absent
	case code == http.StatusUnauthorized:
		kind, hint = sdk.Auth, "; it wants a token (option token_file) or another one"
	case code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		kind = sdk.Auth
	case code == http.StatusNoContent, code == http.StatusPartialContent, code == http.StatusNotModified:
		hint = ", which is no whole document"
	}
	t := v.trouble(kind, "the server answers %s%s", status(resp), hint)
	t.later = retryAfter(resp)
	return t
}

func status(resp *http.Response) string {
	if text := http.StatusText(resp.StatusCode); text != "" {
		return strconv.Itoa(resp.StatusCode) + " " + text
	}
	return strconv.Itoa(resp.StatusCode)
}

// retryAfter is what the server says about the next request; it may name seconds or a date.
func retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if value == "" {
		return 0
	}
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		now := time.Now()
		if sent, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			now = sent // their clock, not ours, is what the date refers to
		}
		d = at.Sub(now)
	}
	return min(max(d, 0), laterMost)
}

// broken says why there was no answer, in words that are the same each time: ports and the like
// would make every attempt look like news.
func (v *server) broken(ctx context.Context, err error) *trouble {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var (
		unknown *tls.CertificateVerificationError
		dns     *net.DNSError
		op      *net.OpError
	)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return v.trouble(sdk.Unreachable, "no complete answer within %s (option timeout)", v.settings.timeout)
	case ctx.Err() != nil:
		return v.trouble(sdk.Unreachable, "given up: %v", ctx.Err())
	case errors.Is(err, errRedirect):
		return v.trouble(sdk.Unreachable, "%v", err)
	case errors.As(err, &unknown):
		return v.trouble(sdk.Unreachable, "its certificate is not trusted: %v (option ca_file names other authorities)", unknown.Err)
	case errors.As(err, &dns):
		return v.trouble(sdk.Unreachable, "%s is not found by name: %s", dns.Name, dns.Err)
	case errors.As(err, &op):
		return v.trouble(sdk.Unreachable, "%s: %v", op.Op, op.Err)
	}
	return v.trouble(sdk.Unreachable, "%v", err)
}
