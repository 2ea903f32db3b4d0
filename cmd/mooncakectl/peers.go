package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mooncake-go/mooncake-master/core/errcode"
)

// peers are the masters that a command may talk to: one, or those of a group of which one is
// active.
type peers struct {
	urls    []string // of the admin interfaces, without a slash at the end
	from    string   // where the addresses were given, for messages
	client  *http.Client
	timeout time.Duration
}

// answerMost bounds an answer, in bytes: a policy of the largest size, with every byte escaped.
const answerMost = 512 << 20

// newPeers reads a list of addresses with commas between them.
func newPeers(list, from string, timeout time.Duration) (*peers, error) {
	p := &peers{from: from, timeout: timeout, client: &http.Client{
		Transport: &http.Transport{
			// One dead address must leave time for the next.
			DialContext:       (&net.Dialer{Timeout: min(timeout, 5*time.Second)}).DialContext,
			DisableKeepAlives: true,
		},
	}}
	for _, address := range strings.Split(list, ",") {
		address = strings.TrimRight(strings.TrimSpace(address), "/")
		if address == "" {
			continue
		}
		scheme, rest, ok := strings.Cut(address, "://")
		if !ok {
			scheme, rest = "http", address
		}
		host, port, err := net.SplitHostPort(rest)
		if scheme != "http" && scheme != "https" || err != nil || host == "" || port == "" {
			return nil, misused("%s=%s: want HOST:PORT of a master's admin interface, like %s (an IPv6 address in brackets)", from, address, defaultMaster)
		}
		p.urls = append(p.urls, scheme+"://"+rest)
	}
	if p.urls == nil {
		return nil, misused("%s=%q: want at least one HOST:PORT", from, list)
	}
	return p, nil
}

// reply is what a master answered.
type reply struct {
	url    string
	status int
	header http.Header
	body   []byte
}

// ask sends a request to the first address that has an active master behind it, and stays with
// that one. Only what certainly had no effect is sent to another: connections that were not
// made, and 503.
func (p *peers) ask(ctx context.Context, method, path string, body []byte) (*reply, error) {
	var tried []string
	refused, late := false, false
	for _, base := range p.urls {
		r, err := p.send(ctx, base, method, path, body)
		address := strings.TrimPrefix(base, "http://")
		var dial *net.OpError
		switch {
		case err == nil && r.status != http.StatusServiceUnavailable:
			p.urls = []string{base}
			return r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			tried = append(tried, address+" "+p.standing(ctx, base))
		case errors.As(err, &dial) && dial.Op == "dial":
			refused = refused || errors.Is(err, syscall.ECONNREFUSED)
			tried = append(tried, address+": "+plainError(err))
		case method == http.MethodGet:
			late = late || errors.Is(err, context.DeadlineExceeded)
			tried = append(tried, address+": "+plainError(err))
		default:
			return nil, (&failure{code: exitUnreachable, text: fmt.Sprintf("%s: %s; it may have done what it was asked, or not", address, plainError(err))}).
				hinting("look before trying again: %s", look(path))
		}
	}
	f := &failure{code: exitUnreachable, text: "no active master: " + strings.Join(tried, "; ")}
	switch {
	case late:
		return nil, f.hinting("it has %s to answer, --timeout gives it more", p.timeout)
	case refused:
		return nil, f.hinting("is the master running? The address is that of its admin interface (--metrics_port, not --rpc_port) and comes from %s", p.from)
	}
	return nil, f.hinting("the address comes from %s", p.from)
}

// look names the commands that show what a change to a path has done.
func look(path string) string {
	if strings.HasPrefix(path, drainPath) {
		return "mooncakectl drain list"
	}
	return "mooncakectl policy show, mooncakectl policy history"
}

func (p *peers) send(ctx context.Context, base, method, path string, body []byte) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMost))
	if err != nil {
		return nil, err
	}
	return &reply{url: base, status: resp.StatusCode, header: resp.Header, body: text}, nil
}

// standing says what a master that is not active is doing.
func (p *peers) standing(ctx context.Context, base string) string {
	var h struct {
		Role   string `json:"role"`
		State  string `json:"ha_state"`
		Leader string `json:"leader_address"`
	}
	r, err := p.send(ctx, base, http.MethodGet, "/health", nil)
	if err != nil || json.Unmarshal(r.body, &h) != nil || h.Role == "" {
		return "is not active"
	}
	text := "is not active (" + h.Role + ", " + h.State
	if h.Leader != "" {
		text += ", the leader serves clients at " + h.Leader
	}
	return text + ")"
}

// plainError is the last cause of a network error, without the library's layers.
func plainError(err error) string {
	var target *url.Error
	if errors.As(err, &target) {
		err = target.Err
	}
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "no answer in time"
	case errors.As(err, &errno):
		return errno.Error()
	case strings.Contains(err.Error(), "malformed HTTP"), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "what listens there does not speak HTTP; is it the --rpc_port?"
	}
	return err.Error()
}

// refusal is an answer of a master that says no.
type refusal struct {
	url, method, path string
	status            int
	Code              errcode.Code `json:"error_code"`
	Message           string       `json:"error_message"`
	Reason            string       `json:"reason"`
	Current           string       `json:"current_revision"`
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %s", strings.TrimPrefix(r.url, "http://"), r.Message)
}

// failure says what the refusal means for the one who asked.
func (r *refusal) failure() *failure {
	f := &failure{code: exitFailed, text: r.Error()}
	switch {
	case r.Reason == "conflict":
		f.code = exitConflict
	case r.Reason == "removal":
		f.code = exitHeld
	case r.Code == errcode.UnavailableInMode:
		f.text += ": this master has no tenants"
		return f.hinting("start it with --enable_multi_tenants --tenant_quota_connector_uri=...")
	case r.Code == errcode.PersistentFail && r.Reason == "":
		return f.hinting("the change could not be saved at the source; the master's log says why, and mooncakectl connector status how the connector is")
	case r.Reason == "read_only", r.Reason == "unavailable":
		return f.hinting("mooncakectl connector status says how the connector is")
	}
	return f
}

// call sends a request and reads the answer into a value.
func (t *tool) call(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := t.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return failed("%s: %s %s was not answered in JSON: %v", strings.TrimPrefix(r.url, "http://"), method, path, err)
	}
	return nil
}

// data is call for the answers that hold what was asked for in "data".
func (t *tool) data(ctx context.Context, method, path string, body []byte, into any) error {
	return t.call(ctx, method, path, body, &struct {
		Data any `json:"data"`
	}{into})
}

// reach returns the masters that the command line or the environment names.
func (t *tool) reach() (*peers, error) {
	if t.peers != nil {
		return t.peers, nil
	}
	list, from := t.masters, "--master"
	if list == "" {
		list, from = t.env("MOONCAKE_MASTER"), "$MOONCAKE_MASTER"
	}
	if list == "" {
		list, from = defaultMaster, "the default of --master"
	}
	p, err := newPeers(list, from, t.timeout)
	t.peers = p
	return p, err
}

// ask sends a request; an answer other than 200 is an error, a *refusal where the master says
// why.
func (t *tool) ask(ctx context.Context, method, path string, body []byte) (*reply, error) {
	p, err := t.reach()
	if err != nil {
		return nil, err
	}
	r, err := p.ask(ctx, method, path, body)
	if err != nil || r.status == http.StatusOK {
		return r, err
	}
	no := &refusal{url: r.url, method: method, path: path, status: r.status}
	if json.Unmarshal(r.body, no) == nil && no.Message != "" {
		return nil, no
	}
	address := strings.TrimPrefix(r.url, "http://")
	if r.status == http.StatusNotFound {
		path, _, _ = strings.Cut(path, "?")
		return nil, failed("%s: this master does not know %s %s", address, method, path).hinting("it is another master than mooncake_master in Go, or an older one")
	}
	return nil, failed("%s: %s %s is answered with status %d", address, method, path, r.status)
}
