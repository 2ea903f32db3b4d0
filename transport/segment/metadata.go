package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrNotFound is returned for what nobody has published.
var ErrNotFound = errors.New("not published")

// ErrNameTaken is returned when another process has the name of an owner, or may have it.
var ErrNameTaken = errors.New("the name is taken")

// Metadata is where owners of memory publish how they can be reached, by their names. It is safe for
// concurrent use.
type Metadata interface {
	// Descriptor returns what the owner called name has published. It fails with ErrNotFound.
	Descriptor(ctx context.Context, name string) (*Descriptor, error)
	// Address returns the handshake address, host:port, of the owner called name. It fails with
	// ErrNotFound.
	Address(ctx context.Context, name string) (string, error)

	// Publish makes a descriptor known under its name.
	Publish(ctx context.Context, d *Descriptor) error
	// Announce makes a handshake address known under a name. A name whose address nobody listens at any more
	// is taken over; one that another process may have is not: ErrNameTaken.
	Announce(ctx context.Context, name, address string) error
	// Withdraw takes both back, unless the name has another address by now.
	Withdraw(ctx context.Context, name, address string) error

	// Close ends the connections to the store.
	Close() error
}

// P2P is the address of no metadata store: owners are asked themselves.
const P2P = "P2PHANDSHAKE"

// OpenMetadata returns the metadata at an address, spelt as the released clients take it: P2P, the http or
// https URL of a store, or etcd://host:port[,host:port...], of which the etcd:// may be left out. cluster sets
// the names of one cluster apart; usually it is "". now tells the time, which is published. Nothing is connected
// before it is needed.
func OpenMetadata(address, cluster string, now func() time.Time) (Metadata, error) {
	prefix := "mooncake/"
	if cluster != "" {
		prefix += cluster + "/"
	}
	scheme, rest, found := strings.Cut(address, "://")
	switch {
	case address == P2P:
		return peers{}, nil
	case found && (scheme == "http" || scheme == "https"):
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			return nil, fmt.Errorf("metadata address %q is no URL with a host", address)
		}
		return &shelfStore{shelf: newHTTPShelf(address), prefix: prefix, now: now}, nil
	case found && scheme != "etcd":
		return nil, fmt.Errorf("metadata address %q: there is no store for %s; use %s, http(s)://host:port/path or etcd://host:port[,host:port]", address, scheme, P2P)
	case !found:
		rest = address
	}
	shelf, err := newEtcdShelf(rest)
	if err != nil {
		return nil, fmt.Errorf("metadata address %q is neither %s nor an http or https URL nor etcd://host:port[,host:port]: %w", address, P2P, err)
	}
	return &shelfStore{shelf: shelf, prefix: prefix, now: now}, nil
}

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
func (peers) Withdraw(context.Context, string, string) error         { return nil }
func (peers) Close() error                                           { return nil }
