package weight

import (
	"slices"
	"testing"
	"time"
)

// shelf is an Objects of one group.
type shelf struct {
	members []Member
	stuck   map[string]bool // can't be removed
	fetched []string
}

func (s *shelf) Members(string, string) []Member { return slices.Clone(s.members) }

func (s *shelf) Remove(_, key string) bool {
	if s.stuck[key] {
		return false
	}
	s.members = slices.DeleteFunc(s.members, func(m Member) bool { return m.Key == key })
	return true
}

func (s *shelf) Evict(_ string, keys []string) {
	for i := range s.members {
		if slices.Contains(keys, s.members[i].Key) {
			s.members[i].InMemory = false
		}
	}
}

func (s *shelf) Fetch(_, key string) { s.fetched = append(s.fetched, key) }

func at(seconds int64) Time { return Time{Now: seconds * 1e9, Wall: 1000 * (100 + seconds)} }

// published makes a store with one revision that is ready, of objects k and the manifest.
func published(t *testing.T) (*Store, *shelf, Identity) {
	t.Helper()
	id := Identity{"t", "ns", "model", "r", 1}
	shelf := &shelf{members: []Member{
		{Key: "k", Size: 10, Kind: Weights, Readable: true, InMemory: true},
		{Key: id.ManifestKey(), Size: 5, Kind: Description, Readable: true, InMemory: true},
	}}
	s := New(shelf, time.Minute)
	if _, code := s.Begin(id, "", 1, 10, at(0)); code != OK {
		t.Fatal(code)
	}
	m := Manifest{id.ManifestKey(), "cd372fb85148700fa88095e3492d3f9f5beb43e555e5ff26d95f5a6adc36f8e6", id.PayloadGroup(), KeysDigest([]string{"k"}), 1, 10}
	if v, code := s.Commit(id, 1, &m, at(1)); code != OK || v.MetadataGeneration != 2 || v.CreatedAtMs != 100_000 || v.UpdatedAtMs != 101_000 {
		t.Fatal(v, code)
	}
	return s, shelf, id
}

// TestDerivedNames compares with what the released master takes for the names of a revision.
func TestDerivedNames(t *testing.T) {
	id := Identity{"default", "a b", "m/n", "r\xff", 7}
	if got, want := id.ManifestKey(), "weights/a%20b/m%2Fn/r%FF/7/manifest"; got != want {
		t.Errorf("manifest %s, want %s", got, want)
	}
	if a, b := KeysDigest([]string{"a", "b"}), KeysDigest([]string{"b", "a"}); a != b || a == KeysDigest([]string{"ab"}) || len(a) != 64 {
		t.Errorf("digests %s and %s", a, b)
	}
}

func TestLeaseEndsOnTheClockNotOnTheWall(t *testing.T) {
	s, _, id := published(t)
	l, code := s.Acquire(id, 2, "h", 10_000, at(10))
	if code != OK || l.ExpiresAtMs != 120_000 {
		t.Fatal(l, code)
	}
	if v, _ := s.Get(id, Time{Now: 15e9, Wall: 1e12}); v.ActiveLeaseCount != 1 || *v.NearestLeaseExpiryMs != 120_000 {
		t.Errorf("the wall clock ended the lease: %+v", v)
	}
	if v, _ := s.Get(id, at(20)); v.ActiveLeaseCount != 0 || v.NearestLeaseExpiryMs != nil {
		t.Errorf("after its time: %+v", v)
	}
}

func TestTimesNeverGoBack(t *testing.T) {
	s, shelf, id := published(t)
	shelf.members[0].Readable = false
	s.Tidy(Time{Now: 50e9, Wall: 1})
	if v, _ := s.Get(id, at(50)); v.Metadata.Availability != Degraded || v.Metadata.UpdatedAtMs != 101_000 {
		t.Errorf("%+v", v.Metadata)
	}
	if st := s.Stats(at(50)); st.ByAvailability != [5]int{Degraded: 1} || st.ByResidency != [5]int{Hot: 1} {
		t.Errorf("%+v", st)
	}
}

// TestStuckObjectIsRemovedLater covers what no client can bring about at the original: an object that
// can't be removed when its revision is.
func TestStuckObjectIsRemovedLater(t *testing.T) {
	s, shelf, id := published(t)
	shelf.stuck = map[string]bool{"k": true}
	if _, code := s.Delete(id, 2, at(10)); code != Busy {
		t.Fatal(code)
	}
	v, _ := s.Get(id, at(10))
	if v.Metadata.Availability != Deleting || v.Metadata.MetadataGeneration != 3 || len(shelf.members) != 2 {
		t.Errorf("%+v", v.Metadata)
	}
	s.Tidy(at(30))
	if st := s.Stats(at(30)); st.Failures != 1 {
		t.Errorf("%d failures, want 1", st.Failures)
	}
	shelf.stuck = nil
	s.Tidy(at(60))
	if v, _ := s.Get(id, at(60)); v.Metadata.Availability != Deleted || v.Metadata.MetadataGeneration != 4 || len(shelf.members) != 0 {
		t.Errorf("%+v", v.Metadata)
	}
}

func TestMoveInSteps(t *testing.T) {
	s, shelf, id := published(t)
	for i := range shelf.members {
		shelf.members[i].OnDisk = true
	}
	if j, code := s.Start(id, 2, Cold, at(10)); code != OK || j.StartedAtMs != 110_000 || j.TotalMembers != 2 {
		t.Fatal(j, code)
	}
	if st := s.Stats(at(15)); st.PendingJobs != 1 || st.OldestJobAgeMs != 5000 {
		t.Errorf("%+v", st)
	}
	s.Tidy(at(30))
	if v, _ := s.Get(id, at(30)); v.Metadata.Residency != Cold || v.Metadata.Operation != NoOperation || shelf.members[0].InMemory {
		t.Errorf("%+v", v.Metadata)
	}
	if _, code := s.Start(id, 4, Hot, at(40)); code != OK {
		t.Fatal(code)
	}
	s.Tidy(at(60))
	shelf.members[0].InMemory = true
	s.Tidy(at(90))
	j, _ := s.Query("t", 2)
	if j.ProcessedMembers != 1 || j.Cursor != "k" || j.UpdatedAtMs != 190_000 || j.FencedMetadataGeneration != 6 {
		t.Errorf("halfway: %+v", j)
	}
	if v, _ := s.Get(id, at(90)); v.Metadata.Residency != Mixed || v.Metadata.Availability != Ready {
		t.Errorf("halfway: %+v", v.Metadata)
	}
	if want := []string{"k", id.ManifestKey(), id.ManifestKey()}; !slices.Equal(shelf.fetched, want) {
		t.Errorf("fetched %v, want %v", shelf.fetched, want)
	}
}
