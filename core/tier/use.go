package tier

// FreeRatio is the share of the disk that is not in use, as far as is known: 1 where its client has
// not said how large it is.
func (d *Disk) FreeRatio() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.capacity <= 0 {
		return 1
	}
	var used uint64
	for _, s := range d.stores {
		used += s.Used()
	}
	return 1 - float64(min(used, uint64(d.capacity)))/float64(d.capacity)
}
