package structpack

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"
)

// opcode is what an op does to the memory at its offset.
type opcode uint8

const (
	opMem      opcode = iota // n bytes copied as they are
	op1                      // the same for the usual sizes
	op4                      //
	op8                      //
	op16                     //
	opBool                   // one byte, any non-zero read as true
	opString                 //
	opStrings                // []string
	opVec                    // slice of sub, n bytes apart
	opVecMem                 // slice whose elements are n plain bytes each
	opOptional               // pointer to sub
	opExpected               //
	opVariant                //
	opCompat                 // pointer to sub; not part of the ordinary payload
)

// op is one step of a plan. Nested structs are flattened into their parent's steps.
type op struct {
	code opcode
	off  uintptr
	n    uintptr
	sub  *node
	exp  *expectedPlan
	alt  *variantPlan
}

type expectedPlan struct {
	codeOff, codeSize uintptr
	valueOff          uintptr
	code, value       *node
}

type variantPlan struct {
	indexOff uintptr
	alts     []alternative
}

type alternative struct {
	off     uintptr
	pointer bool
	sub     *node
	zero    unsafe.Pointer // for pointers: what a nil one is written as
}

// visit is one step of the compatible pass of one version: either a field of that version
// (code opCompat) or a container in which there are some.
type visit struct {
	code  opcode
	off   uintptr
	n     uintptr
	sub   *node
	exp   *expectedPlan
	alt   *variantPlan
	valid []bool // for variants: which alternatives have something to visit
}

// node is the compiled form of a type.
type node struct {
	typ     reflect.Type
	literal []byte
	ops     []op
	visits  [][]visit // by version; versions are small numbers

	// A value takes at least fixed + sizes*width bytes of payload.
	fixed, sizes int
}

// maxVersion bounds the versions of compatible fields.
const maxVersion = 64

// versions returns the versions of the compatible fields in the type, ascending.
func (n *node) versions() []int {
	var vs []int
	for v, steps := range n.visits {
		if len(steps) != 0 {
			vs = append(vs, v)
		}
	}
	return vs
}

// visit adds a step to the pass of a version.
func (n *node) visit(version int, step visit) {
	for len(n.visits) <= version {
		n.visits = append(n.visits, nil)
	}
	n.visits[version] = append(n.visits[version], step)
}

// littleEndian is whether memory looks like the wire. Plans copy scalars as memory, so that
// a machine of the other kind is refused rather than misread.
var littleEndian = func() bool {
	x := [2]byte{1, 0}
	return binary.NativeEndian.Uint16(x[:]) == 1
}()

// compiler builds nodes; its lock guards cache and stack.
type compiler struct {
	mu    sync.Mutex
	cache map[reflect.Type]*node
	stack []reflect.Type
}

var plans = compiler{cache: map[reflect.Type]*node{}}

// compile returns the node of t. It panics when t has no wire form, which is a mistake of
// the program that shows when its tables are built.
func (c *compiler) compile(t reflect.Type) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !littleEndian {
		panic("structpack: only little-endian machines are supported")
	}
	c.stack = c.stack[:0]
	return c.node(t)
}

func (c *compiler) node(t reflect.Type) *node {
	if n, ok := c.cache[t]; ok {
		return n
	}
	if slices.Contains(c.stack, t) {
		panic(fmt.Sprintf("structpack: %v contains itself, which no type of the protocol does", t))
	}
	c.stack = append(c.stack, t)
	n := &node{typ: t}
	c.fill(n, t)
	n.ops = merge(n.ops)
	c.stack = c.stack[:len(c.stack)-1]
	c.cache[t] = n
	return n
}

var scalarLiterals = map[reflect.Kind]byte{
	reflect.Int32: 0x01, reflect.Uint32: 0x02, reflect.Int64: 0x03, reflect.Uint64: 0x04,
	reflect.Int8: 0x05, reflect.Uint8: 0x06, reflect.Int16: 0x07, reflect.Uint16: 0x08,
	reflect.Bool: 0x0b, reflect.Float32: 0x11, reflect.Float64: 0x12,
}

func (c *compiler) fill(n *node, t reflect.Type) {
	switch t.Kind() {
	case reflect.Bool:
		n.literal = []byte{scalarLiterals[reflect.Bool]}
		n.ops = []op{{code: opBool}}
		n.fixed = 1
	case reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32,
		reflect.Int64, reflect.Uint64, reflect.Float32, reflect.Float64:
		n.literal = []byte{scalarLiterals[t.Kind()]}
		n.ops = []op{{code: opMem, n: t.Size()}}
		n.fixed = int(t.Size())
	case reflect.String:
		n.literal = []byte{0x80, 0x0c}
		n.ops = []op{{code: opString}}
		n.sizes = 1
	case reflect.Slice:
		c.slice(n, t, 0)
		n.literal = append([]byte{0x84}, c.node(t.Elem()).literal...)
	case reflect.Pointer:
		sub := c.node(t.Elem())
		n.literal = append([]byte{0x85}, sub.literal...)
		n.ops = []op{{code: opOptional, sub: sub}}
		n.fixed = 1
		for _, v := range sub.versions() {
			n.visit(v, visit{code: opOptional, sub: sub})
		}
	case reflect.Struct:
		c.structure(n, t)
	default:
		panic(fmt.Sprintf("structpack: %v has no form on the wire", t))
	}
}

// slice adds the steps for a slice type held at off.
func (c *compiler) slice(n *node, t reflect.Type, off uintptr) {
	sub := c.node(t.Elem())
	stride := t.Elem().Size()
	if sub.fixed+sub.sizes == 0 && stride != 0 {
		panic(fmt.Sprintf("structpack: elements of %v take memory but no bytes on the wire", t))
	}
	o := op{code: opVec, off: off, n: stride, sub: sub}
	switch {
	case t.Elem().Kind() == reflect.String:
		o.code = opStrings
	case len(sub.ops) == 1 && isMem(sub.ops[0].code) && sub.ops[0].n == stride:
		o.code = opVecMem
	}
	n.ops = append(n.ops, o)
	n.sizes++
	for _, v := range sub.versions() {
		n.visit(v, visit{code: opVec, off: off, n: stride, sub: sub})
	}
}

func (c *compiler) structure(n *node, t reflect.Type) {
	if t.NumField() == 0 {
		n.literal = []byte{0xfa}
		return
	}
	marker := ""
	first := 0
	if f := t.Field(0); f.Name == "_" {
		marker = f.Tag.Get("pack")
		first = 1
	}
	switch marker {
	case "expected":
		c.expected(n, t)
	case "variant":
		c.variant(n, t)
	case "map":
		c.mapping(n, t)
	case "trivial":
		c.trivial(n, t)
	case "":
		n.literal = append(n.literal, 0xfd)
		for i := first; i < t.NumField(); i++ {
			c.field(n, t, t.Field(i))
		}
		n.literal = append(n.literal, 0xff)
	default:
		panic(fmt.Sprintf("structpack: %v: unknown marker %q", t, marker))
	}
}

// field flattens one struct field into the steps of n.
func (c *compiler) field(n *node, t reflect.Type, f reflect.StructField) {
	if tag, ok := f.Tag.Lookup("pack"); ok {
		text, isCompat := strings.CutPrefix(tag, "compat=")
		version, err := strconv.Atoi(text)
		if !isCompat || err != nil || version < 1 || version > maxVersion || f.Type.Kind() != reflect.Pointer {
			panic(fmt.Sprintf("structpack: %v.%s: tag %q must be compat=N, N at most %d, on a pointer", t, f.Name, tag, maxVersion))
		}
		sub := c.node(f.Type.Elem())
		if len(sub.versions()) != 0 {
			panic(fmt.Sprintf("structpack: %v.%s: a compatible field holds compatible fields", t, f.Name))
		}
		n.ops = append(n.ops, op{code: opCompat, off: f.Offset, sub: sub})
		n.visit(version, visit{code: opCompat, off: f.Offset, sub: sub})
		return
	}
	sub := c.node(f.Type)
	n.literal = append(n.literal, sub.literal...)
	for _, o := range sub.ops {
		o.off += f.Offset
		n.ops = append(n.ops, o)
	}
	for v, steps := range sub.visits {
		for _, s := range steps {
			s.off += f.Offset
			n.visit(v, s)
		}
	}
	n.fixed += sub.fixed
	n.sizes += sub.sizes
}

func (c *compiler) expected(n *node, t reflect.Type) {
	if t.NumField() != 3 || t.Field(1).Name != "Code" || t.Field(2).Name != "Value" {
		panic(fmt.Sprintf("structpack: %v: an expected is {_; Code; Value}", t))
	}
	code, value := t.Field(1), t.Field(2)
	p := &expectedPlan{
		codeOff: code.Offset, codeSize: code.Type.Size(), code: c.node(code.Type),
		valueOff: value.Offset, value: c.node(value.Type),
	}
	if len(p.code.ops) != 1 || !isMem(p.code.ops[0].code) || (p.codeSize != 1 && p.codeSize != 4) {
		panic(fmt.Sprintf("structpack: %v: Code must be an integer of one or four bytes", t))
	}
	n.literal = slices.Concat([]byte{0x87}, p.value.literal, p.code.literal)
	n.ops = []op{{code: opExpected, exp: p}}
	n.fixed = 1 + min(p.value.fixed+p.value.sizes, p.code.fixed)
	for _, v := range p.value.versions() {
		n.visit(v, visit{code: opExpected, exp: p})
	}
}

func (c *compiler) variant(n *node, t reflect.Type) {
	if t.NumField() < 3 || t.Field(1).Name != "Index" || t.Field(1).Type.Kind() != reflect.Uint8 {
		panic(fmt.Sprintf("structpack: %v: a variant is {_; Index uint8; alternatives}", t))
	}
	p := &variantPlan{indexOff: t.Field(1).Offset}
	n.literal = []byte{0x86}
	least := -1
	for i := 2; i < t.NumField(); i++ {
		f := t.Field(i)
		a := alternative{off: f.Offset}
		if f.Type.Kind() == reflect.Pointer {
			a.pointer = true
			a.sub = c.node(f.Type.Elem())
			a.zero = reflect.New(f.Type.Elem()).UnsafePointer()
		} else {
			a.sub = c.node(f.Type)
		}
		p.alts = append(p.alts, a)
		n.literal = append(n.literal, a.sub.literal...)
		// A size field counts as one byte here, which is its least width.
		if m := a.sub.fixed + a.sub.sizes; least < 0 || m < least {
			least = m
		}
	}
	n.literal = append(n.literal, 0xff)
	n.ops = []op{{code: opVariant, alt: p}}
	n.fixed = 1 + least
	for i, a := range p.alts {
		for _, v := range a.sub.versions() {
			if len(n.visits) <= v || n.visits[v] == nil {
				n.visit(v, visit{code: opVariant, alt: p, valid: make([]bool, len(p.alts))})
			}
			n.visits[v][0].valid[i] = true
		}
	}
}

func (c *compiler) mapping(n *node, t reflect.Type) {
	if t.NumField() != 2 || t.Field(1).Name != "Entries" || t.Field(1).Type.Kind() != reflect.Slice {
		panic(fmt.Sprintf("structpack: %v: a map is {_; Entries []struct{Key; Value}}", t))
	}
	f := t.Field(1)
	e := f.Type.Elem()
	if e.Kind() != reflect.Struct || e.NumField() != 2 || e.Field(0).Name != "Key" || e.Field(1).Name != "Value" {
		panic(fmt.Sprintf("structpack: %v: entries of a map are struct{Key; Value}", t))
	}
	c.slice(n, f.Type, f.Offset)
	n.literal = slices.Concat([]byte{0x82}, c.node(e.Field(0).Type).literal, c.node(e.Field(1).Type).literal)
}

func (c *compiler) trivial(n *node, t reflect.Type) {
	n.literal = []byte{0xfd}
	for i := 1; i < t.NumField(); i++ {
		f := t.Field(i)
		lit, ok := scalarLiterals[f.Type.Kind()]
		if !ok || f.Type.Kind() == reflect.Bool {
			panic(fmt.Sprintf("structpack: %v.%s: a trivial aggregate holds numbers only", t, f.Name))
		}
		n.literal = append(n.literal, lit)
	}
	align := sizeNumber(uint64(t.Align()))
	n.literal = slices.Concat(n.literal, align, align, []byte{0xff})
	n.ops = []op{{code: opMem, n: t.Size()}}
	n.fixed = int(t.Size())
}

// sizeNumber writes a number inside a literal: digits of base 127, least significant first,
// none of them zero, the last one marked.
func sizeNumber(v uint64) []byte {
	var out []byte
	for v >= 127 {
		out = append(out, byte(v%127)+1)
		v /= 127
	}
	return append(out, byte(v)+129)
}

func isMem(c opcode) bool { return c == opMem || c == op1 || c == op4 || c == op8 || c == op16 }

// merge joins scalars that are neighbours in memory and picks the fast form of each length.
func merge(ops []op) []op {
	var out []op
	for _, o := range ops {
		if k := len(out) - 1; k >= 0 && isMem(o.code) && isMem(out[k].code) && out[k].off+out[k].n == o.off {
			out[k].n += o.n
			continue
		}
		out = append(out, o)
	}
	for i, o := range out {
		if isMem(o.code) {
			out[i].code = memCode(o.n)
		}
	}
	return out
}

func memCode(n uintptr) opcode {
	switch n {
	case 1:
		return op1
	case 4:
		return op4
	case 8:
		return op8
	case 16:
		return op16
	}
	return opMem
}

// sliceHeader is a slice seen as memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}
