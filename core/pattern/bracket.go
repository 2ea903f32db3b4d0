package pattern

import "strings"

// escapeKind tells what an escape stands for.
type escapeKind uint8

const (
	escapeChar   escapeKind = iota // the byte char
	escapeLetter                   // \b or \B, whose meaning depends on where they are
	escapeClass                    // one byte of set
	escapeDigits                   // a back reference; the digits end at the parser's position
)

type escape struct {
	kind escapeKind
	char byte
	set  byteSet
}

// readEscape reads a backslash and what belongs to it, by the rules that hold inside and outside
// of brackets.
func (p *parser) readEscape() (escape, error) {
	at := p.pos
	p.pos++
	if !p.more() {
		return escape{}, p.errorf(at, "'\\' at the end of the pattern")
	}
	b := p.text[p.pos]
	p.pos++
	switch b {
	case '0':
		return escape{char: 0}, nil
	case 'f':
		return escape{char: '\f'}, nil
	case 'n':
		return escape{char: '\n'}, nil
	case 'r':
		return escape{char: '\r'}, nil
	case 't':
		return escape{char: '\t'}, nil
	case 'v':
		return escape{char: '\v'}, nil
	case 'b', 'B':
		return escape{kind: escapeLetter, char: b}, nil
	case 'd', 's', 'w', 'D', 'S', 'W':
		e := escape{kind: escapeClass}
		e.set.addIf(class(string(lower(b))))
		if b != lower(b) {
			e.set.invert()
		}
		return e, nil
	case 'c':
		// Unlike elsewhere \cX is not a control character but X.
		if !p.more() {
			return escape{}, p.errorf(at, "'\\c' without a character after it")
		}
		p.pos++
		return escape{char: p.text[p.pos-1]}, nil
	case 'x':
		return p.hex(at, 2)
	case 'u':
		return p.hex(at, 4)
	}
	if isDigit(b) {
		for p.more() && isDigit(p.text[p.pos]) {
			p.pos++
		}
		return escape{kind: escapeDigits}, nil
	}
	return escape{char: b}, nil
}

// hex reads the digits of \xNN or \uNNNN. A number over 0xff keeps its low byte.
func (p *parser) hex(at, digits int) (escape, error) {
	n := 0
	for range digits {
		if !p.more() || !isHex(p.text[p.pos]) {
			return escape{}, p.errorf(at, "'\\%c' without %d hexadecimal digits after it", p.text[at+1], digits)
		}
		d := lower(p.text[p.pos])
		if isDigit(d) {
			n = n<<4 | int(d-'0')
		} else {
			n = n<<4 | int(d-'a'+10)
		}
		p.pos++
	}
	return escape{char: byte(n)}, nil
}

// itemKind tells what stands at one place of a bracket expression.
type itemKind uint8

const (
	itemChar   itemKind = iota // a byte written as itself or by an escape
	itemSymbol                 // [.name.], a byte that may begin a range but not end one
	itemClass                  // [:name:], [=name=], \d and the like
	itemDash                   // an unescaped -
	itemEnd                    // the closing ]
)

type item struct {
	kind itemKind
	char byte
	set  byteSet
}

// previous tells what the item before the current one was: a dash continues it differently.
type previous uint8

const (
	previousNone  previous = iota // nothing, or a complete range
	previousChar                  // a byte that may begin a range
	previousClass                 // something that can't
)

// brackets is a bracket expression while it is read.
type brackets struct {
	parser *parser
	at     int // of the '['
	set    byteSet
	prev   previous
	last   byte // the byte when prev is previousChar
}

// bracket reads a bracket expression that begins at at, from after its '['. An empty one matches
// no byte, and [^] every byte.
func (p *parser) bracket(at int) (*node, error) {
	negated := p.accept('^')
	b := brackets{parser: p, at: at}
	for first := true; ; first = false {
		itemAt := p.pos
		it, err := b.item()
		if err != nil {
			return nil, err
		}
		switch it.kind {
		case itemEnd:
			if negated {
				b.set.invert()
			}
			return p.leaf(&node{kind: kindSet, set: &b.set})
		case itemChar, itemSymbol:
			b.char(it.char)
		case itemClass:
			for i := range b.set {
				b.set[i] |= it.set[i]
			}
			b.prev = previousClass
		case itemDash:
			if first {
				b.char('-')
			} else if err := b.dash(itemAt); err != nil {
				return nil, err
			}
		}
	}
}

func (b *brackets) char(c byte) {
	b.set.add(c)
	b.prev, b.last = previousChar, c
}

// dash handles a dash that is not the first item. It is literal at the end and after a complete
// range, and makes a range after a byte.
func (b *brackets) dash(at int) error {
	p := b.parser
	if p.more() && p.text[p.pos] == ']' {
		b.char('-')
		return nil
	}
	switch b.prev {
	case previousNone:
		b.char('-')
		return nil
	case previousClass:
		return p.errorf(at, "range begins with a class, write '-' first or last in the brackets")
	}
	end, err := b.item()
	if err != nil {
		return err
	}
	switch end.kind {
	case itemChar:
	case itemDash:
		end.char = '-'
	default:
		return p.errorf(at, "range ends with a class or symbol, write '-' first or last in the brackets")
	}
	// The dialect compares its characters, which are signed, so 0x80 to 0xff come first.
	if int8(b.last) > int8(end.char) {
		return p.errorf(at, "range from %q to %q is in the wrong order", []byte{b.last}, []byte{end.char})
	}
	b.set.addRange(b.last, end.char)
	b.prev = previousNone
	return nil
}

// item reads the next item.
func (b *brackets) item() (item, error) {
	p := b.parser
	at := p.pos
	if !p.more() {
		return item{}, p.errorf(b.at, "'[' without a ']' after it")
	}
	switch c := p.text[p.pos]; c {
	case '-':
		p.pos++
		return item{kind: itemDash}, nil
	case ']':
		p.pos++
		return item{kind: itemEnd}, nil
	case '[':
		p.pos++
		if !p.more() {
			return item{}, p.errorf(b.at, "'[' without a ']' after it")
		}
		if mark := p.text[p.pos]; mark == '.' || mark == ':' || mark == '=' {
			return b.named(at, mark)
		}
		return item{char: c}, nil
	case '\\':
		e, err := p.readEscape()
		switch {
		case err != nil:
			return item{}, err
		case e.kind == escapeClass:
			return item{kind: itemClass, set: e.set}, nil
		case e.kind == escapeLetter && e.char == 'b':
			return item{char: '\b'}, nil
		case e.kind == escapeLetter || e.kind == escapeDigits:
			return item{}, p.errorf(at, "escape %q is not allowed in brackets", p.text[at:p.pos])
		}
		return item{char: e.char}, nil
	default:
		p.pos++
		return item{char: c}, nil
	}
}

// named reads [:name:], [.name.] or [=name=] from its mark on.
func (b *brackets) named(at int, mark byte) (item, error) {
	p := b.parser
	p.pos++
	start := p.pos
	for p.more() && p.text[p.pos] != mark {
		p.pos++
	}
	name := p.text[start:p.pos]
	if !p.accept(mark) || !p.accept(']') {
		return item{}, p.errorf(at, "'[%c' without '%c]' right after a name", mark, mark)
	}
	if mark == ':' {
		in := class(strings.ToLower(name))
		if in == nil {
			return item{}, p.errorf(at, "unknown character class %q", name)
		}
		it := item{kind: itemClass}
		it.set.addIf(in)
		return it, nil
	}
	c, ok := symbol(name)
	if !ok {
		return item{}, p.errorf(at, "unknown collating symbol %q", name)
	}
	if mark == '.' {
		return item{kind: itemSymbol, char: c}, nil
	}
	// The equivalents of a letter are its two cases.
	it := item{kind: itemClass}
	it.set.addIf(func(o byte) bool { return lower(o) == lower(c) })
	return it, nil
}
