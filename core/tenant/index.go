package tenant

import (
	"hash/maphash"
	"sync/atomic"
)

// index finds accounts by name. Readers take no lock: a table is a power of two of atomic
// slots, probed linearly, into which accounts are only ever added. Writers hold Book.mu; a
// table that is more than half full is copied into one twice as large.
type index struct {
	seed  maphash.Seed
	table atomic.Pointer[[]atomic.Pointer[Account]]
	count int // guarded by Book.mu
}

const indexMinimum = 64

func (x *index) init() {
	x.seed = maphash.MakeSeed()
	table := make([]atomic.Pointer[Account], indexMinimum)
	x.table.Store(&table)
}

func (x *index) hash(name string) uint64 { return maphash.String(x.seed, name) }

// find returns the account called name, nil when there is none.
func (x *index) find(name string, hash uint64) *Account {
	table := *x.table.Load()
	mask := uint64(len(table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		a := table[i].Load()
		if a == nil || a.hash == hash && a.name == name {
			return a
		}
	}
}

// reserve makes room for n more accounts, so that adding them grows the table once.
func (x *index) reserve(n int) {
	old := *x.table.Load()
	size := len(old)
	for x.count+n > size/2 {
		size *= 2
	}
	if size == len(old) {
		return
	}
	table := make([]atomic.Pointer[Account], size)
	for i := range old {
		if a := old[i].Load(); a != nil {
			place(table, a)
		}
	}
	x.table.Store(&table)
}

// add puts in an account whose name is not there yet.
func (x *index) add(a *Account) {
	x.reserve(1)
	place(*x.table.Load(), a)
	x.count++
}

func place(table []atomic.Pointer[Account], a *Account) {
	mask := uint64(len(table) - 1)
	i := a.hash & mask
	for table[i].Load() != nil {
		i = (i + 1) & mask
	}
	table[i].Store(a)
}
