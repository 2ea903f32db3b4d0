package structpack

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"unsafe"
)

// The reasons for which a body is refused.
var (
	// ErrShort is returned when a body ends before its value does, or announces more
	// elements than its remaining bytes can hold.
	ErrShort = errors.New("body ends before its value does")
	// ErrHash is returned when the type hash is not that of the expected type.
	ErrHash = errors.New("body has another type's hash")
	// ErrLiteral is returned when the type literal is not that of the expected type.
	ErrLiteral = errors.New("body has another type's literal")
	// ErrVariant is returned when a variant's index selects no alternative.
	ErrVariant = errors.New("variant index out of range")
)

// decoder reads one body. A step that fails sets err.
type decoder struct {
	buf   []byte
	pos   int
	width int // bytes of each size field
	err   error
}

func (d *decoder) short() bool {
	d.err = ErrShort
	return false
}

// size reads a size field.
func (d *decoder) size() (uint64, bool) {
	b := d.buf[d.pos:]
	if len(b) < d.width {
		return 0, d.short()
	}
	d.pos += d.width
	switch d.width {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.LittleEndian.Uint16(b)), true
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), true
	}
	return binary.LittleEndian.Uint64(b), true
}

// run reads the ordinary payload of a value. Compatible fields are left as they are; pass
// reads or clears them.
func (d *decoder) run(ops []op, base unsafe.Pointer) bool {
	for i := range ops {
		o := &ops[i]
		p := unsafe.Add(base, o.off)
		switch o.code {
		case op8:
			b := d.buf[d.pos:]
			if len(b) < 8 {
				return d.short()
			}
			*(*uint64)(p) = binary.LittleEndian.Uint64(b)
			d.pos += 8
		case opString:
			n, ok := d.size()
			if !ok || n > uint64(len(d.buf)-d.pos) {
				return d.short()
			}
			*(*string)(p) = d.text(int(n))
		case op4:
			b := d.buf[d.pos:]
			if len(b) < 4 {
				return d.short()
			}
			*(*uint32)(p) = binary.LittleEndian.Uint32(b)
			d.pos += 4
		case op1:
			if d.pos >= len(d.buf) {
				return d.short()
			}
			*(*byte)(p) = d.buf[d.pos]
			d.pos++
		case opBool:
			if d.pos >= len(d.buf) {
				return d.short()
			}
			*(*bool)(p) = d.buf[d.pos] != 0
			d.pos++
		case op16, opMem:
			n := int(o.n)
			if len(d.buf)-d.pos < n {
				return d.short()
			}
			copy(unsafe.Slice((*byte)(p), n), d.buf[d.pos:])
			d.pos += n
		case opStrings:
			if !d.strings((*[]string)(p)) {
				return false
			}
		case opVec:
			if !d.vector(o, p) {
				return false
			}
		case opVecMem:
			if !d.memory(o, p) {
				return false
			}
		case opOptional:
			if d.pos >= len(d.buf) {
				return d.short()
			}
			set := d.buf[d.pos] != 0
			d.pos++
			if !set {
				*(*unsafe.Pointer)(p) = nil
			} else if !d.run(o.sub.ops, target(p, o.sub)) {
				return false
			}
		case opExpected:
			if !d.expected(o.exp, p) {
				return false
			}
		case opVariant:
			if !d.variant(o.alt, p) {
				return false
			}
		}
	}
	return true
}

// text returns the next n bytes, which the caller knows to be there, as a string that shares
// their memory.
func (d *decoder) text(n int) string {
	if n == 0 {
		return ""
	}
	s := unsafe.String(&d.buf[d.pos], n)
	d.pos += n
	return s
}

// target returns where the pointer at p points, giving it memory if it is nil.
func target(p unsafe.Pointer, sub *node) unsafe.Pointer {
	pp := (*unsafe.Pointer)(p)
	if *pp == nil {
		*pp = reflect.New(sub.typ).UnsafePointer()
	}
	return *pp
}

// count reads the number of elements of a vector and checks, before anything is allocated,
// that so many can follow.
func (d *decoder) count(sub *node) (int, bool) {
	n, ok := d.size()
	if !ok {
		return 0, false
	}
	if least := uint64(sub.fixed + sub.sizes*d.width); least == 0 {
		// Elements without bytes have no memory either; only the number must fit.
		if n > math.MaxInt {
			return 0, d.short()
		}
	} else if n > uint64(len(d.buf)-d.pos)/least {
		return 0, d.short()
	}
	return int(n), true
}

// resize gives the slice at h the length n, reusing its memory if there is enough.
func resize(h *sliceHeader, n int, elem reflect.Type) {
	if h.cap < n {
		h.data = reflect.MakeSlice(reflect.SliceOf(elem), n, n).UnsafePointer()
		h.cap = n
	}
	h.len = n
}

func (d *decoder) strings(s *[]string) bool {
	n, ok := d.size()
	if !ok || n > uint64(len(d.buf)-d.pos)/uint64(d.width) {
		return d.short()
	}
	list := *s
	if uint64(cap(list)) < n {
		list = make([]string, n)
	}
	list = list[:n]
	*s = list
	for i := range list {
		k, ok := d.size()
		if !ok || k > uint64(len(d.buf)-d.pos) {
			return d.short()
		}
		list[i] = d.text(int(k))
	}
	return true
}

func (d *decoder) vector(o *op, p unsafe.Pointer) bool {
	n, ok := d.count(o.sub)
	if !ok {
		return false
	}
	h := (*sliceHeader)(p)
	resize(h, n, o.sub.typ)
	if len(o.sub.ops) == 0 {
		return true
	}
	e := h.data
	for i := 0; i < n; i++ {
		if !d.run(o.sub.ops, unsafe.Add(e, uintptr(i)*o.n)) {
			return false
		}
	}
	return true
}

func (d *decoder) memory(o *op, p unsafe.Pointer) bool {
	n, ok := d.count(o.sub)
	if !ok {
		return false
	}
	h := (*sliceHeader)(p)
	resize(h, n, o.sub.typ)
	if bytes := n * int(o.n); bytes != 0 {
		copy(unsafe.Slice((*byte)(h.data), bytes), d.buf[d.pos:])
		d.pos += bytes
	}
	return true
}

func (d *decoder) expected(x *expectedPlan, p unsafe.Pointer) bool {
	if d.pos >= len(d.buf) {
		return d.short()
	}
	ok := d.buf[d.pos] != 0
	d.pos++
	code, value := unsafe.Add(p, x.codeOff), unsafe.Add(p, x.valueOff)
	if ok {
		reset(x.code.ops, code)
		return d.run(x.value.ops, value)
	}
	reset(x.value.ops, value)
	if !d.run(x.code.ops, code) {
		return false
	}
	if isZero(code, x.codeSize) {
		x.setZeroError(code)
	}
	return true
}

func (d *decoder) variant(v *variantPlan, p unsafe.Pointer) bool {
	if d.pos >= len(d.buf) {
		return d.short()
	}
	index := int(d.buf[d.pos])
	d.pos++
	if index >= len(v.alts) {
		d.err = ErrVariant
		return false
	}
	*(*uint8)(unsafe.Add(p, v.indexOff)) = uint8(index)
	for i := range v.alts {
		if i != index {
			v.alts[i].clear(p)
		}
	}
	a := &v.alts[index]
	at := unsafe.Add(p, a.off)
	if a.pointer {
		at = target(at, a.sub)
	}
	return d.run(a.sub.ops, at)
}

func (a *alternative) clear(p unsafe.Pointer) {
	at := unsafe.Add(p, a.off)
	if a.pointer {
		*(*unsafe.Pointer)(at) = nil
	} else {
		reset(a.sub.ops, at)
	}
}

// pass reads the compatible fields of one version, as far as end (the announced end of the
// body, or of its bytes) goes. Fields past that are absent.
func (d *decoder) pass(version, end int, steps []visit, base unsafe.Pointer) bool {
	for i := range steps {
		s := &steps[i]
		p := unsafe.Add(base, s.off)
		switch s.code {
		case opCompat:
			set := false
			if d.pos < end {
				set = d.buf[d.pos] != 0
				d.pos++
			}
			if !set {
				*(*unsafe.Pointer)(p) = nil
			} else if !d.run(s.sub.ops, target(p, s.sub)) {
				return false
			}
		case opVec:
			h := (*sliceHeader)(p)
			inner := s.sub.visits[version]
			for k := 0; k < h.len; k++ {
				if !d.pass(version, end, inner, unsafe.Add(h.data, uintptr(k)*s.n)) {
					return false
				}
			}
		case opOptional:
			if t := *(*unsafe.Pointer)(p); t != nil && !d.pass(version, end, s.sub.visits[version], t) {
				return false
			}
		case opExpected:
			if isZero(unsafe.Add(p, s.exp.codeOff), s.exp.codeSize) &&
				!d.pass(version, end, s.exp.value.visits[version], unsafe.Add(p, s.exp.valueOff)) {
				return false
			}
		case opVariant:
			index, a, at := s.alt.active(p)
			if s.valid[index] && !d.pass(version, end, a.sub.visits[version], at) {
				return false
			}
		}
	}
	return true
}

// An error whose code is zero can be written on the wire, though no peer means anything by
// it. Since zero stands for a value in Go, such an error is held as one of these numbers,
// which are no codes of the protocol, and written as zero again: it stays an error.
const (
	zeroError1 = math.MaxUint8
	zeroError4 = math.MinInt32 + 1
)

func (x *expectedPlan) setZeroError(p unsafe.Pointer) {
	if x.codeSize == 1 {
		*(*uint8)(p) = zeroError1
	} else {
		*(*int32)(p) = zeroError4
	}
}

func (x *expectedPlan) isZeroError(p unsafe.Pointer) bool {
	if x.codeSize == 1 {
		return *(*uint8)(p) == zeroError1
	}
	return *(*int32)(p) == zeroError4
}

// isZero reports whether a result code is zero.
func isZero(p unsafe.Pointer, size uintptr) bool {
	if size == 1 {
		return *(*uint8)(p) == 0
	}
	return *(*uint32)(p) == 0
}

// reset empties a value: numbers zero, strings empty, pointers nil, slices empty with their
// memory kept. The elements a slice held are emptied too, so that whatever lies between the
// length and the capacity of a slice is always empty.
func reset(ops []op, base unsafe.Pointer) {
	for i := range ops {
		o := &ops[i]
		p := unsafe.Add(base, o.off)
		switch o.code {
		case opMem, op16:
			clear(unsafe.Slice((*byte)(p), o.n))
		case op8:
			*(*uint64)(p) = 0
		case op4:
			*(*uint32)(p) = 0
		case op1, opBool:
			*(*byte)(p) = 0
		case opString:
			*(*string)(p) = ""
		case opStrings:
			s := (*[]string)(p)
			clear(*s)
			*s = (*s)[:0]
		case opVecMem:
			h := (*sliceHeader)(p)
			if h.len != 0 {
				clear(unsafe.Slice((*byte)(h.data), uintptr(h.len)*o.n))
				h.len = 0
			}
		case opVec:
			h := (*sliceHeader)(p)
			if len(o.sub.ops) != 0 {
				for k := 0; k < h.len; k++ {
					reset(o.sub.ops, unsafe.Add(h.data, uintptr(k)*o.n))
				}
			}
			h.len = 0
		case opOptional, opCompat:
			*(*unsafe.Pointer)(p) = nil
		case opExpected:
			reset(o.exp.code.ops, unsafe.Add(p, o.exp.codeOff))
			reset(o.exp.value.ops, unsafe.Add(p, o.exp.valueOff))
		case opVariant:
			*(*uint8)(unsafe.Add(p, o.alt.indexOff)) = 0
			for k := range o.alt.alts {
				o.alt.alts[k].clear(p)
			}
		}
	}
}
