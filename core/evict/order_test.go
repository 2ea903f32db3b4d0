package evict

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"
)

type node struct {
	Slot
	id   int // the age, too
	rank int64
}

func (n *node) OrderSlot() *Slot   { return &n.Slot }
func (n *node) Generation() uint32 { return 0 }
func (n *node) OrderPart() int     { return n.id % parts }
func (n *node) OrderAge() uint32   { return uint32(n.id) }

// parts is how many parts the orders have.
const parts = 4

// drain pops everything due, inserting again what turned out younger, as the evictor does.
func drain(o *Order[*node], c Class, now int64) []int {
	var ids []int
	for {
		n, _, rank, ok := o.PopDue(c, now)
		if !ok {
			return ids
		}
		if n.rank > rank {
			o.Insert(n, n.rank, 0, now)
			continue
		}
		ids = append(ids, n.id)
	}
}

func TestOrderPopsOldestTrueRankFirst(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	o := NewOrder[*node](parts)
	nodes := map[int]*node{}
	for i := range 5000 {
		switch r.IntN(4) {
		case 0:
			for _, n := range nodes {
				o.Remove(n)
				delete(nodes, n.id)
				break
			}
		case 1: // a lease renewal: the order is not told
			for _, n := range nodes {
				n.rank += r.Int64N(1000)
				break
			}
		default:
			n := &node{id: i, rank: r.Int64N(10000)}
			nodes[i] = n
			o.Insert(n, n.rank, 0, 0)
		}
		if o.Len() != len(nodes) {
			t.Fatalf("length %d, want %d", o.Len(), len(nodes))
		}
	}
	const now = 8000
	got := drain(o, Plain, now)
	var want []*node
	for _, n := range nodes {
		if n.rank <= now {
			want = append(want, n)
		}
	}
	sort.Slice(want, func(i, j int) bool { return want[i].rank < want[j].rank })
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("popped %d, want %d", len(got), len(want))
	}
	for i, id := range got {
		if nodes[id].rank != want[i].rank {
			t.Fatalf("place %d has rank %d, want %d", i, nodes[id].rank, want[i].rank)
		}
	}
}

func TestOrderPinnedBecomePlainWhenTheirPinEnds(t *testing.T) {
	o := NewOrder[*node](parts)
	a, b := &node{id: 1, rank: 10}, &node{id: 2, rank: 20}
	o.Insert(a, a.rank, 1000, 50)
	o.Insert(b, b.rank, 0, 50)
	if got := drain(o, Plain, 100); len(got) != 1 || got[0] != 2 {
		t.Fatalf("plain pops %v, want [2]", got)
	}
	if o.PinnedLen(100) != 1 || o.Len() != 1 {
		t.Fatalf("pinned %d, length %d, want 1 and 1", o.PinnedLen(100), o.Len())
	}
	if got := drain(o, Plain, 1000); len(got) != 1 || got[0] != 1 {
		t.Fatalf("after the pin ended plain pops %v, want [1]", got)
	}
}

func TestOrderRepin(t *testing.T) {
	o := NewOrder[*node](parts)
	a := &node{id: 1, rank: 10}
	o.Repin(a, 10, 1000, 0) // absent: stays absent
	if o.Contains(a) {
		t.Fatal("repinning entered an absent item")
	}
	o.Insert(a, 10, 0, 0)
	o.Repin(a, 10, 1000, 20)
	if _, _, _, ok := o.PopDue(Plain, 100); ok {
		t.Fatal("a pinned item came out as plain")
	}
	o.Repin(a, 10, 500, 20) // a shorter pin
	o.Repin(a, 10, 0, 30)   // and none
	if got := drain(o, Plain, 100); len(got) != 1 {
		t.Fatalf("got %v, want the item once", got)
	}
	if o.Len() != 0 {
		t.Fatalf("length %d after all left", o.Len())
	}
}

func TestOrderMemoryStaysBoundedByLiveItems(t *testing.T) {
	o := NewOrder[*node](parts)
	for i := range 100000 {
		n := &node{id: i, rank: int64(i)}
		pin := int64(0)
		if i%3 == 0 {
			pin = 1 << 40
		}
		o.Insert(n, n.rank, pin, 0)
		o.Remove(n)
	}
	kept := 0
	for i := range o.parts {
		for c := range o.parts[i].heaps {
			kept += o.parts[i].heaps[c].len()
		}
	}
	if kept > 300 {
		t.Fatalf("%d entries kept for an empty order", kept)
	}
}

func TestWatermarks(t *testing.T) {
	w := Watermark{High: 0.5, Ratio: 0.1}
	target, lower := w.PoolTarget(0.5625)
	if Count(target, 8) != 2 || lower > target {
		t.Fatalf("target %v lower %v", target, lower)
	}
	if got := Count(0.05, 400); got != 20 {
		t.Fatalf("0.05 of 400 is %d", got)
	}
	if got := Count(0.10, 250); got != 25 {
		t.Fatalf("0.10 of 250 is %d", got)
	}
	const mib = 1 << 20
	for _, c := range []struct {
		w               Watermark
		used, effective uint64
		want            uint64
	}{
		{Watermark{0.9, 0.05}, 9 * mib, 10 * mib, 0},
		{Watermark{0.9, 0.05}, 9*mib + 1, 10 * mib, mib/2 + 1},
		{Watermark{0.9, 0.05}, 10 * mib, 10 * mib, 3 * mib / 2},
		{Watermark{0.5, 0.2}, 10 * mib, 10 * mib, 7 * mib},
		{Watermark{0.9, 0}, 10 * mib, 10 * mib, mib},
		{Watermark{0, 0.05}, 10 * mib, 10 * mib, 0},
		{Watermark{0.9, 0.05}, 10 * mib, 0, 0},
	} {
		if got := c.w.TenantExcess(c.used, c.effective); got != c.want {
			t.Errorf("%+v used %d of %d: excess %d, want %d", c.w, c.used, c.effective, got, c.want)
		}
	}
}

func TestOfEqualRanksTheOldestGoesFirst(t *testing.T) {
	o := NewOrder[*node](parts)
	var nodes []*node
	for i := range 200 {
		nodes = append(nodes, &node{id: 1<<32 - 50 + i, rank: 7}) // the numbers wrap on the way
	}
	// In any order, and some with a rank that turns out stale.
	for i, at := range rand.Perm(len(nodes)) {
		o.Insert(nodes[at], int64(7-i%3), 0, 0)
	}
	got := drain(o, Plain, 10)
	if len(got) != len(nodes) {
		t.Fatalf("popped %d of %d", len(got), len(nodes))
	}
	for i, n := range nodes {
		if got[i] != n.id {
			t.Fatalf("place %d has the item of age %d, want %d", i, got[i], n.id)
		}
	}
}

// TestPartsMakeOneOrder inserts and removes from several goroutines, one for each part, while
// another pops, and compares the order of what is left with that of a plain sort.
func TestPartsMakeOneOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	o := NewOrder[*node](parts)
	const young = 1 << 40
	for i := range 4000 { // what the popper takes: older than anything that comes and goes
		o.Insert(&node{id: i, rank: int64(i)}, int64(i), 0, 0)
	}
	left := make([][]*node, parts)
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(part)))
			for i := range 5000 {
				n := &node{id: 4000 + i*parts + part, rank: young + r.Int64N(1000)}
				pin := int64(0)
				if r.IntN(4) == 0 {
					pin = young + 1
				}
				o.Insert(n, n.rank, pin, 0)
				if r.IntN(2) == 0 {
					o.Remove(n)
				} else {
					left[part] = append(left[part], n)
				}
			}
		})
	}
	wg.Go(func() {
		for want := range int64(4000) {
			if _, _, rank, ok := o.PopDue(Plain, 4000); !ok || rank != want {
				t.Errorf("popped %d %v, want %d", rank, ok, want)
				return
			}
		}
	})
	wg.Wait()
	want := slices.Concat(left...)
	slices.SortFunc(want, func(a, b *node) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	if o.Len() != len(want) {
		t.Fatalf("length %d, want %d", o.Len(), len(want))
	}
	if n := o.PinnedLen(young + 1); n != 0 {
		t.Fatalf("%d pinned after all pins have ended", n)
	}
	got := drain(o, Plain, young+1000)
	if len(got) != len(want) {
		t.Fatalf("popped %d, want %d", len(got), len(want))
	}
	for i, n := range want {
		if got[i] != n.id {
			t.Fatalf("place %d is %d, want %d", i, got[i], n.id)
		}
	}
}
