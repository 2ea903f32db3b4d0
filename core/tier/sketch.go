package tier

import (
	"hash/maphash"
	"sync"
)

const (
	sketchWidth = 4096
	sketchDepth = 4
)

// Sketch estimates how often objects are read. It never says too little, and forgets: after every
// 16384 reads all counts are halved. Counts stop at 255.
type Sketch struct {
	seed maphash.Seed

	mu    sync.Mutex
	rows  [sketchDepth][sketchWidth]uint8
	reads int
}

// NewSketch returns a sketch of no reads that spreads names by seed.
func NewSketch(seed maphash.Seed) *Sketch { return &Sketch{seed: seed} }

// Read counts one read of an object and returns how many there seem to have been.
func (s *Sketch) Read(tenant, key string) int {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(tenant)
	h.WriteByte(0)
	h.WriteString(key)
	// One half of the hash is where the first row counts, the other how far apart the rows do.
	sum := h.Sum64()
	at, step := uint32(sum), uint32(sum>>32)|1
	s.mu.Lock()
	defer s.mu.Unlock()
	least := uint8(255)
	for i := range s.rows {
		c := &s.rows[i][at%sketchWidth]
		at += step
		if *c < 255 {
			*c++
		}
		least = min(least, *c)
	}
	if s.reads++; s.reads >= sketchWidth*sketchDepth {
		s.halve()
	}
	return int(least)
}

func (s *Sketch) halve() {
	s.reads = 0
	for i := range s.rows {
		for j := range s.rows[i] {
			s.rows[i][j] >>= 1
		}
	}
}
