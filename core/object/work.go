package object

import (
	"math"
	"slices"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

// WorkSlot says which of its works an object has only one of at a time.
type WorkSlot uint8

// The slots.
const (
	SlotReplication WorkSlot = iota // a copy or a move
	SlotPromotion                   // from a client's disk to memory
	SlotOffload                     // from memory to a client's disk
	workSlots
)

// Work is something that goes on with an object between two calls of a client and is not a write: a
// copy, a move, a promotion or an offload. It reads from replicas, which it has pinned, and may be
// making others, which are Staged. All fields are guarded by the lock of the object's shard; Slot
// never changes.
type Work struct {
	Slot    WorkSlot
	Move    bool         // in SlotReplication: the source goes away at the end
	Client  segment.UUID // who does it
	Started int64
	Sources []uint64 // ids of the pinned replicas
	Targets []uint64 // ids of the staged replicas
	Charge  uint64   // bytes charged to the tenant for the targets, beside the object's ledger
	Carried bool     // the master itself does it, which always ends it: no timeout does

	// Of a copy that the master proposed itself: what its calls have to name.
	Lease segment.UUID
	Epoch uint64
	// Of an offload: the clients that were asked to keep the object, and the bytes of memory that
	// are to be free when one of them does.
	Mirrors []segment.UUID
	Frees   uint64
	// Of a promotion: how many bytes there are on the disk, that its client asked for it itself,
	// and how often clients have failed at it in a row.
	Size     uint64
	Own      bool
	Failures int
}

// Makes reports whether the work is making a replica.
func (w *Work) Makes(id uint64) bool { return slices.Contains(w.Targets, id) }

// Work returns what is going on with the object in a slot, or nil.
func (sh *Shard) Work(o *Object, slot WorkSlot) *Work {
	if x := sh.extra(o); x != nil {
		return x.works[slot]
	}
	return nil
}

// WorkCharge returns the bytes charged for everything that is going on with the object.
func (sh *Shard) WorkCharge(o *Object) uint64 {
	var n uint64
	if x := sh.extra(o); x != nil {
		for _, w := range x.works {
			if w != nil {
				n += w.Charge
			}
		}
	}
	return n
}

// BeginWork enters a work, of which there is none in its slot, and pins its sources. It is
// remembered from w.Started on; call it again with the same work when that has changed.
func (sh *Shard) BeginWork(o *Object, w *Work) {
	x := sh.ensureExtra(o)
	if x.works[w.Slot] != w {
		x.works[w.Slot] = w
		sh.pin(o, w, 1)
		sh.works.live[w.Slot]++
	}
	if len(sh.works.entries) > 2*sh.works.going()+16 {
		sh.sweepWorks()
	}
	sh.works.entries = append(sh.works.entries, workEntry{w.Started, o.Ref(), w})
	sh.space.oldestWork.lower(w.Started)
}

// EndWork takes the object's work in a slot out and unpins its sources; the staged replicas and the charge
// are the caller's. It returns nil if there is none.
func (sh *Shard) EndWork(o *Object, slot WorkSlot) *Work {
	x := sh.extra(o)
	if x == nil || x.works[slot] == nil {
		return nil
	}
	w := x.works[slot]
	sh.pin(o, w, -1)
	x.works[slot] = nil
	sh.works.live[slot]--
	return w
}

func (sh *Shard) pin(o *Object, w *Work, by int16) {
	for _, id := range w.Sources {
		if r := sh.ByID(o, id); r != nil {
			r.Pins += by
		}
	}
}

// Going reports whether a work is still what the object is busy with.
func (sh *Shard) Going(o *Object, w *Work) bool { return sh.Work(o, w.Slot) == w }

// works remembers the works of a shard in the order they began, so that those which nobody ends are found
// without looking at every object.
type works struct {
	entries []workEntry
	live    [workSlots]int // that go on
}

// going is how many works go on.
func (f *works) going() (n int) {
	for _, live := range f.live {
		n += live
	}
	return n
}

type workEntry struct {
	started int64
	o       Ref
	work    *Work
}

// going reports whether an entry is about a work that goes on and has not been begun anew.
func (sh *Shard) going(e workEntry) bool {
	o := sh.Live(e.o)
	return o != nil && sh.Going(o, e.work) && e.work.Started == e.started
}

// sweepWorks drops the entries of works that have ended.
func (sh *Shard) sweepWorks() {
	kept := sh.works.entries[:0]
	for _, e := range sh.works.entries {
		if sh.going(e) {
			kept = append(kept, e)
		}
	}
	clear(sh.works.entries[len(kept):])
	sh.works.entries = kept
}

// WorkDue is a work that began long ago.
type WorkDue struct {
	Object Ref
	Work   *Work
}

// WorksBefore removes from the lists and returns the works that began before the instant. The
// caller checks under the shard's lock that each still goes on. Where nothing is that old no shard is
// looked at.
func (s *Space) WorksBefore(instant int64) []WorkDue {
	if s.oldestWork.Load() >= instant {
		return nil
	}
	// Whatever begins from here on lowers the bound by itself.
	s.oldestWork.Store(math.MaxInt64)
	var due []WorkDue
	for i := range s.shards {
		sh := &s.shards[i]
		sh.Lock()
		past := 0
		for _, e := range sh.works.entries {
			if sh.going(e) {
				if e.started >= instant {
					s.oldestWork.lower(e.started)
					break
				}
				due = append(due, WorkDue{e.o, e.work})
			}
			past++
		}
		clear(sh.works.entries[:past])
		sh.works.entries = sh.works.entries[past:]
		sh.Unlock()
	}
	return due
}

// worksBite is how many works are looked at under one lock.
const worksBite = 1024

// WorksThat returns works that match; match is called with a shard locked, one after the other, and has to be
// true of no work that begins meanwhile. The caller checks under the shard's lock that each still goes on.
func (s *Space) WorksThat(match func(*Work) bool) []WorkDue {
	var all []WorkDue
	for i := range s.shards {
		sh := &s.shards[i]
		// From the end, as entries only ever move towards the beginning between two bites.
		for end := math.MaxInt; end > 0; {
			sh.RLock()
			end = min(end, len(sh.works.entries))
			begin := max(end-worksBite, 0)
			for _, e := range sh.works.entries[begin:end] {
				if sh.going(e) && match(e.work) {
					all = append(all, WorkDue{e.o, e.work})
				}
			}
			sh.RUnlock()
			end = begin
		}
	}
	return all
}
