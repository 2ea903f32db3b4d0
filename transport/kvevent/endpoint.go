package kvevent

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// listen binds an endpoint in ZeroMQ's notation.
func listen(endpoint string) (net.Listener, error) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	switch {
	case !found:
	case scheme == "tcp":
		network, address, err := tcpAddress(rest)
		if err != nil {
			return nil, fmt.Errorf("kv_events_bind_endpoint %q: %w", endpoint, err)
		}
		return net.Listen(network, address)
	case scheme == "ipc" && rest != "":
		// A socket that an earlier process has left would be in the way.
		if info, err := os.Lstat(rest); err == nil && info.Mode()&fs.ModeSocket != 0 {
			if err := os.Remove(rest); err != nil {
				return nil, err
			}
		}
		return net.Listen("unix", rest)
	}
	return nil, fmt.Errorf("kv_events_bind_endpoint %q: want tcp://address:port or ipc://path", endpoint)
}

// tcpAddress translates host:port, where the host may be * for all addresses or the name of an
// interface, and the port * for any.
func tcpAddress(s string) (network, address string, err error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", "", err
	}
	if port == "*" {
		port = "0"
	}
	switch {
	case host == "*":
		return "tcp4", ":" + port, nil
	case host == "":
		return "", "", errors.New("no address")
	case net.ParseIP(host) != nil:
		return "tcp", net.JoinHostPort(host, port), nil
	}
	if i, err := net.InterfaceByName(host); err == nil {
		ip, err := firstAddress(i)
		return "tcp", net.JoinHostPort(ip, port), err
	}
	return "tcp", net.JoinHostPort(host, port), nil
}

// firstAddress returns an interface's first IPv4 address.
func firstAddress(i *net.Interface) (string, error) {
	addrs, err := i.Addrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("interface %s has no IPv4 address", i.Name)
}
