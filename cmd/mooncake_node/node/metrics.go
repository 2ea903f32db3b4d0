package node

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/exposition"
	"github.com/mooncake-go/mooncake-master/transport/segment/rdma"
)

// counters are what a node has done since it started.
type counters struct {
	heard         atomic.Int64 // when the master answered last, nanoseconds since the epoch; 0 = never
	pingsFailed   atomic.Uint64
	remounts      atomic.Uint64
	publishFailed atomic.Uint64
	tasksActive   atomic.Int64
	bytesCarried  atomic.Uint64

	mu    sync.Mutex
	tasks map[taskKind]uint64 // guarded by mu
}

// taskKind is what a task was and how it ended.
type taskKind struct{ kind, outcome string }

func (c *counters) task(kind, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks == nil {
		c.tasks = make(map[taskKind]uint64)
	}
	c.tasks[taskKind{kind, outcome}]++
}

// aliveFor is how long after the last answer of the master a node counts as connected: some pings may fail.
const aliveFor = 5 * pingPeriod

// connected reports whether the master has answered lately.
func (n *Node) connected() bool {
	heard := n.counters.heard.Load()
	return heard != 0 && n.cfg.Now().Sub(time.Unix(0, heard)) < aliveFor
}

// isMounted reports whether the memory has been lent.
func (n *Node) isMounted() bool {
	select {
	case <-n.mounted:
		return true
	default:
		return false
	}
}

// metrics is the page of GET /metrics.
func (n *Node) metrics() []byte {
	c := &n.counters
	var b []byte
	family := func(name, help string, kind exposition.Kind, v float64, labels ...string) {
		b = exposition.AppendHead(b, name, help, kind)
		b = exposition.AppendSample(b, name, v, labels...)
	}
	name, lent := "", 0.0
	if n.isMounted() {
		name, lent = n.name, float64(n.cfg.SegmentBytes)
	}
	family("mooncake_node_info", "version of this program, name of the node's segments and how they are reached", exposition.Gauge, 1,
		"version", n.cfg.Version, "segment", name, "protocol", n.cfg.protocol())
	family("mooncake_node_lent_bytes", "memory that is part of the pool", exposition.Gauge, lent)
	family("mooncake_node_master_connected", "1 while the master answers pings", exposition.Gauge, yes(n.connected()))
	family("mooncake_node_leaving", "1 while what is on the node is moved to others", exposition.Gauge, yes(n.leaving.Load()))
	family("mooncake_node_pings_failed_total", "pings that the master did not answer", exposition.Counter, float64(c.pingsFailed.Load()))
	family("mooncake_node_remounts_total", "times that the memory was mounted for a master that did not know it", exposition.Counter, float64(c.remounts.Load()))
	family("mooncake_node_publish_failed_total", "times that the metadata store could not be told of the node", exposition.Counter, float64(c.publishFailed.Load()))
	family("mooncake_node_tasks_active", "copies and moves under way", exposition.Gauge, float64(c.tasksActive.Load()))
	family("mooncake_node_task_written_bytes_total", "bytes written by copies and moves that succeeded", exposition.Counter, float64(c.bytesCarried.Load()))
	b = exposition.AppendHead(b, "mooncake_node_tasks_total", "copies and moves that have ended", exposition.Counter)
	for _, k := range c.kinds() {
		b = exposition.AppendSample(b, "mooncake_node_tasks_total", float64(k.n), "kind", k.kind, "outcome", k.outcome)
	}
	return n.deviceMetrics(b)
}

// deviceMetrics are about the devices for RDMA, if there are any.
func (n *Node) deviceMetrics(b []byte) []byte {
	if n.adapter == nil {
		return b
	}
	all := n.adapter.Status()
	for _, f := range []struct {
		name, help string
		of         func(*rdma.Status) float64
	}{
		{"mooncake_node_device_active", "1 while the port of the device is up", func(s *rdma.Status) float64 { return yes(s.Active) }},
		{"mooncake_node_device_endpoints", "connections of the device to devices of others", func(s *rdma.Status) float64 { return float64(s.Endpoints) }},
		{"mooncake_node_device_queue_pairs", "queue pairs of those", func(s *rdma.Status) float64 { return float64(s.QueuePairs) }},
		{"mooncake_node_device_requests", "requests under way on the device", func(s *rdma.Status) float64 { return float64(s.InFlight) }},
	} {
		b = exposition.AppendHead(b, f.name, f.help, exposition.Gauge)
		for i := range all {
			b = exposition.AppendSample(b, f.name, f.of(&all[i]), "device", all[i].Device)
		}
	}
	return b
}

// counted is how often tasks of a kind have ended.
type counted struct {
	taskKind
	n uint64
}

// kinds returns the counts of tasks in a fixed order: those that have not happened yet are 0.
func (c *counters) kinds() []counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []counted
	for _, kind := range []string{"copy", "move"} {
		for _, outcome := range []string{"success", "failure"} {
			k := taskKind{kind, outcome}
			all = append(all, counted{k, c.tasks[k]})
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.outcome, b.outcome)) })
	return all
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
