package admin

import (
	"math"
	"strconv"
	"unicode/utf16"
)

// lenient reads JSON objects as the released masters do, because what they accept and the
// texts with which they refuse are part of the interface. It takes comments, any byte up to
// the blank as white space, numbers with leading zeros, nearly anything as the value of an
// unknown field, a missing end right after a field's name, and any text after the object.
// It never recurses. The first error stops it.
type lenient struct {
	in  []byte
	at  int
	err error
}

// refusal is why a body is not taken, in the words of the released masters.
type refusal string

// Error returns the words.
func (r refusal) Error() string { return string(r) }

const (
	errEnd      = refusal("Unexpected end of buffer. Expected:")
	errNumber   = refusal("Failed to parse number")
	errQuote    = refusal(`Expected "`)
	errBracket  = refusal("Expected ]")
	errUnicode  = refusal("Invalid Unicode Escape Hex")
	errComment  = refusal("Unexpected end, expected comment")
	errSlash    = refusal("Expected / or * after /")
	errNull     = refusal("Expected these: ull")
	errOptional = refusal("Unexexpected eof")
)

func (l *lenient) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (l *lenient) done() bool { return l.err != nil || l.at >= len(l.in) }

// blanks skips white space and comments.
func (l *lenient) blanks() {
	for !l.done() {
		switch c := l.in[l.at]; {
		case c < 33:
			l.at++
		case c == '/':
			l.comment()
		default:
			return
		}
	}
}

// comment skips one comment, whose slash is the next byte. One that does not end takes
// everything.
func (l *lenient) comment() {
	l.at++
	if l.at >= len(l.in) {
		l.fail(errComment)
		return
	}
	c := l.in[l.at]
	l.at++
	switch c {
	case '/':
		for l.at < len(l.in) && l.in[l.at] != '\n' {
			l.at++
		}
	case '*':
		for l.at < len(l.in) {
			if l.in[l.at] == '*' && l.at+1 < len(l.in) && l.in[l.at+1] == '/' {
				l.at += 2
				return
			}
			l.at++
		}
	default:
		l.fail(errSlash)
	}
}

// match takes the byte c.
func (l *lenient) match(c byte) {
	switch {
	case l.err != nil:
	case l.at >= len(l.in):
		l.fail(errEnd)
	case l.in[l.at] != c:
		l.fail(refusal("Expected these: " + string(rune(c))))
	default:
		l.at++
	}
}

// object reads an object, calling the reader of each field that has one.
func (l *lenient) object(fields map[string]func()) error {
	l.blanks()
	l.match('{')
	l.blanks()
	if !l.done() && l.in[l.at] == '}' {
		l.at++
		return l.err
	}
	for {
		name := l.name()
		if l.done() {
			return l.err // nothing after a name is taken for an end
		}
		l.blanks()
		l.match(':')
		if read := fields[name]; read != nil {
			read()
		} else {
			l.skip()
		}
		l.blanks()
		if !l.done() && l.in[l.at] == '}' {
			l.at++
			return l.err
		}
		l.match(',')
		l.blanks()
		if l.err != nil {
			return l.err
		}
	}
}

// name reads the name of a field. Right after an escape it may end with the text.
func (l *lenient) name() string {
	l.match('"')
	if l.err != nil {
		return ""
	}
	text, closed, escaped := l.text()
	if !closed && !escaped {
		l.fail(errQuote)
	}
	return text
}

// str reads a string value, whose end may be missing like that of a name.
func (l *lenient) str() string {
	l.blanks()
	l.match('"')
	if l.err != nil {
		return ""
	}
	text, closed, escaped := l.text()
	if !closed && !escaped {
		l.fail(errQuote)
	}
	return text
}

// text reads up to the closing quote, whose opening one is taken, and says whether it was
// there and whether the last character was an escape.
func (l *lenient) text() (text string, closed, escaped bool) {
	var b []byte
	for l.at < len(l.in) {
		c := l.in[l.at]
		l.at++
		if c == '"' {
			return string(b), true, escaped
		}
		if escaped = c == '\\'; !escaped {
			b = append(b, c)
			continue
		}
		if l.at >= len(l.in) {
			l.fail(errQuote)
			return "", false, true
		}
		c = l.in[l.at]
		l.at++
		switch c {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			b = l.unicode(b)
			if l.err != nil {
				return "", false, true
			}
		default:
			b = append(b, c)
		}
	}
	return string(b), false, escaped
}

// unicode appends the character of an escape whose \u is taken, pairs of surrogates joined.
func (l *lenient) unicode(b []byte) []byte {
	r, ok := l.hex(l.at)
	if !ok {
		l.fail(errUnicode)
		return b
	}
	l.at += 4
	if utf16.IsSurrogate(r) && l.at+6 <= len(l.in) && l.in[l.at] == '\\' && l.in[l.at+1] == 'u' {
		if low, ok := l.hex(l.at + 2); ok {
			if pair := utf16.DecodeRune(r, low); pair != '\uFFFD' {
				l.at += 6
				return append(b, string(pair)...)
			}
		}
	}
	return append(b, string(r)...)
}

func (l *lenient) hex(at int) (rune, bool) {
	if at+4 > len(l.in) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(l.in[at:at+4]), 16, 16)
	return rune(v), err == nil
}

// number reads an unsigned number: everything up to a comma, a closing bracket or white space
// must be digits.
func (l *lenient) number() uint64 {
	l.blanks()
	start := l.at
	for !l.done() {
		c := l.in[l.at]
		if c < 33 || c == ',' || c == '}' || c == ']' {
			break
		}
		l.at++
	}
	token := l.in[start:l.at]
	for _, c := range token {
		if c < '0' || c > '9' {
			l.fail(errNumber)
		}
	}
	v, err := strconv.ParseUint(string(token), 10, 64)
	if err != nil {
		l.fail(errNumber)
	}
	return v
}

// number32 is number for those of 32 bits.
func (l *lenient) number32() uint32 {
	v := l.number()
	if v > math.MaxUint32 {
		l.fail(errNumber)
	}
	return uint32(v)
}

// optionalNumber reads a number or null, for which it returns nil.
func (l *lenient) optionalNumber() *uint64 {
	l.blanks()
	if l.err != nil {
		return nil
	}
	if l.at >= len(l.in) {
		l.fail(errOptional)
		return nil
	}
	if l.in[l.at] == 'n' {
		switch rest := l.in[l.at+1:]; {
		case len(rest) < 3:
			l.fail(errEnd)
		case string(rest[:3]) != "ull":
			l.fail(errNull)
		default:
			l.at += 4
		}
		return nil
	}
	v := l.number()
	return &v
}

// strings reads an array of strings.
func (l *lenient) strings() []string {
	var out []string
	l.blanks()
	l.match('[')
	l.blanks()
	for first := true; l.err == nil; first = false {
		if l.at >= len(l.in) {
			l.fail(errBracket)
			return nil
		}
		if l.in[l.at] == ']' {
			l.at++
			return out
		}
		if !first {
			l.match(',')
			l.blanks()
		}
		if l.err == nil && l.at >= len(l.in) {
			l.fail(errEnd)
			return nil
		}
		out = append(out, l.str())
		l.blanks()
	}
	return nil
}

// skip passes over the value of an unknown field without looking at what it is.
func (l *lenient) skip() {
	l.blanks()
	for l.err == nil {
		if l.at >= len(l.in) {
			l.fail(errEnd)
			return
		}
		switch l.in[l.at] {
		case '{':
			l.skipClosed('{', '}')
			return
		case '[':
			l.skipClosed('[', ']')
			return
		case '"':
			l.skipString()
			return
		case '/':
			l.comment()
		case ',', '}', ']':
			return
		default:
			l.at++
		}
	}
}

// skipClosed passes over a bracketed value, counting only brackets of its own kind.
func (l *lenient) skipClosed(open, end byte) {
	depth := 0
	for !l.done() {
		switch l.in[l.at] {
		case open:
			depth++
			l.at++
		case end:
			depth--
			l.at++
			if depth == 0 {
				return
			}
		case '"':
			l.skipString()
		case '/':
			l.comment()
		default:
			l.at++
		}
	}
	l.fail(errEnd)
}

func (l *lenient) skipString() {
	for l.at++; l.at < len(l.in); l.at++ {
		switch l.in[l.at] {
		case '\\':
			l.at++
		case '"':
			l.at++
			return
		}
	}
	l.at = min(l.at, len(l.in))
	l.fail(errEnd)
}
