package main

import (
	"encoding/binary"
	"fmt"
)

// pattern is content that can be told from any other: eight bytes at a time, a number that depends on where
// they lie and on a seed.
type pattern uint64

// word is what lies at a number of words from the beginning.
func (p pattern) word(i uint64) uint64 {
	x := uint64(p) + (i+1)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// fill writes the pattern.
func (p pattern) fill(b []byte) {
	i := uint64(0)
	for ; len(b) >= 8; b, i = b[8:], i+1 {
		binary.LittleEndian.PutUint64(b, p.word(i))
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], p.word(i))
	copy(b, last[:])
}

// check fails where something else lies, and says what.
func (p pattern) check(b []byte) error {
	i, at := uint64(0), 0
	for ; len(b)-at >= 8; i, at = i+1, at+8 {
		if binary.LittleEndian.Uint64(b[at:]) != p.word(i) {
			break
		}
	}
	var want [8]byte
	for ; at < len(b); i++ {
		binary.LittleEndian.PutUint64(want[:], p.word(i))
		for k := 0; k < 8 && at < len(b); k, at = k+1, at+1 {
			if b[at] != want[k] {
				return fmt.Errorf("byte %d of %d is %#02x, want %#02x", at, len(b), b[at], want[k])
			}
		}
	}
	return nil
}
