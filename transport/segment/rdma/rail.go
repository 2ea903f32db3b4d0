package rdma

import (
	"time"
)

// rail is a way from a device here to one there that has failed of late.
type rail struct {
	failures int // within railWindow of since
	since    time.Time
	paused   time.Time // until when it is used only if there is no other
}

const (
	railWindow   = 5 * time.Second
	railFailures = 5
)

// way is a device here and one there.
type way struct {
	nic    *nic
	device int // of the peer
	level  int // 0: both are preferred
	paused time.Time
}

// ways returns the ways between memory here and memory of a peer that are the best now: those that don't rest, of these
// the preferred; or those that will have rested first. others reports whether there is more than one that doesn't rest.
func (a *Adapter) ways(place string, p *Peer, b *peerBuffer) (best []way, others bool) {
	now := a.o.Now()
	names, levels := a.matrix.choices(place)
	var all []way
	for i, name := range names {
		n := a.nic(name)
		n.mu.Lock()
		for j, device := range b.devices {
			if !n.active {
				break
			}
			w := way{nic: n, device: device, level: levels[i] + b.level[j]}
			if r := n.rails[p.paths[device]]; r != nil && r.paused.After(now) {
				w.paused = r.paused
			}
			all = append(all, w)
		}
		n.mu.Unlock()
	}
	awake := 0
	best = all[:0]
	for _, w := range all {
		if w.paused.IsZero() {
			awake++
		}
		if len(best) > 0 && !better(&best[0], &w) && !better(&w, &best[0]) {
			best = append(best, w)
		} else if len(best) == 0 || better(&w, &best[0]) {
			best = append(best[:0], w)
		}
	}
	return best, awake > 1
}

func better(a, b *way) bool {
	if a.paused.IsZero() && b.paused.IsZero() {
		return a.level < b.level
	}
	return a.paused.Before(b.paused)
}

// noteFailure notes that a way has failed. It rests at once if there is another one, otherwise after it has failed
// several times.
func (a *Adapter) noteFailure(n *nic, path string, others bool) {
	now := a.o.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rails[path]
	if r == nil {
		r = new(rail)
		n.rails[path] = r
	}
	if now.Sub(r.since) > railWindow {
		r.failures, r.since = 0, now
	}
	if r.failures++; others || r.failures >= railFailures {
		r.paused = now.Add(a.o.RailPause)
	}
}

// forgetRails forgets those that have rested. n.mu is held.
func (n *nic) forgetRails(now time.Time) {
	for path, r := range n.rails {
		if !r.paused.After(now) && now.Sub(r.since) > railWindow {
			delete(n.rails, path)
		}
	}
}
