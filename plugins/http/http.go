package http

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// Version of this connector.
const Version = "1.0.0"

// Connector implements sdk.Connector. Make one with New.
type Connector struct {
	logger hclog.Logger

	mu      sync.Mutex
	server  *server       // guarded by mu; nil until configured
	changed chan struct{} // guarded by mu; closed and replaced by Configure

	saving sync.Mutex // held during a Save
}

var _ sdk.Connector = (*Connector)(nil)

// New makes a connector that logs to logger. It does nothing until configured.
func New(logger hclog.Logger) *Connector {
	return &Connector{logger: logger, changed: make(chan struct{})}
}

// Describe implements sdk.Connector.
func (c *Connector) Describe() sdk.Description {
	return sdk.Description{Name: "http", Version: Version, Writable: true, Watches: true, OptionsSchema: schema}
}

// Configure implements sdk.Connector: the URI is the address of the document, with
// "{cluster_id}" replaced.
func (c *Connector) Configure(_ context.Context, config sdk.Config) error {
	s, err := parse(config)
	if err != nil {
		return err
	}
	next, err := newServer(s, c.logger)
	if err != nil {
		return err
	}
	c.mu.Lock()
	former := c.server
	c.server = next
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if former != nil {
		former.close()
	}
	return nil
}

var errNotConfigured = errors.New("not configured yet")

// current returns the server to talk to and what is closed when it is another one. The server
// is nil before the first Configure.
func (c *Connector) current() (*server, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, c.changed
}

// Load implements sdk.Connector.
func (c *Connector) Load(ctx context.Context) (sdk.Document, error) {
	s, _ := c.current()
	if s == nil {
		return sdk.Document{}, errNotConfigured
	}
	got, why := s.get(ctx, "", 0)
	if why != nil {
		return sdk.Document{}, why.Unavailable
	}
	return got.document(), nil
}

// Stop implements sdk.Connector. A save under way is waited for, so that its outcome is known.
func (c *Connector) Stop(context.Context) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	if s, _ := c.current(); s != nil {
		s.close()
	}
	return nil
}

// answer is a document as a server gave it.
type answer struct {
	content []byte
	etag    string // "" if there is none to use
	same    bool   // the server says that nothing has changed; there is no content
	waited  bool   // the server holds requests back until something changes
}

func (a answer) document() sdk.Document {
	return sdk.Document{Content: a.content, Revision: revision(a.etag, a.content)}
}

// revision of a document: the hash makes up for servers that give two contents one ETag.
func revision(etag string, content []byte) string {
	sum := sha256.Sum256(content)
	return strings.TrimSpace(etag + " " + hex.EncodeToString(sum[:]))
}
