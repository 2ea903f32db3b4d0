package http

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// server is the other side under one configuration: what connects to it and what proves who
// we are, both of which may be renewed on disk at any time.
type server struct {
	settings *settings
	logger   hclog.Logger

	mu        sync.Mutex
	transport *http.Transport  // guarded by mu
	ca        []byte           // guarded by mu; the authorities the transport trusts
	pair      *tls.Certificate // guarded by mu; the last good pair of ours
}

// newServer reads the files that must be good from the beginning. Errors are *sdk.ConfigError.
func newServer(s *settings, logger hclog.Logger) (*server, error) {
	v := &server{settings: s, logger: logger}
	if s.caFile != "" {
		ca, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, sdk.Refuse("options.ca_file", "%v", err)
		}
		if _, err := pool(ca); err != nil {
			return nil, sdk.Refuse("options.ca_file", "%s: %v", s.caFile, err)
		}
	}
	if s.certFile != "" {
		if _, err := tls.LoadX509KeyPair(s.certFile, s.keyFile); err != nil {
			return nil, sdk.Refuse("options.client_cert_file", "%s with key %s: %v", s.certFile, s.keyFile, err)
		}
	}
	return v, nil
}

func pool(pem []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, errors.New("it holds no certificate in PEM form")
	}
	return p, nil
}

// client returns what sends requests, with the authorities that are trusted now.
func (v *server) client() *http.Client {
	v.mu.Lock()
	defer v.mu.Unlock()
	ca := v.ca
	if v.settings.caFile != "" {
		if read, err := os.ReadFile(v.settings.caFile); err == nil && !bytes.Equal(read, v.ca) {
			if _, err := pool(read); err != nil && v.ca != nil {
				v.logger.Warn("the authorities are kept as they were", "ca_file", v.settings.caFile, "why", err)
			} else {
				ca = read
			}
		}
	}
	if v.transport == nil || !bytes.Equal(ca, v.ca) {
		if v.transport != nil {
			v.transport.CloseIdleConnections()
		}
		v.ca, v.transport = ca, v.newTransport(ca)
	}
	return &http.Client{Transport: v.transport, CheckRedirect: v.redirect}
}

func (v *server) newTransport(ca []byte) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		// An empty pool trusts nobody, which is right for a file that went bad.
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	if v.settings.certFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return v.ownCertificate() }
	}
	// Somebody who is gone without a word is noticed while a request is held back.
	dialer := &net.Dialer{
		Timeout:         v.settings.timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
	}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // a compressed answer has another ETag than the document
		MaxIdleConns:        4,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: v.settings.timeout,
		// A connection that leads nowhere must not be used again.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
}

// ownCertificate reads our pair; a pair that is half renewed is not used, the last good one is.
func (v *server) ownCertificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(v.settings.certFile, v.settings.keyFile)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err == nil:
		v.pair = &pair
	case v.pair == nil:
		return nil, err
	default:
		v.logger.Warn("our certificate is kept as it was", "client_cert_file", v.settings.certFile, "why", err)
	}
	return v.pair, nil
}

// errRedirect is an answer that leads where we don't go.
var errRedirect = errors.New("redirected")

// redirect says whether to follow. A token goes to the host it is meant for only.
func (v *server) redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > v.settings.redirects:
		return fmt.Errorf("%w more than %d times, at last to %s", errRedirect, v.settings.redirects, place(next.URL))
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return fmt.Errorf("%w to %s, which is no http address", errRedirect, place(next.URL))
	case first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("%w from https to %s, where everybody can read along", errRedirect, place(next.URL))
	case next.Method != first.Method:
		return fmt.Errorf("%w to %s with another method (%s instead of %s)", errRedirect, place(next.URL), next.Method, first.Method)
	}
	if next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme {
		next.Header.Del("Authorization")
	}
	return nil
}

func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// authorize adds the token, as it is in its file now.
func (v *server) authorize(req *http.Request) error {
	name := v.settings.tokenFile
	if name == "" {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("the token can't be read: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return fmt.Errorf("the token file %s is empty", name)
	}
	for _, b := range []byte(token) {
		if b <= ' ' || b > '~' {
			return fmt.Errorf("the token file %s holds more than one word of printable characters", name)
		}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// close lets go of idle connections.
func (v *server) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.transport != nil {
		v.transport.CloseIdleConnections()
	}
}
