package segment

// NewStore makes a place that replicas can lie in and that hands out no memory: a client's own
// disk, reached through an endpoint of the client, or a file system that all clients share. It is in
// no Pool. Its replicas can be read while it is alive and not suspended.
func NewStore(client UUID, endpoint string) *Mounted {
	m := &Mounted{Info: Info{Endpoint: endpoint}, Client: client, store: true}
	m.place = directory.enter(m)
	m.status.Store(int32(StatusOK))
	return m
}

// Hold returns an Allocation that names a store and says how many bytes a replica has there. They
// count as used until it is freed.
func (m *Mounted) Hold(size uint64) Allocation {
	m.used.Add(size)
	return Allocation{Size: size, seg: m.place}
}

// Suspend says whether the client of a store is silent.
func (m *Mounted) Suspend(on bool) { m.suspend(on) }

// Close ends a store: replicas there are gone. When no replica names it any more, Forget may be
// called.
func (m *Mounted) Close() { m.flags.Or(flagDead) }

// Forget lets the memory of a closed store go.
func (m *Mounted) Forget() { directory.forget(m.place) }
