package segment

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// rolls is a source of randomness for tests, safe for concurrent use.
type rolls struct{}

func (rolls) Uint64N(n uint64) uint64 { return rand.Uint64N(n) }

// always is a source that always returns the same number, modulo n.
type always uint64

func (a always) Uint64N(n uint64) uint64 { return uint64(a) % n }

var alice, bob = UUID{First: 1, Second: 1}, UUID{First: 2, Second: 2}

func info(id uint64, name string, size uint64) Info {
	return Info{
		ID: UUID{First: id, Second: 7}, Name: name, Base: id << 40, Size: size,
		Endpoint: "10.0.0.1:" + name, Protocol: "tcp",
	}
}

func onHost(i Info, host string) Info {
	i.HostID = host
	return i
}

func mount(t *testing.T, p *Pool, i Info, client UUID) *Mounted {
	t.Helper()
	m, fresh, err := p.Mount(i, client)
	if err != nil || !fresh {
		t.Fatalf("mount of %s: new %v, %v", i.Name, fresh, err)
	}
	return m
}

func place(t *testing.T, p *Pool, req Request) []Allocation {
	t.Helper()
	out, err := p.Place(&req, nil)
	if err != nil {
		t.Fatalf("place %+v: %v", req, err)
	}
	return out
}

// placed returns the names of the segments where the request's replicas come to lie.
func placed(t *testing.T, p *Pool, req Request) []string {
	t.Helper()
	var names []string
	for _, a := range place(t, p, req) {
		names = append(names, a.Seg().Info.Name)
	}
	return names
}

func refused(t *testing.T, p *Pool, req Request, want error) {
	t.Helper()
	out, err := p.Place(&req, nil)
	if !errors.Is(err, want) || len(out) != 0 {
		t.Errorf("place %+v: got %d replicas and %v, want %v", req, len(out), err, want)
	}
}

func TestMountSegmentSuccess(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	i := info(1, "a", 16*mib)
	i.Locality = &Locality{NUMANode: 1, HCANames: []string{"mlx5_0"}}
	m := mount(t, p, i, alice)
	if m.Status() != StatusOK || !m.Readable() || m.Capacity() != 16*mib || m.Used() != 0 || !m.Info.sameMemory(&i) || m.Info.HostID != i.HostID || m.Client != alice {
		t.Errorf("mounted %+v", m.Info)
	}
	if unsafe.StringData(m.Info.Name) == unsafe.StringData(i.Name) || m.Info.Locality == i.Locality {
		t.Error("the pool keeps the caller's memory")
	}
	a := place(t, p, Request{Size: 1000, Replicas: 1})[0]
	if a.Seg() != m || a.Address != i.Base || a.Size != 1000 || m.Used() != 1000 || p.UsedBytes() != 1000 {
		t.Errorf("allocation %+v, used %d", a, m.Used())
	}
	if !a.Free() || m.Used() != 0 || a.Free() {
		t.Error("an allocation must be freed exactly once")
	}
	if !(Allocation{}).Free() {
		t.Error("freeing no allocation must do nothing")
	}
}

func TestMountSegmentDuplicate(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	m := mount(t, p, info(1, "a", 16*mib), alice)
	other := info(1, "b", 32*mib)
	if again, fresh, err := p.Mount(m.Info, alice); err != nil || fresh || again != m {
		t.Errorf("the same again: %v, new %v, %v", again, fresh, err)
	}
	if _, fresh, err := p.Mount(other, alice); !errors.Is(err, ErrInvalid) || fresh || m.Info.Name != "a" {
		t.Errorf("same id, other fields: new %v, %v", fresh, err)
	}
	elsewhere := m.Info
	elsewhere.HostID, elsewhere.Locality = "h", &Locality{NUMANode: 3}
	if again, fresh, err := p.Mount(elsewhere, alice); err != nil || fresh || again != m || m.Info.HostID == "h" {
		t.Errorf("on another host: %v, new %v, %v", again, fresh, err)
	}
	if _, _, err := p.Mount(m.Info, bob); !errors.Is(err, ErrInvalid) {
		t.Errorf("same id, another client: %v", err)
	}
	if p.Len() != 1 || p.CapacityBytes() != 16*mib {
		t.Error("mounted twice")
	}
	for _, status := range []Status{StatusDraining, StatusDrained} {
		if err := p.SetStatus(m.Info.ID, status); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Mount(m.Info, alice); !errors.Is(err, ErrUnavailable) {
			t.Errorf("in status %v: %v", status, err)
		}
	}
}

func TestMountRefusesSegmentsWithoutMemory(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	for _, change := range []func(*Info){func(i *Info) { i.Base = 0 }, func(i *Info) { i.Size = 0 }} {
		i := info(1, "a", mib)
		change(&i)
		if _, _, err := p.Mount(i, alice); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", i, err)
		}
	}
	if p.Len() != 0 {
		t.Error("something was mounted")
	}
}

func TestUnmountSegment(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	m := mount(t, p, info(1, "a", 16*mib), alice)
	a := place(t, p, Request{Size: 1000, Replicas: 1})[0]
	if got, err := p.BeginUnmount(m.Info.ID); got != m || err != nil {
		t.Fatal(got, err)
	}
	if m.Alive() || m.Readable() || m.Status() != StatusUnmounting || p.CapacityBytes() != 16*mib || p.UsedBytes() != 0 {
		t.Error("after the first step replicas are gone and only the capacity counts")
	}
	refused(t, p, Request{Size: 1, Replicas: 1}, ErrNoSpace)
	if _, err := p.AllocateOn("a", 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("allocate on it: %v", err)
	}
	if _, err := p.BeginUnmount(m.Info.ID); !errors.Is(err, ErrUnavailable) {
		t.Errorf("begun twice: %v", err)
	}
	if _, _, err := p.Mount(m.Info, alice); !errors.Is(err, ErrUnavailable) {
		t.Errorf("mounted meanwhile: %v", err)
	}
	if !a.Free() || m.Used() != 0 {
		t.Error("freeing on a dead segment must do nothing")
	}
	p.FinishUnmount(m)
	p.FinishUnmount(m)
	if p.Len() != 0 || p.CapacityBytes() != 0 || p.ByID(m.Info.ID) != nil {
		t.Error("still in the registry")
	}
	if got, err := p.BeginUnmount(m.Info.ID); got != nil || err != nil {
		t.Errorf("an unknown id: %v, %v", got, err)
	}
	again := mount(t, p, m.Info, alice)
	if again == m || m.Alive() || !a.Free() || again.Used() != 0 {
		t.Error("a segment mounted again must be a new one")
	}
	p.FinishUnmount(m, again, nil)
	if p.Len() != 1 || !again.Alive() {
		t.Error("a segment was taken out whose unmount has not begun")
	}
}

func TestSegmentLifecycleStatusControlsAllocation(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	m := mount(t, p, info(1, "a", 16*mib), alice)
	a := place(t, p, Request{Size: 1000, Replicas: 1})[0]
	for _, status := range []Status{StatusDraining, StatusDrained, StatusOK} {
		if err := p.SetStatus(m.Info.ID, status); err != nil {
			t.Fatal(err)
		}
		got, err := p.StatusByName("a")
		if got != status || err != nil || !m.Readable() || m.Used() != 1000 || p.CapacityBytes() != 16*mib {
			t.Errorf("%v: status %v, %v", status, got, err)
		}
		if status == StatusOK {
			break
		}
		refused(t, p, Request{Size: 1, Replicas: 1}, ErrNoSpace)
		if _, err := p.AllocateOn("a", 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v: allocate on it: %v", status, err)
		}
		if p.NameCount() != 0 || len(p.Names()) != 0 || p.CanEverFit(1) {
			t.Errorf("%v: still offered", status)
		}
		if _, ok := m.allocate(1); ok {
			t.Errorf("%v: allocated by an old layout", status)
		}
	}
	b := place(t, p, Request{Size: 1, Replicas: 1})[0]
	if !a.Free() || !b.Free() || m.Used() != 0 {
		t.Error("not freed")
	}
	for _, status := range []Status{StatusUndefined, StatusGracefullyUnmounting, StatusUnmounting} {
		if err := p.SetStatus(m.Info.ID, status); !errors.Is(err, ErrInvalid) {
			t.Errorf("to %v: %v", status, err)
		}
	}
	if err := p.SetStatus(UUID{}, StatusOK); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

func TestPrepareUnmountDrainedSegment(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	m := mount(t, p, info(1, "a", 16*mib), alice)
	if err := p.SetStatus(m.Info.ID, StatusDrained); err != nil {
		t.Fatal(err)
	}
	if got, err := p.BeginUnmount(m.Info.ID); got != m || err != nil {
		t.Error(err)
	}
	if err := p.SetStatus(m.Info.ID, StatusOK); !errors.Is(err, ErrUnavailable) {
		t.Errorf("status changed during unmount: %v", err)
	}
}

func TestGracefulUnmountSegment(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	m := mount(t, p, info(1, "a", 16*mib), alice)
	mount(t, p, info(2, "b", 16*mib), bob)
	place(t, p, Request{Size: 1000, Replicas: 1, PreferredSegment: "a"})
	carol := UUID{First: 3}
	for _, tt := range []struct {
		name       string
		id, client UUID
		err        error
	}{
		{"client without segments", m.Info.ID, carol, ErrNotFound},
		{"another's segment", m.Info.ID, bob, ErrInvalid},
		{"unknown segment", UUID{First: 99}, alice, ErrInvalid},
		{"own", m.Info.ID, alice, nil},
		{"again", m.Info.ID, alice, nil},
	} {
		if err := p.BeginGracefulUnmount(tt.id, tt.client); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if status, err := p.StatusByID(m.Info.ID); status != StatusGracefullyUnmounting || err != nil || !m.Readable() || m.Used() != 1000 {
		t.Errorf("status %v, %v", status, err)
	}
	if _, _, err := p.QuerySegment("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("query: %v", err)
	}
	if p.CapacityBytes() != 32*mib {
		t.Error("capacity must count until the end")
	}
	if got := placed(t, p, Request{Size: 1, Replicas: 2, PreferredSegment: "a"}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("placed on %v", got)
	}
	if err := p.SetStatus(m.Info.ID, StatusOK); !errors.Is(err, ErrUnavailable) {
		t.Errorf("reopened: %v", err)
	}
	if got, err := p.BeginUnmount(m.Info.ID); got != m || err != nil {
		t.Errorf("the unmount at the end: %v", err)
	}
	if err := p.BeginGracefulUnmount(m.Info.ID, alice); !errors.Is(err, ErrUnavailable) {
		t.Errorf("during unmount: %v", err)
	}
	drained := mount(t, p, info(3, "c", mib), alice)
	for _, tt := range []struct {
		status Status
		err    error
	}{{StatusDrained, ErrUnavailable}, {StatusDraining, nil}} {
		if err := p.SetStatus(drained.Info.ID, tt.status); err != nil {
			t.Fatal(err)
		}
		if err := p.BeginGracefulUnmount(drained.Info.ID, alice); !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.status, err)
		}
	}
}

func TestReMountSegment(t *testing.T) {
	changes := map[string]func(*Info){
		"name":     func(i *Info) { i.Name = "z" },
		"base":     func(i *Info) { i.Base++ },
		"size":     func(i *Info) { i.Size++ },
		"endpoint": func(i *Info) { i.Endpoint = "z" },
		"protocol": func(i *Info) { i.Protocol = "rdma" },
		"host":     func(i *Info) { i.HostID = "z" },
	}
	for name, change := range changes {
		t.Run("differs in "+name, func(t *testing.T) {
			p := NewPool(StrategyRandom, rolls{})
			known := info(1, "a", mib)
			mount(t, p, known, alice)
			change(&known)
			if n, err := p.Remount([]Info{info(2, "b", mib), known}, alice); n != 0 || !errors.Is(err, ErrInvalid) || p.Len() != 1 {
				t.Errorf("%d new, %v, %d mounted", n, err, p.Len())
			}
		})
	}
	t.Run("locality", func(t *testing.T) {
		p := NewPool(StrategyRandom, rolls{})
		known := info(1, "a", mib)
		known.Locality = &Locality{NUMANode: 1, HCANames: []string{"x"}}
		mount(t, p, known, alice)
		known.Locality = &Locality{NUMANode: 1, HCANames: []string{"x"}}
		if _, err := p.Remount([]Info{known}, alice); err != nil {
			t.Error(err)
		}
		known.Locality = &Locality{NUMANode: 1, HCANames: []string{"y"}}
		if _, err := p.Remount([]Info{known}, alice); err != nil {
			t.Errorf("another locality: %v", err)
		}
	})
	t.Run("compared only", func(t *testing.T) {
		p := NewPool(StrategyRandom, rolls{})
		known := info(1, "a", mib)
		mount(t, p, known, alice)
		if err := p.Compare([]Info{known, info(2, "b", mib)}, alice); err != nil || p.Len() != 1 {
			t.Errorf("the same: %v", err)
		}
		known.Size++
		if err := p.Compare([]Info{known}, alice); !errors.Is(err, ErrInvalid) {
			t.Errorf("another size: %v", err)
		}
	})
	t.Run("success", func(t *testing.T) {
		p := NewPool(StrategyRandom, rolls{})
		a := mount(t, p, info(1, "a", mib), alice)
		useless := info(3, "c", 0)
		n, err := p.Remount([]Info{info(1, "a", mib), info(2, "b", mib), useless, info(2, "b", mib)}, alice)
		if n != 1 || err != nil || p.Len() != 2 || p.ByID(a.Info.ID) != a {
			t.Errorf("%d new, %v, %d mounted", n, err, p.Len())
		}
		if n, err := p.Remount(nil, alice); n != 0 || err != nil {
			t.Errorf("nothing: %d, %v", n, err)
		}
	})
	t.Run("another client's", func(t *testing.T) {
		p := NewPool(StrategyRandom, rolls{})
		mount(t, p, info(1, "a", mib), alice)
		if n, err := p.Remount([]Info{info(2, "b", mib), info(1, "a", mib)}, bob); n != 0 || !errors.Is(err, ErrInvalid) || p.Len() != 1 {
			t.Errorf("%d new, %v", n, err)
		}
	})
	t.Run("unmounting", func(t *testing.T) {
		p := NewPool(StrategyRandom, rolls{})
		a := mount(t, p, info(1, "a", mib), alice)
		if _, err := p.BeginUnmount(a.Info.ID); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Remount([]Info{info(2, "b", mib), info(1, "a", mib)}, alice); n != 0 || !errors.Is(err, ErrUnavailable) || p.Len() != 1 {
			t.Errorf("%d new, %v", n, err)
		}
		p.FinishUnmount(a)
		if n, err := p.Remount([]Info{info(2, "b", mib), info(1, "a", mib)}, alice); n != 2 || err != nil {
			t.Errorf("after the end: %d new, %v", n, err)
		}
	})
}

func TestClientExpiry(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	a := mount(t, p, info(1, "a", mib), alice)
	b := mount(t, p, info(2, "b", mib), bob)
	c := mount(t, p, info(3, "c", mib), alice)
	d := mount(t, p, info(4, "d", mib), alice)
	if err := p.BeginGracefulUnmount(c.Info.ID, alice); err != nil {
		t.Fatal(err)
	}
	if _, err := p.BeginUnmount(d.Info.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.OfClient(alice); !slices.Equal(got, []*Mounted{a, c, d}) {
		t.Errorf("of alice: %d", len(got))
	}
	begun := p.BeginUnmountClient(alice)
	if !slices.Equal(begun, []*Mounted{a, c}) || a.Alive() || c.Alive() || !b.Alive() || p.Len() != 4 {
		t.Errorf("begun %d", len(begun))
	}
	p.FinishUnmount(begun...)
	if p.Len() != 2 || p.CapacityBytes() != 2*mib || p.BeginUnmountClient(alice) != nil {
		t.Errorf("%d left", p.Len())
	}
}

func TestSuspendedClient(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	a := mount(t, p, info(1, "a", mib), alice)
	b := mount(t, p, info(2, "b", mib), bob)
	x := place(t, p, Request{Size: 100, Replicas: 1, PreferredSegment: "a"})[0]
	if n := p.Suspend(alice); n != 1 || p.Suspend(alice) != 0 {
		t.Errorf("%d suspended", n)
	}
	if a.Readable() || !a.Suspended() || !a.Alive() || a.Status() != StatusOK || !b.Readable() {
		t.Error("suspended: data is kept, but not readable")
	}
	if p.CapacityBytes() != 2*mib || p.UsedBytes() != 100 || p.NameCount() != 1 || !slices.Equal(p.Names(), []string{"a", "b"}) {
		t.Error("suspended: capacity counts, allocation is off")
	}
	if used, size, err := p.QuerySegment("a"); used != 100 || size != mib || err != nil {
		t.Errorf("query: %d %d %v", used, size, err)
	}
	if _, err := p.AllocateOn("a", 1); !errors.Is(err, ErrNoSpace) {
		t.Errorf("allocate on it: %v", err)
	}
	if got := placed(t, p, Request{Size: 1, Replicas: 2, Preferred: []string{"a"}}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("placed on %v", got)
	}
	if _, ok := a.allocate(1); ok {
		t.Error("allocated by an old layout")
	}
	if !x.Free() || a.Used() != 0 {
		t.Error("objects there can be removed")
	}
	if n := p.Resume(alice); n != 1 || p.Resume(alice) != 0 || !a.Readable() || p.NameCount() != 2 {
		t.Errorf("%d resumed", n)
	}
	p.Suspend(alice)
	if _, err := p.BeginUnmount(a.Info.ID); err != nil || p.Resume(alice) != 1 || a.Readable() {
		t.Error("a dead segment stays dead")
	}
}

func TestQuerySegments(t *testing.T) {
	p := NewPool(StrategyRandom, always(0))
	first := mount(t, p, info(1, "a", mib), alice)
	second := mount(t, p, info(2, "a", 2*mib), bob)
	place(t, p, Request{Size: 100, Replicas: 1})
	if used, size, err := p.QuerySegment("a"); used != 100 || size != 3*mib || err != nil {
		t.Errorf("query: %d %d %v", used, size, err)
	}
	if p.ByName("a") != second || p.ByName("z") != nil || p.ByID(first.Info.ID) != first {
		t.Error("a name means the segment mounted last")
	}
	if err := p.SetStatus(second.Info.ID, StatusDraining); err != nil {
		t.Fatal(err)
	}
	if used, size, err := p.QuerySegment("a"); used != 100 || size != mib || err != nil {
		t.Errorf("query: %d %d %v", used, size, err)
	}
	if status, err := p.StatusByName("a"); status != StatusDraining || err != nil {
		t.Errorf("status %v, %v", status, err)
	}
	for _, err := range []error{
		second3(p.QuerySegment("z")), second2(p.StatusByName("z")), second2(p.StatusByID(UUID{})),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	}
	want := []View{
		{Info: first.Info, Client: alice, Status: StatusOK, Used: 100, Capacity: mib},
		{Info: second.Info, Client: bob, Status: StatusDraining, Capacity: 2 * mib},
	}
	if got := p.Views(); !slices.Equal(got, want) {
		t.Errorf("views %+v", got)
	}
}

func second2[T any](_ T, err error) error         { return err }
func second3[T, U any](_ T, _ U, err error) error { return err }

func TestCapacitySaturates(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	mount(t, p, info(1, "a", math.MaxUint64), alice)
	mount(t, p, info(2, "b", 5), alice)
	if p.CapacityBytes() != math.MaxUint64 {
		t.Errorf("capacity %d", p.CapacityBytes())
	}
	if _, size, err := p.QuerySegment("a"); size != math.MaxUint64 || err != nil {
		t.Errorf("query %d, %v", size, err)
	}
}

func TestCanEverFit(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	if p.CanEverFit(1) || p.MaxFree() != 0 {
		t.Error("nothing fits into no segment")
	}
	mount(t, p, info(1, "a", mib), alice)
	mount(t, p, info(2, "b", 17*mib), bob)
	place(t, p, Request{Size: 16 * mib, Replicas: 1})
	if !p.CanEverFit(16*mib) || p.CanEverFit(16*mib+1) {
		t.Error("the largest bin of the largest segment decides, used or not")
	}
	if got := p.MaxFree(); got != mib {
		t.Errorf("largest free %d", got)
	}
	p.Suspend(bob)
	if p.CanEverFit(mib + 1) {
		t.Error("a silent client's segment counts")
	}
}

// A client that mounts thousands of segments in a row, as after a restart of the master, must
// not pay for a picture of all of them at each.
func TestPictureIsMadeWhenSomebodyLooks(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	mount(t, p, info(1, "first", mib), alice)
	seen := p.current()
	if len(seen.groups) != 1 || p.current() != seen {
		t.Fatalf("%d names in the picture, and made twice: %v", len(seen.groups), p.current() != seen)
	}
	for id := range uint64(100) {
		mount(t, p, info(id+2, "more", mib), alice)
		if p.layout.Load() != nil {
			t.Fatal("made at a mount")
		}
		if want := (id + 2) * mib; p.CapacityBytes() != want {
			t.Fatalf("capacity is %d, wants %d", p.CapacityBytes(), want)
		}
	}
	if p.Len() != 101 || p.NameCount() != 2 || len(p.current().byName["more"].segs) != 100 {
		t.Errorf("%d segments, %d names", p.Len(), p.NameCount())
	}
}
