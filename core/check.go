package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Check verifies the invariants of the master and says what does not hold: that every tenant's
// charge is what its objects add up to, that every object's ledger matches its replicas, and
// that the bytes in use in each segment are those of its replicas and parked buffers. It is
// exact only while nothing else runs.
func (m *Master) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	used := make(map[*segment.Mounted]uint64)
	m.keepers(func(k *keeper) {
		var there object.Numbers
		bytes := k.charged(func(sh *object.Shard, o *object.Object, why string) {
			fail("tenant %q key %q: %s (%d bytes, %d replicas, ledger %+v)", k.name, sh.KeyCopy(o), why, o.Size, len(sh.Replicas(o)), o.Ledger)
		})
		if got := k.sum(); got != bytes {
			fail("tenant %q is charged %d bytes, its objects add up to %d", k.name, got, bytes)
		}
		for i := range k.space.Shards() {
			sh := &k.space.Shards()[i]
			sh.RLock()
			sh.Each(func(o *object.Object) {
				if o.InFlight() {
					there.Writes++
				} else if !o.HardPin && sh.InMemory(o) && !k.space.Order.Contains(o) {
					fail("tenant %q key %q is not in line for eviction", k.name, sh.KeyCopy(o))
				}
				there.Objects++
				if slices.ContainsFunc(sh.Replicas(o), func(r object.Replica) bool { return r.Kind == object.KindMemory }) {
					there.InMemory++
				}
				for _, slot := range workSlots {
					if sh.Work(o, slot) != nil {
						there.Works[slot]++
					}
				}
				if why := worksAddUp(sh, o); why != "" {
					fail("tenant %q key %q: %s", k.name, sh.KeyCopy(o), why)
				}
				for _, r := range sh.Replicas(o) {
					if seg := r.Memory.Seg(); seg.Alive() {
						used[seg] += r.Memory.Size
					}
				}
			})
			sh.RUnlock()
		}
		if got := k.space.Numbers(); got != there {
			fail("tenant %q counts %+v, has %+v", k.name, got, there)
		}
	})
	m.parked.each(func(a segment.Allocation) {
		if a.Seg().Alive() {
			used[a.Seg()] += a.Size
		}
	})
	for _, pool := range []*segment.Pool{m.pool, m.nof.pool} {
		for _, s := range pool.All() {
			if s.Used() != used[s] {
				fail("segment %q says %d bytes are used, its replicas add up to %d", s.Info.Name, s.Used(), used[s])
			}
		}
	}
	if n := m.counters.ledgerErrors.Load(); n != 0 {
		fail("%d accounting errors were logged", n)
	}
	return errors.Join(errs...)
}

// worksAddUp says what is wrong with the works of an object: that its replicas aren't pinned as often as
// works read from them, or that a staged replica has no work.
func worksAddUp(sh *object.Shard, o *object.Object) string {
	pins, staged := make(map[uint64]int16), make(map[uint64]bool)
	for _, slot := range workSlots {
		if w := sh.Work(o, slot); w != nil {
			for _, id := range w.Sources {
				pins[id]++
			}
			for _, id := range w.Targets {
				staged[id] = true
			}
		}
	}
	for _, r := range sh.Replicas(o) {
		if r.Pins != pins[r.ID] {
			return fmt.Sprintf("replica %d is pinned %d times, %d works read from it", r.ID, r.Pins, pins[r.ID])
		}
		if r.Staged && !staged[r.ID] {
			return fmt.Sprintf("replica %d is being made by no work", r.ID)
		}
	}
	return ""
}
