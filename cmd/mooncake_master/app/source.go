package app

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/transport/admin"
)

// source is where the tenants' quotas come from: a connector and what puts its documents in
// force.
type source struct {
	manager *policy.Manager
}

func newSource(cfg *Config, master *core.Master, log hclog.Logger) (*source, error) {
	return &source{}, nil
}

func (s *source) start(ctx context.Context) error { return s.manager.Start(ctx) }

func (s *source) close() { s.manager.Close() }

func (s *source) status() admin.ConnectorStatus { return admin.ConnectorStatus(s.manager.Status()) }
