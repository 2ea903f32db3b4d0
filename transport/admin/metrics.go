package admin

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// Metrics makes the page of GET /metrics. It holds no numbers: each scrape reads the state
// once and prints that.
type Metrics struct {
	registry *prometheus.Registry
}

// NewMetrics returns the metrics of a state. It fails when two families have one name.
func NewMetrics(state State, version string) (*Metrics, error) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(newCollector(state, version)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := registry.Register(newRuntimeCollector()); err != nil {
		return nil, fmt.Errorf("metrics of the runtime: %w", err)
	}
	return &Metrics{registry: registry}, nil
}

// Registry is where further collectors can be registered.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Text returns the page in the Prometheus text format.
func (m *Metrics) Text() ([]byte, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, err
	}
	return exposition(families), nil
}

// reading is the state as one scrape saw it.
type reading struct {
	stats     core.Stats
	calls     map[string]rpc.Counters
	listener  rpc.Stats
	service   ServiceState
	totals    tenant.Totals
	tenants   []tenant.Snapshot
	strict    bool // strict tenants, and the service active
	connector *ConnectorStatus
	process   processMemory
}

func (c *collector) read() *reading {
	r := &reading{service: c.state.Service(), process: readProcessMemory()}
	if r.service.Ready {
		r.stats = c.state.Stats()
		if r.strict = c.state.Tenants.MultiTenant(); r.strict {
			r.totals, r.tenants = c.state.Tenants.TenantTotals(), c.state.Tenants.TenantSnapshots()
		}
	}
	r.calls, r.listener = c.state.Calls(), c.state.Listener()
	if c.state.Connector != nil {
		status := c.state.Connector()
		r.connector = &status
	}
	return r
}

// collector prints the families of families.go, which always have a value, and those of
// labelled.go, which have as many as there are segments, tenants and reasons.
type collector struct {
	state    State
	plain    []plainDesc
	labelled []labelledDesc
	build    prometheus.Metric
}

type plainDesc struct {
	desc *prometheus.Desc
	plain
}

type labelledDesc struct {
	desc *prometheus.Desc
	labelled
}

func newCollector(state State, version string) *collector {
	c := &collector{state: state}
	for _, p := range allPlain() {
		c.plain = append(c.plain, plainDesc{prometheus.NewDesc(p.name, p.help, nil, nil), p})
	}
	for _, l := range allLabelled {
		c.labelled = append(c.labelled, labelledDesc{prometheus.NewDesc(l.name, l.help, l.labels, nil), l})
	}
	c.build = prometheus.MustNewConstMetric(
		prometheus.NewDesc("mooncake_build_info", "protocol version and version of this program", []string{"version", "display_version"}, nil),
		prometheus.GaugeValue, 1, protocolVersion, validText(version))
	return c
}

// Describe is part of prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range c.plain {
		ch <- p.desc
	}
	for _, l := range c.labelled {
		ch <- l.desc
	}
	ch <- c.build.Desc()
	ch <- valueSizeDesc
}

// Collect is part of prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	r := c.read()
	for _, p := range c.plain {
		ch <- prometheus.MustNewConstMetric(p.desc, p.kind, p.value(r))
	}
	for _, l := range c.labelled {
		l.values(r, func(v float64, labels ...string) {
			for i := range labels {
				labels[i] = validText(labels[i])
			}
			m, err := prometheus.NewConstMetric(l.desc, l.kind, v, labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(l.desc, err)
			}
			ch <- m
		})
	}
	ch <- c.build
	if h := r.stats.ValueSizes; h.Count > 0 {
		buckets := make(map[float64]uint64, len(h.Bounds))
		for i, bound := range h.Bounds {
			buckets[bound] = h.Counts[i]
		}
		ch <- prometheus.MustNewConstHistogram(valueSizeDesc, h.Count, h.Sum, buckets)
	}
}

var valueSizeDesc = prometheus.NewDesc("master_value_size_bytes", "sizes of the objects written, in bytes", nil, nil)
