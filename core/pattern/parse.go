package pattern

import (
	"fmt"
	"math"
)

// maxDepth bounds how deep groups and stacked quantifiers may nest, so that neither the parser
// nor the engine recurses without bound.
const maxDepth = 1000

// maxStates is the largest automaton the dialect allows. It expands counted repeats, so this is
// what refuses a{100000} and (a{1000}){1000}; here only the number is computed.
const maxStates = 100_000

// SyntaxError says why a pattern is refused.
type SyntaxError struct {
	// Offset is the position in bytes, from 0, at which the pattern went wrong.
	Offset int
	// Reason is what is wrong there.
	Reason string
}

// Error returns the reason and the position in one sentence.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid regular expression: %s (at byte %d)", e.Reason, e.Offset)
}

// kind tells what a node is.
type kind uint8

const (
	kindSequence    kind = iota // all of subs, one after the other; none is the empty pattern
	kindAlternative             // one of subs, tried from the left
	kindLiteral                 // the byte literal
	kindSet                     // one byte of set
	kindGroup                   // subs[0], captured as number
	kindRepeat                  // subs[0], min to max times
	kindBackref                 // what the group number captured
	kindBegin                   // ^
	kindEnd                     // $
	kindBoundary                // \b, or \B when negated
	kindLookahead               // (?=subs[0]), or (?!subs[0]) when negated
)

// unlimited is the max of a repeat without an upper bound.
const unlimited = -1

// node is a part of a parsed pattern. Which fields count depends on kind.
type node struct {
	kind    kind
	lazy    bool // the repeat prefers fewer rounds
	negated bool
	literal byte
	set     *byteSet
	subs    []*node
	number  int // of a group, from 1
	min     int
	max     int
	// states is the size of the automaton that the dialect builds for a copy of this node.
	states int
}

// tree is a parsed pattern.
type tree struct {
	root *node
	// referenced holds the groups that some back reference names.
	referenced map[int]bool
	// anchored says that some lookahead contains ^, \b or \B.
	anchored bool
}

// parser reads a pattern from left to right. It follows the grammar of the dialect:
//
//	disjunction: alternative { "|" alternative }
//	alternative: { assertion | atom { quantifier } }
type parser struct {
	text       string
	pos        int
	groups     int   // capture groups begun so far
	open       []int // those not yet ended
	depth      int
	lookaheads int // lookaheads around the position
	states     int // size of the whole automaton so far
	tree       tree
}

func parse(text string) (*tree, error) {
	p := &parser{text: text, tree: tree{referenced: map[int]bool{}}}
	root, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if p.pos < len(text) {
		switch text[p.pos] {
		case ')':
			return nil, p.errorf(p.pos, "')' without a '(' before it")
		default: // * + ? {
			return nil, p.errorf(p.pos, "quantifier %q without anything to repeat before it", text[p.pos:p.pos+1])
		}
	}
	// The whole match counts as a group, and the automaton has an end.
	if err := p.grow(3); err != nil {
		return nil, err
	}
	p.tree.root = root
	return &p.tree, nil
}

func (p *parser) errorf(at int, format string, args ...any) error {
	return &SyntaxError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// grow counts states of the automaton.
func (p *parser) grow(n int) error {
	p.states += n
	if p.states > maxStates {
		return p.errorf(min(p.pos, len(p.text)), "pattern expands to more than %d states, use smaller repeats", maxStates)
	}
	return nil
}

// enter counts a level of nesting; the caller takes it back with p.depth--.
func (p *parser) enter(at int) error {
	p.depth++
	if p.depth > maxDepth {
		return p.errorf(at, "nested deeper than %d levels", maxDepth)
	}
	return nil
}

func (p *parser) more() bool { return p.pos < len(p.text) }

// accept consumes the byte b if it is next.
func (p *parser) accept(b byte) bool {
	if p.more() && p.text[p.pos] == b {
		p.pos++
		return true
	}
	return false
}

func (p *parser) disjunction() (*node, error) {
	first, err := p.alternative()
	if err != nil {
		return nil, err
	}
	n := first
	for p.accept('|') {
		next, err := p.alternative()
		if err != nil {
			return nil, err
		}
		if n == first {
			n = &node{kind: kindAlternative, subs: []*node{first}, states: first.states}
		}
		n.subs = append(n.subs, next)
		n.states += next.states + 2
		if err := p.grow(2); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (p *parser) alternative() (*node, error) {
	n := &node{kind: kindSequence, states: 1}
	for {
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		if t == nil {
			break
		}
		n.subs = append(n.subs, t)
		n.states += t.states
	}
	return n, p.grow(1)
}

// term returns nil where no assertion or atom begins.
func (p *parser) term() (*node, error) {
	if !p.more() {
		return nil, nil
	}
	at := p.pos
	switch b := p.text[p.pos]; b {
	case '|', ')', '*', '+', '?', '{':
		return nil, nil
	case '^':
		p.pos++
		p.tree.anchored = p.tree.anchored || p.lookaheads > 0
		return p.leaf(&node{kind: kindBegin})
	case '$':
		p.pos++
		return p.leaf(&node{kind: kindEnd})
	case '(':
		return p.group()
	case '[':
		p.pos++
		return p.repeated(p.bracket(at))
	case '.':
		p.pos++
		var s byteSet
		s.add('\n')
		s.add('\r')
		s.invert()
		return p.repeated(p.leaf(&node{kind: kindSet, set: &s}))
	case '\\':
		return p.escape()
	default:
		p.pos++
		return p.repeated(p.leaf(&node{kind: kindLiteral, literal: b}))
	}
}

// leaf counts a node of one state.
func (p *parser) leaf(n *node) (*node, error) {
	n.states = 1
	return n, p.grow(1)
}

func (p *parser) group() (*node, error) {
	at := p.pos
	p.pos++
	if err := p.enter(at); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()

	if !p.accept('?') {
		p.groups++
		number := p.groups
		p.open = append(p.open, number)
		sub, err := p.groupBody(at)
		if err != nil {
			return nil, err
		}
		p.open = p.open[:len(p.open)-1]
		n := &node{kind: kindGroup, number: number, subs: []*node{sub}, states: sub.states + 2}
		return p.repeated(n, p.grow(2))
	}
	switch {
	case p.accept(':'):
		sub, err := p.groupBody(at)
		if err != nil {
			return nil, err
		}
		n := &node{kind: kindSequence, subs: []*node{sub}, states: sub.states + 1}
		return p.repeated(n, p.grow(1))
	case p.accept('='), p.accept('!'):
		n := &node{kind: kindLookahead, negated: p.text[p.pos-1] == '!'}
		p.lookaheads++
		sub, err := p.groupBody(at)
		p.lookaheads--
		if err != nil {
			return nil, err
		}
		n.subs = []*node{sub}
		n.states = sub.states + 2
		return n, p.grow(2) // an assertion: no quantifier may follow
	}
	return nil, p.errorf(at, "unknown group, only (?:...), (?=...) and (?!...) exist")
}

func (p *parser) groupBody(at int) (*node, error) {
	n, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if !p.accept(')') {
		if p.more() { // * + ? {
			return nil, p.errorf(p.pos, "quantifier %q without anything to repeat before it", p.text[p.pos:p.pos+1])
		}
		return nil, p.errorf(at, "'(' without a ')' after it")
	}
	return n, nil
}

// escape reads an escape outside brackets.
func (p *parser) escape() (*node, error) {
	at := p.pos
	e, err := p.readEscape()
	if err != nil {
		return nil, err
	}
	switch e.kind {
	case escapeClass:
		return p.repeated(p.leaf(&node{kind: kindSet, set: &e.set}))
	case escapeLetter:
		if e.char == 'b' || e.char == 'B' {
			p.tree.anchored = p.tree.anchored || p.lookaheads > 0
			return p.leaf(&node{kind: kindBoundary, negated: e.char == 'B'})
		}
		return p.repeated(p.leaf(&node{kind: kindLiteral, literal: e.char}))
	case escapeDigits:
		number, err := p.number(at+1, p.pos)
		if err != nil {
			return nil, err
		}
		if number > p.groups {
			return nil, p.errorf(at, "back reference to group %d, but only %d groups begin before it", number, p.groups)
		}
		for _, g := range p.open {
			if g == number {
				return nil, p.errorf(at, "back reference to group %d from within it", number)
			}
		}
		p.tree.referenced[number] = true
		return p.repeated(p.leaf(&node{kind: kindBackref, number: number}))
	}
	return p.repeated(p.leaf(&node{kind: kindLiteral, literal: e.char}))
}

// repeated reads the quantifiers after an atom, of which there may be any number. It takes the
// results of the function that made the atom.
func (p *parser) repeated(atom *node, err error) (*node, error) {
	if err != nil {
		return nil, err
	}
	levels := 0
	defer func() { p.depth -= levels }()
	for p.more() {
		at := p.pos
		n := &node{kind: kindRepeat, subs: []*node{atom}, max: unlimited}
		switch {
		case p.accept('*'):
			n.states = atom.states + 1
			err = p.grow(1)
		case p.accept('+'):
			n.min = 1
			n.states = atom.states + 1
			err = p.grow(1)
		case p.accept('?'):
			n.max = 1
			n.states = atom.states + 2
			err = p.grow(2)
		case p.accept('{'):
			err = p.counts(at, n)
		default:
			return atom, nil
		}
		if err != nil {
			return nil, err
		}
		n.lazy = p.accept('?')
		levels++
		if err := p.enter(at); err != nil {
			return nil, err
		}
		atom = n
	}
	return atom, nil
}

// counts reads the rest of {min}, {min,} or {min,max}.
func (p *parser) counts(at int, n *node) error {
	var err error
	if n.min, err = p.count(at); err != nil {
		return err
	}
	n.max = n.min
	if p.accept(',') {
		n.max = unlimited
		if p.more() && isDigit(p.text[p.pos]) {
			if n.max, err = p.count(at); err != nil {
				return err
			}
			if n.max < n.min {
				return p.errorf(at, "repeat with the smaller number, %d, after the larger one, %d", n.max, n.min)
			}
		}
	}
	if !p.accept('}') {
		return p.errorf(at, "repeat is not of the form {n}, {n,} or {n,m}")
	}
	// One copy of the atom for every round it must or may run, in 64 bits: the atom has at
	// most 100,000 states and the counts fit 31 bits.
	copyStates, least := int64(n.subs[0].states), int64(n.min)
	states := 1 + least*copyStates
	if n.max == unlimited {
		states += copyStates + 1
	} else {
		states += (int64(n.max)-least)*(copyStates+1) + 1
	}
	n.states = int(min(states, maxStates+1))
	return p.grow(n.states)
}

func (p *parser) count(at int) (int, error) {
	start := p.pos
	for p.more() && isDigit(p.text[p.pos]) {
		p.pos++
	}
	if p.pos == start {
		return 0, p.errorf(at, "repeat is not of the form {n}, {n,} or {n,m}")
	}
	return p.number(start, p.pos)
}

// number returns the decimal number between two offsets.
func (p *parser) number(from, to int) (int, error) {
	n := 0
	for _, d := range []byte(p.text[from:to]) {
		n = n*10 + int(d-'0')
		if n > math.MaxInt32 {
			return 0, p.errorf(from, "number too large, at most %d is allowed", math.MaxInt32)
		}
	}
	return n, nil
}
