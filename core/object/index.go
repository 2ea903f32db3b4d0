package object

// index finds slots by the hash of their key: open addressing with linear probing. An entry
// is hash<<32 | slot+1; zero is empty.
type index struct {
	entries []uint64 // length is a power of two
	used    int
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
	x.entries[i] = e
}

func (x *index) grow() {
	old := x.entries
	x.entries = make([]uint64, max(8, 2*len(old)))
	for _, e := range old {
		if e != 0 {
			x.put(e)
		}
	}
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
		x.entries[i] = 0
		for {
			j = (j + 1) & mask
			e := x.entries[j]
			if e == 0 {
				return
			}
			// An entry may move into the gap unless it is at home between the gap and itself.
			if home := uint32(e>>32) & mask; (j-home)&mask >= (j-i)&mask {
				x.entries[i] = e
				i = j
				break
			}
		}
	}
}
