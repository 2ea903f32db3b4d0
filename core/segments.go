package core

import (
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/mooncake-go/mooncake-master/core/client"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// allocationCode maps the errors of package segment to codes.
func allocationCode(err error) errcode.Code {
	switch {
	case err == nil:
		return errcode.OK
	case errors.Is(err, segment.ErrNoSpace):
		return errcode.NoAvailableHandle
	case errors.Is(err, segment.ErrInvalid):
		return errcode.InvalidParams
	case errors.Is(err, segment.ErrNotFound):
		return errcode.SegmentNotFound
	case errors.Is(err, segment.ErrUnavailable):
		return errcode.UnavailableInStatus
	default:
		return errcode.InternalError
	}
}

// MountSegment adds a client's memory to the pool; it is a sign of life. Mounting what is
// mounted succeeds, if nothing else about it has changed. It answers InvalidParams for an address or size of zero and
// UnavailableInStatus while the segment is being unmounted.
func (m *Master) MountSegment(info segment.Info, client segment.UUID) errcode.Code {
	if m.cfg.CXL.Enabled && info.Protocol != "cxl" && (info.Base%slab != 0 || info.Size%slab != 0) {
		return errcode.InvalidParams
	}
	m.mounting.Lock()
	defer m.mounting.Unlock()
	mounted, fresh, err := m.pool.Mount(info, client)
	if err != nil && !(mounted != nil && m.cfg.Release0313) { // which takes the id's word for it
		return allocationCode(err)
	}
	if m.clients.Mounted(client, m.clock.Now()) {
		m.pool.Resume(client)
		m.tierBack(client)
	}
	m.clients.RememberHost(client, info.HostID)
	if fresh {
		m.log.Info("segment mounted", "segment", info.Name, "bytes", info.Size, "client", client, "protocol", info.Protocol)
		m.recompute()
	}
	return errcode.OK
}

// ReMountSegment tells the master all segments a client has, after which pings are answered OK.
// For a client that is known to have remounted it does nothing. It answers InvalidParams when a
// segment is mounted already with other properties or by another client, and
// UnavailableInStatus when one is being unmounted; nothing is mounted then.
func (m *Master) ReMountSegment(infos []segment.Info, client segment.UUID) errcode.Code {
	m.mounting.Lock()
	defer m.mounting.Unlock()
	if m.clients.OK(client) {
		return allocationCode(m.pool.Compare(infos, client))
	}
	fresh, err := m.pool.Remount(infos, client)
	if err != nil {
		return allocationCode(err)
	}
	m.clients.Remounted(client, m.clock.Now())
	for i := range infos {
		m.clients.RememberHost(client, infos[i].HostID)
	}
	if fresh > 0 {
		m.log.Info("segments remounted", "client", client, "segments", len(infos), "new", fresh)
	}
	m.recompute()
	return errcode.OK
}

// UnmountSegment takes a segment out of the pool; replicas there are gone. An unknown segment
// is no error. It answers UnavailableInStatus while the segment is being unmounted.
func (m *Master) UnmountSegment(id, client segment.UUID) errcode.Code {
	m.mounting.Lock()
	s, err := m.pool.BeginUnmount(id)
	m.mounting.Unlock()
	if err != nil {
		return allocationCode(err)
	}
	if s == nil {
		return errcode.OK
	}
	if s.Client != client {
		m.log.Warn("segment unmounted by a client that did not mount it", "segment", s.Info.Name, "owner", s.Client, "client", client)
	}
	m.finishUnmount(s)
	return errcode.OK
}

// finishUnmount drops the replicas on segments that are going, and forgets the segments.
func (m *Master) finishUnmount(gone ...*segment.Mounted) {
	if len(gone) == 0 {
		return
	}
	m.dropGone()
	m.parked.dropGone()
	m.pool.FinishUnmount(gone...)
	for _, s := range gone {
		m.graceful.remove(s)
		m.log.Info("segment unmounted", "segment", s.Info.Name, "bytes", s.Info.Size, "client", s.Client)
	}
	m.recompute()
}

// dropGone drops every replica whose segment is gone.
func (m *Master) dropGone() {
	m.keepers(func(k *keeper) {
		m.sweep(k, func(sh *object.Shard, o *object.Object) {
			if sh.Stale(o) {
				m.shed(k, sh, o, isGone, free)
			}
		})
	})
}

// GracefulUnmountSegment stops allocation on a segment and unmounts it after graceMs
// milliseconds; until then replicas there stay readable. Of several deadlines the earliest
// counts. It answers SegmentNotFound when the client has no segments, InvalidParams when the
// segment is not the client's, UnavailableInStatus when it is being unmounted.
func (m *Master) GracefulUnmountSegment(id, client segment.UUID, graceMs uint64) errcode.Code {
	m.mounting.Lock() // it stays the same segment
	defer m.mounting.Unlock()
	if err := m.pool.BeginGracefulUnmount(id, client); err != nil {
		return allocationCode(err)
	}
	const longest = uint64(1) << 40 // milliseconds; the sum below can't overflow
	if s := m.pool.ByID(id); s != nil {
		m.graceful.add(s, m.clock.Now()+int64(min(graceMs, longest))*1e6)
	}
	return errcode.OK
}

// endGraces unmounts the segments whose grace has ended. What has been mounted under the same
// id since is another segment.
func (m *Master) endGraces() {
	for _, s := range m.graceful.due(m.clock.Now()) {
		if m.pool.ByID(s.Info.ID) == s {
			m.UnmountSegment(s.Info.ID, s.Client)
		}
	}
}

// Ping notes a sign of life and says whether the client has to tell its segments again.
func (m *Master) Ping(id segment.UUID) client.Status {
	status, revived := m.clients.Ping(id, m.clock.Now())
	if revived {
		m.pool.Resume(id)
		m.tierBack(id)
		m.log.Info("client is back", "client", id)
	}
	return status
}

// sweepClients judges who is alive and acts on it.
func (m *Master) sweepClients() {
	// A client that is dropped here can't remount half way through.
	m.mounting.Lock()
	s := m.clients.Sweep(m.clock.Now())
	for _, id := range s.Suspected {
		// A client that lends nothing has mostly just ended.
		if n := m.pool.Suspend(id); n > 0 {
			m.log.Warn("client is silent: its replicas are not used", "client", id, "segments", n, "after", m.cfg.ClientActiveTTL)
		} else {
			m.log.Debug("client without segments is silent", "client", id, "after", m.cfg.ClientActiveTTL)
		}
		m.tierSilent(id)
		if m.clients.State(id) == client.Active { // it pinged in between
			m.pool.Resume(id)
			m.tierBack(id)
		}
	}
	var gone []*segment.Mounted
	for _, id := range s.Offline {
		if its := m.pool.BeginUnmountClient(id); len(its) > 0 {
			m.log.Warn("client is gone: its segments are unmounted", "client", id, "segments", len(its))
			gone = append(gone, its...)
		} else {
			m.log.Debug("client without segments is gone", "client", id)
		}
	}
	disks := m.closeDisks(s.Offline) // here, so that what a client mounts that comes back is another
	m.mounting.Unlock()
	if s.Stall > 0 {
		m.log.Warn("liveness was not judged for a while; clients get that time back", "stall", time.Duration(s.Stall).Round(time.Millisecond))
	}
	if s.Held > 0 {
		m.log.Error("most clients seem gone at once; waiting one more TTL before dropping them", "clients", s.Held)
	}
	m.dropDisks(disks)
	m.finishUnmount(gone...)
	if len(s.Offline) > 0 && len(gone) == 0 {
		m.recompute()
	}
	if m.told != nil {
		for _, g := range gone {
			m.told(g.Info)
		}
	}
}

// QuerySegment returns the bytes allocated and the capacity of the segments called name. It
// answers SegmentNotFound when none takes allocations.
func (m *Master) QuerySegment(name string) (used, capacity uint64, code errcode.Code) {
	used, capacity, err := m.pool.QuerySegment(name)
	return used, capacity, allocationCode(err)
}

// QuerySegmentStatus returns the state of the segment called name, or SegmentNotFound.
func (m *Master) QuerySegmentStatus(name string) (segment.Status, errcode.Code) {
	s, err := m.pool.StatusByName(name)
	return s, allocationCode(err)
}

// QuerySegmentStatusByID returns the state of a segment, or SegmentNotFound.
func (m *Master) QuerySegmentStatusByID(id segment.UUID) (segment.Status, errcode.Code) {
	s, err := m.pool.StatusByID(id)
	return s, allocationCode(err)
}

// SegmentViews returns all segments in the order they were mounted.
func (m *Master) SegmentViews() []segment.View { return m.pool.Views() }

// ClientAddresses are the hosts behind a client's segments.
type ClientAddresses struct {
	Key   segment.UUID
	Value []string
}

// BatchQueryIP returns, for the clients that have segments, the distinct hosts of their
// endpoints.
func (m *Master) BatchQueryIP(ids []segment.UUID) []ClientAddresses {
	var all []ClientAddresses
	seen := make(map[segment.UUID]bool, len(ids))
	for _, id := range ids {
		segments := m.pool.OfClient(id)
		if seen[id] || len(segments) == 0 {
			continue
		}
		seen[id] = true
		entry := ClientAddresses{Key: id, Value: []string{}}
		hosts := make(map[string]bool)
		for _, s := range segments {
			if host := endpointHost(s.Info.Endpoint); host != "" && !hosts[host] {
				hosts[host] = true
				entry.Value = append(entry.Value, host)
			}
		}
		all = append(all, entry)
	}
	return all
}

// endpointHost is the host part of an endpoint: "[fe80::1%eth0]:1" and a bare IPv6 address
// have one, too.
func endpointHost(endpoint string) string {
	if host, _, err := net.SplitHostPort(endpoint); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(endpoint, "["), "]")
}

// gracefulTimers are the instants at which segments being unmounted gracefully go.
type gracefulTimers struct {
	mu     sync.Mutex
	timers map[*segment.Mounted]int64
}

// add sets when a segment goes, unless it goes earlier.
func (g *gracefulTimers) add(s *segment.Mounted, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timers == nil {
		g.timers = make(map[*segment.Mounted]int64)
	}
	if earlier, ok := g.timers[s]; !ok || at < earlier {
		g.timers[s] = at
	}
}

// remove forgets a segment that has gone.
func (g *gracefulTimers) remove(s *segment.Mounted) {
	g.mu.Lock()
	delete(g.timers, s)
	g.mu.Unlock()
}

// due returns the segments whose instant has come.
func (g *gracefulTimers) due(now int64) (due []*segment.Mounted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s, at := range g.timers {
		if at <= now {
			due = append(due, s)
			delete(g.timers, s)
		}
	}
	return due
}
