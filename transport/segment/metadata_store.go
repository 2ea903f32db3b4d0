package segment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// shelf keeps texts under keys.
type shelf interface {
	// get fails with ErrNotFound.
	get(ctx context.Context, key string) ([]byte, error)
	put(ctx context.Context, key string, text []byte) error
	// swap puts a text in the place of another one, nil for none. It fails with errMoved when the key holds something
	// else.
	swap(ctx context.Context, key string, old, text []byte) error
	// remove removes keys, as long as the first one holds a text. It fails with errMoved otherwise. What isn't
	// there needs no removing.
	remove(ctx context.Context, old []byte, keys ...string) error
	close() error
}

// errMoved is returned when a key holds something else than it was thought to.
var errMoved = errors.New("the entry was changed by somebody else at the same time")

// shelfStore is metadata in a store: two texts for each name.
type shelfStore struct {
	shelf
	prefix string
	now    func() time.Time
}

func (s *shelfStore) descriptorKey(name string) string {
	if strings.Contains(name, "/") {
		return s.prefix + name
	}
	return s.prefix + "ram/" + name
}

func (s *shelfStore) addressKey(name string) string { return s.prefix + "rpc_meta/" + name }

// rpcMeta is how a handshake address is stored.
type rpcMeta struct {
	Host string `json:"ip_or_host_name"`
	Port int    `json:"rpc_port"`
}

// parseAddress reads a handshake address as it is stored.
func parseAddress(text []byte) (string, error) {
	var m rpcMeta
	if err := json.Unmarshal(text, &m); err != nil || m.Host == "" || m.Port <= 0 || m.Port > 65535 {
		return "", fmt.Errorf("%.200q is no handshake address", text)
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)), nil
}

// addressText writes a handshake address as it is stored.
func addressText(address string) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", address, err)
	}
	return json.Marshal(rpcMeta{host, n})
}

func (s *shelfStore) Descriptor(ctx context.Context, name string) (*Descriptor, error) {
	text, err := s.get(ctx, s.descriptorKey(name))
	if err != nil {
		return nil, fmt.Errorf("descriptor of %s: %w", name, err)
	}
	return ParseDescriptor(text)
}

func (s *shelfStore) Address(ctx context.Context, name string) (string, error) {
	text, err := s.get(ctx, s.addressKey(name))
	if err != nil {
		return "", fmt.Errorf("handshake address of %s: %w", name, err)
	}
	address, err := parseAddress(text)
	if err != nil {
		return "", fmt.Errorf("handshake address of %s: %w", name, err)
	}
	return address, nil
}

func (s *shelfStore) Publish(ctx context.Context, d *Descriptor) error {
	return s.put(ctx, s.descriptorKey(d.Name), d.encode(s.now()))
}

// announceTries bounds how often an entry is looked at that others change at the same time.
const announceTries = 5

func (s *shelfStore) Announce(ctx context.Context, name, address string) error {
	text, err := addressText(address)
	if err != nil {
		return err
	}
	err = errMoved
	for try := 0; try < announceTries && errors.Is(err, errMoved); try++ {
		err = s.announce(ctx, name, address, text)
	}
	if err != nil {
		return fmt.Errorf("handshake address of %s: %w", name, err)
	}
	return nil
}

func (s *shelfStore) announce(ctx context.Context, name, address string, text []byte) error {
	key := s.addressKey(name)
	old, err := s.get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return s.swap(ctx, key, nil, text)
	}
	if err != nil {
		return err
	}
	other, err := parseAddress(old)
	if err == nil && other == address {
		return nil
	}
	if err == nil {
		if err := abandoned(ctx, other); err != nil {
			return fmt.Errorf("%w: %w; end the process that has it, give this one another name, or delete the key %s from the metadata store",
				ErrNameTaken, err, key)
		}
	}
	return s.swap(ctx, key, old, text)
}

// abandoned returns nil if nobody listens at a handshake address any more. A process that was stopped, or is
// slow, still listens.
func abandoned(ctx context.Context, address string) error {
	probing, cancel := context.WithTimeout(ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	err := Probe(probing, address)
	var failed *net.OpError
	var unknown *net.DNSError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("somebody answers at its handshake address %s", address)
	case errors.As(err, &unknown):
		return fmt.Errorf("whether somebody answers at its handshake address %s can't be told: %w", address, err)
	case errors.As(err, &failed) && failed.Op == "dial":
		return nil
	}
	return fmt.Errorf("somebody listens at its handshake address %s but does not answer: %w", address, err)
}

func (s *shelfStore) Withdraw(ctx context.Context, name, address string) error {
	key := s.addressKey(name)
	old, err := s.get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		old = nil // but there may be a descriptor
	case err != nil:
		return fmt.Errorf("withdrawing %s: %w", name, err)
	default:
		if other, err := parseAddress(old); err != nil || other != address {
			return nil // somebody else's
		}
	}
	if err := s.remove(ctx, old, key, s.descriptorKey(name)); err != nil && !errors.Is(err, errMoved) {
		return fmt.Errorf("withdrawing %s: %w", name, err)
	}
	return nil
}

func (s *shelfStore) Close() error { return s.close() }
