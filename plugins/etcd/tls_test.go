package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue writes a certificate for a name and its key; by nobody it is an authority itself.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	parent, signer := template, key
	if a != nil {
		parent, signer = a.certificate, a.key
	} else {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	replace(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, key}
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var nobody *authority
	ca := nobody.issue(t, "authority", in("ca.pem"), in("ca.key"))
	other := nobody.issue(t, "other authority", in("other.pem"), in("other.key"))
	ca.issue(t, "etcd.example", in("server.pem"), in("server.key"))
	ca.issue(t, "operator", in("operator.pem"), in("operator.key"))
	s := startServer(t, func(c *embed.Config) {
		c.ListenClientUrls[0].Scheme, c.AdvertiseClientUrls[0].Scheme = "https", "https"
		c.ClientTLSInfo = transport.TLSInfo{CertFile: in("server.pem"), KeyFile: in("server.key"), TrustedCAFile: in("ca.pem"), ClientCertAuth: true, SkipClientSANVerify: true}
	})
	admin := operator(t, "https://"+s.client, func(c *clientv3.Config) {
		config, _, err := files{ca: in("ca.pem"), cert: in("operator.pem"), key: in("operator.key"), serverName: "etcd.example"}.read()
		if err != nil {
			t.Fatal(err)
		}
		config.InsecureSkipVerify = true // the library has no way to expect another name than the endpoint's
		c.TLS = config
	})
	put(t, admin, keyOf(t), "secured")
	options := func(ca, pair, name string) []string {
		o := []string{"ca_file", in(ca)}
		if pair != "" {
			o = append(o, "cert_file", in(pair+".pem"), "key_file", in(pair+".key"))
		}
		if name != "" {
			o = append(o, "server_name", name)
		}
		return o
	}
	other.issue(t, "stranger", in("stranger.pem"), in("stranger.key"))
	for _, tc := range []struct {
		name    string
		options []string
		says    string
	}{
		{"wrong authority", options("other.pem", "operator", "etcd.example"), "certificate signed by unknown authority (server_name 'etcd.example')"},
		{"name of the endpoint", options("ca.pem", "operator", ""), "cannot validate certificate for 127.0.0.1"},
		{"wrong name", options("ca.pem", "operator", "other.example"), "certificate is valid for etcd.example, not other.example"},
		{"no certificate", options("ca.pem", "", "etcd.example"), "tls: "},
		{"certificate of a stranger", options("ca.pem", "stranger", "etcd.example"), "tls: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := connect(t, s.client, tc.options...).Load(t.Context())
			unavailableAs(t, err, sdk.Auth, keyOf(t), s.client, tc.says)
		})
	}
	_, err := connect(t, "http://"+s.client).Load(t.Context())
	unavailableAs(t, err, sdk.Unreachable, s.client)

	// A certificate that is replaced while we run.
	other.issue(t, "master", in("master.pem"), in("master.key"))
	c := connect(t, "https://"+s.client, append(options("ca.pem", "master", "etcd.example"), "request_timeout", "1s")...)
	r := watching(t, c)
	r.await(t, "auth")
	ca.issue(t, "master", in("master.pem"), in("master.key"))
	r.await(t, "doc secured")
	put(t, admin, keyOf(t), "replaced")
	r.await(t, "doc replaced")
}

// TestHalfReplaced has a certificate whose key is not there yet.
func TestHalfReplaced(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var nobody *authority
	nobody.issue(t, "a", in("cert"), in("key"))
	h := &handshaker{files: files{cert: in("cert"), key: in("key")}}
	first, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	nobody.issue(t, "b", in("cert"), in("key of b"))
	if half, err := h.config(); err != nil || half != first {
		t.Errorf("%v, %v, want the one before", half, err)
	}
	key, err := os.ReadFile(in("key of b"))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, in("key"), key)
	second, err := h.config()
	if err != nil || second == first || commonName(t, second) != "b" {
		t.Errorf("%v, %v, want the new one", second, err)
	}
}

func commonName(t *testing.T, config *tls.Config) string {
	t.Helper()
	c, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return c.Subject.CommonName
}
