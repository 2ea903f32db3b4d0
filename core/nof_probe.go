package core

import (
	"errors"
	"os"
	"time"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// ErrNotProbed says that whether a device is there can't be seen from here. It is left alone.
var ErrNotProbed = errors.New("devices of this transport can't be probed")

// Prober asks the device behind an endpoint for a sign of life. It may take as long as the timeout;
// an error that is os.ErrDeadlineExceeded says that it took that long.
type Prober func(endpoint string, timeout time.Duration) error

// nofPeriod is how often it is looked whether a device is to be probed.
const nofPeriod = 100 * time.Millisecond

// beat is what is known of the life of a device.
type beat struct {
	next     int64 // when it is probed
	heard    int64 // when it was there last
	failures int   // since then
}

// probeNoF probes the devices whose time has come, one after the other, and unmounts those that have
// not been there for too long.
func (m *Master) probeNoF() {
	if !m.cfg.NoF.Enabled || m.probe == nil {
		return
	}
	for _, s := range m.dueDevices() {
		m.probeDevice(s)
	}
}

// dueDevices returns the devices to be probed now. New ones are probed for the first time after one to
// two intervals, so that not all are at the same moment.
func (m *Master) dueDevices() (due []*segment.Mounted) {
	d, now, interval := &m.nof, m.clock.Now(), m.cfg.NoF.HeartbeatInterval.Nanoseconds()
	all := d.pool.All()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range all {
		if s.Status() != segment.StatusOK {
			continue
		}
		b := d.beats[s]
		if b == nil {
			if d.beats == nil {
				d.beats = make(map[*segment.Mounted]*beat)
			}
			b = &beat{heard: now, next: now + interval + interval*int64(i)/int64(len(all))}
			d.beats[s] = b
		}
		if b.next <= now {
			due = append(due, s)
		}
	}
	return due
}

func (m *Master) probeDevice(s *segment.Mounted) {
	d, c := &m.nof, &m.cfg.NoF
	began := m.clock.Now()
	err := m.probe(s.Info.Endpoint, c.ProbeTimeout)
	now := m.clock.Now()
	d.mu.Lock()
	b := d.beats[s]
	if b == nil { // unmounted meanwhile
		d.mu.Unlock()
		return
	}
	b.next = now + c.HeartbeatInterval.Nanoseconds()
	first := b.failures == 0
	if err == nil || errors.Is(err, ErrNotProbed) {
		b.heard, b.failures = now, 0
	} else {
		b.failures++
	}
	gone := err != nil && now-b.heard >= c.HeartbeatInterval.Nanoseconds()*int64(c.FailuresThreshold)
	failures := b.failures
	d.mu.Unlock()
	if errors.Is(err, ErrNotProbed) {
		return
	}
	d.stats.probes.Add(1)
	d.stats.observe(float64(now-began) / 1e6)
	if err == nil {
		if !first {
			m.log.Info("NVMe-oF segment answers again", "segment", s.Info.Name, "endpoint", s.Info.Endpoint)
		}
		return
	}
	d.stats.probeFailures.Add(1)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.stats.probeTimeouts.Add(1)
	}
	m.log.Warn("NVMe-oF segment does not answer", "segment", s.Info.Name, "endpoint", s.Info.Endpoint, "failures", failures, "error", err)
	if !gone {
		return
	}
	if d.pool.ByID(s.Info.ID) != s {
		return
	}
	if _, err := d.pool.BeginUnmount(s.Info.ID); err == nil {
		d.stats.unmounted.Add(1)
		m.finishUnmountNoF(s, "it does not answer")
	}
}
