package transfer

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// Checksum is the sum that the released clients keep of a value when they are told to: CRC-64 of ECMA-182,
// most significant bit first, without inversions. Zero is the sum of no bytes, and of any number of zeroes.
type Checksum uint64

// Sum returns the checksum of a value.
func Sum(value []byte) Checksum { return Checksum(0).Update(value) }

// Update returns the checksum of what c is the checksum of, followed by more.
func (c Checksum) Update(more []byte) Checksum {
	t := tables()
	sum := uint64(c)
	for len(more) >= 16 {
		a := sum ^ binary.BigEndian.Uint64(more)
		b := binary.BigEndian.Uint64(more[8:])
		sum = t[15][a>>56] ^ t[14][a>>48&0xff] ^ t[13][a>>40&0xff] ^ t[12][a>>32&0xff] ^
			t[11][a>>24&0xff] ^ t[10][a>>16&0xff] ^ t[9][a>>8&0xff] ^ t[8][a&0xff] ^
			t[7][b>>56] ^ t[6][b>>48&0xff] ^ t[5][b>>40&0xff] ^ t[4][b>>32&0xff] ^
			t[3][b>>24&0xff] ^ t[2][b>>16&0xff] ^ t[1][b>>8&0xff] ^ t[0][b&0xff]
		more = more[16:]
	}
	for _, x := range more {
		sum = t[0][byte(sum>>56)^x] ^ sum<<8
	}
	return Checksum(sum)
}

// Join returns the checksum of two pieces, of their checksums and the second one's size in bytes. So pieces may be
// summed in any order, and at the same time.
func (c Checksum) Join(next Checksum, size uint64) Checksum {
	// The first piece counts as if that many zeroes followed it: it is multiplied by x^(8*size).
	sum := uint64(c)
	power := uint64(1) << 8 // x^8
	for n := size; n > 0 && sum != 0; n >>= 1 {
		if n&1 != 0 {
			sum = multiply(sum, power)
		}
		power = multiply(power, power)
	}
	return Checksum(sum) ^ next
}

// polynomial is that of ECMA-182 without x^64; bit i is the coefficient of x^i.
const polynomial = 0x42f0e1eba9ea3693

// multiply multiplies two polynomials modulo x^64 + polynomial.
func multiply(a, b uint64) uint64 {
	var product uint64
	for i := bits.Len64(b) - 1; i >= 0; i-- {
		carry := product >> 63
		product <<= 1
		product ^= polynomial & -carry
		product ^= a & -(b >> i & 1)
	}
	return product
}

// tables holds in t[i][x] what the byte x does to the sum when i bytes follow it. They are 32 KiB, made when they are
// first needed.
var tables = sync.OnceValue(func() *[16][256]uint64 {
	t := new([16][256]uint64)
	for x := range 256 {
		sum := uint64(x) << 56
		for range 8 {
			sum = sum<<1 ^ polynomial&-(sum>>63)
		}
		t[0][x] = sum
	}
	for i := 1; i < len(t); i++ {
		for x := range 256 {
			before := t[i-1][x]
			t[i][x] = before<<8 ^ t[0][before>>56]
		}
	}
	return t
})
