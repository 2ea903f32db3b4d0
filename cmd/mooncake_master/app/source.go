package app

import (
	"context"
	"fmt"
	"os"
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
	spec      connector.Spec
	supervise connector.Deps
	manage    policy.Deps // Source and Store come with the start
	stateDir  string

	since   time.Time
	started atomic.Bool // process and manager are set and stay
	process *connector.Connector
	manager *policy.Manager
}

// newSource prepares a source from a configuration that was validated.
func newSource(cfg *Config, enforcer policy.Enforcer, log hclog.Logger, version string) *source {
	t := &cfg.Tenants
	options, _ := t.Options()
	memory, _ := t.MemoryLimit()
	return &source{
		spec: connector.Spec{
			Type:        t.ConnectorType,
			URI:         t.ConnectorURI,
			ClusterID:   cfg.ClusterID,
			Options:     options,
			Dir:         t.ConnectorDir,
			Stock:       stock,
			SHA256:      t.ConnectorSHA256,
			MemoryLimit: memory,
		},
		supervise: connector.Deps{
			Clock: wall{}, Rand: process{}, Logger: log.Named("connector"), Version: version,
			Env: allowed(t, log), Optional: !t.ConnectorRequired,
			Guard:  connector.OwnCommand("connector", "guard"),
			Timing: connector.Timing{Start: t.ConnectorStartTimeout},
		},
		manage: policy.Deps{
			Enforcer: enforcer, Clock: wall{}, Logger: log.Named("policy"),
			Optional: !t.ConnectorRequired, Keep: 100 - t.MaxRemovalPercent,
		},
		stateDir: cfg.StateDir,
		since:    time.Now(),
	}
}

// allowed returns the variables of our environment that the connector is given.
func allowed(t *TenantsConfig, log hclog.Logger) []string {
	names, _ := t.EnvNames()
	var env []string
	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		} else {
			log.Warn("a variable for the connector is not set", "flag", "--tenant_quota_connector_env", "name", name)
		}
	}
	return env
}

// start runs the connector and puts its first document in force. After an error nothing is
// running.
func (s *source) start(ctx context.Context) (err error) {
	if s.stateDir != "" {
		if err := os.MkdirAll(s.stateDir, 0o700); err != nil {
			return fmt.Errorf("--state_dir=%s: %w", s.stateDir, err)
		}
		s.manage.Store = &policy.FileStore{Dir: s.stateDir, Type: s.spec.Type, URI: s.spec.URI, ClusterID: s.spec.ClusterID}
	}
	s.process, err = connector.Start(ctx, s.spec, s.supervise)
	if err != nil {
		return err
	}
	s.manage.Source = s.process
	s.manager = policy.New(s.manage)
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
	return admin.ConnectorStatus{Type: s.spec.Type, State: admin.ConnectorStarting, Since: s.since, Origin: policy.FromNobody}
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
