package structpack

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// encoder appends one body. Size fields all have one width, the least that fits the largest
// size in the body. Since nearly all bodies fit in one byte per size, writing starts with
// that; a size that does not fit stops it with need set, and it starts again wider.
type encoder struct {
	buf   []byte
	width int // bytes of each size field
	need  uint64
}

var widthLimits = map[int]uint64{1: math.MaxUint8, 2: math.MaxUint16, 4: math.MaxUint32, 8: math.MaxUint64}

func (e *encoder) size(n int) bool {
	switch e.width {
	case 1:
		if n > math.MaxUint8 {
			e.need = uint64(n)
			return false
		}
		e.buf = append(e.buf, byte(n))
	case 2:
		if n > math.MaxUint16 {
			e.need = uint64(n)
			return false
		}
		e.buf = binary.LittleEndian.AppendUint16(e.buf, uint16(n))
	case 4:
		if uint64(n) > math.MaxUint32 {
			e.need = uint64(n)
			return false
		}
		e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(n))
	default:
		e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(n))
	}
	return true
}

func (e *encoder) text(s string) bool {
	if !e.size(len(s)) {
		return false
	}
	e.buf = append(e.buf, s...)
	return true
}

// run writes the ordinary payload of a value.
func (e *encoder) run(ops []op, base unsafe.Pointer) bool {
	for i := range ops {
		o := &ops[i]
		p := unsafe.Add(base, o.off)
		switch o.code {
		case op8:
			e.buf = binary.LittleEndian.AppendUint64(e.buf, *(*uint64)(p))
		case opString:
			if !e.text(*(*string)(p)) {
				return false
			}
		case op4:
			e.buf = binary.LittleEndian.AppendUint32(e.buf, *(*uint32)(p))
		case op1, opBool:
			e.buf = append(e.buf, *(*byte)(p))
		case op16, opMem:
			e.buf = append(e.buf, unsafe.Slice((*byte)(p), o.n)...)
		case opStrings:
			list := *(*[]string)(p)
			if !e.size(len(list)) {
				return false
			}
			for _, s := range list {
				if !e.text(s) {
					return false
				}
			}
		case opVec:
			h := (*sliceHeader)(p)
			if !e.size(h.len) {
				return false
			}
			if len(o.sub.ops) == 0 {
				continue
			}
			for k := 0; k < h.len; k++ {
				if !e.run(o.sub.ops, unsafe.Add(h.data, uintptr(k)*o.n)) {
					return false
				}
			}
		case opVecMem:
			h := (*sliceHeader)(p)
			if !e.size(h.len) {
				return false
			}
			if h.len != 0 {
				e.buf = append(e.buf, unsafe.Slice((*byte)(h.data), uintptr(h.len)*o.n)...)
			}
		case opOptional:
			t := *(*unsafe.Pointer)(p)
			if t == nil {
				e.buf = append(e.buf, 0)
				continue
			}
			e.buf = append(e.buf, 1)
			if !e.run(o.sub.ops, t) {
				return false
			}
		case opExpected:
			x := o.exp
			code := unsafe.Add(p, x.codeOff)
			if isZero(code, x.codeSize) {
				e.buf = append(e.buf, 1)
				if !e.run(x.value.ops, unsafe.Add(p, x.valueOff)) {
					return false
				}
			} else {
				e.buf = append(e.buf, 0)
				if x.isZeroError(code) {
					e.buf = append(e.buf, make([]byte, x.codeSize)...)
				} else {
					e.run(x.code.ops, code)
				}
			}
		case opVariant:
			index, a, at := o.alt.active(p)
			e.buf = append(e.buf, index)
			if !e.run(a.sub.ops, at) {
				return false
			}
		}
	}
	return true
}

// active returns the alternative that a variant's index selects and where it is. A selected
// pointer that is nil stands for an alternative of zeros, and an index that selects nothing
// is a mistake of the program.
func (v *variantPlan) active(p unsafe.Pointer) (uint8, *alternative, unsafe.Pointer) {
	index := *(*uint8)(unsafe.Add(p, v.indexOff))
	if int(index) >= len(v.alts) {
		panic("structpack: a variant's index selects no alternative")
	}
	a := &v.alts[index]
	at := unsafe.Add(p, a.off)
	if a.pointer {
		if at = *(*unsafe.Pointer)(at); at == nil {
			at = a.zero
		}
	}
	return index, a, at
}

// pass writes the compatible fields of one version.
func (e *encoder) pass(version int, steps []visit, base unsafe.Pointer) bool {
	for i := range steps {
		s := &steps[i]
		p := unsafe.Add(base, s.off)
		switch s.code {
		case opCompat:
			t := *(*unsafe.Pointer)(p)
			if t == nil {
				e.buf = append(e.buf, 0)
				continue
			}
			e.buf = append(e.buf, 1)
			if !e.run(s.sub.ops, t) {
				return false
			}
		case opVec:
			h := (*sliceHeader)(p)
			inner := s.sub.visits[version]
			for k := 0; k < h.len; k++ {
				if !e.pass(version, inner, unsafe.Add(h.data, uintptr(k)*s.n)) {
					return false
				}
			}
		case opOptional:
			if t := *(*unsafe.Pointer)(p); t != nil && !e.pass(version, s.sub.visits[version], t) {
				return false
			}
		case opExpected:
			if isZero(unsafe.Add(p, s.exp.codeOff), s.exp.codeSize) &&
				!e.pass(version, s.exp.value.visits[version], unsafe.Add(p, s.exp.valueOff)) {
				return false
			}
		case opVariant:
			index, a, at := s.alt.active(p)
			if s.valid[index] && !e.pass(version, a.sub.visits[version], at) {
				return false
			}
		}
	}
	return true
}

// Metainfo bits.
const (
	metaLength  = 0x03 // width of the total length: none, 2, 4, 8 bytes
	metaLiteral = 0x04 // the literal follows
	metaWidth   = 3    // shift of the two bits for the width of size fields
)

// widthCode returns the two metainfo bits of a size width.
func widthCode(width int) byte {
	switch width {
	case 1:
		return 0
	case 2:
		return 1
	case 4:
		return 2
	}
	return 3
}

// appendBody writes a whole body.
func (p *plan) appendBody(dst []byte, v unsafe.Pointer, form Form) []byte {
	e := encoder{buf: dst, width: 1}
	start := len(dst)
	compat := form.Compat && len(p.versions) != 0
	for {
		e.buf = e.buf[:start]
		e.head(p, form.Literal, compat)
		if e.run(p.root.ops, v) && (!compat || e.passes(p, v)) {
			break
		}
		for widthLimits[e.width] < e.need {
			e.width *= 2
		}
	}
	if compat {
		e.length(start)
	}
	return e.buf
}

// head writes what precedes the payload, with two bytes kept free for the total length.
func (e *encoder) head(p *plan, literal, compat bool) {
	meta := widthCode(e.width) << metaWidth
	if literal {
		meta |= metaLiteral
	}
	if compat {
		meta |= 1
	}
	if meta == 0 {
		e.buf = binary.LittleEndian.AppendUint32(e.buf, p.forms[0].hash)
		return
	}
	e.buf = binary.LittleEndian.AppendUint32(e.buf, p.forms[0].hash|1)
	e.buf = append(e.buf, meta)
	if compat {
		e.buf = append(e.buf, 0, 0)
	}
	if literal {
		e.buf = append(e.buf, p.forms[0].literal...)
		e.buf = append(e.buf, 0)
	}
}

func (e *encoder) passes(p *plan, v unsafe.Pointer) bool {
	for _, version := range p.versions {
		if !e.pass(version, p.root.visits[version], v) {
			return false
		}
	}
	return true
}

// length fills in the total length, making the field wider if two bytes are too few.
func (e *encoder) length(start int) {
	const at = 5
	total := uint64(len(e.buf) - start)
	body := e.buf[start:]
	switch {
	case total <= math.MaxUint16:
		binary.LittleEndian.PutUint16(body[at:], uint16(total))
	case total+2 <= math.MaxUint32:
		e.buf = slices.Insert(e.buf, start+at, 0, 0)
		body = e.buf[start:]
		body[at-1]++
		binary.LittleEndian.PutUint32(body[at:], uint32(total+2))
	default:
		e.buf = slices.Insert(e.buf, start+at, 0, 0, 0, 0, 0, 0)
		body = e.buf[start:]
		body[at-1] += 2
		binary.LittleEndian.PutUint64(body[at:], total+6)
	}
}
