package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// capturedFrame is one line of a capture.
type capturedFrame struct {
	Label      string `json:"label"`
	Direction  string `json:"dir"`
	RPC        string `json:"rpc"`
	FunctionID string `json:"function_id"`
	ErrorCode  int    `json:"err_code"`
	Length     int    `json:"len"`
	Hex        string `json:"hex"`
	Truncated  bool   `json:"truncated"`
}

// head lengths of requests and replies.
const requestHead, responseHead = 20, 16

func (f *capturedFrame) headLen() int {
	if f.Direction == "c2s" {
		return requestHead
	}
	return responseHead
}

// cut reports whether the capture holds only part of the frame.
func (f *capturedFrame) cut(raw []byte) bool {
	return f.Truncated || len(raw) < f.Length ||
		f.Direction == "c2s" && uint32(len(raw)-requestHead) < binary.LittleEndian.Uint32(raw[12:]) ||
		f.Direction == "s2c" && uint32(len(raw)-responseHead) < binary.LittleEndian.Uint32(raw[8:])
}

// roundTrip decodes a body twice, into a fresh and into a used value, and compares what both
// encode to with the body, in the body's own form.
func roundTrip(t *testing.T, s side, body []byte, used any) {
	t.Helper()
	for what, v := range map[string]any{"fresh": s.fresh(), "used": used} {
		form, err := s.decode(body, v)
		if err != nil {
			t.Errorf("%s request=%v (%s): %v: %x", s.call.Row().Name, s.request, what, err, body)
			return
		}
		if got := s.encode(v, form.Literal); !bytes.Equal(got, body) {
			t.Errorf("%s request=%v (%s) encodes as\n%x, want\n%x", s.call.Row().Name, s.request, what, got, body)
		}
	}
}

// TestCapture013 reads what a client and a master of 0.3.13 sent each other. A few replies
// went through a proxy that rewrote them; those are of the form they were rewritten to.
func TestCapture013(t *testing.T) {
	requests, replies, noBody, cut, failed, rewritten := 0, 0, 0, 0, 0, 0
	used := map[string]any{}
	readLines(t, "capture.jsonl.gz", func(line []byte) {
		var f capturedFrame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		if f.Hex == "" || strings.HasPrefix(f.Label, "bad:") {
			return
		}
		raw := unhex(t, f.Hex)
		if f.ErrorCode != 0 {
			failed++
			return
		}
		if f.cut(raw) {
			cut++
			return
		}
		s := side{call: callNamed(t, f.RPC), request: f.Direction == "c2s", released: R0313}
		body := raw[f.headLen():]
		if s.request && len(s.call.Row().Requests[0].Literal) == 0 {
			if len(body) != 0 {
				t.Errorf("%s has a body of %d bytes", f.RPC, len(body))
			}
			noBody++
			return
		}
		if strings.HasPrefix(f.Label, "m6:") && !s.request && f.RPC == "ExistKey" && binary.LittleEndian.Uint32(body)&^1 != s.call.Row().ResponseHash {
			rewritten++ // the wrong type hash that label m6 is about
			return
		}
		if s.request {
			requests++
		} else {
			replies++
		}
		key := f.RPC + f.Direction
		if used[key] == nil {
			used[key] = s.fresh()
		}
		roundTrip(t, s, body, used[key])
	})
	got := fmt.Sprintf("%d requests, %d replies, %d without body, %d cut, %d failed, %d rewritten",
		requests, replies, noBody, cut, failed, rewritten)
	if want := "1504 requests, 1530 replies, 33 without body, 24 cut, 8 failed, 4 rewritten"; got != want {
		t.Errorf("tested %s; want %s", got, want)
	}
}

// TestCapture014 reads what clients and masters of 0.3.13 and 0.3.14 sent each other.
func TestCapture014(t *testing.T) {
	plain, compat, old, earlier, noBody, cut, failed := 0, 0, 0, 0, 0, 0, 0
	used := map[string]any{}
	names := map[string]string{}
	for _, row := range Rows() {
		names[fmt.Sprintf("0x%08x", row.ID)] = row.Name
	}
	readLines(t, "capture14.jsonl.gz", func(line []byte) {
		var f capturedFrame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		if f.Hex == "" || f.FunctionID == "" || f.ErrorCode != 0 {
			failed++
			return
		}
		raw := unhex(t, f.Hex)
		if f.cut(raw) {
			cut++
			return
		}
		f.RPC = names[f.FunctionID] // proxies for 0.3.13 did not know the new names
		s := side{call: callNamed(t, f.RPC), request: f.Direction == "c2s", released: R0314}
		row := s.call.Row()
		body := raw[f.headLen():]
		if s.request && len(row.Requests[0].Literal) == 0 {
			noBody++
			return
		}
		form, err := s.decode(body, s.fresh())
		if err != nil {
			t.Errorf("%s %s: %v", f.RPC, f.Direction, err)
			return
		}
		hasCompat := row.ResponseCompat && !s.request || row.RequestCompat && s.request
		switch {
		case s.request && binary.LittleEndian.Uint32(body)&^1 != row.Requests[0].Hash:
			earlier++
			s.released = R0313
		case hasCompat && !form.Compat:
			old++
			s.released = R0313
		case hasCompat:
			compat++
		default:
			plain++
			if form.Compat {
				t.Errorf("%s %s has a total length", f.RPC, f.Direction)
			}
		}
		key := f.RPC + f.Direction
		if used[key] == nil {
			used[key] = s.fresh()
		}
		roundTrip(t, s, body, used[key])
	})
	got := fmt.Sprintf("%d plain, %d with compatible part, %d old form, %d earlier arguments, %d without body, %d cut, %d not frames or failed",
		plain, compat, old, earlier, noBody, cut, failed)
	if want := "996 plain, 253 with compatible part, 19 old form, 1 earlier arguments, 16 without body, 0 cut, 81 not frames or failed"; got != want {
		t.Errorf("tested %s; want %s", got, want)
	}
}
