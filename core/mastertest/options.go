package mastertest

import (
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
)

// Option changes the configuration of a write.
type Option = func(*object.ReplicateConfig)

// Replicas asks for n replicas.
func Replicas(n uint64) Option { return func(c *object.ReplicateConfig) { c.ReplicaNum = n } }

// HardPin asks that the object is never evicted.
func HardPin(c *object.ReplicateConfig) { c.WithHardPin = true }

// SoftPin asks that the object is evicted last for a while, by the configured lifetime if ttl
// is negative.
func SoftPin(ttl time.Duration) Option {
	return func(c *object.ReplicateConfig) {
		c.SoftPinAction = object.SoftPinEnable
		if ttl >= 0 {
			ms := uint64(ttl.Milliseconds())
			c.SoftPinTTLMs = &ms
		}
	}
}

// Unpin asks that a soft pin is taken away.
func Unpin(c *object.ReplicateConfig) { c.SoftPinAction = object.SoftPinDisable }

// Group puts every key of the write into one group.
func Group(id string, keys int) Option {
	return func(c *object.ReplicateConfig) {
		ids := make([]string, keys)
		for i := range ids {
			ids[i] = id
		}
		c.GroupIDs = &ids
	}
}

// Prefer names segments to try first.
func Prefer(names ...string) Option {
	return func(c *object.ReplicateConfig) { c.PreferredSegments = names }
}

// Drain waits until every unfinished write and every parked buffer has timed out, removes
// every object, and fails the test unless nothing is charged or allocated then.
func (m *Master) Drain(t testing.TB) {
	t.Helper()
	// At once: to the master it is a stall of its own, which costs no client anything.
	wait := func() {
		m.Clock.Set(m.Config().PutReleaseTimeout + 2*time.Second)
		m.Step()
	}
	wait()
	m.RemoveAll("", true)
	wait() // what was replaced shortly before is parked a second time
	if err := m.Check(); err != nil {
		t.Errorf("invariants after removal: %v", err)
	}
	for _, s := range m.TenantSnapshots() {
		if s.ChargedBytes != 0 {
			t.Errorf("tenant %q is charged %d bytes after removal", s.TenantID, s.ChargedBytes)
		}
	}
	if s := m.Stats(); s.AllocatedBytes != 0 || s.Keys != 0 || s.InFlightWrites != 0 || s.DiscardedStagingBytes != 0 {
		t.Errorf("after removal %d bytes are allocated, %d parked, %d keys and %d writes left", s.AllocatedBytes, s.DiscardedStagingBytes, s.Keys, s.InFlightWrites)
	}
}
