package admin

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendString appends s as a JSON string: everything beyond ASCII is escaped, with hex digits
// in upper case, as the released masters do. Bytes that are not UTF-8 become U+FFFD, where
// those fail.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				if c < 0x20 {
					b = appendEscape(b, rune(c))
				} else {
					b = append(b, c)
				}
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r >= 0x10000 {
			r -= 0x10000
			b = appendEscape(b, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		b = appendEscape(b, r)
	}
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	const hex = "0123456789ABCDEF"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// appendField appends a comma unless b ends with an opening bracket, and the quoted name.
func appendField(b []byte, name string) []byte {
	if last := b[len(b)-1]; last != '{' && last != '[' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func stringField(b []byte, name, v string) []byte { return appendString(appendField(b, name), v) }

func boolField(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(appendField(b, name), v)
}

func uintField(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(appendField(b, name), v, 10)
}

func intField(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(appendField(b, name), v, 10)
}

// optionalField prints null for the empty string.
func optionalField(b []byte, name, v string) []byte {
	if v == "" {
		return append(appendField(b, name), "null"...)
	}
	return stringField(b, name, v)
}

// floatField prints the shortest scientific form: 3.90625E-1, 1E0, 0E0.
func floatField(b []byte, name string, v float64) []byte {
	text := strconv.FormatFloat(v, 'E', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "E")
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	exponent = strings.TrimLeft(exponent, "+-0")
	if exponent == "" {
		sign, exponent = "", "0"
	}
	return append(appendField(b, name), mantissa+"E"+sign+exponent...)
}

func appendUint(b []byte, v uint64) []byte { return strconv.AppendUint(b, v, 10) }
