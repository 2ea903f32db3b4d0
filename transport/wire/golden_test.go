package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

// anyCall is a call without its types, for tests that go through all of them.
type anyCall interface {
	Row() *Row
	newRequest() any
	newResponse() any
	decodeRequest(body []byte, v any) (structpack.Form, error)
	decodeResponse(body []byte, v any) (structpack.Form, error)
	appendRequest(dst []byte, v any, release Release, literal bool) []byte
	appendResponse(dst []byte, v any, form structpack.Form) []byte
	resetRequest(v any)
	resetResponse(v any)
}

func (r *RPC[Req, Resp]) newRequest() any  { return new(Req) }
func (r *RPC[Req, Resp]) newResponse() any { return new(Resp) }
func (r *RPC[Req, Resp]) decodeRequest(body []byte, v any) (structpack.Form, error) {
	return r.DecodeRequest(body, v.(*Req))
}

func (r *RPC[Req, Resp]) decodeResponse(body []byte, v any) (structpack.Form, error) {
	return r.DecodeResponse(body, v.(*Resp))
}

func (r *RPC[Req, Resp]) appendRequest(dst []byte, v any, release Release, literal bool) []byte {
	return r.AppendRequest(dst, v.(*Req), release, literal)
}

func (r *RPC[Req, Resp]) appendResponse(dst []byte, v any, form structpack.Form) []byte {
	return r.AppendResponse(dst, v.(*Resp), form)
}
func (r *RPC[Req, Resp]) resetRequest(v any)  { r.ResetRequest(v.(*Req)) }
func (r *RPC[Req, Resp]) resetResponse(v any) { r.ResetResponse(v.(*Resp)) }

// callNamed returns a call of the table.
func callNamed(t testing.TB, name string) anyCall {
	t.Helper()
	c, ok := calls[name].(anyCall)
	if !ok {
		t.Fatalf("no call %q", name)
	}
	return c
}

// readLines calls f with each line of a compressed file of JSON documents.
func readLines(t testing.TB, name string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		f(sc.Bytes())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

// vector is one body with what it means.
type vector struct {
	RPC         string          `json:"rpc"`
	Direction   string          `json:"direction"`
	Description string          `json:"description"`
	Value       json.RawMessage `json:"value"`
	Hex         string          `json:"hex"`
	HexCompact  string          `json:"hex_compact"`
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// side is one direction of a call: requests are read and written through it as results are.
type side struct {
	call     anyCall
	request  bool
	released Release
}

func (s side) fresh() any {
	if s.request {
		return s.call.newRequest()
	}
	return s.call.newResponse()
}

func (s side) decode(body []byte, v any) (structpack.Form, error) {
	if s.request {
		return s.call.decodeRequest(body, v)
	}
	return s.call.decodeResponse(body, v)
}

func (s side) encode(v any, literal bool) []byte {
	if s.request {
		return s.call.appendRequest(nil, v, s.released, literal)
	}
	return s.call.appendResponse(nil, v, structpack.Form{Literal: literal, Compat: s.released >= compatSince})
}

func TestVectors(t *testing.T) {
	table := readTable(t, "rpc.json")
	n := notation{types: map[string]publishedType{}}
	for _, p := range table.Types {
		n.types[p.Name] = p
	}
	published := map[string]publishedRPC{}
	for _, p := range table.RPCs {
		published[p.Name] = p
	}
	requests, responses, errorBodies := 0, 0, 0
	reused := map[string]any{} // a value per side, decoded into again and again
	readLines(t, "vectors.jsonl.gz", func(line []byte) {
		var vec vector
		if err := json.Unmarshal(line, &vec); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(vec.RPC, "$") {
			errorBodies++ // the framing's own; package rpc tests them
			return
		}
		s := side{call: callNamed(t, vec.RPC), request: vec.Direction == "request", released: R0313}
		p := published[vec.RPC]
		schema := p.Response
		if s.request {
			requests++
			schema = "tuple<" + strings.Join(p.Args, ",") + ">"
		} else {
			responses++
		}
		want := expand(t, vec.Value)
		key := vec.RPC + vec.Direction
		if reused[key] == nil {
			reused[key] = s.fresh()
		}
		for _, text := range []string{vec.Hex, vec.HexCompact} {
			literal := text == vec.Hex
			body := unhex(t, text)
			for what, v := range map[string]any{"fresh": s.fresh(), "reused": reused[key]} {
				form, err := s.decode(body, v)
				if err != nil {
					t.Errorf("%s %s %q (%s): %v", vec.RPC, vec.Direction, vec.Description, what, err)
					return
				}
				if form.Literal != literal || form.Compat {
					t.Errorf("%s %s %q: form %+v, literal is %v", vec.RPC, vec.Direction, vec.Description, form, literal)
				}
				if got := n.of(t, schema, v); !equalNotation(got, want) {
					t.Errorf("%s %s %q (%s):\n got %v\nwant %v", vec.RPC, vec.Direction, vec.Description, what, got, want)
				}
				if got := s.encode(v, literal); !bytes.Equal(got, body) {
					t.Errorf("%s %s %q (%s) encodes as\n%x, want\n%x", vec.RPC, vec.Direction, vec.Description, what, got, body)
				}
				// Every proper prefix must be refused, and what follows a body ignored.
				if len(body) < 200 && what == "reused" {
					for i := range body {
						if _, err := s.decode(body[:i], v); err == nil {
							t.Errorf("%s %s %q cut to %d bytes decodes", vec.RPC, vec.Direction, vec.Description, i)
						}
					}
					if _, err := s.decode(append(body, "trailing"...), v); err != nil {
						t.Errorf("%s %s %q with trailing bytes: %v", vec.RPC, vec.Direction, vec.Description, err)
					}
				}
			}
		}
	})
	if requests != 959 || responses != 554 || errorBodies != 4 {
		t.Errorf("%d requests, %d responses and %d error bodies tested, want 959, 554 and 4", requests, responses, errorBodies)
	}
}
