package weight

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxLeaseMs is the longest lease.
const maxLeaseMs = uint64(24 * time.Hour / time.Millisecond)

// Store keeps the revisions of all tenants.
type Store struct {
	objects Objects
	idle    int64 // after which an import is given up, nanoseconds

	mu        sync.Mutex
	revisions map[Identity]*revision
	leases    map[uint64]*lease
	jobs      map[uint64]*Job
	lastLease uint64
	lastJob   uint64
	failures  uint64
	guards    atomic.Pointer[map[string]*guard] // by group; replaced whole
}

type revision struct {
	Metadata
	guard *guard
}

type lease struct {
	Lease
	until int64 // on the clock
}

// New returns an empty store. An import without a write for idle nanoseconds is given up.
func New(objects Objects, idle time.Duration) *Store {
	return &Store{
		objects: objects, idle: idle.Nanoseconds(),
		revisions: make(map[Identity]*revision), leases: make(map[uint64]*lease), jobs: make(map[uint64]*Job),
	}
}

// valid reports whether an identity may be a revision's. Its tenant has been looked at before.
func (id *Identity) valid() bool {
	return component(id.Namespace) && component(id.ResourceID) && component(id.Revision) && id.WeightGeneration != 0
}

// valid reports whether a manifest may be that of a revision.
func (m *Manifest) valid(id *Identity) bool {
	return m.ManifestKey == id.ManifestKey() && component(m.ManifestKey) && digest(m.ManifestSHA256) && m.PayloadGroupID == id.PayloadGroup() &&
		digest(m.PayloadKeysSHA256) && m.PayloadCount != 0 && m.LogicalBytes != 0
}

// find returns the revision that a request names in the generation that it knows.
func (s *Store) find(id *Identity, generation uint64) (*revision, Error) {
	if !id.valid() || generation == 0 {
		return nil, InvalidArgument
	}
	r := s.revisions[*id]
	if r == nil {
		return nil, NotFound
	}
	return r, OK
}

// known reports whether a request about something that has been done already names the present
// generation or the one before.
func (r *revision) known(generation uint64) bool {
	return r.MetadataGeneration == generation || generation != math.MaxUint64 && r.MetadataGeneration == generation+1
}

// touch raises the generation of a revision that has changed.
func (r *revision) touch(t Time) {
	r.MetadataGeneration++
	r.UpdatedAtMs = max(r.UpdatedAtMs, t.millis())
}

// exhausted reports whether the generation can't be raised.
func (r *revision) exhausted() bool { return r.MetadataGeneration >= math.MaxUint64-1 }

// Begin starts the import of a revision, whose payload is to be count objects of bytes in all. An empty
// group is the revision's.
func (s *Store) Begin(id Identity, group string, count, bytes uint64, t Time) (Metadata, Error) {
	if !id.valid() || count == 0 || bytes == 0 {
		return Metadata{}, InvalidArgument
	}
	own := id.PayloadGroup()
	if group != "" && group != own {
		return Metadata{}, InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.revisions[id]; r != nil {
		if (r.Availability == Importing || r.Availability == Ready) && r.Manifest.PayloadCount == count && r.Manifest.LogicalBytes == bytes {
			return r.Metadata, OK
		}
		return Metadata{}, Conflict
	}
	id = id.clone() // requests lie in memory that is used again
	r := &revision{guard: new(guard), Metadata: Metadata{
		Identity: id, Manifest: Manifest{PayloadGroupID: own, PayloadCount: count, LogicalBytes: bytes},
		Availability: Importing, MetadataGeneration: 1, CreatedAtMs: t.millis(), UpdatedAtMs: t.millis(),
	}}
	r.guard.begin(t.Now)
	s.revisions[id] = r
	s.setGuard(own, r.guard)
	return r.Metadata, OK
}

// Commit ends an import: the objects have to be what the manifest says.
func (s *Store) Commit(id Identity, generation uint64, m *Manifest, t Time) (Metadata, Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, generation)
	switch {
	case code == InvalidArgument || !m.valid(&id):
		return Metadata{}, InvalidArgument
	case code != OK:
		return Metadata{}, code
	case r.Availability == Ready:
		switch {
		case r.Manifest != *m:
			return Metadata{}, Conflict
		case !r.known(generation):
			return Metadata{}, StaleGeneration
		}
		return r.Metadata, OK
	case r.MetadataGeneration != generation:
		return Metadata{}, StaleGeneration
	case r.Availability != Importing || r.Manifest.PayloadCount != m.PayloadCount || r.Manifest.LogicalBytes != m.LogicalBytes:
		return Metadata{}, Conflict
	case r.exhausted():
		return Metadata{}, GenerationExhausted
	}
	// Nobody joins the group from here on, so that what is looked at is what there is.
	r.guard.close()
	if code := s.inspect(r, m); code != OK {
		r.guard.reopen()
		return Metadata{}, code
	}
	r.Manifest.ManifestKey, r.Manifest.ManifestSHA256 = strings.Clone(m.ManifestKey), strings.Clone(m.ManifestSHA256)
	r.Manifest.PayloadKeysSHA256 = strings.Clone(m.PayloadKeysSHA256)
	r.Availability, r.Residency = Ready, Hot
	r.touch(t)
	return r.Metadata, OK
}

// inspect compares the objects of a revision with its manifest.
func (s *Store) inspect(r *revision, m *Manifest) Error {
	members := s.objects.Members(r.Identity.TenantID, m.PayloadGroupID)
	switch {
	case len(members) == 0:
		return NotFound
	case uint64(len(members)) != m.PayloadCount+1:
		return Conflict
	}
	found := false
	var sum uint64
	var keys []string
	for i := range members {
		o := &members[i]
		switch {
		case !o.Readable:
			return NotReady
		case o.Key == m.ManifestKey:
			if o.Kind != Description {
				return Conflict
			}
			found = true
			continue
		case o.Kind != Weights || o.Size > math.MaxUint64-sum:
			return Conflict
		}
		sum += o.Size
		keys = append(keys, o.Key)
	}
	switch {
	case !found:
		return NotFound
	case sum != m.LogicalBytes || KeysDigest(keys) != m.PayloadKeysSHA256:
		return Conflict
	}
	return OK
}

// Abort gives an import up. Its objects go at the next round of Tidy.
func (s *Store) Abort(id Identity, generation uint64, t Time) (Metadata, Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, generation)
	switch {
	case code != OK:
		return Metadata{}, code
	case r.Availability == Deleting:
		if !r.known(generation) {
			return Metadata{}, StaleGeneration
		}
		return r.Metadata, OK
	case r.MetadataGeneration != generation:
		return Metadata{}, StaleGeneration
	case r.Availability != Importing:
		return Metadata{}, Conflict
	case r.exhausted():
		return Metadata{}, GenerationExhausted
	}
	r.condemn(t)
	return r.Metadata, OK
}

// condemn begins the end of a revision.
func (r *revision) condemn(t Time) {
	r.guard.close()
	r.Availability = Deleting
	r.touch(t)
}

// Delete removes a revision that nobody uses, with its objects. A move of it ends.
func (s *Store) Delete(id Identity, generation uint64, t Time) (Metadata, Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, generation)
	switch {
	case code != OK:
		return Metadata{}, code
	case r.Availability == Deleted || r.Availability == Deleting:
		if !r.known(generation) {
			return Metadata{}, StaleGeneration
		}
	case r.MetadataGeneration != generation:
		return Metadata{}, StaleGeneration
	default:
		if n, _ := s.held(r, t); n != 0 {
			return Metadata{}, Busy
		}
		if r.Availability == Importing {
			return Metadata{}, NotReady
		}
		if r.exhausted() {
			return Metadata{}, GenerationExhausted
		}
		for n, l := range s.leases {
			if l.Identity == id {
				delete(s.leases, n) // they have expired
			}
		}
		if j := s.jobs[r.OperationID]; j != nil {
			j.Message, j.UpdatedAtMs = cancelled, max(j.UpdatedAtMs, t.millis())
			r.Operation, r.OperationID = NoOperation, 0
		}
		r.condemn(t)
	}
	return r.Metadata, s.erase(r, t)
}

// erase removes the objects of a condemned revision, the manifest last, and the revision with the last
// one. Metadata is as before if something is left.
func (s *Store) erase(r *revision, t Time) Error {
	if r.Availability == Deleted {
		return OK
	}
	id := &r.Identity
	manifest := id.ManifestKey()
	last := -1
	members := s.objects.Members(id.TenantID, r.Manifest.PayloadGroupID)
	for i := range members {
		if members[i].Key == manifest {
			last = i
		} else if !s.objects.Remove(id.TenantID, members[i].Key) {
			return Busy
		}
	}
	if last >= 0 && !s.objects.Remove(id.TenantID, manifest) {
		return Busy
	}
	if len(s.objects.Members(id.TenantID, r.Manifest.PayloadGroupID)) == 0 && !r.exhausted() {
		r.Availability, r.Residency = Deleted, Absent
		r.touch(t)
	}
	return OK
}
