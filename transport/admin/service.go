package admin

import (
	"context"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/policy"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/kvevent"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Objects is what the routes about keys need of the master. All calls may overlap.
type Objects interface {
	// AdminReplicas looks a key up without leasing it or counting the lookup.
	AdminReplicas(tenantName, key string, out *object.ReplicaList) errcode.Code
	// AllKeys returns the keys with a readable replica, in any order.
	AllKeys(tenantName string) []string
	// RemoveAll removes what may be removed of a tenant, "" meaning all, and returns how many
	// objects that were.
	RemoveAll(tenantName string, force bool) int64
}

// SoftPins sets and clears soft pins, one code per key.
type SoftPins interface {
	SetSoftPins(tenantName string, keys []string, ttlMs *uint64) []errcode.Code
	ClearSoftPins(tenantName string, keys []string) []errcode.Code
}

// Segments is what the routes about segments need of the master. All calls may overlap.
type Segments interface {
	SegmentViews() []segment.View
	QuerySegment(name string) (used, capacity uint64, code errcode.Code)
	QuerySegmentStatus(name string) (segment.Status, errcode.Code)
}

// Tenants reads the accounts. All calls may overlap.
type Tenants interface {
	MultiTenant() bool
	TenantSnapshots() []tenant.Snapshot // sorted bytewise by name
	TenantSnapshot(name string) (tenant.Snapshot, bool)
	TenantTotals() tenant.Totals
}

// Policy changes one tenant's policy at its source and then here. An error carries the
// errcode.Code to answer with, found by errors.As; any other is PersistentFail.
type Policy interface {
	Put(ctx context.Context, name string, quota uint64) error
	Delete(ctx context.Context, name string) error
}

// Documents is the policy as a whole, see policy.Manager.
type Documents interface {
	InForce() policy.Current
	AtSource(ctx context.Context) (policy.Current, error)
	Plan(document []byte) (policy.Plan, error)
	Replace(ctx context.Context, document []byte, expected string, confirm bool) (policy.Applied, error)
	Confirm(ctx context.Context, revision string) (policy.Applied, error)
	History() []policy.Applied
}

// ServiceState says what this process is at the moment. Role is leader or standby, HAState
// one of starting, standby, candidate, recovering, catching_up, leader_warmup, serving. Ready
// opens the service routes. LeaderAddress is "" when there is none to tell.
type ServiceState struct {
	Role          string
	HAState       string
	Ready         bool
	LeaderAddress string
	ViewVersion   uint64
}

// Serving is the state of a master that runs alone.
func Serving() ServiceState { return ServiceState{Role: "leader", HAState: "serving", Ready: true} }

// Starting is the state of such a master before it serves.
func Starting() ServiceState { return ServiceState{Role: "leader", HAState: "starting"} }

// The states of a connector.
const (
	ConnectorStarting = policy.Starting
	ConnectorReady    = policy.Ready
	ConnectorDegraded = policy.Degraded
	ConnectorStopped  = policy.Stopped
)

// ConnectorStatus is what is known about the source of the tenant policy. Times are zero and
// texts empty where there is nothing to tell.
type ConnectorStatus = policy.Status

// State is what everything in this package reads. Objects to Policy may be nil only while
// Service reports that it is not Ready; the functions are never nil but Connector, which is
// nil without strict tenants.
type State struct {
	Service   func() ServiceState
	Objects   Objects
	SoftPins  SoftPins
	Segments  Segments
	Drains    Drains
	Transfers Transfers
	Tenants   Tenants
	Policy    Policy
	Documents Documents
	Connector func() ConnectorStatus
	Stats     func() core.Stats
	Calls     func() map[string]rpc.Counters
	Listener  func() rpc.Stats
	Events    func() kvevent.Status

	// Release is the one whose metrics and summary line are printed; 0 is the latest.
	Release wire.Release
	// MaxTenants is how many tenants have metrics of their own; 0 = all.
	MaxTenants int
	// FileBytes is the room in the file system that clients share; 0 = there is none, or no limit.
	FileBytes uint64
}
