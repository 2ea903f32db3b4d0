package core

import "github.com/mooncake-go/mooncake-master/core/object"

// sweepBite is how many slots of a shard are looked at under one lock.
const sweepBite = 256

// sweep calls f for every object of a tenant, its shard locked for writing, in bites.
func (m *Master) sweep(k *keeper, f func(sh *object.Shard, o *object.Object)) {
	for i := range k.space.Shards() {
		sh := &k.space.Shards()[i]
		for next, more := uint32(0), true; more; {
			sh.Lock()
			next, more = sh.Some(next, sweepBite, func(o *object.Object) { f(sh, o) })
			sh.Unlock()
			if more {
				m.yield()
			}
		}
	}
}

// view is sweep with the shards locked for reading. After each bite it calls between, without
// locks, and stops at its first error.
func (m *Master) view(k *keeper, f func(sh *object.Shard, o *object.Object), between func() error) error {
	for i := range k.space.Shards() {
		sh := &k.space.Shards()[i]
		for next, more := uint32(0), true; more; {
			sh.RLock()
			next, more = sh.Some(next, sweepBite, func(o *object.Object) { f(sh, o) })
			sh.RUnlock()
			if err := between(); err != nil {
				return err
			}
			if more {
				m.yield()
			}
		}
	}
	return nil
}
