package core

import (
	"slices"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

// drainList is how many units of a job are listed; the others wait to be found once those are
// done.
const drainList = 1 << 16

// search is a look at all objects for the units of a job. One begins at the first object, counts
// them all and lists as many as may be listed; the next ones list what comes after those.
type search struct {
	begun  bool
	rest   []*keeper // tenants that have still to be looked at, the first one from here on
	shard  int
	slot   uint32
	unread bool // there is something from here on that has been counted and not listed
}

// searchAll looks at every object: it counts the units on each source and lists them anew.
func (m *Master) searchAll(w *drainWork) {
	w.units, w.search = w.units[:0], search{begun: true}
	clear(w.left)
	clear(w.stuck)
	for _, u := range w.moving {
		w.left[u.unit.source]++
	}
	if w.empty() {
		return
	}
	var all []*keeper
	m.keepers(func(k *keeper) { all = append(all, k) })
	listing := true
	m.searchFrom(w, search{rest: all}, func(at search, found []drainUnit) bool {
		for _, u := range found {
			if w.givenUp(u) {
				w.stuck[u.source]++
			} else {
				w.left[u.source]++
			}
		}
		if listing && len(w.units) >= drainList {
			listing, w.search = false, at
			w.search.begun, w.search.unread = true, true
		}
		if listing {
			w.list(found)
		}
		return true
	})
}

// searchOn lists what comes after the units that were listed before.
func (m *Master) searchOn(w *drainWork) {
	from := w.search
	w.search.unread = false
	m.searchFrom(w, from, func(at search, found []drainUnit) bool {
		if len(w.units) >= drainList {
			w.search = at
			w.search.begun, w.search.unread = true, true
			return false
		}
		w.list(found)
		return true
	})
}

// list adds what may still be moved.
func (w *drainWork) list(found []drainUnit) {
	for _, u := range found {
		if !w.givenUp(u) {
			w.units = append(w.units, u)
		}
	}
}

// searchFrom calls f, without locks, for the units found in each bite from somewhere on, with where
// the bite begins, until f returns false. Units that are being moved are left out.
func (m *Master) searchFrom(w *drainWork, at search, f func(at search, found []drainUnit) bool) {
	busy := w.busy()
	var found []drainUnit
	for ; len(at.rest) > 0; at = (search{rest: at.rest[1:]}) {
		k := at.rest[0]
		for ; at.shard < len(k.space.Shards()); at.shard, at.slot = at.shard+1, 0 {
			sh := &k.space.Shards()[at.shard]
			for more := true; more; {
				found = found[:0]
				sh.RLock()
				var next uint32
				next, more = sh.Some(at.slot, sweepBite, func(o *object.Object) {
					for i := range w.sources {
						if u := (drainUnit{k, o.Ref(), uint32(i)}); w.sourceReplica(sh, o, u.source) != nil && !busy[u] {
							found = append(found, u)
						}
					}
				})
				sh.RUnlock()
				if !f(at, found) {
					return
				}
				at.slot = next
				m.yield()
			}
		}
	}
}

// sourceReplica returns an object's replica on a source, or nil. The shard is locked.
func (w *drainWork) sourceReplica(sh *object.Shard, o *object.Object, source uint32) *object.Replica {
	all := sh.Replicas(o)
	for i := range all {
		if r := &all[i]; r.Kind == object.KindMemory && r.Memory.Seg() == w.sources[source] {
			return r
		}
	}
	return nil
}

// busy are the units that are being moved.
func (w *drainWork) busy() map[drainUnit]bool {
	busy := make(map[drainUnit]bool, len(w.moving))
	for _, u := range w.moving {
		busy[u.unit] = true
	}
	return busy
}

// empty reports whether nothing is allocated on a source, so that no object needs to be looked at.
func (w *drainWork) empty() bool {
	return !slices.ContainsFunc(w.sources, func(s *segment.Mounted) bool { return s.Alive() && s.Used() > 0 })
}
