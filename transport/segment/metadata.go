package segment

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
	"strconv"
	"strings"
	"time"
)

// ErrNotFound is returned for what nobody has published.
var ErrNotFound = errors.New("not published")

// Metadata is where owners of memory publish how they can be reached, by their names.
type Metadata interface {
	// Descriptor returns what the owner called name has published. It fails with ErrNotFound.
	Descriptor(ctx context.Context, name string) (*Descriptor, error)
	// Address returns the handshake address, host:port, of the owner called name. It fails with
	// ErrNotFound.
	Address(ctx context.Context, name string) (string, error)

	// Publish makes a descriptor known under its name; Announce does so with a handshake address, and
	// fails when the name has another one.
	Publish(ctx context.Context, d *Descriptor) error
	Announce(ctx context.Context, name, address string) error
	// Withdraw takes both back.
	Withdraw(ctx context.Context, name string) error
}

// P2P is the address of no metadata store: owners are asked themselves.
const P2P = "P2PHANDSHAKE"

// OpenMetadata returns the metadata at an address: P2P, or a URL of a store that speaks HTTP. cluster sets
// the names of one cluster apart; usually it is "". now tells the time, which is published.
func OpenMetadata(address, cluster string, now func() time.Time) (Metadata, error) {
	if address == P2P {
		return peers{}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("metadata address %q is neither %s nor an http or https URL", address, P2P)
	}
	prefix := "mooncake/"
	if cluster != "" {
		prefix += cluster + "/"
	}
	return &httpStore{base: address, prefix: prefix, now: now, client: &http.Client{Timeout: metadataTimeout}}, nil
}

const metadataTimeout = 10 * time.Second

// peers asks the owners themselves: a name is the address of its handshake port.
type peers struct{}

func (peers) Descriptor(ctx context.Context, name string) (*Descriptor, error) {
	body, err := call(ctx, name, messageMetadata, []byte("{}"))
	if err != nil {
		return nil, fmt.Errorf("descriptor of %s: %w", name, err)
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return nil, fmt.Errorf("descriptor of %s: %w: it keeps its metadata in a store", name, ErrNotFound)
	}
	return ParseDescriptor(body)
}

func (peers) Address(_ context.Context, name string) (string, error) { return name, nil }
func (peers) Publish(context.Context, *Descriptor) error             { return nil }
func (peers) Announce(context.Context, string, string) error         { return nil }
func (peers) Withdraw(context.Context, string) error                 { return nil }

// httpStore is a store that speaks HTTP, as the master has one.
type httpStore struct {
	base, prefix string
	now          func() time.Time
	client       *http.Client
}

func (s *httpStore) descriptorKey(name string) string {
	if strings.Contains(name, "/") {
		return s.prefix + name
	}
	return s.prefix + "ram/" + name
}

func (s *httpStore) addressKey(name string) string { return s.prefix + "rpc_meta/" + name }

// rpcMeta is how a handshake address is stored.
type rpcMeta struct {
	Host string `json:"ip_or_host_name"`
	Port int    `json:"rpc_port"`
}

func (s *httpStore) Descriptor(ctx context.Context, name string) (*Descriptor, error) {
	text, err := s.get(ctx, s.descriptorKey(name))
	if err != nil {
		return nil, fmt.Errorf("descriptor of %s: %w", name, err)
	}
	return ParseDescriptor(text)
}

func (s *httpStore) Address(ctx context.Context, name string) (string, error) {
	text, err := s.get(ctx, s.addressKey(name))
	if err != nil {
		return "", fmt.Errorf("handshake address of %s: %w", name, err)
	}
	var m rpcMeta
	if err := json.Unmarshal(text, &m); err != nil || m.Host == "" || m.Port <= 0 || m.Port > 65535 {
		return "", fmt.Errorf("handshake address of %s: %q is none", name, text)
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)), nil
}

func (s *httpStore) Publish(ctx context.Context, d *Descriptor) error {
	return s.do(ctx, http.MethodPut, s.descriptorKey(d.Name), d.encode(s.now()))
}

func (s *httpStore) Announce(ctx context.Context, name, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port of %s: %w", address, err)
	}
	text, err := json.Marshal(rpcMeta{host, n})
	if err != nil {
		return err
	}
	if err := s.do(ctx, http.MethodPut, s.addressKey(name), text); err != nil {
		return fmt.Errorf("%w (is another process called %s, or has one ended without taking its name back?)", err, name)
	}
	return nil
}

func (s *httpStore) Withdraw(ctx context.Context, name string) error {
	err := s.do(ctx, http.MethodDelete, s.addressKey(name), nil)
	return errors.Join(err, s.do(ctx, http.MethodDelete, s.descriptorKey(name), nil))
}

func (s *httpStore) get(ctx context.Context, key string) ([]byte, error) {
	return s.call(ctx, http.MethodGet, key, nil)
}

// do is call for requests that are answered with a word. What isn't there needs no deleting.
func (s *httpStore) do(ctx context.Context, method, key string, body []byte) error {
	_, err := s.call(ctx, method, key, body)
	if method == http.MethodDelete && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (s *httpStore) call(ctx context.Context, method, key string, body []byte) ([]byte, error) {
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
		return nil, fmt.Errorf("%s of key %s: %s: %s", method, key, resp.Status, bytes.TrimSpace(text))
	}
	return text, nil
}

// escape writes a key as the released clients do. Stores compare keys as they are written.
func escape(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "+", "%20") }
