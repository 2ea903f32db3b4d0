package segment

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

func newAllocator(size uint64) *allocator {
	a := new(allocator)
	a.init(size)
	return a
}

// taken is an allocation as the tests remember it.
type taken struct {
	offset, size uint64
	node         uint32
}

func take(t *testing.T, a *allocator, size uint64) taken {
	t.Helper()
	offset, node, ok := a.allocate(size)
	if !ok {
		t.Fatalf("allocation of %d bytes failed", size)
	}
	return taken{offset, size, node}
}

func give(t *testing.T, a *allocator, x taken) {
	t.Helper()
	if !a.free(x.offset, x.node) {
		t.Fatalf("free of %d bytes at %d refused", x.size, x.offset)
	}
}

func checked(t *testing.T, a *allocator) {
	t.Helper()
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
}

func TestFullSizeAllocation(t *testing.T) {
	tests := []struct {
		size, request uint64
		ok            bool
	}{
		{1, 1, true},
		{16 * mib, 16 * mib, true}, // a bin size
		{15 * mib, 15 * mib, true},
		{16*mib + 1, 16*mib + 1, false}, // filed under 16 MiB
		{16*mib + 1, 16 * mib, true},
		{17 * mib, 17 * mib, false},
		{17 * mib, 16 * mib, true},
		{maxUnits, maxUnits, true},
		{4 * gib, 4 * gib, true}, // two-byte units
		{4 * gib, 4*gib + 1, false},
		{64 * gib, 60 * gib, true},
		{64 * gib, 64 * gib, true},
		{1 << 40, 1 << 40, true},
		{math.MaxUint64, math.MaxUint64, false},
	}
	for _, tt := range tests {
		a := newAllocator(tt.size)
		if fits := tt.request <= a.largestWhenEmpty(); fits != tt.ok {
			t.Errorf("largest request of an empty segment of %d is %d, %d should fit: %v", tt.size, a.largestWhenEmpty(), tt.request, tt.ok)
		}
		offset, node, ok := a.allocate(tt.request)
		if ok != tt.ok || offset != 0 {
			t.Errorf("%d of %d: ok %v at %d, want %v", tt.request, tt.size, ok, offset, tt.ok)
		}
		checked(t, a)
		if ok {
			give(t, a, taken{offset, tt.request, node})
			checked(t, a)
		}
	}
}

func TestOversizeAllocation(t *testing.T) {
	a := newAllocator(mib)
	for _, size := range []uint64{0, mib + 1, maxUnits, maxUnits + 1, 1 << 32, math.MaxUint64} {
		if _, _, ok := a.allocate(size); ok {
			t.Errorf("allocation of %d bytes from 1 MiB succeeded", size)
		}
	}
	checked(t, a)
	if got := a.largestFree(); got != mib {
		t.Errorf("largest free %d", got)
	}
}

// Nothing larger than 3.75 GiB times the quantum is served, whatever the segment.
func TestQuantum(t *testing.T) {
	tests := []struct {
		size  uint64
		shift uint8
	}{
		{1, 0},
		{maxUnits, 0},
		{maxUnits + 1, 1},
		{4 * gib, 1},
		{2 * maxUnits, 1},
		{2*maxUnits + 1, 1},
		{2*maxUnits + 2, 2},
		{64 * gib, 5},
		{math.MaxUint64, 33},
	}
	for _, tt := range tests {
		if got := quantumShift(tt.size); got != tt.shift {
			t.Errorf("quantumShift(%d) = %d, want %d", tt.size, got, tt.shift)
		}
	}
	a := newAllocator(64 * gib)
	x, y := take(t, a, 1), take(t, a, 33)
	if x.offset != 0 || y.offset != 32 {
		t.Errorf("offsets %d and %d, want 0 and 32", x.offset, y.offset)
	}
	if z := take(t, a, 1); z.offset != 96 {
		t.Errorf("33 bytes take %d", z.offset-y.offset)
	}
	checked(t, a)
}

func TestReservesBinSize(t *testing.T) {
	a := newAllocator(mib)
	x := take(t, a, 1000) // rounded up to 1024
	y := take(t, a, 17)   // rounded up to 18
	z := take(t, a, 1)
	if x.offset != 0 || y.offset != 1024 || z.offset != 1042 {
		t.Errorf("offsets %d %d %d", x.offset, y.offset, z.offset)
	}
	checked(t, a)
}

func TestBinMergingBehavior(t *testing.T) {
	orders := [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for _, order := range orders {
		a := newAllocator(mib)
		var x [3]taken
		for i := range x {
			x[i] = take(t, a, 1337)
		}
		for _, i := range order {
			give(t, a, x[i])
			checked(t, a)
		}
		if all := take(t, a, mib); all.offset != 0 {
			t.Errorf("order %v: the segment was not put together again", order)
		}
	}
}

func TestLastFreedIsUsedFirst(t *testing.T) {
	a := newAllocator(mib)
	var x [6]taken
	for i := range x {
		x[i] = take(t, a, 4096)
	}
	give(t, a, x[0])
	give(t, a, x[4])
	give(t, a, x[2])
	for _, want := range []int{2, 4, 0} {
		if got := take(t, a, 4096); got.offset != x[want].offset {
			t.Errorf("got offset %d, want %d", got.offset, x[want].offset)
		}
	}
	checked(t, a)
}

func TestFreeRefusesWhatIsNotAllocated(t *testing.T) {
	a := newAllocator(mib)
	x, y := take(t, a, 64), take(t, a, 64)
	for _, bad := range []taken{
		{offset: x.offset + 1, node: x.node},
		{offset: x.offset, node: y.node},
		{offset: 128, node: 2}, // the free rest
		{offset: 0, node: 3},
		{offset: 0, node: noNode},
	} {
		if a.free(bad.offset, bad.node) {
			t.Errorf("freed %+v", bad)
		}
	}
	give(t, a, x)
	if a.free(x.offset, x.node) {
		t.Error("freed twice")
	}
	give(t, a, y)
	if a.free(y.offset, y.node) {
		t.Error("freed twice after merging")
	}
	checked(t, a)
}

func TestMaxNumAllocations(t *testing.T) {
	for size, want := range map[uint64]uint32{
		1: minNodeCap, gib: minNodeCap, gib + 1023: minNodeCap, 2 * gib: 2 << 20,
		64 * gib: maxNodeCap, 1 << 50: maxNodeCap,
	} {
		if a := newAllocator(size); a.nodeCap != want {
			t.Errorf("%d bytes: cap of %d regions, want %d", size, a.nodeCap, want)
		}
	}
	a := newAllocator(64 * mib)
	a.nodeCap = 1000
	var last taken
	for range 999 { // and one free region
		last = take(t, a, 1)
	}
	if _, _, ok := a.allocate(1); ok || a.largestFree() != 0 {
		t.Error("more regions than allowed")
	}
	checked(t, a)
	give(t, a, last)
	if take(t, a, 1) != last {
		t.Error("no region after one was freed")
	}
}

func TestNodesAreReused(t *testing.T) {
	a := newAllocator(gib)
	for range 10 * chunkSize {
		x, y := take(t, a, 100), take(t, a, 200)
		give(t, a, x)
		give(t, a, y)
	}
	if len(a.chunks) != 1 || a.made > 4 {
		t.Errorf("%d chunks, %d nodes made", len(a.chunks), a.made)
	}
	var all []taken
	for range 3 * chunkSize {
		all = append(all, take(t, a, 100))
	}
	if len(a.chunks) != 4 {
		t.Errorf("%d chunks for %d regions", len(a.chunks), a.live)
	}
	for _, x := range all {
		give(t, a, x)
	}
	checked(t, a)
	if a.live != 1 {
		t.Errorf("%d regions left", a.live)
	}
}

func TestNodesHoldNoPointers(t *testing.T) {
	if s := unsafe.Sizeof(node{}); s != 24 {
		t.Errorf("a node takes %d bytes", s)
	}
	if s := unsafe.Sizeof(Allocation{}); s != 24 {
		t.Errorf("an allocation takes %d bytes, one is in every replica", s)
	}
}

func TestFastFailMatchesAllocator(t *testing.T) {
	for _, size := range []uint64{mib, 10 * gib, 1 << 40} {
		rnd := rand.New(rand.NewPCG(8, size))
		a := newAllocator(size)
		var held []taken
		for range 20000 {
			if rnd.IntN(3) == 0 && len(held) > 0 {
				i := rnd.IntN(len(held))
				give(t, a, held[i])
				held = slices.Delete(held, i, i+1)
				continue
			}
			n := 1 + rnd.Uint64N(size/uint64(1+rnd.IntN(50)))
			may, free := a.mayFit(n), a.largestFree()
			offset, node, ok := a.allocate(n)
			if ok != may || ok != (n <= free) {
				t.Fatalf("%d bytes: may fit %v, largest free %d, allocated %v", n, may, free, ok)
			}
			if ok {
				held = append(held, taken{offset, n, node})
			}
		}
		checked(t, a)
	}
}

// naive is the allocator's model: a list of what is handed out, searched from end to end.
type naive struct {
	size uint64
	held []taken
}

// fits reports why x can't have been handed out, empty if it can.
func (m *naive) fits(x taken) string {
	if x.offset+x.size < x.offset || x.offset+x.size > m.size {
		return "outside the segment"
	}
	for _, h := range m.held {
		if x.offset < h.offset+h.size && h.offset < x.offset+x.size {
			return "overlaps another"
		}
	}
	return ""
}

// largestGap returns the longest run of bytes that is not handed out.
func (m *naive) largestGap() uint64 {
	slices.SortFunc(m.held, func(a, b taken) int { return cmp.Compare(a.offset, b.offset) })
	var gap, end uint64
	for _, h := range m.held {
		gap = max(gap, h.offset-end)
		end = h.offset + h.size
	}
	return max(gap, m.size-end)
}

// exercise drives an allocator and its model by the given bytes, three for each step. The model
// holds what is reserved, so that its gaps are exactly the allocator's free regions.
func exercise(t *testing.T, size uint64, script []byte) {
	a := newAllocator(size)
	m := &naive{size: uint64(a.total) << a.shift}
	for step := 0; len(script) >= 3 && step < 4000; step++ {
		op, arg := script[0], uint64(binary.LittleEndian.Uint16(script[1:]))
		script = script[3:]
		if op%3 == 0 && len(m.held) > 0 {
			i := int(arg) % len(m.held)
			give(t, a, m.held[i])
			m.held = slices.Delete(m.held, i, i+1)
		} else {
			want := arg << (op % 32)
			largest := uint64(binUnits(binBelow(uint32(m.largestGap()>>a.shift)))) << a.shift
			offset, node, ok := a.allocate(want)
			if ok != (want > 0 && want <= largest) {
				t.Fatalf("step %d: %d bytes allocated %v, the largest gap serves %d", step, want, ok, largest)
			}
			if ok {
				bin, _ := a.bin(want)
				x := taken{offset, uint64(binUnits(bin)) << a.shift, node}
				if why := m.fits(x); why != "" || x.size < want {
					t.Fatalf("step %d: %d bytes at %d: %s", step, x.size, x.offset, why)
				}
				m.held = append(m.held, x)
			}
		}
		if step%16 == 0 {
			checked(t, a)
		}
	}
	checked(t, a)
	for _, x := range m.held {
		give(t, a, x)
	}
	checked(t, a)
	if a.live != 1 {
		t.Fatalf("%d regions left after all was freed", a.live)
	}
}

func TestAllocatorAgreesWithNaiveModel(t *testing.T) {
	for seed, size := range []uint64{1, 7, 100, 64 * kib, 16 * mib, 17*mib + 3, 3 * gib, 100*gib + 12345} {
		rnd := rand.New(rand.NewPCG(9, uint64(seed)))
		script := make([]byte, 9000)
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		exercise(t, size, script)
	}
}

func FuzzAllocator(f *testing.F) {
	f.Add(uint64(1*mib), []byte{1, 0, 4, 1, 0, 4, 0, 0, 0, 1, 0, 8, 0, 1, 0})
	f.Add(uint64(16*mib+1), []byte{10, 0, 64, 0, 0, 0, 13, 0xff, 0xff})
	f.Add(uint64(100*gib), []byte{31, 0xff, 0x7f, 28, 1, 0, 25, 3, 0, 0, 1, 0, 3, 0, 0})
	f.Add(uint64(math.MaxUint64), []byte{31, 0xff, 0xff, 1, 1, 0})
	f.Add(uint64(1), []byte{1, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0})
	f.Fuzz(func(t *testing.T, size uint64, script []byte) {
		if size == 0 {
			return
		}
		exercise(t, size, script)
	})
}

func BenchmarkAllocator(b *testing.B) {
	for _, held := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprint("held=", held), func(b *testing.B) {
			a := newAllocator(64 * gib)
			rnd := rand.New(rand.NewPCG(10, 10))
			ring := make([]taken, held+1)
			for i := range ring {
				ring[i].size = 4096 + rnd.Uint64N(64*kib)
				ring[i].offset, ring[i].node, _ = a.allocate(ring[i].size)
			}
			i := 0
			for b.Loop() {
				x := &ring[i]
				a.free(x.offset, x.node)
				x.offset, x.node, _ = a.allocate(x.size)
				if i += 7; i >= len(ring) {
					i %= len(ring)
				}
			}
		})
	}
}
