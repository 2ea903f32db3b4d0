package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

// FuzzDecode reads any bytes as the arguments and as the result of any call. What decodes
// must encode to a body that decodes to the same, and nothing may panic.
func FuzzDecode(f *testing.F) {
	all := Rows()
	index := map[string]uint8{}
	for i, r := range all {
		index[r.Name] = uint8(i)
	}
	// One vector of each call and direction, and one frame of each from the newer captures.
	seeded := map[string]bool{}
	readLines(f, "vectors.jsonl.gz", func(line []byte) {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			f.Fatal(err)
		}
		i, ok := index[v.RPC]
		if key := v.RPC + v.Direction; ok && !seeded[key] {
			seeded[key] = true
			f.Add(i, v.Direction == "request", unhex(f, v.Hex))
		}
	})
	readLines(f, "capture14.jsonl.gz", func(line []byte) {
		var c capturedFrame
		if err := json.Unmarshal(line, &c); err != nil {
			f.Fatal(err)
		}
		i, ok := index[c.RPC]
		if key := "14" + c.RPC + c.Direction; ok && !seeded[key] && c.ErrorCode == 0 {
			seeded[key] = true
			f.Add(i, c.Direction == "c2s", unhex(f, c.Hex)[c.headLen():])
		}
	})
	used := map[string]any{}
	f.Fuzz(func(t *testing.T, call uint8, request bool, body []byte) {
		row := all[int(call)%len(all)]
		s := side{call: callNamed(t, row.Name), request: request, released: Latest}
		key := row.Name
		if !request {
			key += " reply"
		}
		if used[key] == nil {
			used[key] = s.fresh()
		}
		v := s.fresh()
		form, err := s.decode(body, v)
		if _, err2 := s.decode(body, used[key]); (err == nil) != (err2 == nil) {
			t.Fatalf("fresh value: %v, used value: %v", err, err2)
		}
		if err != nil {
			return
		}
		once := s.encode(v, form.Literal)
		if twice := s.encode(used[key], form.Literal); !bytes.Equal(once, twice) {
			t.Fatalf("a used value holds something else:\n%x\n%x", once, twice)
		}
		back := s.fresh()
		if _, err := s.decode(once, back); err != nil && !(request && len(row.Requests[0].Literal) == 0) {
			t.Fatalf("own encoding: %v: %x", err, once)
		}
		if again := s.encode(back, form.Literal); !bytes.Equal(once, again) {
			t.Fatalf("encodings differ:\n%x\n%x", once, again)
		}
		if request {
			s.call.resetRequest(v)
		} else {
			s.call.resetResponse(v)
			empty := s.call.newResponse()
			full := structpack.Form{Compat: true}
			if a, b := s.call.appendResponse(nil, v, full), s.call.appendResponse(nil, empty, full); !bytes.Equal(a, b) {
				t.Fatalf("reset left something behind:\n%x\n%x", a, b)
			}
		}
	})
}
