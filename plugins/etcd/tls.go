package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// handshaker secures connections with the certificates that the files hold at that moment. While
// they can't be used, as between the replacement of a certificate and that of its key, the last
// ones that could are.
type handshaker struct {
	files files
	// failed is told how each handshake ended, with the endpoint.
	failed func(place string, err error)

	mu   sync.Mutex
	good *tls.Config // guarded by mu; the last one that could be read
}

var _ credentials.TransportCredentials = (*handshaker)(nil)

// config returns the TLS configuration for one connection.
func (h *handshaker) config() (*tls.Config, error) {
	config, _, err := h.files.read()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && h.good != nil {
		return h.good, nil
	}
	if err == nil {
		h.good = config
	}
	return config, err
}

// ClientHandshake implements credentials.TransportCredentials.
func (h *handshaker) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := h.config()
	if err != nil {
		h.failed(authority, err)
		return nil, nil, err
	}
	name := authority
	if h.files.serverName != "" {
		name = h.files.serverName // the library takes the endpoint's although the configuration has one
	}
	conn, info, err := credentials.NewTLS(config).ClientHandshake(ctx, name, raw)
	h.failed(authority, err)
	return conn, info, err
}

// ServerHandshake implements credentials.TransportCredentials; we are a client.
func (h *handshaker) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("this side is a client")
}

// Info implements credentials.TransportCredentials.
func (h *handshaker) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{ServerName: h.files.serverName, MinVersion: tls.VersionTLS12}).Info()
}

// Clone implements credentials.TransportCredentials. All connections share what was read last.
func (h *handshaker) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials; the option server_name is
// what sets the name.
func (h *handshaker) OverrideServerName(string) error { return nil }
