package rpc

import (
	"math/bits"
	"sync"
)

// block is memory that connections borrow while they have something to remember between two
// turns: the beginning of a request, or answers that the peer does not take yet. A connection
// at rest has none. Blocks that nobody borrows are left to the garbage collector.
type block struct{ b []byte }

// Sizes of blocks are powers of two from 1<<minBlock.
const (
	minBlock = 12
	maxBlock = 40
)

var blocks [maxBlock - minBlock]sync.Pool

// blockClass is the smallest class that holds n bytes.
func blockClass(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minBlock) - minBlock }

// borrow returns a block of at least n bytes.
func borrow(n int) *block {
	class := blockClass(n)
	if b, ok := blocks[class].Get().(*block); ok {
		return b
	}
	return &block{make([]byte, 1<<(class+minBlock))}
}

// giveBack ends a loan; nil is allowed. The memory must not be used afterwards.
func (b *block) giveBack() {
	if b != nil {
		blocks[blockClass(len(b.b))].Put(b)
	}
}

// held is what a connection of an event loop has received and not yet handled. It grows only
// when it is full of bytes that have arrived, so that announcing much costs the server
// nothing.
type held struct {
	*block
	r, w int
}

func (h *held) pending() int { return h.w - h.r }

func (h *held) bytes() []byte {
	if h.block == nil {
		return nil
	}
	return h.b[h.r:h.w]
}

// hold remembers a copy of p, which is not empty, when nothing is held.
func (h *held) hold(p []byte) {
	h.block = borrow(2 * len(p))
	h.r, h.w = 0, copy(h.b, p)
}

// space returns where to read to when something is held; it is never empty.
func (h *held) space() []byte {
	if h.r > 0 && len(h.b)-h.w < len(h.b)/4 {
		h.w = copy(h.b, h.b[h.r:h.w])
		h.r = 0
	}
	if h.w == len(h.b) {
		old := *h
		h.block = borrow(4 * len(old.b)) // each byte is copied a third of a time
		h.r, h.w = 0, copy(h.b, old.bytes())
		old.giveBack()
	}
	return h.b[h.w:]
}

// consume forgets the first n bytes, and gives the block back with the last.
func (h *held) consume(n int) {
	if h.r += n; h.r == h.w {
		h.giveBack()
		*h = held{}
	}
}
