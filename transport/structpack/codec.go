package structpack

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

// Form says which of the optional parts of a body are written, or were found.
type Form struct {
	// Literal is whether the type literal is there, as peers built without NDEBUG write it.
	Literal bool
	// Compat is whether the total length and, for types that have compatible fields, the
	// compatible part are there, as releases from 0.3.14 on write it for those types.
	// Types without such fields are always written without.
	Compat bool
}

// signature is a literal and its hash.
type signature struct {
	literal []byte
	hash    uint32
}

// plan is a type's compiled codec without its Go type.
type plan struct {
	root     *node
	versions []int
	forms    []signature // the first is written, all are read
}

func newPlan(root *node, literals ...[]byte) plan {
	p := plan{root: root, versions: root.versions()}
	for _, l := range literals {
		p.forms = append(p.forms, signature{literal: l, hash: Hash(l)})
	}
	return p
}

// Hash returns the type hash of a literal: the first four bytes of its MD5, big-endian, with
// bit 0 clear.
func Hash(literal []byte) uint32 {
	sum := md5.Sum(literal)
	return binary.BigEndian.Uint32(sum[:]) &^ 1
}

// Codec reads and writes bodies of type T. It is immutable.
type Codec[T any] struct{ plan }

// For returns the codec of T as a body of its own. It panics when T has no wire form.
func For[T any]() *Codec[T] {
	n := plans.compile(reflect.TypeFor[T]())
	return &Codec[T]{newPlan(n, n.literal)}
}

// ForArguments returns the codec of the struct T as the arguments of a call, one field per
// argument. A single argument is written as itself, and read in that form and as a tuple of
// one. A struct without fields has no body at all: Decode ignores what it is given, Append
// appends nothing.
func ForArguments[T any]() *Codec[T] {
	t := reflect.TypeFor[T]()
	n := plans.compile(t)
	switch {
	case t.Kind() != reflect.Struct:
		panic("structpack: arguments are a struct, not " + t.String())
	case t.NumField() == 0:
		return &Codec[T]{plan{root: n}}
	case t.NumField() == 1:
		inner := n.literal[1 : len(n.literal)-1]
		return &Codec[T]{newPlan(n, inner, n.literal)}
	}
	return &Codec[T]{newPlan(n, n.literal)}
}

// Hash returns the type hash that is written, or 0 for arguments that have no body.
func (p *plan) Hash() uint32 {
	if len(p.forms) == 0 {
		return 0
	}
	return p.forms[0].hash
}

// Literal returns a copy of the type literal that is written, nil for arguments that have no
// body.
func (p *plan) Literal() []byte {
	if len(p.forms) == 0 {
		return nil
	}
	return slices.Clone(p.forms[0].literal)
}

// Versions returns the versions of the compatible fields of the type, ascending.
func (p *plan) Versions() []int { return slices.Clone(p.versions) }

// HasBody reports whether values of the type have a body; only an empty argument list has
// none.
func (p *plan) HasBody() bool { return len(p.forms) != 0 }

// Decode reads body into *v and overwrites all of it. Strings in *v share the memory of
// body; slices and targets of pointers that *v has are used again. On an error, which is one
// of the sentinel errors of this package, *v holds some valid value that means nothing.
func (c *Codec[T]) Decode(body []byte, v *T) error {
	_, err := c.DecodeForm(body, v)
	return err
}

// DecodeForm is Decode and also returns in which form the body came.
func (c *Codec[T]) DecodeForm(body []byte, v *T) (Form, error) {
	return c.decodeBody(body, unsafe.Pointer(v))
}

// Append appends the body of *v to dst and returns the extended slice.
func (c *Codec[T]) Append(dst []byte, v *T, form Form) []byte {
	if len(c.forms) == 0 {
		return dst
	}
	return c.appendBody(dst, unsafe.Pointer(v), form)
}

// Reset empties *v and keeps the memory of its slices. Elements between the length and the
// capacity of a slice in a value that is only ever changed by Reset and Resize are empty.
func (c *Codec[T]) Reset(v *T) { reset(c.root.ops, unsafe.Pointer(v)) }

// Tally looks at a result: a T that is an expected counts as one item, a slice of expecteds
// as its elements; failed is how many of them hold an error. Other types have no items.
func (c *Codec[T]) Tally(v *T) (items, failed int) {
	if len(c.root.ops) != 1 {
		return 0, 0
	}
	o := &c.root.ops[0]
	switch p := unsafe.Pointer(v); {
	case o.code == opExpected:
		if !isZero(unsafe.Add(p, o.exp.codeOff), o.exp.codeSize) {
			failed = 1
		}
		return 1, failed
	case o.code == opVec && len(o.sub.ops) == 1 && o.sub.ops[0].code == opExpected:
		x := o.sub.ops[0].exp
		h := (*sliceHeader)(p)
		for k := 0; k < h.len; k++ {
			if !isZero(unsafe.Add(h.data, uintptr(k)*o.n+x.codeOff), x.codeSize) {
				failed++
			}
		}
		return h.len, failed
	}
	return 0, 0
}

// Resize returns s with length n. Memory is used again where there is enough, and so are the
// slices inside its elements; elements that were beyond the length are as they were left.
func Resize[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	grown := make([]E, n)
	copy(grown, s[:cap(s)])
	return grown
}

// decodeBody reads a whole body.
func (p *plan) decodeBody(body []byte, v unsafe.Pointer) (Form, error) {
	if len(p.forms) == 0 {
		return Form{Literal: true}, nil
	}
	if len(body) < 4 {
		return Form{}, ErrShort
	}
	word := binary.LittleEndian.Uint32(body)
	k := slices.IndexFunc(p.forms, func(s signature) bool { return s.hash == word&^1 })
	if k < 0 {
		return Form{}, ErrHash
	}
	var form Form
	d := decoder{buf: body, pos: 4, width: 1}
	end := uint64(0)
	if word&1 != 0 {
		if len(body) < 5 {
			return Form{}, ErrShort
		}
		meta := body[4]
		d.pos = 5
		d.width = 1 << (meta >> metaWidth & 3)
		form = Form{Literal: meta&metaLiteral != 0, Compat: meta&metaLength != 0}
		if form.Compat {
			n := 1 << (meta & metaLength)
			if len(body)-d.pos < n {
				return form, ErrShort
			}
			var field [8]byte
			copy(field[:], body[d.pos:d.pos+n])
			end = binary.LittleEndian.Uint64(field[:])
			d.pos += n
		}
		if form.Literal {
			lit := p.forms[k].literal
			rest := body[d.pos:]
			if len(rest) <= len(lit) || !bytes.Equal(rest[:len(lit)], lit) || rest[len(lit)] != 0 {
				return form, ErrLiteral
			}
			d.pos += len(lit) + 1
		}
	}
	if !d.run(p.root.ops, v) {
		return form, d.err
	}
	limit := int(min(end, uint64(len(body))))
	for _, version := range p.versions {
		if !d.pass(version, limit, p.root.visits[version], v) {
			return form, d.err
		}
	}
	return form, nil
}
