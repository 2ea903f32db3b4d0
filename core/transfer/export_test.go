package transfer

// Wanted reports whether an object waits for its turn.
func (p *Pump) Wanted() bool { return p.desks.wanted() }

// Waiting reports whether a piece has to wait for bandwidth now.
func (p *Pump) Waiting() bool {
	p.limit.mu.Lock()
	defer p.limit.mu.Unlock()
	return p.limit.served && p.limit.free > p.limit.now()
}
