package weight

import (
	"math"
	"slices"
	"time"
)

// Period is how often Tidy is to be called; the original's is the same.
const Period = 30 * time.Second

// Tidy forgets leases that have ended, gives up imports that nobody writes to, removes the objects of
// condemned revisions, takes moves further and notes what has become of the others.
func (s *Store) Tidy(t Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.leases {
		if l.until <= t.Now {
			delete(s.leases, id)
		}
	}
	// In one order, so that the numbers of what is done are the same every time.
	all := make([]*revision, 0, len(s.revisions))
	for _, r := range s.revisions {
		if r.Availability != Deleted {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *revision) int { return a.Identity.compare(&b.Identity) })
	for _, r := range all {
		switch r.Availability {
		case Importing:
			if t.Now-r.guard.written.Load() >= s.idle && !r.exhausted() {
				r.condemn(t)
			}
		case Deleting:
			if s.erase(r, t) != OK {
				s.failures++
			}
		default:
			s.reconcile(r, t)
		}
	}
}

// seen is what the objects of a revision look like.
type seen struct {
	complete  bool
	residency Residency
	moved     uint64 // members that are where a job is to bring them
	cursor    string // the last of them
}

// look looks at the objects of a revision; target is where a job is to bring them, if any.
func (r *revision) look(members []Member, target Residency) seen {
	v := seen{complete: uint64(len(members)) == r.Manifest.PayloadCount+1}
	memory, disk, readable, described := v.complete, v.complete, false, false
	var sum uint64
	var keys []string
	for i := range members {
		o := &members[i]
		v.complete = v.complete && o.Readable
		readable = readable || o.Readable
		cold := o.OnDisk && !o.InMemory
		memory, disk = memory && o.InMemory, disk && cold
		if target == Hot && o.InMemory || target == Cold && cold {
			v.moved++
			v.cursor = o.Key
		}
		switch {
		case o.Key == r.Manifest.ManifestKey && o.Kind == Description:
			described = true
		case o.Kind == Weights && o.Size <= math.MaxUint64-sum:
			sum += o.Size
			keys = append(keys, o.Key)
		default:
			v.complete = false
		}
	}
	v.complete = v.complete && described && sum == r.Manifest.LogicalBytes && KeysDigest(keys) == r.Manifest.PayloadKeysSHA256
	switch {
	case !readable:
		v.residency = Absent
	case memory:
		v.residency = Hot
	case disk:
		v.residency = Cold
	default:
		v.residency = Mixed
	}
	return v
}

// reconcile brings a revision in line with its objects, and its job further.
func (s *Store) reconcile(r *revision, t Time) {
	id := &r.Identity
	members := s.objects.Members(id.TenantID, r.Manifest.PayloadGroupID)
	j := s.jobs[r.OperationID]
	target := Unknown
	if j != nil {
		target = j.TargetResidency
		members = s.push(r, members)
	}
	v := r.look(members, target)
	availability := Degraded
	if v.complete {
		availability = Ready
	}
	if j != nil && v.complete && v.residency == target {
		if r.exhausted() {
			s.failures++
			return
		}
		r.Availability, r.Residency, r.Operation, r.OperationID = Ready, target, NoOperation, 0
		r.touch(t)
		j.UpdatedAtMs = max(j.UpdatedAtMs, r.UpdatedAtMs)
		j.ProcessedMembers, j.Cursor, j.Message = j.TotalMembers, "", completed
		return
	}
	changed := r.Availability != availability || r.Residency != v.residency
	if changed {
		if r.exhausted() {
			s.failures++
			return
		}
		r.Availability, r.Residency = availability, v.residency
		r.touch(t)
	}
	if j != nil && (changed || j.ProcessedMembers != v.moved || j.Cursor != v.cursor) {
		j.ProcessedMembers, j.Cursor = min(v.moved, j.TotalMembers), v.cursor
		j.UpdatedAtMs = max(j.UpdatedAtMs, t.millis())
		if changed {
			j.FencedMetadataGeneration = r.MetadataGeneration
		}
	}
}

// push does what a job asks for, and returns the members as they are then.
func (s *Store) push(r *revision, members []Member) []Member {
	id := &r.Identity
	switch r.Operation {
	case Evicting:
		var keys []string
		for i := range members {
			if members[i].OnDisk && members[i].InMemory {
				keys = append(keys, members[i].Key)
			}
		}
		if len(keys) > 0 {
			s.objects.Evict(id.TenantID, keys)
			return s.objects.Members(id.TenantID, r.Manifest.PayloadGroupID)
		}
	case Rehydrating:
		for i := range members {
			if o := &members[i]; o.Readable && !o.InMemory {
				s.objects.Fetch(id.TenantID, o.Key)
			}
		}
	}
	return members
}

// Stats is what the metrics tell of the store.
type Stats struct {
	ByAvailability [5]int // revisions, indexed by Availability
	ByResidency    [5]int // the same by Residency
	ActiveLeases   int
	PendingJobs    int
	OldestJobAgeMs uint64
	Failures       uint64 // of rounds of Tidy about one revision
}

// Stats returns the present figures.
func (s *Store) Stats(t Time) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Failures: s.failures}
	for _, r := range s.revisions {
		st.ByAvailability[r.Availability]++
		st.ByResidency[r.Residency]++
		if j := s.jobs[r.OperationID]; j != nil {
			st.PendingJobs++
			if now := t.millis(); now > j.StartedAtMs {
				st.OldestJobAgeMs = max(st.OldestJobAgeMs, now-j.StartedAtMs)
			}
		}
	}
	for _, l := range s.leases {
		if l.until > t.Now {
			st.ActiveLeases++
		}
	}
	return st
}
