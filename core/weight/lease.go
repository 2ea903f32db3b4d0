package weight

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// held returns how many leases hold a revision, and when the first of them ends.
func (s *Store) held(r *revision, t Time) (n uint64, nearest *uint64) {
	for _, l := range s.leases {
		if l.until <= t.Now || l.Identity != r.Identity {
			continue
		}
		n++
		if nearest == nil || l.ExpiresAtMs < *nearest {
			at := l.ExpiresAtMs
			nearest = &at
		}
	}
	return n, nearest
}

func (s *Store) view(r *revision, t Time) Revision {
	n, nearest := s.held(r, t)
	return Revision{Metadata: r.Metadata, ActiveLeaseCount: n, NearestLeaseExpiryMs: nearest}
}

// Get returns a revision.
func (s *Store) Get(id Identity, t Time) (Revision, Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, 1)
	if code != OK {
		return Revision{}, code
	}
	return s.view(r, t), OK
}

// The most revisions of a page, and what separates the parts of a token.
const (
	maxPage   = 1000
	separator = "\x1f"
)

// List returns up to limit revisions of a resource, in the order of revision and generation, after
// those up to the token of the page before.
func (s *Store) List(tenant, namespace, resource, token string, limit uint32, t Time) (Page, Error) {
	if !component(namespace) || !component(resource) || limit == 0 || limit > maxPage {
		return Page{}, InvalidArgument
	}
	after := Identity{TenantID: tenant, Namespace: namespace, ResourceID: resource}
	if token != "" {
		i := strings.LastIndex(token, separator)
		if i <= 0 {
			return Page{}, InvalidArgument
		}
		n, err := strconv.ParseUint(token[i+1:], 10, 64)
		if err != nil || n == 0 {
			return Page{}, InvalidArgument
		}
		after.Revision, after.WeightGeneration = token[:i], n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*revision
	for _, r := range s.revisions {
		id := &r.Identity
		if id.TenantID == tenant && id.Namespace == namespace && id.ResourceID == resource && id.compare(&after) > 0 {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *revision) int { return a.Identity.compare(&b.Identity) })
	var p Page
	for i, r := range found {
		if uint32(i) == limit {
			last := &found[i-1].Identity
			p.NextPageToken = last.Revision + separator + strconv.FormatUint(last.WeightGeneration, 10)
			break
		}
		p.Revisions = append(p.Revisions, s.view(r, t))
	}
	return p, OK
}

// Acquire leases a revision that is ready to a holder for ttl milliseconds. A holder has one lease of a
// revision; asking again returns it as it is.
func (s *Store) Acquire(id Identity, generation uint64, holder string, ttl uint64, t Time) (Lease, Error) {
	if !component(holder) || ttl == 0 || ttl > maxLeaseMs {
		return Lease{}, InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, code := s.find(&id, generation)
	switch {
	case code != OK:
		return Lease{}, code
	case r.MetadataGeneration != generation:
		return Lease{}, StaleGeneration
	case r.Availability != Ready:
		return Lease{}, NotReady
	case r.Operation != NoOperation:
		return Lease{}, Busy
	}
	for _, l := range s.leases {
		if l.Identity == id && l.Holder == holder && l.until > t.Now {
			return l.Lease, OK
		}
	}
	if s.lastLease >= math.MaxUint64-2 {
		return Lease{}, GenerationExhausted
	}
	s.lastLease++
	l := &lease{Lease: Lease{LeaseID: s.lastLease, Identity: r.Identity, Holder: strings.Clone(holder), FencedMetadataGeneration: generation}}
	l.extend(ttl, t)
	s.leases[l.LeaseID] = l
	return l.Lease, OK
}

// extend lets a lease end ttl milliseconds from now, unless it ends later already.
func (l *lease) extend(ttl uint64, t Time) {
	l.until = max(l.until, t.Now+int64(ttl)*1e6)
	l.ExpiresAtMs = max(l.ExpiresAtMs, t.millis()+ttl)
}

// Renew lets a lease end ttl milliseconds from now, or when it did if that is later.
func (s *Store) Renew(tenant string, id, ttl uint64, t Time) (Lease, Error) {
	if id == 0 || ttl == 0 || ttl > maxLeaseMs {
		return Lease{}, InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	switch {
	case l == nil || l.Identity.TenantID != tenant:
		return Lease{}, NotFound
	case l.until <= t.Now:
		return Lease{}, LeaseExpired
	}
	switch r := s.revisions[l.Identity]; {
	case r.Availability != Ready:
		return Lease{}, NotReady
	case r.Operation != NoOperation:
		return Lease{}, Busy
	}
	l.extend(ttl, t)
	return l.Lease, OK
}

// Release gives a lease back. One that is not there is no error.
func (s *Store) Release(tenant string, id uint64) Error {
	if id == 0 {
		return InvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	if l != nil && l.Identity.TenantID != tenant {
		return NotFound
	}
	delete(s.leases, id)
	return OK
}
