package pattern

import "strings"

// byteSet is a set of bytes, one bit each.
type byteSet [4]uint64

func (s *byteSet) add(b byte) {
	s[b>>6] |= 1 << (b & 63)
}

func (s *byteSet) has(b byte) bool {
	return s[b>>6]&(1<<(b&63)) != 0
}

// addIf adds every byte for which in holds.
func (s *byteSet) addIf(in func(byte) bool) {
	for i := range 256 {
		if in(byte(i)) {
			s.add(byte(i))
		}
	}
}

// addRange adds first to last, ordered as signed bytes, so that 0x80 to 0xff come before 0x00.
// The caller has checked that first is not beyond last.
func (s *byteSet) addRange(first, last byte) {
	s.addIf(func(b byte) bool { return int8(first) <= int8(b) && int8(b) <= int8(last) })
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// class returns the test for a character class by its name in lower case, or nil when there is no
// such class. All classes are those of the C locale: no byte from 0x80 on is in any.
func class(name string) func(byte) bool {
	switch name {
	case "d", "digit":
		return isDigit
	case "w":
		return isWord
	case "s", "space":
		return func(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }
	case "alnum":
		return func(b byte) bool { return isAlpha(b) || isDigit(b) }
	case "alpha":
		return isAlpha
	case "blank":
		return func(b byte) bool { return b == ' ' || b == '\t' }
	case "cntrl":
		return func(b byte) bool { return b < ' ' || b == 0x7f }
	case "graph":
		return func(b byte) bool { return ' ' < b && b < 0x7f }
	case "lower":
		return func(b byte) bool { return 'a' <= b && b <= 'z' }
	case "print":
		return func(b byte) bool { return ' ' <= b && b < 0x7f }
	case "punct":
		return func(b byte) bool { return ' ' < b && b < 0x7f && !isAlpha(b) && !isDigit(b) }
	case "upper":
		return func(b byte) bool { return 'A' <= b && b <= 'Z' }
	case "xdigit":
		return isHex
	}
	return nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isAlpha(b byte) bool { return 'a' <= lower(b) && lower(b) <= 'z' }

func isHex(b byte) bool { return isDigit(b) || 'a' <= lower(b) && lower(b) <= 'f' }

func isWord(b byte) bool { return isAlpha(b) || isDigit(b) || b == '_' }

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + ('a' - 'A')
	}
	return b
}

// symbolNames holds the POSIX names of the collating symbols 0x00 to 0x7f. Letters are their own
// names; digits and punctuation have only the spelled-out ones, so [[.1.]] is not a symbol.
var symbolNames = strings.Fields(`
	NUL SOH STX ETX EOT ENQ ACK alert backspace tab newline vertical-tab form-feed carriage-return SO SI
	DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC IS4 IS3 IS2 IS1
	space exclamation-mark quotation-mark number-sign dollar-sign percent-sign ampersand apostrophe
	left-parenthesis right-parenthesis asterisk plus-sign comma hyphen period slash
	zero one two three four five six seven eight nine
	colon semicolon less-than-sign equals-sign greater-than-sign question-mark
	commercial-at A B C D E F G H I J K L M N O P Q R S T U V W X Y Z
	left-square-bracket backslash right-square-bracket circumflex underscore
	grave-accent a b c d e f g h i j k l m n o p q r s t u v w x y z
	left-curly-bracket vertical-line right-curly-bracket tilde DEL`)

// symbol returns the byte that a collating symbol names.
func symbol(name string) (byte, bool) {
	for i, n := range symbolNames {
		if n == name {
			return byte(i), true
		}
	}
	return 0, false
}
