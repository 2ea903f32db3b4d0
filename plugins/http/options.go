package http

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// schema describes the options to people and their tools.
const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"poll":{"type":"string","default":"5s","description":"how often to ask a server that does not hold requests back, 100ms to 1h"},` +
	`"wait":{"type":"string","default":"30s","description":"how long to let the server hold a request back (Prefer: wait), 0s (off) to 10m"},` +
	`"timeout":{"type":"string","default":"8s","description":"how long an answer may take, besides wait, 100ms to 10m"},` +
	`"token_file":{"type":"string","description":"file with a bearer token, read before every request; https or a loopback address only"},` +
	`"ca_file":{"type":"string","description":"PEM file of the authorities to trust instead of the system's; read again when it changes"},` +
	`"client_cert_file":{"type":"string","description":"PEM file of our certificate, together with client_key_file; read at every handshake"},` +
	`"client_key_file":{"type":"string","description":"PEM file of the key of client_cert_file"},` +
	`"redirects":{"type":"string","default":"3","description":"how many redirects to follow, 0 to 10"},` +
	`"max_bytes":{"type":"string","default":"67108864","description":"largest document in bytes, 1 to 67108864"},` +
	`"save":{"type":"string","enum":["put","off"],"default":"put","description":"whether changes made at the master are sent with PUT"}}}`

// settings are a configuration that was accepted. They are never changed.
type settings struct {
	address   *url.URL
	shown     string // the address for messages: without the query, which may hold a signature
	poll      time.Duration
	wait      time.Duration
	timeout   time.Duration
	tokenFile string
	caFile    string
	certFile  string
	keyFile   string
	redirects int
	maxBytes  int64
	save      bool
}

// parse checks a configuration. An error is a *sdk.ConfigError with a note for every mistake.
func parse(config sdk.Config) (*settings, error) {
	s := &settings{
		poll: 5 * time.Second, wait: 30 * time.Second, timeout: 8 * time.Second,
		redirects: 3, maxBytes: sdk.MaxDocument, save: true,
	}
	refused := &sdk.ConfigError{}
	note := func(field, format string, args ...any) {
		refused.Notes = append(refused.Notes, sdk.ConfigNote{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	duration := func(name, value string, into *time.Duration, least, most time.Duration) {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most {
			note("options."+name, "%q is not a duration between %s and %s, like %s", value, least, most, *into)
			return
		}
		*into = d
	}
	number := func(name, value string, into *int64, least, most int64) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most {
			note("options."+name, "%q is not a whole number from %d to %d", value, least, most)
			return
		}
		*into = n
	}
	s.setAddress(config.URI, config.ClusterID, note)
	names := make([]string, 0, len(config.Options))
	for name := range config.Options {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		value := config.Options[name]
		switch name {
		case "poll":
			duration(name, value, &s.poll, 100*time.Millisecond, time.Hour)
		case "wait":
			duration(name, value, &s.wait, 0, 10*time.Minute)
		case "timeout":
			duration(name, value, &s.timeout, 100*time.Millisecond, 10*time.Minute)
		case "redirects":
			n := int64(s.redirects)
			number(name, value, &n, 0, 10)
			s.redirects = int(n)
		case "max_bytes":
			number(name, value, &s.maxBytes, 1, sdk.MaxDocument)
		case "token_file":
			s.tokenFile = value
		case "ca_file":
			s.caFile = value
		case "client_cert_file":
			s.certFile = value
		case "client_key_file":
			s.keyFile = value
		case "save":
			if value != "put" && value != "off" {
				note("options.save", "%q is neither put nor off", value)
			}
			s.save = value == "put"
		default:
			note("options."+name, "unknown option; the http connector has poll, wait, timeout, token_file, ca_file, client_cert_file, "+
				"client_key_file, redirects, max_bytes and save")
		}
	}
	if (s.certFile == "") != (s.keyFile == "") {
		note("options.client_cert_file", "client_cert_file and client_key_file go together, one of them is missing")
	}
	if s.address != nil && s.tokenFile != "" && !confidential(s.address) {
		note("options.token_file", "a token is sent over https or to a loopback address only, and the uri is %s://%s", s.address.Scheme, s.address.Host)
	}
	if len(refused.Notes) > 0 {
		return nil, refused
	}
	return s, nil
}

func (s *settings) setAddress(uri, cluster string, note func(field, format string, args ...any)) {
	const example = "want an address like https://config.example.com/mooncake/policy.yaml"
	if uri == "" {
		note("uri", "the http connector requires a non-empty uri; %s", example)
		return
	}
	address, err := url.Parse(strings.ReplaceAll(uri, "{cluster_id}", url.PathEscape(cluster)))
	switch {
	case err != nil:
		// The error repeats the address, which may hold a password.
		note("uri", "it is not an address; %s", example)
	case address.Scheme != "http" && address.Scheme != "https", address.Host == "":
		note("uri", "it is not an http or https address with a host; %s", example)
	case address.User != nil:
		note("uri", "a name and password in the address are seen by everybody who lists processes; use the options token_file or client_cert_file")
	case address.Fragment != "":
		note("uri", "the part after # is not sent to a server; leave it out")
	default:
		s.address = address
		shown := *address
		if shown.RawQuery != "" {
			shown.RawQuery = "..."
		}
		s.shown = shown.String()
	}
}

// confidential tells whether nobody on the way can read what is sent to an address.
func confidential(address *url.URL) bool {
	ip := net.ParseIP(address.Hostname())
	return address.Scheme == "https" || address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// strong tells whether an ETag is one that names the very bytes of a document.
func strong(etag string) bool {
	return len(etag) >= 2 && etag[0] == '"' && etag[len(etag)-1] == '"' && !slices.Contains([]byte(etag[1:len(etag)-1]), '"')
}

// usable returns an ETag if a server's is one, else "".
func usable(etag string) string {
	if strong(strings.TrimPrefix(etag, "W/")) && len(etag) <= 1024 && !strings.ContainsAny(etag, " \t\r\n\x00") {
		return etag
	}
	return ""
}
