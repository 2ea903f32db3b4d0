package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// listeners are bound before any is served, so that a port that is taken ends the start before
// anybody is answered.
type listeners struct {
	rpc      net.Listener
	admin    net.Listener
	metadata net.Listener // nil when off
}

func bind(cfg *Config) (l listeners, err error) {
	if l.rpc, err = listen("rpc_address", "rpc_port", cfg.RPC.Host, cfg.RPC.Port); err != nil {
		return l, err
	}
	if l.admin, err = listen("metrics_host", "metrics_port", cfg.Admin.Host, cfg.Admin.Port); err != nil {
		return l, err
	}
	if cfg.Metadata.Enabled {
		l.metadata, err = listen("http_metadata_server_host", "http_metadata_server_port", cfg.Metadata.Host, cfg.Metadata.Port)
	}
	return l, err
}

// listen opens one listener; an error names the flag that is to blame. An IPv4 address stays one:
// Go would take 0.0.0.0 for the addresses of both families, which is what :: means here.
func listen(hostFlag, portFlag, host string, port int) (net.Listener, error) {
	host = strings.Trim(host, "[]")
	network := "tcp"
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil && !strings.Contains(host, ":") {
		network = "tcp4"
	}
	l, err := net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("--%s=%d: %w; choose a free port, or 0 for any", portFlag, port, err)
		case errors.Is(err, syscall.EACCES):
			return nil, fmt.Errorf("--%s=%d: %w; ports below 1024 may need privileges", portFlag, port, err)
		default:
			return nil, fmt.Errorf("--%s=%s: %w; want an address of this machine", hostFlag, host, err)
		}
	}
	return l, nil
}

// close closes what is open. A listener that its server has closed already is no error.
func (l *listeners) close() error {
	var errs []error
	for _, x := range []net.Listener{l.rpc, l.admin, l.metadata} {
		if x != nil {
			if err := x.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
