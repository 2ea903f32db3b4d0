package weight

import "math"

// The messages of jobs that have ended.
const (
	completed = "completed"
	cancelled = "cancelled"
)

// Start begins to move a revision to memory (Hot) or disk (Cold). The objects are moved by Tidy. A move to
// disk needs all of them to be there already, for it only gives memory up.
func (s *Store) Start(id Identity, generation uint64, target Residency, t Time) (Job, Error) {
	if target != Hot && target != Cold {
		return Job{}, InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, generation)
	if code != OK {
		return Job{}, code
	}
	if r.Operation != NoOperation {
		j := s.jobs[r.OperationID]
		switch {
		case j.TargetResidency != target:
			return Job{}, Busy
		case !r.known(generation):
			return Job{}, StaleGeneration
		}
		return *j, OK
	}
	n, _ := s.held(r, t)
	switch {
	case r.MetadataGeneration != generation:
		return Job{}, StaleGeneration
	case r.Availability != Ready && r.Availability != Degraded:
		return Job{}, NotReady
	case n != 0:
		return Job{}, Busy
	case r.exhausted() || s.lastJob >= math.MaxUint64-2:
		return Job{}, GenerationExhausted
	}
	s.lastJob++ // a number is used up by an attempt that fails, too
	members := s.objects.Members(id.TenantID, r.Manifest.PayloadGroupID)
	if uint64(len(members)) != r.Manifest.PayloadCount+1 {
		return Job{}, NotReady
	}
	operation := Rehydrating
	if target == Cold {
		operation = Evicting
		for i := range members {
			if !members[i].OnDisk {
				return Job{}, NotReady
			}
		}
	}
	r.Operation, r.OperationID = operation, s.lastJob
	r.touch(t)
	s.jobs[s.lastJob] = &Job{
		OperationID: s.lastJob, Identity: r.Identity, Operation: operation, TargetResidency: target,
		FencedMetadataGeneration: r.MetadataGeneration, StartedAtMs: r.UpdatedAtMs, UpdatedAtMs: r.UpdatedAtMs, TotalMembers: uint64(len(members)),
	}
	return *s.jobs[s.lastJob], OK
}

// Query returns a job of a tenant.
func (s *Store) Query(tenant string, id uint64) (Job, Error) {
	if id == 0 {
		return Job{}, InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil || j.Identity.TenantID != tenant {
		return Job{}, NotFound
	}
	return *j, OK
}
