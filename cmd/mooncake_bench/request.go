package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/segment"
)

const (
	requestHead = 20
	replyHead   = 16
	magic       = 21
)

// numberLen is how many bytes of a key hold its number; keys are not shorter.
const numberLen = 16

// keyNamer writes keys: sixteen hexadecimal digits that look random and are different for
// different numbers, then a fixed tail up to the length.
type keyNamer struct {
	length int
	salt   uint64
}

const keyTail = "/model/qwen3-32b/tp4/rank0/layer.kv.page/block."

// tail returns what follows the number in every key.
func (k keyNamer) tail() string {
	n := k.length - numberLen
	return strings.Repeat(keyTail, n/len(keyTail)+1)[:n]
}

// scramble is a bijection, so that no two numbers share a key.
func (k keyNamer) scramble(n uint64) uint64 {
	x := n ^ k.salt
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return bits.ReverseBytes64(x)
}

// put writes the number of a key to the first numberLen bytes of dst.
func (k keyNamer) put(dst []byte, n uint64) {
	const digits = "0123456789abcdef"
	x := k.scramble(n)
	_ = dst[numberLen-1]
	for i := 0; i < numberLen; i += 2 {
		dst[i] = digits[x>>4&15]
		dst[i+1] = digits[x&15]
		x >>= 8
	}
}

// name returns the whole key.
func (k keyNamer) name(n uint64) string {
	b := append(make([]byte, numberLen, k.length), k.tail()...)
	k.put(b, n)
	return string(b)
}

// request is the frame of one call with n keys, encoded once; what varies lies at known
// offsets. All tenants' names are equally long, and so are all keys.
type request struct {
	call   *call
	frame  []byte
	keys   []int // where each key's number goes
	tenant int   // -1: the call names none
	client int   // -1: the call names none
}

// Marks that are looked for in an encoded request.
var markClient = segment.UUID{First: 0xfeedfacecafebeef, Second: 0xfeedfacedeadbeef}

// newRequest encodes a call with n keys. The tenant is only a specimen of the right length.
func newRequest(c *call, d dialect, namer keyNamer, tenantLen, n int, size uint64) (*request, error) {
	a := arguments{client: markClient, tenant: strings.Repeat("\x01", tenantLen), size: size}
	for i := range n {
		a.keys = append(a.keys, fmt.Sprintf("\x02%015x", i)+namer.tail())
	}
	r := &request{call: c, frame: frame(c, d, &a), tenant: -1, client: -1}
	find := func(what []byte, from int) int {
		at := bytes.Index(r.frame[from:], what)
		if at < 0 {
			return -1
		}
		return from + at
	}
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:], markClient.First)
	binary.LittleEndian.PutUint64(id[8:], markClient.Second)
	r.client = find(id[:], requestHead)
	if c.shape == shapePing {
		return r, nil
	}
	from := requestHead
	for i := range n {
		at := find([]byte(a.keys[i]), from)
		if at < 0 {
			return nil, fmt.Errorf("%s: key %d is not in the encoded request", c.name, i)
		}
		r.keys = append(r.keys, at)
		from = at + namer.length
	}
	if r.tenant = find([]byte(a.tenant), from); r.tenant < 0 {
		return nil, fmt.Errorf("%s: the tenant is not in the encoded request", c.name)
	}
	return r, nil
}

// frame encodes a whole request with sequence number 0.
func frame(c *call, d dialect, a *arguments) []byte {
	f := []byte{magic, 0, 0, 0, 0, 0, 0, 0}
	f = binary.LittleEndian.AppendUint32(f, c.id)
	f = append(f, 0, 0, 0, 0, 0, 0, 0, 0)
	f = c.encode(f, d, a)
	binary.LittleEndian.PutUint32(f[12:], uint32(len(f)-requestHead))
	return f
}

// appendTo appends the request with everything filled in.
func (r *request) appendTo(dst []byte, seq uint32, namer keyNamer, keys []uint64, tenant string, client segment.UUID) []byte {
	start := len(dst)
	dst = append(dst, r.frame...)
	f := dst[start:]
	binary.LittleEndian.PutUint32(f[4:], seq)
	for i, at := range r.keys {
		namer.put(f[at:at+numberLen], keys[i])
	}
	if r.tenant >= 0 {
		copy(f[r.tenant:], tenant)
	}
	if r.client >= 0 {
		binary.LittleEndian.PutUint64(f[r.client:], client.First)
		binary.LittleEndian.PutUint64(f[r.client+8:], client.Second)
	}
	return dst
}
