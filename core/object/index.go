package object

import "sync/atomic"

// index finds slots by the hash of their key: open addressing with linear probing. An entry
// is hash<<32 | slot+1; zero is empty.
type index struct {
	entries []uint64 // length is a power of two; written atomically, since a glance takes no lock
	used    int
	shown   atomic.Pointer[[]uint64] // entries, for glances
}

func (x *index) len() int { return x.used }

// find returns the first entry from at on that has the hash, and where the search goes on.
// It ends with ok false at an empty entry. The search begins at the hash itself.
func (x *index) find(hash uint32, at uint32) (slot, next uint32, ok bool) {
	if x.used == 0 {
		return 0, 0, false
	}
	mask := uint32(len(x.entries) - 1)
	for i := at & mask; ; i = (i + 1) & mask {
		e := x.entries[i]
		if e == 0 {
			return 0, 0, false
		}
		if uint32(e>>32) == hash {
			return uint32(e) - 1, i + 1, true
		}
	}
}

func (x *index) insert(hash, slot uint32) {
	if 4*(x.used+1) > 3*len(x.entries) {
		x.grow()
	}
	x.put(uint64(hash)<<32 | uint64(slot+1))
	x.used++
}

func (x *index) put(e uint64) {
	mask := uint32(len(x.entries) - 1)
	i := uint32(e>>32) & mask
	for x.entries[i] != 0 {
		i = (i + 1) & mask
	}
	atomic.StoreUint64(&x.entries[i], e)
}

func (x *index) grow() {
	old := x.entries
	x.entries = make([]uint64, max(8, 2*len(old)))
	for _, e := range old {
		if e != 0 {
			x.put(e)
		}
	}
	entries := x.entries
	x.shown.Store(&entries)
}

// home returns where a search for the hash begins. It needs no lock.
func (x *index) home(hash uint32) *uint64 {
	shown := x.shown.Load()
	if shown == nil {
		return nil
	}
	entries := *shown
	return &entries[hash&uint32(len(entries)-1)]
}

// glance is find without the lock: what it returns may be old, or some other object's.
func (x *index) glance(hash uint32) (slot uint32, ok bool) {
	shown := x.shown.Load()
	if shown == nil {
		return 0, false
	}
	entries := *shown
	mask := uint32(len(entries) - 1)
	for i := range uint32(8) {
		e := atomic.LoadUint64(&entries[(hash+i)&mask])
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) == hash {
			return uint32(e) - 1, true
		}
	}
	return 0, false
}

// remove takes a slot out and closes the gap, so that no search stops too early.
func (x *index) remove(hash, slot uint32) {
	mask := uint32(len(x.entries) - 1)
	want := uint64(hash)<<32 | uint64(slot+1)
	i := hash & mask
	for x.entries[i] != want {
		if x.entries[i] == 0 {
			return
		}
		i = (i + 1) & mask
	}
	x.used--
	for j := i; ; {
		atomic.StoreUint64(&x.entries[i], 0)
		for {
			j = (j + 1) & mask
			e := x.entries[j]
			if e == 0 {
				return
			}
			// An entry may move into the gap unless it is at home between the gap and itself.
			if home := uint32(e>>32) & mask; (j-home)&mask >= (j-i)&mask {
				atomic.StoreUint64(&x.entries[i], e)
				i = j
				break
			}
		}
	}
}
