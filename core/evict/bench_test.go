package evict

import (
	"fmt"
	"testing"
)

// benchOrder holds n items.
func benchOrder(n int) (*Order[*node], []node) {
	o, nodes := NewOrder[*node](parts), make([]node, n)
	for i := range nodes {
		nodes[i].id = i
		o.Insert(&nodes[i], int64(i), 0, 0)
	}
	return o, nodes
}

// BenchmarkOrder puts one item in and takes the oldest out of an order of so many.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint("items=", n), func(b *testing.B) {
			o, _ := benchOrder(n)
			rank := int64(n)
			b.ReportAllocs()
			for b.Loop() {
				x, _, _, ok := o.PopDue(Plain, rank)
				if !ok {
					b.Fatal("nothing is due")
				}
				o.Insert(x, rank, 0, 0)
				rank++
			}
		})
	}
}

// BenchmarkOrderRemove takes out items from the middle, as a removal by name does.
func BenchmarkOrderRemove(b *testing.B) {
	const n = 100_000
	o, nodes := benchOrder(n)
	i, rank := 0, int64(n)
	b.ReportAllocs()
	for b.Loop() {
		x := &nodes[i*7919%n]
		o.Remove(x)
		o.Insert(x, rank, 0, 0)
		i++
		rank++
	}
}
