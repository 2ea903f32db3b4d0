package pattern

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// translate writes a tree as an expression for the engine, which takes it without any option.
//
// Groups capture only where a back reference needs it, under their number as name. Everything
// that is spelled differently by engines is written out: bytes as code points, classes as sets of
// code points, ^ and $ as \A and \z.
//
// A lookahead is a search of its own in the dialect, and knows what precedes it only when the
// search around it did not begin at the start of the key. When it did, ^ holds, and \b sees no
// byte before it, at the place where the lookahead begins, wherever that is. To say so to the
// engine, a lookahead that needs it captures the rest of the key at its begin: a position is that
// begin exactly when the same rest is what follows it up to the end.
func translate(t *tree) string {
	w := &writer{tree: t}
	if t.anchored {
		w.WriteString(`(?:\A(?<fromStart>)|(?!\A))`)
	}
	w.enclosed(t.root)
	return w.String()
}

type writer struct {
	strings.Builder
	tree *tree
	// rest is the name of the group with the rest of the key at the begin of the innermost
	// lookahead, empty outside lookaheads.
	rest  string
	names int
}

func (w *writer) node(n *node) {
	switch n.kind {
	case kindSequence:
		for _, sub := range n.subs {
			w.enclosed(sub)
		}
	case kindAlternative:
		for i, sub := range n.subs {
			if i > 0 {
				w.WriteByte('|')
			}
			w.node(sub)
		}
	case kindLiteral:
		w.char(n.literal)
	case kindSet:
		w.set(n.set)
	case kindGroup:
		if w.tree.referenced[n.number] {
			fmt.Fprintf(w, "(?<%d>", n.number)
		} else {
			w.WriteString("(?:")
		}
		w.node(n.subs[0])
		w.WriteByte(')')
	case kindRepeat:
		w.repeat(n)
	case kindBackref:
		fmt.Fprintf(w, `\k<%d>`, n.number)
	case kindBegin:
		w.begin()
	case kindEnd:
		w.WriteString(`\z`)
	case kindBoundary:
		w.boundary(n.negated)
	case kindLookahead:
		w.lookahead(n)
	}
}

// enclosed writes a node so that it can stand in a sequence. Only alternatives and the body of
// (?:...), which is a sequence in a sequence, need more than themselves.
func (w *writer) enclosed(n *node) {
	if n.kind == kindAlternative || n.kind == kindSequence {
		w.WriteString("(?:")
		w.node(n)
		w.WriteByte(')')
		return
	}
	w.node(n)
}

func (w *writer) repeat(n *node) {
	switch sub := n.subs[0]; sub.kind {
	case kindLiteral, kindSet, kindGroup, kindBackref, kindSequence:
		w.enclosed(sub)
	default:
		w.WriteString("(?:")
		w.node(sub)
		w.WriteByte(')')
	}
	switch {
	case n.min == 0 && n.max == unlimited:
		w.WriteByte('*')
	case n.min == 1 && n.max == unlimited:
		w.WriteByte('+')
	case n.min == 0 && n.max == 1:
		w.WriteByte('?')
	case n.max == unlimited:
		fmt.Fprintf(w, "{%d,}", n.min)
	default:
		fmt.Fprintf(w, "{%d,%d}", n.min, n.max)
	}
	if n.lazy {
		w.WriteByte('?')
	}
}

func (w *writer) begin() {
	if w.rest == "" {
		w.WriteString(`\A`)
		return
	}
	fmt.Fprintf(w, `(?(fromStart)(?=\k<%s>\z)|(?!))`, w.rest)
}

func (w *writer) boundary(negated bool) {
	plain, first := `\b`, `(?=[0-9A-Z_a-z])`
	if negated {
		plain, first = `\B`, `(?![0-9A-Z_a-z])`
	}
	if w.rest == "" {
		w.WriteString(plain)
		return
	}
	fmt.Fprintf(w, `(?(fromStart)(?:(?=\k<%s>\z)%s|(?!\k<%s>\z)%s)|%s)`, w.rest, first, w.rest, plain, plain)
}

func (w *writer) lookahead(n *node) {
	if n.negated {
		w.WriteString("(?!")
	} else {
		w.WriteString("(?=")
	}
	around := w.rest
	if w.tree.anchored {
		w.names++
		w.rest = "rest" + strconv.Itoa(w.names)
		fmt.Fprintf(w, `(?=(?<%s>[\s\S]*))`, w.rest)
	}
	w.enclosed(n.subs[0])
	w.rest = around
	w.WriteByte(')')
}

func (w *writer) char(b byte) {
	const hex = "0123456789abcdef"
	switch {
	case isAlpha(b) || isDigit(b):
		w.WriteByte(b)
	case b == '\n':
		w.WriteString(`\n`)
	case b == '\r':
		w.WriteString(`\r`)
	case b < 0x80:
		w.WriteString(`\x`)
		w.WriteByte(hex[b>>4])
		w.WriteByte(hex[b&0xf])
	default:
		// This rune takes three bytes as itself, and is nothing special to the engine.
		w.WriteRune(runeOf(b))
	}
}

// set writes a set, as what it lacks when that is shorter: there are no runes other than those of
// bytes in what the engine searches.
func (w *writer) set(s *byteSet) {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	switch {
	case n == 0:
		w.WriteString("(?:(?!))")
		return
	case n == 256:
		w.WriteString(`[\s\S]`)
		return
	}
	members := *s
	w.WriteByte('[')
	if n > 128 {
		members.invert()
		w.WriteByte('^')
	}
	for b := 0; b < 256; b++ {
		if !members.has(byte(b)) {
			continue
		}
		last := b
		// The runes of 0x7f and 0x80 are not neighbours.
		for last+1 < 256 && last+1 != 0x80 && members.has(byte(last+1)) {
			last++
		}
		w.char(byte(b))
		if last > b {
			w.WriteByte('-')
			w.char(byte(last))
		}
		b = last
	}
	w.WriteByte(']')
}
