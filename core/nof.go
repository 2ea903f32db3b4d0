package core

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/evict"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// nofProtocol is how replicas on devices are described; clients look at the endpoint.
const nofProtocol = "tcp"

// devices are the NVMe-oF segments, a pool beside the memory: what lies there costs no quota, has its
// own watermark, and stays when the client that told of it goes. Whether a device is there is seen by
// probing it.
type devices struct {
	pool *segment.Pool
	mark evict.Watermark
	full atomic.Bool // a write has found no room
	rest int64       // until when nothing is looked for to be evicted, as nothing was found; of one goroutine

	mu    sync.Mutex // guards beats
	beats map[*segment.Mounted]*beat

	stats nofCounters
}

// NoFSegment is an NVMe-oF segment as its client mounts it: Size bytes from Base on of the namespace
// behind Endpoint.
type NoFSegment struct {
	ID         segment.UUID
	Name       string
	Base, Size uint64
	Endpoint   string
}

func (n *NoFSegment) info() segment.Info {
	return segment.Info{ID: n.ID, Name: n.Name, Base: n.Base, Size: n.Size, Endpoint: n.Endpoint, Protocol: nofProtocol}
}

// MountNoFSegment adds an NVMe-oF segment. Mounting what is mounted succeeds, whatever differs, and so
// does another name for an endpoint that is. It answers UnavailableInMode where there are none,
// InvalidParams without a size, and UnavailableInStatus while it is being unmounted.
func (m *Master) MountNoFSegment(s NoFSegment, client segment.UUID) errcode.Code {
	if !m.cfg.NoF.Enabled {
		return errcode.UnavailableInMode
	}
	fresh, err := m.nof.pool.MountDevice(s.info(), client)
	if fresh {
		m.log.Info("NVMe-oF segment mounted", "segment", s.Name, "bytes", s.Size, "endpoint", s.Endpoint, "client", client)
	}
	return allocationCode(err)
}

// ReMountNoFSegment mounts all NVMe-oF segments of a client. It answers UnavailableInMode where there
// are none, and UnavailableInStatus when one is being unmounted; those before it are mounted then. One
// without a size is passed over.
func (m *Master) ReMountNoFSegment(all []NoFSegment, client segment.UUID) errcode.Code {
	if !m.cfg.NoF.Enabled {
		return errcode.UnavailableInMode
	}
	for _, s := range all {
		if code := m.MountNoFSegment(s, client); code == errcode.UnavailableInStatus {
			return code
		}
	}
	return errcode.OK
}

// UnmountNoFSegment takes an NVMe-oF segment out; replicas there are gone. An unknown one is no error. It
// answers UnavailableInMode where there are none, and UnavailableInStatus while it is being unmounted.
func (m *Master) UnmountNoFSegment(id, client segment.UUID) errcode.Code {
	if !m.cfg.NoF.Enabled {
		return errcode.UnavailableInMode
	}
	s, err := m.nof.pool.BeginUnmount(id)
	if err != nil || s == nil {
		return allocationCode(err)
	}
	if s.Client != client {
		m.log.Warn("NVMe-oF segment unmounted by a client that did not mount it", "segment", s.Info.Name, "owner", s.Client, "client", client)
	}
	m.finishUnmountNoF(s, "")
	return errcode.OK
}

// finishUnmountNoF drops the replicas on a device that is going.
func (m *Master) finishUnmountNoF(s *segment.Mounted, why string) {
	m.dropGone()
	m.parked.dropGone()
	m.nof.pool.FinishUnmount(s)
	m.nof.mu.Lock()
	delete(m.nof.beats, s)
	m.nof.mu.Unlock()
	m.log.Info("NVMe-oF segment unmounted", "segment", s.Info.Name, "bytes", s.Info.Size, "endpoint", s.Info.Endpoint, "client", s.Client, "why", why)
}

// NoFSegments returns the NVMe-oF segments in the order they were mounted.
func (m *Master) NoFSegments() []NoFSegment {
	var all []NoFSegment
	for _, s := range m.nof.pool.All() {
		i := &s.Info
		all = append(all, NoFSegment{ID: i.ID, Name: i.Name, Base: i.Base, Size: i.Size, Endpoint: i.Endpoint})
	}
	return all
}

// NoFOwner says which client mounted an NVMe-oF segment.
type NoFOwner struct{ Segment, Client segment.UUID }

// NoFSegmentsByName returns the NVMe-oF segments of a name, or SegmentNotFound.
func (m *Master) NoFSegmentsByName(name string) ([]NoFOwner, errcode.Code) {
	var all []NoFOwner
	for _, s := range m.nof.pool.All() {
		if s.Info.Name == name {
			all = append(all, NoFOwner{s.Info.ID, s.Client})
		}
	}
	if all == nil {
		return nil, errcode.SegmentNotFound
	}
	return all, errcode.OK
}

// withDevices places the replicas of a write that are to lie on devices, beside those in memory, for
// which allocs and err are what allocating has given. Where one of each is asked for, either will do;
// any other mix must be had in full. Nothing is taken when it fails.
func (m *Master) withDevices(w *write, allocs []segment.Allocation, err error) (memory, onDevices []segment.Allocation, _ error) {
	c := w.config
	if c.ReplicaNum == 0 {
		allocs, err = nil, nil // nothing was asked for
	}
	either := c.ReplicaNum == 1 && c.NoFReplicaNum == 1
	if err != nil && !(either && errors.Is(err, segment.ErrNoSpace)) {
		return nil, nil, err
	}
	onDevices, err = m.nof.pool.Place(&segment.Request{Size: w.size, Replicas: c.NoFReplicaNum, Preferred: c.PreferredNoFSegments}, nil)
	short := uint64(len(onDevices)) < c.NoFReplicaNum
	if short && m.nof.pool.Len() > 0 {
		m.nof.full.Store(true)
	}
	enough := uint64(len(allocs)) == c.ReplicaNum && !short
	if either {
		enough = len(allocs)+len(onDevices) > 0
	}
	if enough {
		return allocs, onDevices, nil
	}
	w.noDevice = short
	segment.FreeAll(allocs)
	segment.FreeAll(onDevices)
	if err == nil || errors.Is(err, segment.ErrNoSpace) {
		err = segment.ErrNoSpace
	}
	return nil, nil, err
}

// evictNoF gives up the replicas on devices of some objects, if more than the watermark is in use or a
// write has found no room.
func (m *Master) evictNoF() {
	d := &m.nof
	if !m.cfg.NoF.Enabled {
		return
	}
	capacity, now := d.pool.CapacityBytes(), m.clock.Now()
	if capacity == 0 || now < d.rest {
		return
	}
	used := float64(d.pool.UsedBytes()) / float64(capacity)
	if used <= d.mark.High && !(d.full.Load() && d.mark.Ratio > 0) {
		return
	}
	target, _ := d.mark.PoolTarget(used)
	objects := 0
	var all []*keeper
	m.keepers(func(k *keeper) {
		all = append(all, k)
		objects += k.space.Len()
	})
	d.stats.attempts.Add(1)
	goal := evict.Count(target, objects)
	keys, bytes := uint64(0), uint64(0)
	if n := uint64(len(all)); n > 0 {
		for i, start := uint64(0), m.rand.Uint64N(n); i < n && keys < uint64(goal); i++ {
			k, b := m.evictNoFOf(all[(start+i)%n], uint64(goal)-keys, now)
			keys, bytes = keys+k, bytes+b
		}
	}
	if keys == 0 {
		d.rest = now + retryAfter
		if objects == 0 {
			d.full.Store(false)
		}
		return
	}
	d.full.Store(false)
	d.stats.successes.Add(1)
	d.stats.keys.Add(keys)
	d.stats.bytes.Add(bytes)
}

// evictNoFOf gives up the replicas on devices of at most so many of a tenant's objects.
func (m *Master) evictNoFOf(k *keeper, most uint64, now int64) (keys, bytes uint64) {
	shards := k.space.Shards()
	start := m.rand.Uint64N(uint64(len(shards)))
	for i := range uint64(len(shards)) {
		sh := &shards[(start+i)%uint64(len(shards))]
		for next, more := uint32(0), true; more && keys < most; m.yield() {
			sh.Lock()
			next, more = sh.Some(next, sweepBite, func(o *object.Object) {
				if keys == most || o.InFlight() || o.HardPin || o.Leased(now) || sh.SoftUntil(o) > now {
					return
				}
				size := o.Size
				if n := m.shed(k, sh, o, onDevice, free); n > 0 {
					keys++
					bytes += size * uint64(n)
				}
			})
			sh.Unlock()
		}
	}
	return keys, bytes
}

// onDevice reports whether a replica may be given up to make room on devices.
func onDevice(r *object.Replica) bool {
	return r.Kind == object.KindNoF && r.Pins == 0 && r.Primary() && isComplete(r)
}

// NoFStats are the numbers of NVMe-oF segments. Sizes are bytes.
type NoFStats struct {
	AllocatedBytes, CapacityBytes                uint64
	Segments                                     []SegmentStat
	ProbeSuccesses, ProbeFailures, ProbeTimeouts uint64
	UnmountedByProbe                             uint64
	ProbeLatencyMs                               Histogram
	SuccessfulEvictions, AttemptedEvictions      uint64
	EvictedKeys, EvictedBytes                    uint64
}

type nofCounters struct {
	attempts, successes, keys, bytes                atomic.Uint64
	probes, probeFailures, probeTimeouts, unmounted atomic.Uint64

	mu      sync.Mutex // guards what is below
	latency [len(latencyBounds) + 1]uint64
	sum     float64
}

// latencyBounds are milliseconds.
var latencyBounds = [...]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}

func (c *nofCounters) observe(ms float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := 0
	for i < len(latencyBounds) && ms > latencyBounds[i] {
		i++
	}
	c.latency[i]++
	c.sum += ms
}

func (m *Master) nofStats() NoFStats {
	c := &m.nof.stats
	s := NoFStats{
		AllocatedBytes: m.nof.pool.UsedBytes(), CapacityBytes: m.nof.pool.CapacityBytes(),
		Segments:       segmentStats(m.nof.pool.Views()),
		ProbeSuccesses: c.probes.Load() - c.probeFailures.Load(), ProbeFailures: c.probeFailures.Load(), ProbeTimeouts: c.probeTimeouts.Load(),
		UnmountedByProbe:    c.unmounted.Load(),
		SuccessfulEvictions: c.successes.Load(), AttemptedEvictions: c.attempts.Load(),
		EvictedKeys: c.keys.Load(), EvictedBytes: c.bytes.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &s.ProbeLatencyMs
	h.Sum = c.sum
	for i, n := range c.latency {
		h.Count += n
		if i < len(latencyBounds) {
			h.Bounds, h.Counts = append(h.Bounds, latencyBounds[i]), append(h.Counts, h.Count)
		}
	}
	return s
}
