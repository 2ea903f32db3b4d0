package object

import "strings"

// extra is what few objects have.
type extra struct {
	group     *Group
	checksum  *uint64
	softUntil int64
	affinity  string
	pending   PinRequest
	doomed    bool // chosen by a group's eviction; guarded by the group lock
	works     [workSlots]*Work
}

// PinRequest is what a write wants done to the soft pin once the object is readable.
type PinRequest struct {
	Action SoftPinAction
	TTL    int64 // nanoseconds, for SoftPinEnable
}

// extra returns what is kept of the object beside itself, or nil.
func (sh *Shard) extra(o *Object) *extra {
	if o.flags&flagExtra == 0 {
		return nil
	}
	return sh.extras[o]
}

func (sh *Shard) ensureExtra(o *Object) *extra {
	if x := sh.extra(o); x != nil {
		return x
	}
	if sh.extras == nil {
		sh.extras = make(map[*Object]*extra)
	}
	x := new(extra)
	sh.extras[o] = x
	o.flags |= flagExtra
	return x
}

// Checksum returns what the writer gave, or nil. The pointed-to value never changes.
func (sh *Shard) Checksum(o *Object) *uint64 {
	if x := sh.extra(o); x != nil {
		return x.checksum
	}
	return nil
}

// SetChecksum stores a copy of sum, or forgets the checksum when sum is nil.
func (sh *Shard) SetChecksum(o *Object, sum *uint64) {
	if sum == nil {
		if x := sh.extra(o); x != nil {
			x.checksum = nil
		}
		return
	}
	v := *sum
	sh.ensureExtra(o).checksum = &v
}

// SoftUntil returns the end of the soft pin; zero if there is none.
func (sh *Shard) SoftUntil(o *Object) int64 {
	if x := sh.extra(o); x != nil {
		return x.softUntil
	}
	return 0
}

// SetSoftUntil sets the end of the soft pin; zero removes it.
func (sh *Shard) SetSoftUntil(o *Object, until int64) {
	if until != 0 || o.flags&flagExtra != 0 {
		sh.ensureExtra(o).softUntil = until
	}
}

// Affinity returns the id by which the object belongs to others as to where they lie, "" if it has none.
func (sh *Shard) Affinity(o *Object) string {
	if x := sh.extra(o); x != nil {
		return x.affinity
	}
	return ""
}

// SetAffinity gives a new object a copy of such an id.
func (sh *Shard) SetAffinity(o *Object, id string) {
	if id != "" {
		sh.ensureExtra(o).affinity = strings.Clone(id)
	}
}

// RequestPin keeps what the write wants done to the soft pin until the object is readable.
func (sh *Shard) RequestPin(o *Object, p PinRequest) {
	if p.Action != SoftPinPreserve || o.flags&flagExtra != 0 {
		sh.ensureExtra(o).pending = p
	}
}

// CommitPin does what the write asked for; a second call does nothing.
func (sh *Shard) CommitPin(o *Object, now int64) {
	x := sh.extra(o)
	if x == nil {
		return
	}
	switch p := x.pending; p.Action {
	case SoftPinEnable:
		x.softUntil = 0
		if p.TTL > 0 {
			x.softUntil = now + p.TTL
		}
	case SoftPinDisable:
		x.softUntil = 0
	}
	x.pending = PinRequest{}
}

// Group returns the object's group, or nil.
func (sh *Shard) Group(o *Object) *Group {
	if x := sh.extra(o); x != nil {
		return x.group
	}
	return nil
}

// GroupID returns the id of the object's group, "" if it has none.
func (sh *Shard) GroupID(o *Object) string {
	if g := sh.Group(o); g != nil {
		return g.ID
	}
	return ""
}
