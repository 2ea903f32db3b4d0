package app

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// farFuture bounds every duration: a hundred years, so that adding one to a point in time
// never overflows. Longer ones, which the original accepts, count as this.
const farFuture = 100 * 365 * 24 * time.Hour

var errIllegal = errors.New("illegal value")

// parseValue reads the text form of a value as gflags does: numbers may have blanks before
// but not after them, a sign, and the prefix 0x; a leading zero does not mean octal. It
// returns bool, int64, uint64, float64, string or time.Duration.
func parseValue(kind Kind, text string) (any, error) {
	switch kind {
	case Bool:
		switch strings.ToLower(text) {
		case "1", "t", "true", "y", "yes":
			return true, nil
		case "0", "f", "false", "n", "no":
			return false, nil
		}
		return nil, errIllegal
	case Int32:
		return parseInt(text, 32)
	case Int64:
		return parseInt(text, 64)
	case Uint32:
		return parseUint(text, 32)
	case Uint64:
		return parseUint(text, 64)
	case Double:
		t := strings.TrimLeft(text, " \t\n\v\f\r")
		if strings.ContainsRune(t, '_') {
			return nil, errIllegal
		}
		v, err := strconv.ParseFloat(t, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, errIllegal
		}
		return v, nil
	case Duration:
		return parseDuration(text)
	default:
		return text, nil
	}
}

// splitNumber strips leading blanks and finds the base.
func splitNumber(text string) (sign, digits string, base int) {
	t := strings.TrimLeft(text, " \t\n\v\f\r")
	if t != "" && (t[0] == '-' || t[0] == '+') {
		sign, t = t[:1], t[1:]
	}
	if len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') {
		return sign, t[2:], 16
	}
	return sign, t, 10
}

func parseInt(text string, bits int) (any, error) {
	sign, digits, base := splitNumber(text)
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return nil, errIllegal
	}
	v, err := strconv.ParseInt(sign+digits, base, bits)
	if err != nil {
		return nil, errIllegal
	}
	return v, nil
}

func parseUint(text string, bits int) (any, error) {
	sign, digits, base := splitNumber(text)
	if sign == "-" {
		return nil, errIllegal
	}
	v, err := strconv.ParseUint(digits, base, bits)
	if err != nil {
		return nil, errIllegal
	}
	return v, nil
}

// parseDuration reads a whole number with an optional unit ms, s, m or h in any case; no
// unit means milliseconds. Blanks are allowed around the number and the unit.
func parseDuration(text string) (any, error) {
	t := strings.TrimSpace(text)
	n := 0
	for n < len(t) && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	if n == 0 {
		return nil, errors.New("want a whole number with an optional unit ms, s, m or h, like 10000 or 10s")
	}
	v, err := strconv.ParseUint(t[:n], 10, 64)
	if err != nil {
		return nil, errors.New("the number is too large")
	}
	factor := uint64(1)
	switch unit := strings.ToLower(strings.TrimSpace(t[n:])); unit {
	case "", "ms":
	case "s":
		factor = 1000
	case "m":
		factor = 60 * 1000
	case "h":
		factor = 60 * 60 * 1000
	default:
		return nil, fmt.Errorf("unknown unit %q, want ms, s, m or h", unit)
	}
	if v > math.MaxUint64/factor {
		return nil, errors.New("the number is too large")
	}
	return clampDuration(v*factor, time.Millisecond), nil
}

func clampDuration(n uint64, unit time.Duration) time.Duration {
	if n > uint64(farFuture/unit) {
		return farFuture
	}
	return time.Duration(n) * unit
}

// store puts a parsed value into the Config field of the flag, converting to its type. The
// value has the right kind already, so the only thing left to go wrong is the table itself.
func (f *Flag) store(c *Config, v any) {
	if f.bind == nil {
		return
	}
	switch p := f.bind(c).(type) {
	case *bool:
		*p = v.(bool)
	case *string:
		*p = v.(string)
	case *float64:
		*p = v.(float64)
	case *int:
		*p = int(v.(int64))
	case *int64:
		*p = v.(int64)
	case *uint64:
		*p = v.(uint64)
	case *time.Duration:
		switch n := v.(type) {
		case time.Duration:
			*p = n
		case int64:
			if n < 0 {
				*p = -clampDuration(uint64(-(n+1))+1, f.unit)
			} else {
				*p = clampDuration(uint64(n), f.unit)
			}
		case uint64:
			*p = clampDuration(n, f.unit)
		default:
			panic(fmt.Sprintf("flag %s: a %T does not make a duration", f.Name, v))
		}
	default:
		panic(fmt.Sprintf("flag %s: no conversion to %T", f.Name, p))
	}
}
