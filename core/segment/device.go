package segment

// MountDevice is Mount for a namespace that clients reach over NVMe-oF: its addresses may begin at
// zero, and the same endpoint under another id is the same device. It reports whether the device is
// new, and fails with ErrInvalid when it has no size and with ErrUnavailable when it is being
// unmounted.
func (p *Pool) MountDevice(info Info, client UUID) (fresh bool, err error) {
	if info.Size == 0 {
		return false, ErrInvalid
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.byID[info.ID]; m != nil {
		if m.Status() != StatusOK {
			return false, ErrUnavailable
		}
		return false, nil
	}
	for _, m := range p.all {
		if m.Status() == StatusOK && m.Info.Endpoint == info.Endpoint {
			return false, nil
		}
	}
	p.add(info, client)
	p.publish()
	return true, nil
}

// All returns the segments in the registry, in any status, in mount order.
func (p *Pool) All() []*Mounted { return p.current().all }
