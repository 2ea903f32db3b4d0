package segment

import "slices"

// Use is the memory of the segments of one name that take allocations now, in bytes.
type Use struct {
	Name           string
	Used, Capacity uint64
}

// Ratio is the share of the memory that is handed out.
func (u *Use) Ratio() float64 { return float64(u.Used) / float64(u.Capacity) }

// Placeable returns the names that take allocations now, in mount order.
func (p *Pool) Placeable() []Use {
	groups := p.current().groups
	all := make([]Use, len(groups))
	for i, g := range groups {
		all[i].Name = g.name
		for _, m := range g.segs {
			all[i].Used += m.Used()
			all[i].Capacity = saturate(all[i].Capacity, m.Capacity())
		}
	}
	return all
}

// BeginDrain stops allocation on all segments of some names and returns them; replicas there stay
// readable. Targets are the names that those may be moved to, if only some. Nothing has changed
// when it fails: with ErrNotFound when a name has no segment, with ErrUnavailable when the one
// mounted last is not in status OK, with ErrInvalid when a target is among the names; names are
// looked at in order, then targets.
func (p *Pool) BeginDrain(names, targets []string) ([]*Mounted, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if err := p.steady(name); err != nil {
			return nil, err
		}
	}
	for _, name := range targets {
		if slices.Contains(names, name) {
			return nil, ErrInvalid
		}
		if err := p.steady(name); err != nil {
			return nil, err
		}
	}
	var begun []*Mounted
	for _, m := range p.all {
		if m.Status() == StatusOK && slices.Contains(names, m.Info.Name) {
			m.setStatus(StatusDraining)
			begun = append(begun, m)
		}
	}
	p.publish()
	return begun, nil
}

// steady says what is wrong with a name that must be in status OK; mu is held.
func (p *Pool) steady(name string) error {
	for i := len(p.all) - 1; i >= 0; i-- {
		if m := p.all[i]; m.Info.Name == name {
			if m.Status() != StatusOK {
				return ErrUnavailable
			}
			return nil
		}
	}
	return ErrNotFound
}

// EndDrain moves a segment that is DRAINING or DRAINED to another status of the three between which
// SetStatus moves. It reports false and changes nothing when the segment is in another status by
// now or has left the registry.
func (p *Pool) EndDrain(m *Mounted, status Status) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[m.Info.ID] != m || !status.drainable() || !m.Status().drainable() || m.Status() == StatusOK {
		return false
	}
	if m.Status() != status {
		m.setStatus(status)
		p.publish()
	}
	return true
}
