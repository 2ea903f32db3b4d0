package policydoc

import (
	"errors"
	"math/bits"
)

// What a quota text can be refused for; they are wrapped in no other error by ParseQuota.
var (
	errQuotaStart    = errors.New("quota must start with an integer")
	errQuotaInteger  = errors.New("quota integer overflows uint64")
	errQuotaPositive = errors.New("quota must be positive")
	errQuotaProduct  = errors.New("quota byte value overflows uint64")
	errQuotaMax      = errors.New("quota exceeds maximum supported tenant charge")
)

const quotaHint = "a whole number, optionally followed directly by B, KB, MB, GB or TB in powers of 1024"

type unitError string

func (e unitError) Error() string { return "unsupported quota unit '" + shown(string(e)) + "'" }

// ParseQuota reads a quota: decimal digits and, directly after them, optionally one of the
// units B, KB, MB, GB, TB (powers of 1024). The result is in bytes, 1 to MaxQuota.
func ParseQuota(text string) (uint64, error) {
	n, i := uint64(0), 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		d := uint64(text[i] - '0')
		if n > (1<<64-1-d)/10 {
			return 0, errQuotaInteger
		}
		n = n*10 + d
	}
	if i == 0 {
		return 0, errQuotaStart
	}
	if n == 0 {
		return 0, errQuotaPositive
	}
	var shift uint
	switch text[i:] {
	case "", "B":
	case "KB":
		shift = 10
	case "MB":
		shift = 20
	case "GB":
		shift = 30
	case "TB":
		shift = 40
	default:
		return 0, unitError(text[i:])
	}
	hi, lo := bits.Mul64(n, 1<<shift)
	if hi != 0 {
		return 0, errQuotaProduct
	}
	if lo > MaxQuota {
		return 0, errQuotaMax
	}
	return lo, nil
}

// ValidName reports whether a tenant may be called so: not empty, not beginning with '_', no
// bytes below 0x20 and no 0x7f. A name that is valid may still be impossible to write down;
// see Printable.
func ValidName(name string) bool {
	if name == "" || name[0] == '_' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	return true
}
