package core

import (
	"container/heap"
	"sync"
	"sync/atomic"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
)

func anyReplica(*object.Replica) bool { return true }
func isProcessing(r *object.Replica) bool {
	return r.Status == object.ReplicaProcessing && r.Primary()
}
func isComplete(r *object.Replica) bool { return r.Status == object.ReplicaComplete }
func isGone(r *object.Replica) bool     { return !r.Memory.Seg().Alive() }

// free gives a replica's memory back at once.
func free(r *object.Replica) { r.Memory.Free() }

// freeing collects the memory that the objects of a batch give back, so that it is given back by
// segment: each segment's lock is taken once for all of it.
type freeing struct {
	list []segment.Allocation
	add  func(*object.Replica) // takes a replica's memory
}

var freeings = sync.Pool{New: func() any {
	f := new(freeing)
	f.add = func(r *object.Replica) { f.list = append(f.list, r.Memory) }
	return f
}}

func newFreeing() *freeing { return freeings.Get().(*freeing) }

// done gives back what was collected. No lock of a segment is held.
func (f *freeing) done() {
	f.flush()
	freeings.Put(f)
}

func (f *freeing) flush() {
	segment.FreeAll(f.list)
	f.list = f.list[:0]
}

// park returns what gives a replica's memory back at the given instant.
func (m *Master) park(until int64) func(*object.Replica) {
	return func(r *object.Replica) {
		if r.Kind == object.KindMemory || r.Kind == object.KindNoF { // nothing is written to where the others lie
			m.parked.add(r.Memory, until)
		}
	}
}

// current returns the object under a key with what is left of it: replicas whose segment is
// gone are dropped first, and an object without any other, or one that its group's eviction
// has chosen, is no object any more. The shard is locked for writing.
func (m *Master) current(k *keeper, sh *object.Shard, h object.Hash, key string) *object.Object {
	o := sh.Get(h, key)
	if o == nil {
		if doomed := sh.GetAny(h, key); doomed != nil {
			m.shed(k, sh, doomed, anyReplica, free)
		}
		return nil
	}
	if sh.Stale(o) {
		m.shed(k, sh, o, isGone, free)
		if o.Dead() {
			return nil
		}
	}
	return o
}

// shed drops the replicas that match, gives each to release, refunds what they were charged,
// and takes the object out of the table if none is left. It is the only way a replica ever
// leaves an object, but for retire, which moves the charge. It returns how many replicas were
// dropped. The shard is locked for writing.
func (m *Master) shed(k *keeper, sh *object.Shard, o *object.Object, match func(*object.Replica) bool, release func(*object.Replica)) int {
	before, writing := m.media(sh, o), 0
	if o.InFlight() {
		writing = sh.Tally(o).MemoryWriting
	}
	n := sh.Drop(o, match, release)
	m.moved(k, sh, o, before)
	if n > 0 {
		m.refundLost(k, sh, o)
	}
	if writing > 0 && n > 0 {
		if left := sh.Tally(o).MemoryWriting; writing > left && left > 0 {
			m.ledger(k, o, o.Ledger.ReleasePending(k.account(sh), min(o.Ledger.Pending(), o.Size*uint64(writing-left))))
		}
	}
	m.settle(k, sh, o)
	return n
}

// settle brings the ledger of an object in line with its replicas after those have changed. An
// object without any is taken out of the table, and what goes on with it ends.
func (m *Master) settle(k *keeper, sh *object.Shard, o *object.Object) {
	n := sh.Tally(o)
	if o.InFlight() && n.Writing == 0 {
		o.End()
		sh.WriteEnded()
	}
	switch {
	case n.All == 0:
		m.dropWorks(k, sh, o)
		if o.Ledger.Total() != 0 {
			m.ledger(k, o, o.Ledger.ReleaseAll(k.account(sh)))
		}
		sh.Delete(o)
	case n.MemoryWriting == 0:
		m.ledger(k, o, o.Ledger.SettlePrimary(k.account(sh), o.Size*uint64(n.Memory)))
	default:
		// The write goes on. What was committed for a replica that is gone is refunded; of what is
		// pending, shed has refunded what replicas that are gone were charged.
		if keep := o.Size * uint64(n.Memory); o.Ledger.Committed() > keep {
			m.ledger(k, o, o.Ledger.ReleaseCommitted(k.account(sh), o.Ledger.Committed()-keep))
		}
	}
}

// ledger reports an accounting error. There is none unless the master is wrong.
func (m *Master) ledger(k *keeper, o *object.Object, err error) {
	if err != nil {
		m.counters.ledgerErrors.Add(1)
		m.log.Error("quota ledger does not add up", "tenant", k.name, "object_bytes", o.Size, "error", err)
	}
}

// enqueue puts a complete object in line for eviction, unless it is never to be evicted or has
// nothing in memory.
func (m *Master) enqueue(k *keeper, sh *object.Shard, o *object.Object, now int64) {
	if !o.HardPin && !o.Dead() && !o.InFlight() && sh.InMemory(o) {
		k.space.Order.Insert(o, sh.Rank(o), sh.SoftUntil(o), now)
	}
}

// parkingLot keeps buffers that nobody owns but somebody may still write to.
type parkingLot struct {
	mu    sync.Mutex
	slots parkedHeap
	bytes atomic.Int64
}

type parkedBuffer struct {
	until int64
	alloc segment.Allocation
}

func (p *parkingLot) add(a segment.Allocation, until int64) {
	p.mu.Lock()
	heap.Push(&p.slots, parkedBuffer{until, a})
	p.mu.Unlock()
	p.bytes.Add(int64(a.Size))
}

// parkedBite is how many parked buffers are freed under one lock.
const parkedBite = 256

// release frees the buffers whose time has come, at most so many, and returns how many there
// were.
func (p *parkingLot) release(now int64, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < most && len(p.slots) > 0 && p.slots[0].until < now {
		b := heap.Pop(&p.slots).(parkedBuffer)
		p.bytes.Add(-int64(b.alloc.Size))
		b.alloc.Free()
		n++
	}
	return n
}

// dropGone forgets the buffers on segments that are gone.
func (p *parkingLot) dropGone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.slots[:0]
	for _, b := range p.slots {
		if b.alloc.Seg().Alive() {
			kept = append(kept, b)
		} else {
			b.alloc.Free() // memory that segments share outlives them
			p.bytes.Add(-int64(b.alloc.Size))
		}
	}
	clear(p.slots[len(kept):])
	p.slots = kept
	heap.Init(&p.slots)
}

// each calls f for every parked buffer.
func (p *parkingLot) each(f func(segment.Allocation)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.slots {
		f(b.alloc)
	}
}

type parkedHeap []parkedBuffer

func (h parkedHeap) Len() int           { return len(h) }
func (h parkedHeap) Less(i, j int) bool { return h[i].until < h[j].until }
func (h parkedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *parkedHeap) Push(x any)        { *h = append(*h, x.(parkedBuffer)) }
func (h *parkedHeap) Pop() any {
	old := *h
	n := len(old) - 1
	b := old[n]
	old[n] = parkedBuffer{}
	*h = old[:n]
	return b
}

// charged recomputes from the objects what the tenant's account should say, and reports each
// object whose ledger does not match its replicas. It locks one shard after the other, so it
// is exact only while nothing else runs.
func (k *keeper) charged(report func(sh *object.Shard, o *object.Object, why string)) (bytes uint64) {
	for i := range k.space.Shards() {
		sh := &k.space.Shards()[i]
		sh.RLock()
		sh.Each(func(o *object.Object) {
			bytes += o.Ledger.Total() + sh.WorkCharge(o)
			n := sh.Tally(o)
			want := o.Size * uint64(n.Memory)
			switch {
			case n.All == 0:
				report(sh, o, "no replicas")
			case n.MemoryWriting > 0 && o.Ledger.Pending()+o.Ledger.Committed() < want:
				report(sh, o, "write in flight is charged too little")
			case n.MemoryWriting == 0 && (o.Ledger.Committed() != want || o.Ledger.Total() != want):
				report(sh, o, "committed bytes differ from size times replicas")
			}
		})
		sh.RUnlock()
	}
	return bytes
}
