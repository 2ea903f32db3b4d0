package segment

import (
	"math/bits"
	"sync/atomic"
)

// Links between nodes are indices; these values are none.
const (
	noNode   = ^uint32(0)     // end of a list
	inUse    = ^uint32(0) - 1 // in node.binPrev: the region is allocated
	recycled = ^uint32(0) - 2 // in node.binPrev: the node describes no region
)

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits

	minNodeCap = 1 << 20
	maxNodeCap = 64 << 20
)

// node describes one region, allocated or free. Together the regions cover the segment
// without gap or overlap, and no two free ones are neighbours. Nodes hold no pointers, so the
// garbage collector does not look into their chunks.
type node struct {
	offset, units    uint32
	binPrev, binNext uint32 // list of the bin when free
	left, right      uint32 // neighbours by address
}

// allocator hands out regions of a segment in constant time. It counts in units of 1<<shift
// bytes, one byte up to 3.75 GiB. It is not safe for concurrent use but for mayFit. An
// allocated region is rounded up to its bin, so that when freed it can be filed where the
// same request finds it again.
type allocator struct {
	shift   uint8
	total   uint32 // units of the whole segment
	nodeCap uint32 // most regions at a time
	live    uint32 // regions, allocated and free
	made    uint32 // nodes ever made
	spare   uint32 // recycled nodes, linked by binNext
	chunks  []*[chunkSize]node

	top      atomic.Int32 // highest bin with a free region, -1 if none
	occupied [binCount / 64]uint64
	heads    [binCount]uint32
}

// init prepares the allocator for a segment of size bytes, all free.
func (a *allocator) init(size uint64) {
	a.shift = quantumShift(size)
	a.total = uint32(size >> a.shift)
	a.nodeCap = uint32(min(max(size/1024, minNodeCap), maxNodeCap))
	a.spare = noNode
	for i := range a.heads {
		a.heads[i] = noNode
	}
	i := a.take()
	*a.at(i) = node{units: a.total, left: noNode, right: noNode}
	a.file(i)
	a.show()
}

// drop forgets everything; nothing can be allocated or freed afterwards.
func (a *allocator) drop() {
	a.top.Store(-1)
	a.occupied = [binCount / 64]uint64{}
	a.chunks, a.made, a.live = nil, 0, 0
}

// quantumShift returns the smallest shift that brings size down to maxUnits.
func quantumShift(size uint64) uint8 {
	var shift uint8
	for size>>shift > maxUnits {
		shift++
	}
	return shift
}

// bin returns the bin that a request of size bytes is rounded up to; ok is false when no
// segment with this quantum can ever serve it.
func (a *allocator) bin(size uint64) (bin uint32, ok bool) {
	if size == 0 {
		return 0, false
	}
	units := (size-1)>>a.shift + 1
	if units > maxUnits {
		return 0, false
	}
	return binAbove(uint32(units)), true
}

// mayFit reports whether a request of size bytes may succeed now. It may be called without
// the lock: full segments are passed over without contending for it.
func (a *allocator) mayFit(size uint64) bool {
	bin, ok := a.bin(size)
	return ok && int32(bin) <= a.top.Load()
}

// largestWhenEmpty returns the largest request in bytes that the empty segment can serve:
// less than the segment when its size is not a bin size.
func (a *allocator) largestWhenEmpty() uint64 {
	return uint64(binUnits(binBelow(a.total))) << a.shift
}

// largestFree returns the largest request in bytes that succeeds now. Larger free regions may
// exist, but are filed too low to be found for more.
func (a *allocator) largestFree() uint64 {
	top := a.top.Load()
	if top < 0 || a.live >= a.nodeCap {
		return 0
	}
	return uint64(binUnits(uint32(top))) << a.shift
}

// allocate returns the offset in bytes of a region of at least size bytes and the node to free
// it by.
func (a *allocator) allocate(size uint64) (offset uint64, index uint32, ok bool) {
	want, ok := a.bin(size)
	if !ok || a.live >= a.nodeCap {
		return 0, 0, false
	}
	found, ok := a.lowestFrom(want)
	if !ok {
		return 0, 0, false
	}
	index = a.heads[found]
	n := a.at(index)
	a.unfile(index)
	n.binPrev = inUse
	if rest := n.units - binUnits(want); rest > 0 {
		n.units -= rest
		r := a.take()
		*a.at(r) = node{offset: n.offset + n.units, units: rest, left: index, right: n.right}
		if n.right != noNode {
			a.at(n.right).left = r
		}
		n.right = r
		a.file(r)
	}
	a.show()
	return uint64(n.offset) << a.shift, index, true
}

// free gives back the region that allocate returned with this offset and node. It reports
// false and changes nothing when they are not an allocated region.
func (a *allocator) free(offset uint64, index uint32) bool {
	if index >= a.made {
		return false
	}
	n := a.at(index)
	if n.binPrev != inUse || uint64(n.offset)<<a.shift != offset {
		return false
	}
	if left := n.left; left != noNode && a.at(left).binPrev != inUse {
		l := a.at(left)
		a.unfile(left)
		n.offset, n.units, n.left = l.offset, l.units+n.units, l.left
		if n.left != noNode {
			a.at(n.left).right = index
		}
		a.recycle(left)
	}
	if right := n.right; right != noNode && a.at(right).binPrev != inUse {
		r := a.at(right)
		a.unfile(right)
		n.units, n.right = n.units+r.units, r.right
		if n.right != noNode {
			a.at(n.right).left = index
		}
		a.recycle(right)
	}
	a.file(index)
	a.show()
	return true
}

// lowestFrom returns the lowest bin from bin on that has a free region.
func (a *allocator) lowestFrom(bin uint32) (uint32, bool) {
	word := bin / 64
	set := a.occupied[word] &^ (1<<(bin%64) - 1)
	for set == 0 {
		if word++; word == uint32(len(a.occupied)) {
			return 0, false
		}
		set = a.occupied[word]
	}
	return word*64 + uint32(bits.TrailingZeros64(set)), true
}

// file puts a free region at the head of its bin, where the next request finds it first.
func (a *allocator) file(index uint32) {
	n := a.at(index)
	bin := binBelow(n.units)
	n.binPrev, n.binNext = noNode, a.heads[bin]
	if n.binNext != noNode {
		a.at(n.binNext).binPrev = index
	}
	a.heads[bin] = index
	a.occupied[bin/64] |= 1 << (bin % 64)
}

// unfile takes a free region out of its bin.
func (a *allocator) unfile(index uint32) {
	n := a.at(index)
	if n.binNext != noNode {
		a.at(n.binNext).binPrev = n.binPrev
	}
	if n.binPrev != noNode {
		a.at(n.binPrev).binNext = n.binNext
		return
	}
	bin := binBelow(n.units)
	a.heads[bin] = n.binNext
	if n.binNext != noNode {
		return
	}
	a.occupied[bin/64] &^= 1 << (bin % 64)
}

// show makes the highest bin with a free region known to mayFit. It is called once at the end
// of each change: what lies between must not be seen, because a region that is being split is
// in no bin for a moment.
func (a *allocator) show() {
	top := int32(-1)
	for word := len(a.occupied) - 1; word >= 0; word-- {
		if set := a.occupied[word]; set != 0 {
			top = int32(word*64 + bits.Len64(set) - 1)
			break
		}
	}
	if top != a.top.Load() {
		a.top.Store(top)
	}
}

func (a *allocator) at(index uint32) *node {
	return &a.chunks[index>>chunkBits][index&(chunkSize-1)]
}

// take returns a node that describes no region yet. Chunks are made as needed and never
// moved, so that a growing segment causes no pause.
func (a *allocator) take() uint32 {
	a.live++
	if index := a.spare; index != noNode {
		a.spare = a.at(index).binNext
		return index
	}
	if a.made>>chunkBits == uint32(len(a.chunks)) {
		a.chunks = append(a.chunks, new([chunkSize]node))
	}
	a.made++
	return a.made - 1
}

func (a *allocator) recycle(index uint32) {
	a.live--
	n := a.at(index)
	n.binPrev, n.binNext = recycled, a.spare
	a.spare = index
}
