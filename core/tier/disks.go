package tier

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Disks are the disks of all clients. Finding one takes no lock.
type Disks struct {
	mu     sync.Mutex // held while the table changes
	table  atomic.Pointer[map[segment.UUID]*Disk]
	counts []*Counts // of disks that are there, and of some that were
}

// mostCounts is how many disks' counts are kept; those of disks that are gone are given up for others.
const mostCounts = 1024

func (d *Disks) all() map[segment.UUID]*Disk {
	if t := d.table.Load(); t != nil {
		return *t
	}
	return nil
}

// Find returns a client's disk, or nil.
func (d *Disks) Find(client segment.UUID) *Disk { return d.all()[client] }

// Register enters a client's disk and says whether it takes objects to write. A client that has one
// keeps it as it is.
func (d *Disks) Register(client segment.UUID, accepts bool) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.Find(client); found != nil {
		return found
	}
	n := &Disk{Client: client, accepts: accepts, counts: d.countsOf(client)}
	t := maps.Clone(d.all())
	if t == nil {
		t = make(map[segment.UUID]*Disk)
	}
	t[client] = n
	d.table.Store(&t)
	return n
}

// countsOf finds the counts of a client, or makes room for them.
func (d *Disks) countsOf(client segment.UUID) *Counts {
	for _, c := range d.counts {
		if c.Client == client {
			return c
		}
	}
	if len(d.counts) >= mostCounts {
		if i := slices.IndexFunc(d.counts, func(c *Counts) bool { return d.Find(c.Client) == nil }); i >= 0 {
			d.counts = slices.Delete(d.counts, i, i+1)
		}
	}
	c := &Counts{Client: client}
	d.counts = append(d.counts, c)
	return c
}

// Remove ends a client's disk and returns it, or nil if there is none. When its replicas have been
// dropped, Disk.Forget is to be called.
func (d *Disks) Remove(client segment.UUID) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.Find(client)
	if found == nil {
		return nil
	}
	t := maps.Clone(d.all())
	delete(t, client)
	d.table.Store(&t)
	found.close()
	return found
}

// Wait reports whether an object still waits in the queues of all the given clients, so that Cancel
// would take it out unless one of them asks for its queue first.
func (d *Disks) Wait(clients []segment.UUID, tenant, key string) bool {
	for _, id := range clients {
		if found := d.Find(id); found == nil || !found.Waits(tenant, key) {
			return false
		}
	}
	return len(clients) > 0
}

// Cancel takes an object out of the queues of all the given clients, if it still waits in every one
// of them, and reports whether it did. A client that asks for its queue meanwhile gets it with the
// object or without, and so do all others. The first client counts it.
func (d *Disks) Cancel(clients []segment.UUID, tenant, key string) bool {
	sorted := slices.SortedFunc(slices.Values(clients), func(a, b segment.UUID) int {
		if a.First != b.First {
			return cmp.Compare(a.First, b.First)
		}
		return cmp.Compare(a.Second, b.Second)
	})
	var disks []*Disk
	for _, id := range slices.Compact(sorted) {
		found := d.Find(id)
		if found == nil {
			return false
		}
		disks = append(disks, found)
	}
	for _, f := range disks {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.offloads.has(tenant, key) {
			return false
		}
	}
	for _, f := range disks {
		f.offloads.remove(tenant, key)
		if f.Client == clients[0] {
			f.counts.canceled.Add(1)
		}
	}
	return len(disks) > 0
}

// Each calls f for every disk.
func (d *Disks) Each(f func(*Disk)) {
	for _, disk := range d.all() {
		f(disk)
	}
}

// Len returns how many disks there are.
func (d *Disks) Len() int { return len(d.all()) }

// Counts returns what happened to the items of each client that has had a disk; of clients that
// are long gone it may be forgotten.
func (d *Disks) Counts() []*Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.counts)
}
