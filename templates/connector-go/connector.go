package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// FILL IN: what operators call it, and your version.
const (
	name    = "template"
	version = "0.1.0"
)

// interval is how often the source is looked at, unless the option says otherwise.
const interval = time.Second

// settings are one configuration. A new one replaces them as a whole.
type settings struct {
	store    store
	interval time.Duration
}

// connector implements sdk.Connector over a store. Methods may be called concurrently.
type connector struct {
	logger  hclog.Logger
	current atomic.Pointer[settings]
}

// The compiler says here what is missing.
var _ sdk.Connector = (*connector)(nil)

func newConnector(logger hclog.Logger) *connector { return &connector{logger: logger} }

// Describe comes before Configure and says always the same.
func (c *connector) Describe() sdk.Description {
	return sdk.Description{
		Name:    name,
		Version: version,
		// FILL IN: false if your source can't be written; Save then returns sdk.ErrReadOnly.
		Writable: true,
		// FILL IN: true if your source tells changes by itself, so that nothing is polled.
		Watches: false,
		// FILL IN: true if a source without a document means "no tenant may write yet" when a
		// master starts; false lets it refuse to start, which is safer.
		AbsentIsEmpty: false,
		// FILL IN: your options. Without any leave it empty.
		OptionsSchema: `{"type":"object","additionalProperties":false,"properties":{` +
			`"interval":{"type":"string","description":"how often to look at the source, 10ms to 1h","default":"1s"}}}`,
	}
}

// Configure checks the settings and takes them over, or refuses them and changes nothing. It
// must not change the source, and need not reach it.
func (c *connector) Configure(_ context.Context, config sdk.Config) error {
	s := settings{interval: interval}
	for option, value := range config.Options {
		switch option {
		case "interval":
			d, err := time.ParseDuration(value)
			if err != nil || d < 10*time.Millisecond || d > time.Hour {
				return sdk.Refuse("options.interval", "%q is not a duration between 10ms and 1h, like 1s", value)
			}
			s.interval = d
		default:
			// A typing error must not go unseen.
			return sdk.Refuse("options."+option, "unknown option; there is interval")
		}
	}
	// FILL IN: your URI. Secrets belong into files that an option names, not into the URI.
	// config.ClusterID tells clusters apart that share a source.
	path, ok := strings.CutPrefix(config.URI, "file://")
	if !ok || !strings.HasPrefix(path, "/") {
		return sdk.Refuse("uri", "%q is not file:// and an absolute path, like file:///etc/quotas.yaml", config.URI)
	}
	s.store = &fileStore{path: path}
	c.current.Store(&s)
	return nil
}

// settings are those in force.
func (c *connector) settings() (*settings, error) {
	if s := c.current.Load(); s != nil {
		return s, nil
	}
	return nil, &sdk.Unavailable{Kind: sdk.Permanent, Reason: "the connector is not configured", Final: true}
}

// Load reads the source now: no cache.
func (c *connector) Load(ctx context.Context) (sdk.Document, error) {
	s, err := c.settings()
	if err != nil {
		return sdk.Document{}, err
	}
	return s.store.get(ctx)
}

// Watch tells what is at the source, now and whenever it changes, until ctx ends. It looks again
// and again; saying the same twice is harmless, the SDK leaves it out. If your source tells
// changes, wait for those instead, and read once more after every reconnect.
func (c *connector) Watch(ctx context.Context, _ string, sink sdk.Sink) error {
	s, err := c.settings()
	if err != nil {
		return err
	}
	for {
		doc, err := s.store.get(ctx)
		var why *sdk.Unavailable
		switch {
		case ctx.Err() != nil:
			return nil // the master has cancelled
		case err == nil:
			sink.Snapshot(doc)
		case errors.As(err, &why):
			sink.Unavailable(why)
		default:
			// Never an empty document instead: that would take everybody's quota away.
			sink.Unavailable(&sdk.Unavailable{Kind: sdk.Unreachable, Reason: err.Error()})
		}
		// A little jitter keeps many masters from asking at the same moment.
		pause := s.interval - s.interval/10 + rand.N(s.interval/5)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Save replaces the document if it is still the expected one.
func (c *connector) Save(ctx context.Context, document []byte, expected string) (string, error) {
	s, err := c.settings()
	if err != nil {
		return "", err
	}
	revision, err := s.store.put(ctx, document, expected)
	if err != nil {
		c.logger.Warn("the policy was not saved", "expected", expected, "error", err)
	}
	return revision, err
}

// Stop lets go of everything. FILL IN: close your connections.
func (c *connector) Stop(context.Context) error { return nil }
