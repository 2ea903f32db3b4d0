package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// pollDefault is how often the file is looked at even if the system tells of no change.
const pollDefault = 2 * time.Second

// Connector implements sdk.Connector. Make one with New.
type Connector struct {
	logger hclog.Logger

	mu      sync.Mutex
	path    string        // guarded by mu; "" until configured
	poll    time.Duration // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced by Configure

	io    sync.Mutex // held while the file is read or saved
	still stillness  // guarded by io
}

var _ sdk.Connector = (*Connector)(nil)

// New makes a connector that logs to logger. It does nothing until configured.
func New(logger hclog.Logger) *Connector {
	return &Connector{logger: logger, poll: pollDefault, changed: make(chan struct{})}
}

// Describe implements sdk.Connector.
func (c *Connector) Describe() sdk.Description {
	return sdk.Description{
		Name: "file", Version: sdk.Version, Writable: true, Watches: true,
		OptionsSchema: `{"type":"object","additionalProperties":false,"properties":{"poll":{"type":"string","description":` +
			`"how often to look at the file even without a notice from the system, 100ms to 1h","default":"2s"}}}`,
	}
}

// Configure implements sdk.Connector: the URI is the path of the file.
func (c *Connector) Configure(_ context.Context, config sdk.Config) error {
	if config.URI == "" {
		return sdk.Refuse("uri", "tenant quota file connector requires a non-empty uri: the path of the policy file")
	}
	poll := pollDefault
	for name, value := range config.Options {
		if name != "poll" {
			return sdk.Refuse("options."+name, "unknown option; the file connector has the option poll")
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 100*time.Millisecond || d > time.Hour {
			return sdk.Refuse("options.poll", "%q is not a duration between 100ms and 1h, like 2s", value)
		}
		poll = d
	}
	c.mu.Lock()
	c.path, c.poll = config.URI, poll
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.io.Lock()
	defer c.io.Unlock()
	c.recover(config.URI)
	return nil
}

func (c *Connector) config() (path string, poll time.Duration, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.path, c.poll, c.changed
}

// Load implements sdk.Connector.
func (c *Connector) Load(ctx context.Context) (sdk.Document, error) {
	f, _, err := c.load(ctx)
	if err != nil {
		return sdk.Document{}, err
	}
	return f.document(), nil
}

// load reads the file once it is finished. One that somebody goes on writing to is an error: what
// is there of a document may be a valid one that nobody meant. finished tells that it was not that.
func (c *Connector) load(ctx context.Context) (f content, finished bool, err error) {
	path, _, _ := c.config()
	c.io.Lock()
	defer c.io.Unlock()
	done := func(f content) bool { return f.finished(c.still.of(f.info)) }
	if f, err = read(ctx, path, settleLoad, done); err != nil {
		return content{}, true, err
	}
	if !done(f) {
		return content{}, false, unavailable(path, errUnfinished)
	}
	return f, true, nil
}

func (c content) document() sdk.Document {
	return sdk.Document{Content: c.content, Revision: revision(c.content)}
}

// Stop implements sdk.Connector. A save under way is waited for, so that it is not cut short.
func (c *Connector) Stop(context.Context) error {
	c.io.Lock()
	defer c.io.Unlock()
	return nil
}

func revision(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
