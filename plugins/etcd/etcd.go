package etcd

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/sdk"
)

// limits are what the tests have smaller.
type limits struct {
	// patience is how long a Load goes on asking a cluster that does not answer.
	patience time.Duration
	// pulse is how often a watch is asked for a sign of life, and how long it may take to give one.
	pulse time.Duration
	// document is the largest document, in bytes.
	document int
}

var usual = limits{patience: 5 * time.Second, pulse: time.Second, document: sdk.MaxDocument}

// Connector implements sdk.Connector. Make one with New.
type Connector struct {
	logger hclog.Logger
	limits limits

	mu      sync.Mutex
	link    *link         // guarded by mu; nil until configured
	changed chan struct{} // guarded by mu; closed and replaced with link
	told    string        // guarded by mu; what the log said last about the key
	stopped bool          // guarded by mu
	saving  sync.WaitGroup
}

var _ sdk.Connector = (*Connector)(nil)

// New makes a connector that logs to logger. It does nothing until configured.
func New(logger hclog.Logger) *Connector {
	return &Connector{logger: logger, limits: usual, changed: make(chan struct{})}
}

// Describe implements sdk.Connector.
func (c *Connector) Describe() sdk.Description {
	return sdk.Description{Name: "etcd", Version: sdk.Version, Writable: true, Watches: true, AbsentIsEmpty: true, OptionsSchema: schema}
}

// Configure implements sdk.Connector: the URI lists the endpoints. Files that options name must
// be there; the cluster is not asked.
func (c *Connector) Configure(_ context.Context, config sdk.Config) error {
	s, err := parse(config)
	if err != nil {
		return err
	}
	s.limits = c.limits
	for _, secret := range []string{s.password, s.files.key} {
		if info, err := os.Stat(secret); secret != "" && err == nil && info.Mode().Perm()&0o007 != 0 {
			c.logger.Warn("a secret can be read or written by everybody on this machine", "file", secret, "mode", info.Mode().Perm().String())
		}
	}
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return errStopped
	}
	old := c.link
	c.link = newLink(s)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if old != nil {
		old.close()
	}
	c.logger.Info("the tenant quota policy is kept in etcd", "key", s.key, "endpoints", s.places, "tls", s.secure, "user", s.user)
	return nil
}

// current returns the link in use, nil when there is none, what tells that it is another, and
// whether there will be none any more.
func (c *Connector) current() (l *link, changed <-chan struct{}, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.changed, c.stopped
}

var errStopped = errors.New("the connector is stopped")

var errUnconfigured = &sdk.Unavailable{Kind: sdk.Permanent, Reason: "the connector is not configured"}

// Load implements sdk.Connector: a linearizable read. A cluster that does not answer is asked
// again for up to five seconds.
func (c *Connector) Load(ctx context.Context) (sdk.Document, error) {
	l, _, _ := c.current()
	if l == nil {
		return sdk.Document{}, errUnconfigured
	}
	f, why := c.read(ctx, l)
	if why != nil {
		return sdk.Document{}, why
	}
	doc, why := l.event(f)
	if why != nil {
		return sdk.Document{}, why
	}
	return doc, nil
}

// read reads the key, again and again until the time is over if the cluster is unreachable.
func (c *Connector) read(ctx context.Context, l *link) (found, *sdk.Unavailable) {
	limited, cancel := context.WithTimeout(ctx, l.limits.patience)
	defer cancel()
	var pauses pauses
	var last *sdk.Unavailable
	for {
		f, err := l.read(limited)
		if err == nil {
			c.say(l, f)
			return f, nil
		}
		why := l.unavailable(err)
		if limited.Err() == nil || last == nil { // the last attempt may have been cut short
			last = why
		}
		if why.Kind != sdk.Unreachable || l.ctx.Err() != nil {
			return found{}, why
		}
		l.rest(limited, pauses.next(impatient))
		if limited.Err() != nil {
			return found{}, last
		}
	}
}

// say logs which version of the key was read, once.
func (c *Connector) say(l *link, f found) {
	text := l.places + " " + l.key + " " + f.revision
	c.mu.Lock()
	known := c.told == text
	c.told = text
	c.mu.Unlock()
	switch {
	case known:
	case f.present:
		c.logger.Info("read the tenant quota policy from etcd", "key", l.key, "mod_revision", f.mod, "bytes", len(f.content), "at_revision", f.at, "cluster", clusterName(f.cluster))
	default:
		c.logger.Warn("etcd holds no tenant quota policy: the key does not exist; a wrong cluster_id looks the same",
			"key", l.key, "at_revision", f.at, "cluster", clusterName(f.cluster), "endpoints", l.places)
	}
}

// Stop implements sdk.Connector. A save under way is waited for, so that its outcome is told.
func (c *Connector) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopped = true
	l := c.link
	c.link = nil
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	saved := make(chan struct{})
	go func() { c.saving.Wait(); close(saved) }()
	select {
	case <-saved:
	case <-ctx.Done():
	}
	if l != nil {
		l.close()
	}
	<-saved // soon, without a link
	return nil
}
