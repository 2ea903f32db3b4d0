package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core/connector"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/transport/admin"
)

// stock are the connectors that this executable serves itself, see Connector.
var stock = []string{"file", "etcd"}

// wall is the time of day.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// source is where the tenants' quotas come from: a connector, and what puts its documents in
// force. Until it is started there is nothing behind it.
type source struct {
	spec     connector.Spec
	enforcer policy.Enforcer
	log      hclog.Logger

	since   time.Time
	started atomic.Bool // process and manager are set and stay
	process *connector.Connector
	manager *policy.Manager
}

func newSource(cfg *Config, enforcer policy.Enforcer, log hclog.Logger) *source {
	options, _ := cfg.Tenants.Options() // checked by Validate
	return &source{
		spec: connector.Spec{
			Type:      cfg.Tenants.ConnectorType,
			URI:       cfg.Tenants.ConnectorURI,
			ClusterID: cfg.ClusterID,
			Options:   options,
			Dir:       cfg.Tenants.ConnectorDir,
			Stock:     stock,
		},
		enforcer: enforcer,
		log:      log,
		since:    time.Now(),
	}
}

// start runs the connector and puts its first document in force. After an error nothing is
// running.
func (s *source) start(ctx context.Context) (err error) {
	s.process, err = connector.Start(ctx, s.spec, connector.Deps{Clock: wall{}, Rand: process{}, Logger: s.log.Named("connector")})
	if err != nil {
		return err
	}
	s.manager = policy.New(policy.Deps{Source: s.process, Enforcer: s.enforcer, Clock: wall{}, Logger: s.log.Named("policy")})
	s.started.Store(true)
	return s.manager.Start(ctx)
}

func (s *source) close() {
	if s.manager != nil {
		s.manager.Close()
	}
	if s.process != nil {
		s.process.Close()
	}
}

// Put changes one tenant's policy at its source and then here.
func (s *source) Put(ctx context.Context, name string, quota uint64) error {
	return s.manager.Put(ctx, name, quota)
}

// Delete removes one tenant's policy at its source and then here.
func (s *source) Delete(ctx context.Context, name string) error { return s.manager.Delete(ctx, name) }

// status is what is shown of the connector; while it is being started, that it is.
func (s *source) status() admin.ConnectorStatus {
	if s.started.Load() {
		return s.manager.Status()
	}
	return admin.ConnectorStatus{Type: s.spec.Type, State: admin.ConnectorStarting, Since: s.since}
}

// documents is the policy as a whole; nobody asks before the master serves.
type documents struct{ *source }

func (d documents) InForce() policy.Current { return d.manager.InForce() }

func (d documents) AtSource(ctx context.Context) (policy.Current, error) {
	return d.manager.AtSource(ctx)
}

func (d documents) Plan(document []byte) (policy.Plan, error) { return d.manager.Plan(document) }

func (d documents) Replace(ctx context.Context, document []byte, expected string, confirm bool) (policy.Applied, error) {
	return d.manager.Replace(ctx, document, expected, confirm)
}

func (d documents) Confirm(ctx context.Context, revision string) (policy.Applied, error) {
	return d.manager.Confirm(ctx, revision)
}

func (d documents) History() []policy.Applied { return d.manager.History() }

var (
	_ admin.Policy    = (*source)(nil)
	_ admin.Documents = documents{}
)
