package admin

import "strings"

// param returns the first value of a query parameter as written. Names are compared as
// written, pairs are separated by '&' alone, and a value may contain '='.
func param(rawQuery, name string) string {
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}

// hasParam reports whether a query parameter is there, be it empty.
func hasParam(rawQuery, name string) bool {
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if key, _, _ := strings.Cut(pair, "="); key == name {
			return true
		}
	}
	return false
}

// decoded is param with percent-encoding undone and '+' read as a blank. An escape that is
// none stays as it is written. The routes whose values the released masters do not decode use
// unescape(param()) instead, so that a '+' in a key is still found as written.
func decoded(rawQuery, name string) string {
	return unescape(strings.ReplaceAll(param(rawQuery, name), "+", " "))
}

// unescape undoes percent-encoding and nothing else.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := unhex(s[i+1]), unhex(s[i+2])
			if high < 16 && low < 16 {
				b = append(b, high<<4|low)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	default:
		return 16
	}
}

// escape percent-encodes all but letters, digits and "-._~", with upper-case digits, as the
// clients of the metadata server do.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
