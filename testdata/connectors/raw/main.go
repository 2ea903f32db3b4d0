// Command raw is a connector without the SDK, written from the contract alone, as one in
// another language would be. With "good" as its only argument it does nothing wrong; other
// arguments name the one thing it does wrong (modes.go). It keeps the document in a file, whose
// URI is file:// and a path.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// maxMessage is what the contract asks both sides to take.
const maxMessage = 64<<20 + 64<<10

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: raw MODE")
		os.Exit(2)
	}
	m, known := modes[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "raw: no mode is called %q\n", os.Args[1])
		os.Exit(2)
	}
	if err := serve(m); err != nil {
		fmt.Fprintln(os.Stderr, "raw:", err)
		os.Exit(1)
	}
}

func serve(m mode) error {
	if os.Getenv("MOONCAKE_CONNECTOR_PLUGIN") != "policy-connector-v1" {
		if m.mute {
			os.Exit(0)
		}
		return errors.New("this is a connector, it is started by a master")
	}
	if !m.orphan {
		parent := os.Getppid()
		go func() {
			for os.Getppid() == parent {
				time.Sleep(100 * time.Millisecond)
			}
			os.Exit(0)
		}()
	}
	listener, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), fmt.Sprint("raw", os.Getpid())))
	if err != nil {
		return err
	}
	config, cert, err := identity(!m.open)
	if err != nil {
		return err
	}
	var opts []grpc.ServerOption
	if m.plain {
		cert = ""
	} else {
		opts = append(opts, grpc.Creds(credentials.NewTLS(config)))
	}
	if !m.small {
		opts = append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(2*maxMessage))
	}
	server := grpc.NewServer(opts...)
	if !m.sick {
		healthy := health.NewServer()
		healthy.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
		grpc_health_v1.RegisterHealthServer(server, healthy)
	}
	connectorv1.RegisterConnectorServer(server, &service{mode: m})
	version := "1"
	if m.version != nil {
		version = m.version(os.Getenv("PLUGIN_PROTOCOL_VERSIONS"))
	}
	fmt.Printf("%s1|%s|unix|%s|grpc|%s\n%s", m.banner, version, listener.Addr(), cert, m.later)
	return server.Serve(listener)
}

// identity makes a key and a certificate, and a configuration that asks for the host's.
func identity(verify bool) (*tls.Config, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	if verify {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT"))) {
			return nil, "", errors.New("PLUGIN_CLIENT_CERT holds no certificate")
		}
	}
	return config, base64.RawStdEncoding.EncodeToString(der), nil
}

// Stop ends the process a moment after the answer.
func (s *service) Stop(context.Context, *connectorv1.StopRequest) (*connectorv1.StopResponse, error) {
	time.AfterFunc(100*time.Millisecond, func() { os.Exit(0) })
	return &connectorv1.StopResponse{}, nil
}
