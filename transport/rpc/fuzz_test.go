package rpc

import (
	"bytes"
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// FuzzServerFrames feeds any bytes to a connection, at once and in two pieces. Nothing may
// panic, the answers must be whole frames, and where a frame is cut must not matter.
func FuzzServerFrames(f *testing.F) {
	for i, x := range malformed(f) {
		f.Add(unhex(f, x.Sent), uint16(i))
	}
	f.Add(bytes.Repeat(frame(1, wire.ExistKey.ID(), "\xd8\x1e\xf9\x7c\x01k\x01t"), 3), uint16(25))
	f.Add(frame(1, wire.PutStart.ID(), string(wire.PutStart.AppendRequest(nil, &wire.PutStartRequest{Key: "k"}, wire.Latest, true))), uint16(40))
	s := newServer(f, Options{MaxFrame: 1 << 16})
	handlers(s)
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		if bytes.Contains(in, []byte("panic")) {
			return // the handler's own mistake, see handlers
		}
		feed := func(pieces ...[]byte) (out []byte, rest int, closed bool) {
			p := newSession(s, "peer", 0)
			var pending []byte
			for _, piece := range pieces {
				pending = append(pending, piece...)
				for {
					consumed, answers, err := p.process(pending)
					if consumed < 0 || consumed > len(pending) {
						t.Fatalf("consumed %d of %d bytes", consumed, len(pending))
					}
					out = append(out, answers...)
					pending = pending[consumed:]
					if err != nil {
						return out, len(pending), true
					}
					if consumed == 0 {
						break
					}
				}
			}
			return out, len(pending), false
		}
		whole, rest, closed := feed(in)
		k := int(cut) % (len(in) + 1)
		pieces, rest2, closed2 := feed(in[:k], in[k:])
		if !bytes.Equal(whole, pieces) || closed != closed2 || !closed && rest != rest2 {
			t.Fatalf("cut at %d: %x, %d left, closed %v; whole: %x, %d left, closed %v", k, pieces, rest2, closed2, whole, rest, closed)
		}
		for b := whole; len(b) > 0; {
			if len(b) < responseHeadLen || b[0] != magic {
				t.Fatalf("no answer: %x", b)
			}
			h := parseHead(append(bytes.Clone(b[:responseHeadLen]), 0, 0, 0, 0))
			n := responseHeadLen + int(h.function) // where replies have their length
			if len(b) < n {
				t.Fatalf("answer of %d bytes is cut: %x", n, b)
			}
			b = b[n:]
		}
	})
}
