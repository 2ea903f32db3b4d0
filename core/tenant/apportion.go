package tenant

import (
	"cmp"
	"math/bits"
	"slices"
)

// apportion returns the effective quotas of tenants that request the given bytes of capacity,
// in the order given, which must be ascending by tenant name: ties go to the earlier one. If
// everything fits each gets what it requests. Else each gets the whole part of
// capacity*requested/sum, and the bytes left over go one each to those with the largest
// remainders; the results then add up to exactly capacity.
func apportion(capacity uint64, requested []uint64) []uint64 {
	var sumHi, sumLo uint64
	for _, q := range requested {
		sumHi, sumLo = add128(sumHi, sumLo, q)
	}
	if sumHi == 0 && sumLo <= capacity {
		return slices.Clone(requested)
	}
	effective := make([]uint64, len(requested))
	if capacity == 0 {
		return effective
	}
	type share struct {
		remHi, remLo uint64
		index        int
	}
	shares := make([]share, len(requested))
	left := capacity
	for i, q := range requested {
		hi, lo := bits.Mul64(capacity, q)
		quotient, remHi, remLo := div128(hi, lo, sumHi, sumLo)
		effective[i] = quotient
		left -= quotient
		shares[i] = share{remHi, remLo, i}
	}
	if left == 0 {
		return effective
	}
	slices.SortFunc(shares, func(a, b share) int {
		switch {
		case a.remHi != b.remHi:
			return cmp.Compare(b.remHi, a.remHi)
		case a.remLo != b.remLo:
			return cmp.Compare(b.remLo, a.remLo)
		default:
			return a.index - b.index
		}
	})
	// The remainders add up to left times the sum and each is below the sum, so there are
	// more than left tenants to choose from.
	for _, s := range shares[:left] {
		effective[s.index]++
	}
	return effective
}

// div128 divides the 128-bit n by the 128-bit d, not zero. The quotient must fit 64 bits,
// which holds here because a tenant's share is at most what it requests.
func div128(nHi, nLo, dHi, dLo uint64) (quotient, remHi, remLo uint64) {
	if dHi == 0 {
		quotient, remLo = bits.Div64(nHi, nLo, dLo)
		return quotient, 0, remLo
	}
	// With at least 65 bits in the divisor, dividing by its upper 64 bits gives an estimate
	// that is exact or one too large; taking one off first makes it exact or one too small.
	shift := uint(bits.LeadingZeros64(dHi))
	top := dHi<<shift | dLo>>(64-shift)
	estimate, _ := bits.Div64(nHi>>1, nHi<<63|nLo>>1, top)
	quotient = estimate >> (63 - shift)
	if quotient > 0 {
		quotient--
	}
	prodHi, prodLo := bits.Mul64(quotient, dLo)
	prodHi += quotient * dHi
	remLo, borrow := bits.Sub64(nLo, prodLo, 0)
	remHi, _ = bits.Sub64(nHi, prodHi, borrow)
	if remHi > dHi || remHi == dHi && remLo >= dLo {
		quotient++
		remLo, borrow = bits.Sub64(remLo, dLo, 0)
		remHi, _ = bits.Sub64(remHi, dHi, borrow)
	}
	return quotient, remHi, remLo
}

// add128 adds n to the 128-bit number hi:lo.
func add128(hi, lo, n uint64) (uint64, uint64) {
	lo, carry := bits.Add64(lo, n, 0)
	return hi + carry, lo
}
