package segment

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pool returns a pool with a segment of size bytes for each name.
func pool(t testing.TB, s Strategy, rnd Rand, size uint64, names ...string) *Pool {
	t.Helper()
	p := NewPool(s, rnd)
	for i, name := range names {
		if _, _, err := p.Mount(info(uint64(i+1), name, size), alice); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// letters returns n names in ascending order.
func letters(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("s%03d", i)
	}
	return names
}

func TestEmptyAllocatorsMap(t *testing.T) {
	p := NewPool(StrategyRandom, rolls{})
	refused(t, p, Request{Size: 1, Replicas: 1}, ErrNoSpace)
	if _, err := p.AllocateOn("a", 1); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestZeroSizeAllocationAndInvalidReplicationCount(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, mib, "a")
	refused(t, p, Request{Size: 0, Replicas: 1}, ErrInvalid)
	refused(t, p, Request{Size: 1, Replicas: 0}, ErrInvalid)
	if _, err := p.AllocateOn("a", 0); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestVeryLargeSizeAllocation(t *testing.T) {
	p := pool(t, StrategyFreeRatioFirst, rolls{}, mib, "a", "b", "c")
	for _, size := range []uint64{mib + 1, 1 << 40, math.MaxUint64} {
		refused(t, p, Request{Size: size, Replicas: 1, Preferred: []string{"b"}}, ErrNoSpace)
	}
}

func TestPreferredSegments(t *testing.T) {
	tests := []struct {
		name      string
		preferred []string
		legacy    string
		exclude   []string
		replicas  uint64
		want      []string // with the walk beginning at "a"
	}{
		{"first choice", []string{"c"}, "", nil, 1, []string{"c"}},
		{"in order", []string{"d", "b"}, "", nil, 2, []string{"d", "b"}},
		{"repeated names count once", []string{"d", "d", "b"}, "", nil, 2, []string{"d", "b"}},
		{"not found", []string{"z"}, "", nil, 1, []string{"a"}},
		{"one found, the rest by strategy", []string{"z", "c"}, "", nil, 3, []string{"c", "a", "b"}},
		{"full one is passed over", []string{"full", "c"}, "", nil, 1, []string{"c"}},
		{"legacy hides the list", []string{"c", "d"}, "b", nil, 2, []string{"b", "a"}},
		{"legacy not found", []string{"c"}, "z", nil, 1, []string{"a"}},
		{"excluded", []string{"c", "d"}, "", []string{"c", "a"}, 2, []string{"d", "b"}},
	}
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		for _, tt := range tests {
			t.Run(strategy.String()+"/"+tt.name, func(t *testing.T) {
				p := pool(t, strategy, always(0), mib, "a", "b", "c", "d", "full")
				place(t, p, Request{Size: mib, Replicas: 1, PreferredSegment: "full"})
				got := placed(t, p, Request{
					Size: 64, Replicas: tt.replicas, Preferred: tt.preferred,
					PreferredSegment: tt.legacy, Exclude: tt.exclude,
				})
				if !slices.Equal(got, tt.want) {
					t.Errorf("placed on %v, want %v", got, tt.want)
				}
			})
		}
	}
}

func TestMultipleReplicasAllocation(t *testing.T) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		p := pool(t, strategy, rolls{}, mib, letters(20)...)
		for replicas := uint64(1); replicas <= 20; replicas++ {
			got := placed(t, p, Request{Size: 64, Replicas: replicas})
			slices.Sort(got)
			if uint64(len(slices.Compact(got))) != replicas {
				t.Errorf("%v: %d replicas on names %v", strategy, replicas, got)
			}
		}
	}
}

func TestInsufficientAllocatorsForReplicas(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, mib, "a", "b")
	for _, replicas := range []uint64{3, 1000, math.MaxUint64} {
		if got := place(t, p, Request{Size: 64, Replicas: replicas}); len(got) != 2 {
			t.Errorf("%d asked for, %d placed", replicas, len(got))
		}
	}
	one := pool(t, StrategyRandom, rolls{}, mib, "a")
	if got := place(t, one, Request{Size: 64, Replicas: 2}); len(got) != 1 {
		t.Errorf("%d placed on one segment", len(got))
	}
}

func TestAllAllocatorsFull(t *testing.T) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		p := pool(t, strategy, rolls{}, mib, "a", "b", "c")
		var held []Allocation
		for range 3 {
			held = append(held, place(t, p, Request{Size: mib, Replicas: 1})...)
		}
		refused(t, p, Request{Size: 1, Replicas: 1, SameNode: true, HostID: "h"}, ErrNoSpace)
		if _, err := p.AllocateOn("b", 1); !errors.Is(err, ErrNoSpace) {
			t.Error(err)
		}
		held[1].Free()
		if got := placed(t, p, Request{Size: mib, Replicas: 3}); len(got) != 1 || got[0] != held[1].Seg().Info.Name {
			t.Errorf("%v: placed on %v", strategy, got)
		}
	}
}

func TestExcludedNamesAreNotUsed(t *testing.T) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		p := pool(t, strategy, rolls{}, mib, "a", "b", "c")
		for range 50 {
			if got := placed(t, p, Request{Size: 64, Replicas: 3, Exclude: []string{"b"}}); len(got) != 2 || slices.Contains(got, "b") {
				t.Fatalf("%v: placed on %v", strategy, got)
			}
		}
		refused(t, p, Request{Size: 64, Replicas: 1, Exclude: []string{"c", "a", "b"}}, ErrNoSpace)
		refused(t, pool(t, strategy, rolls{}, mib, "a"), Request{Size: 64, Replicas: 1, Exclude: []string{"a"}}, ErrNoSpace)
	}
}

func TestPlaceAppends(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, mib, "a", "b")
	out := place(t, p, Request{Size: 64, Replicas: 2})
	out, err := p.Place(&Request{Size: 64, Replicas: 2}, out)
	if err != nil || len(out) != 4 {
		t.Fatalf("%d allocations, %v", len(out), err)
	}
	kept, err := p.Place(&Request{Size: 2 * mib, Replicas: 1}, out)
	if !errors.Is(err, ErrNoSpace) || !slices.Equal(kept, out) {
		t.Errorf("a refused request changed the list: %v", err)
	}
}

func TestOnlySegmentIgnoresPreference(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, mib, "a")
	if got := placed(t, p, Request{Size: 64, Replicas: 1, Preferred: []string{"z"}, PreferredSegment: "y"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("placed on %v", got)
	}
}

func TestSeveralSegmentsOfOneName(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, mib, "a", "a", "b")
	if got := placed(t, p, Request{Size: 64, Replicas: 3}); len(got) != 2 {
		t.Errorf("replicas on %v, two names exist", got)
	}
	seen := make(map[*Mounted]int)
	for range 200 {
		a, err := p.AllocateOn("a", 64)
		if err != nil {
			t.Fatal(err)
		}
		seen[a.Seg()]++
	}
	if len(seen) != 2 {
		t.Errorf("%d segments used of two with the name", len(seen))
	}
	full := pool(t, StrategyRandom, always(0), mib, "a", "a")
	first, _ := full.AllocateOn("a", mib)
	second, err := full.AllocateOn("a", mib)
	if err != nil || first.Seg() == second.Seg() {
		t.Errorf("the second segment of the name was not tried: %v", err)
	}
}

func TestRandomIsEven(t *testing.T) {
	names := letters(10)
	p := pool(t, StrategyRandom, rolls{}, 64*mib, names...)
	count := make(map[string]int)
	for range 10000 {
		for _, name := range placed(t, p, Request{Size: 64, Replicas: 1}) {
			count[name]++
		}
	}
	for _, name := range names {
		if n := count[name]; n < 700 || n > 1300 {
			t.Errorf("%s got %d of 10000", name, n)
		}
	}
}

func TestWalkIsBounded(t *testing.T) {
	names := letters(150)
	p := pool(t, StrategyRandom, always(0), mib, names...)
	for _, name := range names[:100] {
		if _, err := p.AllocateOn(name, mib); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, p, Request{Size: 64, Replicas: 1}, ErrNoSpace)
	if got := placed(t, p, Request{Size: 64, Replicas: 1, Preferred: names[140:141]}); got[0] != names[140] {
		t.Errorf("placed on %v", got)
	}
}

func TestFreeRatioFirstTakesTheEmptiestOfTheWindow(t *testing.T) {
	names := letters(12)
	p := pool(t, StrategyFreeRatioFirst, always(2), mib, names...)
	for i, name := range names {
		if _, err := p.AllocateOn(name, uint64(1+(i*7)%12)*4096); err != nil { // s000 and s007 are emptiest
			t.Fatal(err)
		}
	}
	if got := placed(t, p, Request{Size: 64, Replicas: 1}); got[0] != names[7] {
		t.Errorf("one replica on %v, want the emptiest of %v", got, names[2:8])
	}
	if got := placed(t, p, Request{Size: 64, Replicas: 2}); !slices.Equal(got, []string{names[0], names[7]}) {
		t.Errorf("two replicas on %v, want the two emptiest", got)
	}
	if got := placed(t, p, Request{Size: 64, Replicas: 12}); len(got) != 12 {
		t.Errorf("%d replicas placed", len(got))
	}
}

func TestFreeRatioFirstFallsBack(t *testing.T) {
	names := letters(30)
	p := pool(t, StrategyFreeRatioFirst, always(0), mib, names...)
	for _, name := range names[:20] {
		if _, err := p.AllocateOn(name, mib); err != nil {
			t.Fatal(err)
		}
	}
	if got := placed(t, p, Request{Size: 64, Replicas: 1}); got[0] != names[20] {
		t.Errorf("placed on %v", got)
	}
}

func TestFreeRatioFirstLoadBalancingDistribution(t *testing.T) {
	names := letters(8)
	p := NewPool(StrategyFreeRatioFirst, rolls{})
	for i, name := range names {
		mount(t, p, info(uint64(i+1), name, uint64(1+i%2)*64*mib), alice)
	}
	for range 6000 {
		place(t, p, Request{Size: 64 * kib, Replicas: 1})
	}
	low, high := 1.0, 0.0
	for _, v := range p.Views() {
		ratio := float64(v.Used) / float64(v.Capacity)
		low, high = min(low, ratio), max(high, ratio)
	}
	if high-low > 0.05 {
		t.Errorf("segments are used between %.3f and %.3f", low, high)
	}
}

// hosts returns a pool with segments on three hosts and one without a host.
func hosts(t *testing.T, s Strategy) *Pool {
	p := NewPool(s, always(0))
	for i, x := range []string{"nohost", "b2 host-b", "a1 host-a", "d1 host-d", "b1 host-b", "b3 host-b"} {
		name, host, _ := strings.Cut(x, " ")
		mount(t, p, onHost(info(uint64(i+1), name, mib), host), alice)
	}
	return p
}

func TestHostOrder(t *testing.T) {
	tests := []struct {
		host string
		hash uint64
		want string
	}{
		{"host-b", 0, "b1 b2 b3 d1 a1 nohost"},
		{"host-b", 1, "b2 b3 b1 d1 a1 nohost"},
		{"host-b", 5, "b3 b1 b2 d1 a1 nohost"},
		{"host-a", 3, "a1 b1 b2 b3 d1 nohost"},
		{"host-c", 0, "d1 a1 b1 b2 b3 nohost"}, // the next greater one
		{"host-z", 0, "a1 b1 b2 b3 d1 nohost"}, // around the end
		{"", 0, "nohost b2 a1 d1 b1 b3"},       // no host known: no order but the walk
		{"host-b", math.MaxUint64, "b1 b2 b3 d1 a1 nohost"},
	}
	for _, by := range []struct {
		strategy Strategy
		sameNode bool
	}{{StrategyLocalFirst, false}, {StrategyRandom, true}} {
		for _, tt := range tests {
			t.Run(fmt.Sprint(by.strategy, tt.host, tt.hash), func(t *testing.T) {
				p := hosts(t, by.strategy)
				var got []string
				for range 6 { // each takes all of its segment
					got = append(got, placed(t, p, Request{Size: mib, Replicas: 1, SameNode: by.sameNode, HostID: tt.host, KeyHash: tt.hash})...)
				}
				if strings.Join(got, " ") != tt.want {
					t.Errorf("order %v, want %s", got, tt.want)
				}
			})
		}
	}
}

func TestExplicitPreferredSegmentOverridesLocalFirst(t *testing.T) {
	p := hosts(t, StrategyLocalFirst)
	req := Request{Size: mib, Replicas: 1, HostID: "host-b", Preferred: []string{"d1", "z"}}
	if got := placed(t, p, req); got[0] != "d1" {
		t.Errorf("placed on %v", got)
	}
	if got := placed(t, p, req); got[0] != "b1" {
		t.Errorf("with the preferred one full placed on %v", got)
	}
}

func TestLocalFirstNeedsExactlyOneReplica(t *testing.T) {
	p := hosts(t, StrategyLocalFirst)
	if got := placed(t, p, Request{Size: 64, Replicas: 2, HostID: "host-d"}); !slices.Equal(got, []string{"nohost", "b2"}) {
		t.Errorf("placed on %v", got)
	}
	random := hosts(t, StrategyRandom)
	if got := placed(t, random, Request{Size: 64, Replicas: 1, HostID: "host-d"}); got[0] != "nohost" {
		t.Errorf("without being asked for placed on %v", got)
	}
}

func TestHostOrderedSegmentsTracksMountStatusAndUnmount(t *testing.T) {
	p := hosts(t, StrategyLocalFirst)
	req := Request{Size: 64, Replicas: 1, HostID: "host-b"}
	want := func(name string) {
		t.Helper()
		if got := placed(t, p, req); got[0] != name {
			t.Errorf("placed on %v, want %s", got, name)
		}
	}
	want("b1")
	if err := p.SetStatus(p.ByName("b1").Info.ID, StatusDraining); err != nil {
		t.Fatal(err)
	}
	want("b2")
	if _, err := p.BeginUnmount(p.ByName("b2").Info.ID); err != nil {
		t.Fatal(err)
	}
	want("b3")
	if err := p.BeginGracefulUnmount(p.ByName("b3").Info.ID, alice); err != nil {
		t.Fatal(err)
	}
	want("d1")
	if err := p.SetStatus(p.ByName("b1").Info.ID, StatusOK); err != nil {
		t.Fatal(err)
	}
	want("b1")
}

func TestStrategyNames(t *testing.T) {
	for _, s := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyCXL, StrategyDiskFreeRatioFirst} {
		if got, err := ParseStrategy(s.String()); got != s || err != nil {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	for _, name := range []string{"", "unknown", "Random", "CXL"} {
		if _, err := ParseStrategy(name); err == nil {
			t.Errorf("%q accepted", name)
		}
	}
	if Strategy(99).String() != "unknown" {
		t.Error(Strategy(99).String())
	}
}

func TestPlacingAllocatesNothing(t *testing.T) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		p := pool(t, strategy, rolls{}, 64*mib, letters(16)...)
		out, preferred := make([]Allocation, 0, 4), []string{"s003"}
		if n := testing.AllocsPerRun(200, func() {
			var err error
			req := Request{Size: 4096, Replicas: 2, Preferred: preferred, HostID: "h", SameNode: true}
			if out, err = p.Place(&req, out[:0]); err != nil {
				t.Fatal(err)
			}
			for _, a := range out {
				a.Free()
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations per placement", strategy, n)
		}
	}
}

// Writers place and free while segments come, go, drain and fall silent. In the end every
// segment that lives holds exactly what its writers still have, and no two pieces overlap.
func TestConcurrentUse(t *testing.T) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		t.Run(strategy.String(), func(t *testing.T) {
			p := NewPool(strategy, rolls{})
			for i, name := range letters(6) {
				mount(t, p, onHost(info(uint64(i+1), name, 256*kib), fmt.Sprint("h", i%3)), alice)
			}
			stop := make(chan struct{})
			var writers, movers sync.WaitGroup
			held := make([][]Allocation, 6)
			for w := range held {
				writers.Go(func() {
					rnd := rand.New(rand.NewPCG(11, uint64(w)))
					mine := held[w]
					for range 4000 {
						if len(mine) > 0 && rnd.IntN(2) == 0 {
							i := rnd.IntN(len(mine))
							if !mine[i].Free() {
								t.Error("free refused")
								return
							}
							mine[i] = mine[len(mine)-1]
							mine = mine[:len(mine)-1]
							continue
						}
						req := Request{Size: 1 + rnd.Uint64N(8*kib), Replicas: 1 + rnd.Uint64N(3), HostID: "h1", KeyHash: rnd.Uint64()}
						mine, _ = p.Place(&req, mine)
					}
					held[w] = mine
				})
			}
			for _, move := range []func(rnd *rand.Rand){
				func(rnd *rand.Rand) { // bob's segments come and go
					i := 100 + rnd.Uint64N(4)
					if m, fresh, err := p.Mount(info(i, fmt.Sprint("t", i), 128*kib), bob); err == nil && !fresh {
						if got, err := p.BeginUnmount(m.Info.ID); err == nil {
							p.FinishUnmount(got)
						}
					}
				},
				func(rnd *rand.Rand) {
					i := UUID{First: 1 + rnd.Uint64N(6), Second: 7}
					if err := p.SetStatus(i, []Status{StatusOK, StatusOK, StatusDraining}[rnd.IntN(3)]); err != nil {
						t.Error(err)
					}
				},
				func(rnd *rand.Rand) {
					if rnd.IntN(3) == 0 {
						p.Suspend(alice)
					}
					p.Resume(alice)
				},
				func(*rand.Rand) {
					p.Views()
					p.MaxFree()
					p.UsedBytes()
					p.CapacityBytes()
				},
			} {
				movers.Go(func() {
					rnd := rand.New(rand.NewPCG(12, 12))
					for {
						select {
						case <-stop:
							return
						default:
							move(rnd)
						}
					}
				})
			}
			writers.Wait()
			close(stop)
			movers.Wait()

			want := make(map[*Mounted]uint64)
			pieces := make(map[*Mounted]*naive)
			for _, mine := range held {
				for _, a := range mine {
					if !a.Seg().Alive() {
						continue
					}
					m := pieces[a.Seg()]
					if m == nil {
						m = &naive{size: a.Seg().Info.Size}
						pieces[a.Seg()] = m
					}
					x := taken{offset: a.Address - a.Seg().Info.Base, size: a.Size}
					if why := m.fits(x); why != "" {
						t.Fatalf("segment %s: %d bytes at %d: %s", a.Seg().Info.Name, x.size, x.offset, why)
					}
					m.held = append(m.held, x)
					want[a.Seg()] += a.Size
				}
			}
			if err := p.check(want); err != nil {
				t.Fatal(err)
			}
			for _, mine := range held {
				for _, a := range mine {
					if !a.Free() {
						t.Fatal("free refused")
					}
				}
			}
			if err := p.check(nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A region that is being split by one writer must not look like a full segment to another.
func TestConcurrentWritersAllFindRoom(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, 64*gib, "a")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				a, err := p.AllocateOn("a", 4096)
				if err != nil {
					t.Error("refused by an empty segment")
					return
				}
				a.Free()
			}
		})
	}
	wg.Wait()
}

// Once an unmount has begun or a client is suspended, nothing more is allocated there, however
// old the layout that placement works with.
func TestNothingIsAllocatedAfterTheEnd(t *testing.T) {
	for range 300 {
		p := pool(t, StrategyRandom, rolls{}, mib, "a")
		m := p.ByName("a")
		var wg sync.WaitGroup
		end := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				for range 50 {
					ended := false
					select {
					case <-end:
						ended = true
					default:
					}
					if _, ok := m.allocate(64); ok && ended {
						t.Error("allocated after the end")
					}
				}
			})
		}
		wg.Go(func() {
			if _, err := p.BeginUnmount(m.Info.ID); err != nil {
				t.Error(err)
			}
			close(end)
		})
		wg.Wait()
	}
}

func BenchmarkPlaceFree(b *testing.B) {
	for _, strategy := range []Strategy{StrategyRandom, StrategyFreeRatioFirst, StrategyLocalFirst, StrategyDiskFreeRatioFirst} {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("%v/segments=%d", strategy, n), func(b *testing.B) {
				p := pool(b, strategy, rolls{}, 64*gib, letters(n)...)
				held := make([]Allocation, 10000)
				out := make([]Allocation, 0, 1)
				req := Request{Size: 64 * kib, Replicas: 1, HostID: "h"}
				i := 0
				for b.Loop() {
					held[i].Free()
					out, _ = p.Place(&req, out[:0])
					held[i] = out[0]
					if i++; i == len(held) {
						i = 0
					}
				}
			})
		}
	}
}

func BenchmarkPlaceFreeParallel(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint("segments=", n), func(b *testing.B) {
			p := pool(b, StrategyRandom, rolls{}, 64*gib, letters(n)...)
			b.RunParallel(func(pb *testing.PB) {
				out := make([]Allocation, 0, 1)
				req := Request{Size: 64 * kib, Replicas: 1}
				for pb.Next() {
					out, _ = p.Place(&req, out[:0])
					out[0].Free()
				}
			})
		})
	}
}
