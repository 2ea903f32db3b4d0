package etcd

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// schema describes the options.
const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"user":{"type":"string","description":"user name, where the cluster asks for one; needs password_file"},` +
	`"password_file":{"type":"string","description":"file with the user's password, read whenever a token is needed; a line break at the end does not count"},` +
	`"ca_file":{"type":"string","description":"PEM certificates of the authorities that sign the members' certificates; turns TLS on; default with https:// the system's"},` +
	`"cert_file":{"type":"string","description":"PEM certificate to show to the members; turns TLS on; needs key_file"},` +
	`"key_file":{"type":"string","description":"PEM key of cert_file"},` +
	`"server_name":{"type":"string","description":"name to expect in the members' certificates instead of each endpoint's host"},` +
	`"request_timeout":{"type":"string","description":"how long one member may take for an answer, 100ms to 1m","default":"3s"},` +
	`"reconcile":{"type":"string","description":"how often the key is read whatever the watch says, 100ms to 1h","default":"10s"}}}`

// names of the options, for messages.
var names = []string{"user", "password_file", "ca_file", "cert_file", "key_file", "server_name", "request_timeout", "reconcile"}

// settings are a checked configuration; they do not change.
type settings struct {
	key       string
	endpoints []string // as the client wants them, with a scheme
	places    string   // the endpoints for people
	user      string
	password  string // file
	secure    bool   // TLS
	files     files
	timeout   time.Duration // of one attempt
	reconcile time.Duration
	limits    limits
}

// parse checks a configuration. An error is a *sdk.ConfigError with a note for each thing wrong.
func parse(config sdk.Config) (*settings, error) {
	var notes []sdk.ConfigNote
	wrong := func(field, format string, args ...any) {
		notes = append(notes, sdk.Refuse(field, format, args...).Notes...)
	}
	s := &settings{timeout: 3 * time.Second, reconcile: 10 * time.Second}
	id, err := clusterID(config.ClusterID)
	if err != nil {
		wrong("cluster_id", "%v", err)
	}
	s.key = "mooncake-store/" + id + "/tenant_quota_policy"
	o := config.Options
	for _, name := range sortedKeys(o) {
		var err error
		switch name {
		case "user":
			s.user = o[name]
		case "password_file":
			s.password = o[name]
		case "ca_file":
			s.files.ca = o[name]
		case "cert_file":
			s.files.cert = o[name]
		case "key_file":
			s.files.key = o[name]
		case "server_name":
			s.files.serverName = o[name]
		case "request_timeout":
			s.timeout, err = between(o[name], 100*time.Millisecond, time.Minute)
		case "reconcile":
			s.reconcile, err = between(o[name], 100*time.Millisecond, time.Hour)
		default:
			err = fmt.Errorf("unknown option; the etcd connector has %s", strings.Join(names, ", "))
		}
		if err != nil {
			wrong("options."+name, "%v", err)
		}
	}
	s.checkEndpoints(config.URI, wrong)
	s.checkFiles(wrong)
	if len(notes) > 0 {
		return nil, &sdk.ConfigError{Notes: notes}
	}
	return s, nil
}

func (s *settings) checkEndpoints(uri string, wrong func(field, format string, args ...any)) {
	if strings.TrimSpace(uri) == "" {
		wrong("uri", "tenant quota etcd connector requires a non-empty uri: the endpoints of the etcd cluster, like 127.0.0.1:2379")
		return
	}
	all, err := parseEndpoints(uri)
	if err != nil {
		wrong("uri", "%v", err)
		return
	}
	schemes := map[string]bool{}
	var places []string
	for _, e := range all {
		schemes[e.scheme] = true
		places = append(places, e.place)
	}
	tlsAsked := s.files != files{}
	switch {
	case schemes["https"] && schemes["http"]:
		wrong("uri", "some endpoints begin with http:// and some with https://; they must be all alike")
	case schemes["http"] && tlsAsked:
		wrong("uri", "endpoints begin with http:// although options ask for TLS; write https://, or leave the scheme away")
	}
	s.secure = schemes["https"] || tlsAsked
	scheme := "http://"
	if s.secure {
		scheme = "https://"
	}
	for _, p := range places {
		s.endpoints = append(s.endpoints, scheme+p)
	}
	slices.Sort(s.endpoints)
	s.endpoints = slices.Compact(s.endpoints)
	slices.Sort(places)
	s.places = strings.Join(slices.Compact(places), ", ")
}

func (s *settings) checkFiles(wrong func(field, format string, args ...any)) {
	switch {
	case s.user != "" && s.password == "":
		wrong("options.password_file", "is missing; the option user needs it")
	case s.user == "" && s.password != "":
		wrong("options.user", "is missing; the option password_file needs it")
	case s.user != "":
		if _, err := s.readPassword(); err != nil {
			wrong("options.password_file", "%v", err)
		}
	}
	if (s.files.cert == "") != (s.files.key == "") {
		wrong("options.key_file", "cert_file and key_file need each other")
		return
	}
	if s.secure {
		if _, field, err := s.files.read(); err != nil {
			wrong("options."+field, "%v", err)
		}
	}
}

// readPassword reads the password as it is now.
func (s *settings) readPassword() (string, error) {
	text, err := os.ReadFile(s.password)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("the password file '%s' is empty", s.password)
	}
	return secret, nil
}

// files are where TLS comes from. They are read for each connection, so that certificates can
// be replaced while we run.
type files struct{ ca, cert, key, serverName string }

// read makes a TLS configuration of the files as they are now. With an error comes the name of
// the option at fault.
func (f files) read() (config *tls.Config, option string, err error) {
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, "ca_file", err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, "ca_file", fmt.Errorf("'%s' holds no PEM certificate", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, "cert_file", fmt.Errorf("'%s' with '%s': %w", f.cert, f.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, "", nil
}

// clusterID checks a cluster id and gives the default for none.
func clusterID(id string) (string, error) {
	id = cmp.Or(strings.TrimRight(id, "/"), "mooncake_cluster")
	if len(id) > 128 {
		return id, fmt.Errorf("the cluster id has %d characters, at most 128 are allowed", len(id))
	}
	for _, r := range id {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r == '.', r == '-':
		default:
			return id, fmt.Errorf("the cluster id %q holds %q, allowed are letters, digits, '_', '.' and '-'", id, r)
		}
	}
	return id, nil
}

func between(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%q is not a duration between %s and %s, like 5s", text, least, most)
	}
	return d, nil
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
