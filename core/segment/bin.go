package segment

import "math/bits"

// Free regions are filed by size into bins whose sizes grow like floating point numbers with
// three bits of mantissa: 0 to 7 exactly, then eight steps per power of two. A request is
// rounded up to a bin and a free region down, so that any region of the request's bin or a
// higher one is large enough.
const (
	mantissaBits = 3
	mantissaSize = 1 << mantissaBits
	binCount     = 256

	// maxUnits is the largest bin size that 32 bits hold: the most units that an allocator
	// manages and that one allocation may ask for.
	maxUnits = 15 << 28
)

// binBelow returns the highest bin whose size is at most units.
func binBelow(units uint32) uint32 {
	if units < mantissaSize {
		return units
	}
	low := uint32(bits.Len32(units)) - 1 - mantissaBits // bits below the mantissa
	return (low+1)<<mantissaBits | units>>low&(mantissaSize-1)
}

// binAbove returns the lowest bin whose size is at least units.
func binAbove(units uint32) uint32 {
	bin := binBelow(units)
	if binUnits(bin) < units {
		bin++ // a full mantissa carries into the exponent
	}
	return bin
}

// binUnits returns the size of a bin in units. Bins above that of maxUnits don't occur.
func binUnits(bin uint32) uint32 {
	exponent, mantissa := bin>>mantissaBits, bin&(mantissaSize-1)
	if exponent == 0 {
		return mantissa
	}
	return (mantissaSize | mantissa) << (exponent - 1)
}
