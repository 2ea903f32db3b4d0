package segment

import "testing"

// TestManyAtOnce takes and gives back memory for more than one chunk at a time, on more segments than
// there are lists.
func TestManyAtOnce(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, 1<<20, letters(manyLists+10)...)
	sizes := make([]uint64, 3*manyChunk+5)
	var sum uint64
	for i := range sizes {
		sizes[i] = uint64(i) // the first asks for nothing
		sum += sizes[i]
	}
	all := make([]Allocation, len(sizes))
	p.PlaceMany(sizes, all)
	for i, a := range all {
		if a.Size != sizes[i] || (a.Seg() == nil) != (i == 0) {
			t.Fatalf("allocation %d of %d bytes is %+v", i, sizes[i], a)
		}
	}
	if got := p.UsedBytes(); got != sum {
		t.Errorf("%d bytes are used, want %d", got, sum)
	}
	FreeAll(all)
	if got := p.UsedBytes(); got != 0 {
		t.Errorf("%d bytes are used after all were freed", got)
	}
	if all[1].Free() {
		t.Error("an allocation was freed twice")
	}
}

func TestManyLeavesWhatIsNotForIt(t *testing.T) {
	sizes := []uint64{1, 2}
	for _, p := range []*Pool{
		pool(t, StrategyFreeRatioFirst, rolls{}, 1<<20, letters(3)...),
		pool(t, StrategyRandom, rolls{}, 1<<20, letters(1)...),
		pool(t, StrategyRandom, rolls{}, 1<<20),
	} {
		out := []Allocation{{Size: 7}, {Size: 7}}
		if p.PlaceMany(sizes, out); out[0] != (Allocation{}) || out[1] != (Allocation{}) {
			t.Errorf("placed %+v", out)
		}
	}
}

func TestManyOnSegmentsThatAreFullOrGone(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, 100, letters(2)...)
	out := make([]Allocation, 8)
	p.PlaceMany([]uint64{60, 60, 60, 60, 60, 60, 60, 60}, out)
	var got int
	for _, a := range out {
		if a.Size != 0 {
			got++
		}
	}
	if got < 1 || got > 2 {
		t.Errorf("%d values of 60 bytes lie in two segments of 100", got)
	}
	for _, m := range p.current().all {
		m.kill()
	}
	FreeAll(out)
	if p.UsedBytes() != 0 {
		t.Errorf("%d bytes are used in segments that are gone", p.UsedBytes())
	}
}

func TestHasFree(t *testing.T) {
	p := pool(t, StrategyRandom, rolls{}, 100, letters(2)...)
	place(t, p, Request{Size: 50, Replicas: 1})
	if !p.HasFree(150) || p.HasFree(151) || !p.HasFree(0) {
		t.Errorf("of 150 free bytes: 150 %v, 151 %v, none %v", p.HasFree(150), p.HasFree(151), p.HasFree(0))
	}
}
