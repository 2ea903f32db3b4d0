package object

import (
	"math/bits"
	"sync/atomic"
)

// Slots are numbered through chunks that double in size, from firstChunk up to fullChunk, and
// stay that long from there on: a tenant with few objects takes little, and growing never
// copies.
const (
	firstChunk = 4
	fullChunk  = 1024
	fullFrom   = 9 // number of the first chunk of fullChunk slots after those that double
)

// place returns chunk and offset of a slot.
func place(slot uint32) (chunk, offset uint32) {
	if slot >= fullChunk {
		return fullFrom + (slot-fullChunk)/fullChunk, slot % fullChunk
	}
	if slot < firstChunk {
		return 0, slot
	}
	chunk = uint32(bits.Len32(slot / firstChunk))
	return chunk, slot - firstChunk<<(chunk-1)
}

// chunkLen is how many slots a chunk has.
func chunkLen(chunk int) int {
	switch {
	case chunk == 0:
		return firstChunk
	case chunk < fullFrom:
		return firstChunk << (chunk - 1)
	}
	return fullChunk
}

// objects is the slab of one shard.
type objects struct {
	shard  uint16 // whose slab it is
	chunks [][]Object
	shown  atomic.Pointer[[][]Object] // chunks, for glances
	used   uint32                     // slots that were ever taken
	free   uint32                     // 1 + first free slot; its self is 1 + the next; 0 = none
}

func (s *objects) at(slot uint32) *Object {
	chunk, offset := place(slot)
	return &s.chunks[chunk][offset]
}

// glance is at without the lock, nil for a slot that is not there.
func (s *objects) glance(slot uint32) *Object {
	shown := s.shown.Load()
	if shown == nil {
		return nil
	}
	chunk, offset := place(slot)
	if int(chunk) >= len(*shown) {
		return nil
	}
	return &(*shown)[chunk][offset]
}

// take returns an empty slot. Its generation and place in the eviction order are those it was
// left with, so that what refers to the slot's last object is known to be stale.
func (s *objects) take() *Object {
	var o *Object
	slot := s.used
	if s.free != 0 {
		slot = s.free - 1
		o = s.at(slot)
		s.free = o.self
	} else {
		chunk, _ := place(slot)
		if int(chunk) == len(s.chunks) {
			s.chunks = append(s.chunks, make([]Object, chunkLen(int(chunk))))
			chunks := s.chunks
			s.shown.Store(&chunks)
		}
		s.used++
		o = s.at(slot)
		o.shard = s.shard // for ever: it is read without the lock
	}
	o.self = slot
	o.flags = 0
	return o
}

// give takes a slot back whose object has died.
func (s *objects) give(o *Object) {
	slot := o.self
	o.self = s.free
	s.free = slot + 1
}

// each calls f for every slot that holds a live object; f may let it die.
func (s *objects) each(f func(*Object)) {
	left := s.used
	for _, chunk := range s.chunks {
		for i := range chunk {
			if left == 0 {
				return
			}
			left--
			if o := &chunk[i]; !o.Dead() {
				f(o)
			}
		}
	}
}

// some calls f for the live objects among so many slots from one on, and returns the slot after
// them; f may let them die.
func (s *objects) some(from, slots uint32, f func(*Object)) (next uint32) {
	end := from + min(slots, s.used-min(from, s.used))
	for slot := from; slot < end; slot++ {
		if o := s.at(slot); !o.Dead() {
			f(o)
		}
	}
	return end
}

// blocks is a slab of byte blocks of one size.
type blocks struct {
	size   int
	chunks [][]byte
	shown  atomic.Pointer[[][]byte] // chunks, for glances
	used   uint32
	free   []uint32
}

func (b *blocks) at(block uint32) []byte {
	chunk, offset := place(block)
	return b.chunks[chunk][int(offset)*b.size : int(offset+1)*b.size]
}

func (b *blocks) take() uint32 {
	if n := len(b.free); n > 0 {
		block := b.free[n-1]
		b.free = b.free[:n-1]
		return block
	}
	block := b.used
	chunk, _ := place(block)
	if int(chunk) == len(b.chunks) {
		b.chunks = append(b.chunks, make([]byte, chunkLen(int(chunk))*b.size))
		chunks := b.chunks
		b.shown.Store(&chunks)
	}
	b.used++
	return block
}

// keyGrain is the step between the sizes of blocks for keys.
const keyGrain = 16

// keys keeps the bytes of one shard's keys, blocks of one size for keys of about one length.
type keys struct {
	sizes []*blocks
	shown atomic.Pointer[[]*blocks] // sizes, for glances
}

func blockSize(length int) int { return (length + keyGrain - 1) / keyGrain * keyGrain }

// glance returns where the key in a block begins without the lock, nil if it is not there.
func (k *keys) glance(block uint32, length int) *byte {
	shown := k.shown.Load()
	if shown == nil {
		return nil
	}
	for _, b := range *shown {
		if b.size != blockSize(length) {
			continue
		}
		chunk, offset := place(block)
		if chunks := b.shown.Load(); chunks != nil && int(chunk) < len(*chunks) {
			return &(*chunks)[chunk][int(offset)*b.size]
		}
	}
	return nil
}

func (k *keys) of(length int) *blocks {
	size := blockSize(length)
	for _, b := range k.sizes {
		if b.size == size {
			return b
		}
	}
	b := &blocks{size: size}
	k.sizes = append(k.sizes, b)
	sizes := k.sizes
	k.shown.Store(&sizes)
	return b
}
