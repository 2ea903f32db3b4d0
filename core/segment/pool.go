package segment

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Pool is the registry of mounted segments. All methods are safe for concurrent use.
type Pool struct {
	strategy Strategy
	rnd      Rand
	layout   atomic.Pointer[layout] // nil when the registry has changed since; see current
	capacity atomic.Uint64          // bytes of the whole registry, saturated
	diskFree func(client UUID) float64
	far      *Mounted // the memory that segments over CXL share, or nil

	mu   sync.RWMutex
	byID map[UUID]*Mounted
	all  []*Mounted // in mount order
}

// View is one segment as the admin interface shows it.
type View struct {
	Info      Info
	Client    UUID
	Status    Status
	Suspended bool   // the client is silent
	Used      uint64 // bytes handed out, as requested
	Capacity  uint64 // bytes
}

// NewPool returns a pool without segments that places replicas by strategy and draws from rnd.
func NewPool(strategy Strategy, rnd Rand) *Pool {
	p := &Pool{strategy: strategy, rnd: rnd, byID: make(map[UUID]*Mounted)}
	p.layout.Store(newLayout(nil))
	return p
}

// Mount adds a segment and reports whether it is new: one mounted already with the same id, in
// status OK, is returned. Several segments may have the same name. It fails with ErrInvalid when
// address or size is zero, and with ErrInvalid and what is mounted when that is other memory or another
// client's; hosts and localities are not compared. It fails with ErrUnavailable when the id is mounted in another
// status. A new segment is not suspended, whatever its client's other
// segments are.
func (p *Pool) Mount(info Info, client UUID) (m *Mounted, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m = p.byID[info.ID]; m != nil {
		switch {
		case m.Status() != StatusOK:
			return nil, false, ErrUnavailable
		case m.Client != client || !m.Info.sameMemory(&info):
			return m, false, ErrInvalid
		}
		return m, false, nil
	}
	if !p.usable(&info) {
		return nil, false, ErrInvalid
	}
	m = p.add(info, client)
	p.publish()
	return m, true, nil
}

// Remount mounts what a client says it has, all or nothing, and returns how many segments are
// new. Segments without address or size are passed over. It fails with ErrInvalid when one is
// mounted already but differs in any field but its locality, or belongs to another client, and with
// ErrUnavailable when one is mounted in a status other than OK.
func (p *Pool) Remount(infos []Info, client UUID) (fresh int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.compare(infos, client); err != nil {
		return 0, err
	}
	for i := range infos {
		if m := p.byID[infos[i].ID]; m != nil && p.usable(&infos[i]) && m.Status() != StatusOK {
			return 0, ErrUnavailable
		}
	}
	for i := range infos {
		if p.usable(&infos[i]) && p.byID[infos[i].ID] == nil {
			p.add(infos[i], client)
			fresh++
		}
	}
	if fresh > 0 {
		p.publish()
	}
	return fresh, nil
}

// Compare is Remount of segments that may be mounted as far as it fails with ErrInvalid.
func (p *Pool) Compare(infos []Info, client UUID) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.compare(infos, client)
}

func (p *Pool) compare(infos []Info, client UUID) error {
	for i := range infos {
		if m := p.byID[infos[i].ID]; m != nil && (m.Client != client || !m.Info.sameMemory(&infos[i]) || m.Info.HostID != infos[i].HostID) {
			return ErrInvalid
		}
	}
	return nil
}

// BeginUnmount ends the life of a segment: when it returns, replicas there are gone and
// nothing is allocated there any more, but its capacity still counts until FinishUnmount. An
// unknown id is not an error; nil is returned. It fails with ErrUnavailable when the unmount
// has begun already.
func (p *Pool) BeginUnmount(id UUID) (*Mounted, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.byID[id]
	if m == nil {
		return nil, nil
	}
	if m.Status() == StatusUnmounting {
		return nil, ErrUnavailable
	}
	m.kill()
	p.publish()
	return m, nil
}

// BeginUnmountClient begins the unmount of all segments of a client but those whose unmount
// has begun already, and returns them.
func (p *Pool) BeginUnmountClient(client UUID) []*Mounted {
	p.mu.Lock()
	defer p.mu.Unlock()
	var begun []*Mounted
	for _, m := range p.all {
		if m.Client == client && m.Status() != StatusUnmounting {
			m.kill()
			begun = append(begun, m)
		}
	}
	if begun != nil {
		p.publish()
	}
	return begun
}

// FinishUnmount takes segments whose unmount has begun out of the registry; their capacity no
// longer counts and their ids may be mounted again. Others are left alone.
func (p *Pool) FinishUnmount(segments ...*Mounted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := false
	for _, m := range segments {
		if m != nil && m.Status() == StatusUnmounting && p.byID[m.Info.ID] == m {
			delete(p.byID, m.Info.ID)
			directory.forget(m.place)
			left = true
		}
	}
	if left {
		p.all = slices.DeleteFunc(p.all, func(m *Mounted) bool { return p.byID[m.Info.ID] != m })
		p.publish()
	}
}

// BeginGracefulUnmount stops allocation on a segment that its client wants back later;
// replicas there stay readable. Repeating it is fine. It fails with ErrNotFound when the
// client has no segments, with ErrInvalid when the segment is not the client's, and with
// ErrUnavailable in a status other than OK, DRAINING and GRACEFULLY_UNMOUNTING.
func (p *Pool) BeginGracefulUnmount(id, client UUID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.byID[id]
	if m == nil || m.Client != client {
		if !slices.ContainsFunc(p.all, func(m *Mounted) bool { return m.Client == client }) {
			return ErrNotFound
		}
		return ErrInvalid
	}
	switch m.Status() {
	case StatusGracefullyUnmounting:
		return nil
	case StatusOK, StatusDraining:
		m.setStatus(StatusGracefullyUnmounting)
		p.publish()
		return nil
	default:
		return ErrUnavailable
	}
}

// SetStatus moves a segment between OK, DRAINING and DRAINED. It fails with ErrInvalid for
// another target, with ErrNotFound for an unknown id, and with ErrUnavailable when the segment
// is being unmounted.
func (p *Pool) SetStatus(id UUID, status Status) error {
	if !status.drainable() {
		return ErrInvalid
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.byID[id]
	if m == nil {
		return ErrNotFound
	}
	if !m.Status().drainable() {
		return ErrUnavailable
	}
	m.setStatus(status)
	p.publish()
	return nil
}

// Suspend makes the replicas on a client's segments unreadable and stops allocation there,
// until Resume. It returns how many segments changed.
func (p *Pool) Suspend(client UUID) int { return p.suspend(client, true) }

// Resume undoes Suspend. It returns how many segments changed.
func (p *Pool) Resume(client UUID) int { return p.suspend(client, false) }

func (p *Pool) suspend(client UUID, on bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := 0
	for _, m := range p.all {
		if m.Client == client && m.Suspended() != on {
			m.suspend(on)
			changed++
		}
	}
	if changed > 0 {
		p.publish()
	}
	return changed
}

// add puts a new segment into the registry; mu is held.
func (p *Pool) add(info Info, client UUID) *Mounted {
	m := p.newMounted(info.clone(), client)
	p.byID[info.ID] = m
	p.all = append(p.all, m)
	return m
}

// publish makes the registry as it is now visible to placement; mu is held. The picture of it
// is made when somebody looks: thousands of segments that are mounted in a row, as after a
// restart, cost one.
func (p *Pool) publish() {
	var capacity uint64
	if p.far != nil {
		capacity = p.far.Info.Size
	}
	for _, m := range p.all {
		if m.lender == nil {
			capacity = saturate(capacity, m.Info.Size)
		}
	}
	p.capacity.Store(capacity)
	p.layout.Store(nil)
}

// current returns the picture of the registry as it is now; mu is not held.
func (p *Pool) current() *layout {
	if l := p.layout.Load(); l != nil {
		return l
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.layout.Load()
	if l == nil {
		l = newLayout(p.all)
		p.layout.Store(l)
	}
	return l
}

// usable reports whether the segment has memory to lend, or lends what is shared.
func (p *Pool) usable(i *Info) bool { return i.Base != 0 && i.Size != 0 || p.borrows(i) }

// sameMemory reports whether two clients' words are about the same memory, reached in the same way.
func (i *Info) sameMemory(o *Info) bool {
	return i.ID == o.ID && i.Name == o.Name && i.Base == o.Base && i.Size == o.Size &&
		i.Endpoint == o.Endpoint && i.Protocol == o.Protocol
}

// clone returns a copy that shares no memory with the original, whose strings may lie in a
// buffer that is about to be used again.
func (i Info) clone() Info {
	i.Name = strings.Clone(i.Name)
	i.Endpoint = strings.Clone(i.Endpoint)
	i.Protocol = strings.Clone(i.Protocol)
	i.HostID = strings.Clone(i.HostID)
	if i.Locality != nil {
		l := Locality{NUMANode: i.Locality.NUMANode, HCANames: slices.Clone(i.Locality.HCANames)}
		for j := range l.HCANames {
			l.HCANames[j] = strings.Clone(l.HCANames[j])
		}
		i.Locality = &l
	}
	return i
}

// drainable reports whether SetStatus may lead to or from the status.
func (s Status) drainable() bool {
	return s == StatusOK || s == StatusDraining || s == StatusDrained
}
