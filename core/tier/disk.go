package tier

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// Disk is one client's disk, from its registration to its end. Registered anew it is another
// Disk.
type Disk struct {
	Client segment.UUID

	// What became of the items that the client was to write.
	counts *Counts

	mu         sync.Mutex
	gone       bool
	silent     bool
	accepts    bool // takes items to write
	wipe       bool
	capacity   int64
	offloads   queue
	promotions queue
	stores     map[string]*segment.Mounted // by endpoint
	tidyAt     int                         // how many of them there are when the empty ones are forgotten
}

// fewStores is how many endpoints a client's disk may have been read through before those are forgotten through which
// nothing is. Clients have one.
const fewStores = 64

// Counts are events about the items that a client was to write to its disk.
type Counts struct {
	Client                                          segment.UUID
	enqueued, rejected, completed, failed, canceled atomic.Uint64
}

// Enqueued counts the items that were queued; Rejected, Completed, Failed and Canceled those that found the queue full, were
// written, could not be written, and were taken back before the client had asked for them.
func (c *Counts) Enqueued() uint64  { return c.enqueued.Load() }
func (c *Counts) Rejected() uint64  { return c.rejected.Load() }
func (c *Counts) Completed() uint64 { return c.completed.Load() }
func (c *Counts) Failed() uint64    { return c.failed.Load() }
func (c *Counts) Canceled() uint64  { return c.canceled.Load() }

// Accepts reports whether the disk takes items to write now.
func (d *Disk) Accepts() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepts && !d.gone
}

// Room reports whether the disk takes an item to write now, of which as many as limit may wait.
func (d *Disk) Room(limit int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepts && !d.gone && d.offloads.len() < limit
}

// Offload asks the client to write an object to its disk. It does nothing and reports false when the
// client does not want to, and when as many as limit wait already. An object that waits already, as it was to be
// written before, keeps its place.
func (d *Disk) Offload(i Item, limit int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone || !d.accepts {
		return false
	}
	if !d.offloads.renew(i) {
		if d.offloads.len() >= limit {
			d.counts.rejected.Add(1)
			return false
		}
		d.offloads.add(i)
	}
	d.counts.enqueued.Add(1)
	return true
}

// TakeOffloads says whether the client takes items to write from now on, and takes all that
// wait out of the queue.
func (d *Disk) TakeOffloads(accepts bool) []Item {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepts = accepts
	return d.offloads.takeAll()
}

// Waits reports whether the client has still to be told of an object that it is to write.
func (d *Disk) Waits(tenant, key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offloads.has(tenant, key)
}

// DropOffload takes an object out of the queue, if it is there.
func (d *Disk) DropOffload(tenant, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offloads.remove(tenant, key)
}

// Written and NotWritten count what the client says about an item that it was to write.
func (d *Disk) Written()    { d.counts.completed.Add(1) }
func (d *Disk) NotWritten() { d.counts.failed.Add(1) }

// Promote asks the client to bring an object back to memory. It reports false when it is asked that
// already.
func (d *Disk) Promote(i Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.gone && d.promotions.add(i)
}

// TakePromotions takes up to so many objects that are to be brought back, the oldest first.
func (d *Disk) TakePromotions(most int) []Item {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.promotions.take(most)
}

// DropPromotion takes an object out again, if it is there.
func (d *Disk) DropPromotion(tenant, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.promotions.remove(tenant, key)
}

// SetCapacity notes how many bytes the disk has.
func (d *Disk) SetCapacity(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// Capacity returns how many bytes the disk has, as its client says.
func (d *Disk) Capacity() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.capacity
}

// Wipe notes that the client is to empty its disk.
func (d *Disk) Wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wipe = true
}

// TakeWipe reports whether the client is to empty its disk, and forgets it.
func (d *Disk) TakeWipe() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.wipe
	d.wipe = false
	return w
}

// Suspend says whether the client is silent: what lies on its disk can't be read then.
func (d *Disk) Suspend(silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent = silent
	for _, s := range d.stores {
		s.Suspend(silent)
	}
}

// Store returns the place of replicas that are read through an endpoint of the client, or nil
// when the disk is gone.
func (d *Disk) Store(endpoint string) *segment.Mounted {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return nil
	}
	s := d.stores[endpoint]
	if s == nil {
		endpoint = strings.Clone(endpoint)
		s = segment.NewStore(d.Client, endpoint)
		s.Suspend(d.silent)
		d.tidy()
		if d.stores == nil {
			d.stores = make(map[string]*segment.Mounted)
		}
		d.stores[endpoint] = s
	}
	return s
}

// tidy forgets the stores where nothing is, if there are many. A replica that comes there at this moment is
// gone. mu is held.
func (d *Disk) tidy() {
	if len(d.stores) < max(d.tidyAt, fewStores) {
		return
	}
	for endpoint, s := range d.stores {
		if s.Used() == 0 {
			s.Close()
			s.Forget()
			delete(d.stores, endpoint)
		}
	}
	d.tidyAt = 2 * len(d.stores)
}

// close ends the disk: what lies there is gone, and nothing waits any more.
func (d *Disk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone, d.accepts = true, false
	d.offloads, d.promotions = queue{}, queue{}
	for _, s := range d.stores {
		s.Close()
	}
}

// Renew ends all places of replicas on the disk, whose content has gone, while the disk
// stays. It returns what is to be called when no replica names them any more.
func (d *Disk) Renew() (forget func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.stores
	d.stores = nil
	for _, s := range old {
		s.Close()
	}
	return func() { forgetAll(old) }
}

// Forget lets the memory of a disk that is gone go, when no replica names it any more.
func (d *Disk) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	forgetAll(d.stores)
	d.stores = nil
}

// Holds reports whether replicas have ever been on the disk.
func (d *Disk) Holds() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.stores) > 0
}

func forgetAll(stores map[string]*segment.Mounted) {
	for _, s := range stores {
		s.Forget()
	}
}
