package etcd

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// defaultPort is the one etcd listens on for clients.
const defaultPort = "2379"

// Endpoints takes a list of etcd endpoints apart, separated by commas or semicolons, and
// returns them as host:port, lower case, sorted, each once: two lists that name the same
// members give the same result. IPv6 addresses are in brackets. Names are not resolved. An error
// says which endpoint is wrong and what would be right.
func Endpoints(list string) ([]string, error) {
	all, err := parseEndpoints(list)
	if err != nil {
		return nil, err
	}
	var places []string
	for _, e := range all {
		places = append(places, e.place)
	}
	slices.Sort(places)
	return slices.Compact(places), nil
}

// endpoint is one of a list.
type endpoint struct {
	scheme string // http, https, or "" when none was written
	place  string // host:port
}

func parseEndpoints(list string) ([]endpoint, error) {
	var all []endpoint
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' }) {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		e, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("'%s' names no endpoint, want host:port, several separated by commas", list)
	}
	return all, nil
}

func parseEndpoint(text string) (endpoint, error) {
	wrong := func(what string) (endpoint, error) {
		return endpoint{}, fmt.Errorf("'%s' is no etcd endpoint: %s, want [http://|https://]host[:port]", text, what)
	}
	var e endpoint
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		e.scheme, rest = strings.ToLower(scheme), after
		if e.scheme != "http" && e.scheme != "https" {
			return wrong("unknown scheme " + scheme)
		}
	}
	rest = strings.TrimRight(rest, "/")
	if strings.Contains(rest, "@") {
		return endpoint{}, fmt.Errorf("an etcd endpoint holds a user name or password; they belong into the options user and password_file")
	}
	if bare, err := netip.ParseAddr(rest); err == nil && bare.Is6() { // brackets forgotten, no port
		rest = "[" + rest + "]"
	}
	u, err := url.Parse("etcd://" + rest)
	switch {
	case err != nil:
		return wrong("not readable")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return wrong("nothing may follow the port")
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	} else if host == "" || strings.ContainsAny(host, ": \t") {
		return wrong("no host")
	}
	if port == "" {
		port = defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return wrong("no port from 1 to 65535")
	}
	e.place = net.JoinHostPort(host, strconv.FormatUint(n, 10))
	return e, nil
}
