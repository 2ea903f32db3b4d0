package segment

import (
	"errors"
	"testing"
)

// placeOne places one replica and returns the name it is on, "" if it could not be placed.
func placeOne(t *testing.T, p *Pool, req Request) string {
	t.Helper()
	req.Replicas = max(req.Replicas, 1)
	out, err := p.Place(&req, nil)
	if err != nil {
		if !errors.Is(err, ErrNoSpace) {
			t.Fatal(err)
		}
		return ""
	}
	if len(out) != 1 {
		t.Fatalf("%d replicas", len(out))
	}
	return out[0].Seg().Info.Name
}

func TestCXLPlacesOneReplicaOnTheFirstPreference(t *testing.T) {
	p := NewPool(StrategyCXL, rolls{})
	if _, err := p.Place(&Request{Size: 1, Replicas: 1}, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("without a preference: %v", err)
	}
	for i, name := range []string{"a", "b"} {
		mount(t, p, info(uint64(i+1), name, 16*mib), alice)
	}
	for _, none := range [][]string{nil, {""}} {
		if _, err := p.Place(&Request{Size: 1, Replicas: 1, Preferred: none}, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("preferring %q: %v", none, err)
		}
	}
	for _, c := range []struct {
		req  Request
		want string
	}{
		{Request{Preferred: []string{"b", "a"}}, "b"},
		{Request{Preferred: []string{"a", "b"}, Replicas: 2}, "a"},
		{Request{Preferred: []string{"a"}, PreferredSegment: "b"}, "b"},
		{Request{Preferred: []string{"nope", "a"}}, ""},
		{Request{Preferred: []string{"", "a"}}, "a"},
	} {
		c.req.Size = mib
		if got := placeOne(t, p, c.req); got != c.want {
			t.Errorf("%+v is placed on %q, want %q", c.req, got, c.want)
		}
	}
	if got := placeOne(t, p, Request{Size: 17 * mib, Preferred: []string{"a"}}); got != "" {
		t.Errorf("too much is placed on %q", got)
	}
	if _, err := p.AllocateOn("a", 1); !errors.Is(err, ErrNoSpace) {
		t.Errorf("by name: %v", err)
	}
	if m := p.ByName("a"); m.Protocol != "cxl" || m.Info.Protocol == "cxl" {
		t.Errorf("clients are told %q, mounted was %q", m.Protocol, m.Info.Protocol)
	}
}

// TestFarMemoryIsShared has two segments hand out the same memory, of which one goes.
func TestFarMemoryIsShared(t *testing.T) {
	p := NewPool(StrategyCXL, rolls{})
	p.ShareFar("dev", 16*mib)
	far := func(id uint64, name string) *Mounted {
		i := info(id, name, 0)
		i.Base, i.Protocol = 0, "cxl"
		return mount(t, p, i, alice)
	}
	x, y := far(1, "x"), far(2, "y")
	own := mount(t, p, info(3, "own", 4*mib), bob)
	if got := p.CapacityBytes(); got != 20*mib {
		t.Errorf("capacity %d MiB, want the shared 16 and 4", got/mib)
	}
	take := func(name string, size uint64) Allocation {
		t.Helper()
		out, err := p.Place(&Request{Size: size, Replicas: 1, Preferred: []string{name}}, nil)
		if err != nil {
			t.Fatalf("%d MiB on %s: %v", size/mib, name, err)
		}
		return out[0]
	}
	a, b, c := take("x", 6*mib), take("y", 6*mib), take("own", mib)
	if a.Address != farBase || b.Address < a.Address+a.Size || c.Address < own.Info.Base {
		t.Errorf("addresses %x, %x, %x", a.Address, b.Address, c.Address)
	}
	if x.Used() != 6*mib || y.Used() != 6*mib || p.Far().Used() != 12*mib || p.UsedBytes() != 13*mib || x.Capacity() != 16*mib {
		t.Errorf("used %d, %d of %d, %d", x.Used(), y.Used(), x.Capacity(), p.UsedBytes())
	}
	if got := placeOne(t, p, Request{Size: 5 * mib, Preferred: []string{"x"}}); got != "" {
		t.Error("more is handed out than there is")
	}
	if !b.Free() || b.Free() {
		t.Error("freed once and twice")
	}
	b = take("x", 6*mib)
	if _, err := p.BeginUnmount(x.Info.ID); err != nil {
		t.Fatal(err)
	}
	if x.Used() != 0 || p.Far().Used() != 12*mib {
		t.Errorf("at the end of a segment %d bytes are used there and %d shared", x.Used(), p.Far().Used())
	}
	a.Free() // by whoever drops its replicas
	b.Free()
	p.FinishUnmount(x)
	if p.Far().Used() != 0 || x.Used() != 0 {
		t.Errorf("then %d shared", p.Far().Used())
	}
	if got := placeOne(t, p, Request{Size: 12 * mib, Preferred: []string{"y"}}); got != "y" {
		t.Errorf("what was given back is placed on %q", got)
	}
}

func TestSsdFreeRatioFirst(t *testing.T) {
	free := map[UUID]float64{alice: 0.25, bob: 0.75}
	p := NewPool(StrategyDiskFreeRatioFirst, rolls{})
	mount(t, p, info(1, "alices", 16*mib), alice)
	mount(t, p, info(2, "bobs", 16*mib), bob)
	p.RankByDisk(func(c UUID) float64 { return free[c] })
	if got := placeOne(t, p, Request{Size: 1}); got != "bobs" {
		t.Errorf("placed on %s, whose disk is fuller", got)
	}
	free[bob] = 0.1
	if got := placeOne(t, p, Request{Size: 1}); got != "alices" {
		t.Errorf("placed on %s, whose disk is fuller", got)
	}
	if got := placeOne(t, p, Request{Size: 1, Preferred: []string{"bobs"}}); got != "bobs" {
		t.Errorf("placed on %s, preferred is another", got)
	}
	p = NewPool(StrategyDiskFreeRatioFirst, rolls{})
	mount(t, p, info(1, "a", 16*mib), alice)
	mount(t, p, info(2, "b", 16*mib), bob)
	if got := placeOne(t, p, Request{Size: 1}); got == "" {
		t.Error("nowhere, where nothing is known of disks")
	}
}
