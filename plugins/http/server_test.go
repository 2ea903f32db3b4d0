package http

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// identity makes a key and a self-signed certificate for 127.0.0.1, both as PEM.
func identity(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}

// secure serves a handler over TLS with this certificate; with clients, those alone may come.
func secure(t *testing.T, h http.Handler, cert, key, clients string) *httptest.Server {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != "" {
		s.TLS.ClientCAs = x509.NewCertPool()
		s.TLS.ClientCAs.AppendCertsFromPEM([]byte(clients))
		s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	source := newSource(t, "one")
	cert, key := identity(t)
	server := secure(t, source, cert, key, "")
	ca := write(t, "ca.pem", cert)
	c := configured(t, server.URL, "ca_file="+ca)
	doc, err := c.Load(t.Context())
	if err != nil || string(doc.Content) != "one" {
		t.Fatalf("%q, %v", doc.Content, err)
	}
	if _, err := c.Save(t.Context(), []byte("two"), doc.Revision); err != nil {
		t.Error(err)
	}
	_, err = configured(t, server.URL).Load(t.Context())
	var why *sdk.Unavailable
	if !errors.As(err, &why) || why.Kind != sdk.Unreachable || !strings.Contains(why.Reason, "ca_file") {
		t.Errorf("with the system's authorities: %v", err)
	}
	// The server gets a new certificate; so does the file, later.
	nextCert, nextKey := identity(t)
	renewed := secure(t, source, nextCert, nextKey, "")
	c = configured(t, renewed.URL, "ca_file="+ca)
	if _, err := c.Load(t.Context()); err == nil {
		t.Error("an authority that is not in the file is trusted")
	}
	overwrite(t, ca, nextCert)
	if _, err := c.Load(t.Context()); err != nil {
		t.Errorf("after the file was renewed: %v", err)
	}
	overwrite(t, ca, "half of a certi")
	if _, err := c.Load(t.Context()); err != nil {
		t.Errorf("while the file is being renewed: %v", err)
	}
}

func TestAFileWithoutCertificates(t *testing.T) {
	err := New(nil).Configure(t.Context(), sdk.Config{URI: "https://host/x", Options: asOptions([]string{"ca_file=" + write(t, "ca.pem", "hello")})})
	if err == nil || !strings.Contains(err.Error(), "options.ca_file") || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("%v", err)
	}
}

func TestClientCertificate(t *testing.T) {
	source := newSource(t, "one")
	cert, key := identity(t)
	ourCert, ourKey := identity(t)
	server := secure(t, source, cert, key, ourCert)
	ca, certFile, keyFile := write(t, "ca.pem", cert), write(t, "our.pem", ourCert), write(t, "our.key", ourKey)
	if _, err := configured(t, server.URL, "ca_file="+ca).Load(t.Context()); err == nil {
		t.Error("served without a certificate")
	}
	c := configured(t, server.URL, "ca_file="+ca, "client_cert_file="+certFile, "client_key_file="+keyFile)
	if _, err := c.Load(t.Context()); err != nil {
		t.Error(err)
	}
	// Half of a renewal: the former pair goes on working for new connections.
	otherCert, _ := identity(t)
	overwrite(t, certFile, otherCert)
	server.CloseClientConnections()
	if _, err := c.Load(t.Context()); err != nil {
		t.Errorf("with half of a renewal: %v", err)
	}
	err := New(nil).Configure(t.Context(), sdk.Config{URI: server.URL, Options: asOptions([]string{"client_cert_file=" + certFile, "client_key_file=" + keyFile})})
	if err == nil || !strings.Contains(err.Error(), "options.client_cert_file") {
		t.Errorf("a pair that is none: %v", err)
	}
}

func TestToken(t *testing.T) {
	source := newSource(t, "one")
	source.answers(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"))
	})
	file := write(t, "token", "first\n")
	c := configured(t, source.URL, "token_file="+file)
	for _, token := range []string{"first", "second"} {
		overwrite(t, file, token+"\n")
		if doc, err := c.Load(t.Context()); err != nil || string(doc.Content) != "Bearer "+token {
			t.Errorf("%q, %v", doc.Content, err)
		}
	}
	for _, content := range []string{"", "\n", "two words", "two\nlines", "sch\u00f6n"} {
		overwrite(t, file, content)
		_, err := c.Load(t.Context())
		var why *sdk.Unavailable
		if !errors.As(err, &why) || why.Kind != sdk.Auth || !strings.Contains(why.Reason, file) {
			t.Errorf("a file with %q: %v", content, err)
		}
		if err != nil && len(content) > 1 && strings.Contains(err.Error(), content) {
			t.Errorf("the secret is in the message: %v", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var why *sdk.Unavailable
	if _, err := c.Load(t.Context()); !errors.As(err, &why) || why.Kind != sdk.Auth {
		t.Errorf("without the file: %v", err)
	}
}

func TestRedirects(t *testing.T) {
	other := newSource(t, "")
	other.answers(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "other %s %q", r.URL.Path, r.Header.Get("Authorization"))
	})
	cert, key := identity(t)
	one := newSource(t, "")
	one.answers(func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch {
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, other.URL+"/p", http.StatusFound)
		case r.URL.Path == "/ftp":
			http.Redirect(w, r, "ftp://host/p", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/down"):
			_, _ = fmt.Sscanf(r.URL.Path, "/down%d", &n)
			http.Redirect(w, r, fmt.Sprintf("/down%d", n-1), http.StatusTemporaryRedirect)
			if n == 0 {
				t.Error("followed too far")
			}
		}
	})
	tls := secure(t, one, cert, key, "")
	ca := "ca_file=" + write(t, "ca.pem", cert)
	token := "token_file=" + write(t, "token", "secret")
	doc, err := configured(t, one.URL+"/elsewhere", token).Load(t.Context())
	if err != nil || string(doc.Content) != `other /p ""` {
		t.Errorf("to another host: %q, %v; the token is not for it", doc.Content, err)
	}
	for address, want := range map[string]string{
		one.URL + "/down9":     "redirected more than 2 times, at last to " + one.URL + "/down6",
		one.URL + "/ftp":       "ftp://host/p, which is no http address",
		tls.URL + "/elsewhere": "from https to " + other.URL + "/p",
	} {
		_, err := configured(t, address, "redirects=2", ca).Load(t.Context())
		var why *sdk.Unavailable
		if !errors.As(err, &why) || why.Kind != sdk.Unreachable || !strings.Contains(why.Reason, want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}
