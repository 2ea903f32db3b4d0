package admin

import (
	"slices"
	"sync"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// Metrics makes the page of GET /metrics. Each scrape reads the state once and prints that; all that is
// kept in between is what has been counted for the tenants that are not printed by themselves.
type Metrics struct {
	state    State
	version  string
	families []family

	mu   sync.Mutex // guards rest
	rest restCounters
}

// NewMetrics returns the metrics of a state.
func NewMetrics(state State, version string) *Metrics {
	return &Metrics{state: state, version: version, families: allFamilies()}
}

// allFamilies returns every family there is, in the order of the page.
func allFamilies() []family {
	return slices.Concat(
		stateFamilies, replicaFamilies, liveFamilies, callCounters(), tierFamilies, taskFamilies, weightFamilies,
		tenantFamilies, policyFamilies, rpcFamilies, haFamilies, processFamilies, runtimeFamilies,
	)
}

// Text returns the page in the Prometheus text format.
func (m *Metrics) Text() []byte {
	r := m.read()
	var b []byte
	for i := range m.families {
		b = m.families[i].append(b, r)
	}
	return b
}

// reading is the state as one scrape saw it.
type reading struct {
	release   wire.Release
	version   string
	fileBytes uint64 // room in the shared file system, 0 = unknown
	stats     core.Stats
	calls     map[string]rpc.Counters
	listener  rpc.Stats
	service   ServiceState
	totals    tenant.Totals
	tenants   []tenantRow
	strict    bool // strict tenants, and the service active
	connector *ConnectorStatus
	process   processMemory
	runtime   runtimeSample
}

func (m *Metrics) read() *reading {
	r := readStats(&m.state)
	r.version, r.process, r.runtime = m.version, readProcessMemory(), readRuntime()
	if r.service.Ready {
		var snapshots []tenant.Snapshot
		if r.strict = m.state.Tenants.MultiTenant(); r.strict {
			r.totals, snapshots = m.state.Tenants.TenantTotals(), m.state.Tenants.TenantSnapshots()
		}
		m.mu.Lock()
		r.tenants = tenantRows(snapshots, r.stats.Tenants, m.state.MaxTenants, &m.rest)
		m.mu.Unlock()
	}
	r.listener = m.state.Listener()
	if m.state.Connector != nil {
		status := m.state.Connector()
		r.connector = &status
	}
	return r
}

// readStats reads what the page and the summary line both tell.
func readStats(state *State) *reading {
	r := &reading{release: state.Release, service: state.Service(), calls: state.Calls(), fileBytes: state.FileBytes}
	if r.release == 0 {
		r.release = wire.Latest
	}
	if r.service.Ready {
		r.stats = state.Stats()
	}
	return r
}
