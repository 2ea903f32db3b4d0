package core

import (
	"maps"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/transfer"
)

const (
	aheadPeriod = int64(time.Second)     // between two looks at what is mounted
	aheadAgain  = int64(4 * time.Minute) // until a connection is used again, lest it be given up as idle
	aheadMost   = 4                      // owners that are being connected to
)

// ahead is which segments have been connected to before anything was to be carried. Who has stopped can't be
// connected to any more, but over a connection that only his adapter takes part in he can still be read: what
// he holds is saved then.
type ahead struct {
	connector  transfer.Connector // nil = the carrier connects when it has to
	looked     int64
	due        map[segment.UUID]int64 // when a segment is to be connected to again
	connecting int
}

// connectAhead connects to the owners of segments. transfers.mu is held, and transfers haven't been stopped.
func (m *Master) connectAhead(now int64) {
	t := m.transfers
	if t.ahead.connector == nil || now-t.ahead.looked < aheadPeriod {
		return
	}
	t.ahead.looked = now
	mounted := make(map[segment.UUID]bool)
	for _, s := range m.pool.All() {
		if !s.Alive() || !t.ahead.connector.Ahead(s.Info.Protocol) {
			continue
		}
		mounted[s.Info.ID] = true
		if now >= t.ahead.due[s.Info.ID] && t.ahead.connecting < aheadMost {
			t.ahead.due[s.Info.ID] = now + aheadAgain
			t.ahead.connecting++
			t.wg.Go(func() { m.connect(s) })
		}
	}
	maps.DeleteFunc(t.ahead.due, func(id segment.UUID, _ int64) bool { return !mounted[id] })
}

// connect connects to the owner of a segment; if that fails it is tried again before long.
func (m *Master) connect(s *segment.Mounted) {
	t := m.transfers
	err := t.pump.Connect(t.ctx, t.ahead.connector, transfer.Place{Owner: s.Info.Endpoint, Address: s.Info.Base}, reachTimeout)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ahead.connecting--
	if err != nil {
		t.ahead.due[s.Info.ID] = m.clock.Now() + reachPause
		m.log.Debug("segment can't be connected to", "segment", s.Info.Name, "endpoint", s.Info.Endpoint, "error", err)
	}
}
