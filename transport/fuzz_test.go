package transport_test

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/mooncake-go/mooncake-master/core"
	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/mastertest"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/core/tenant"
	"github.com/mooncake-go/mooncake-master/transport"
	"github.com/mooncake-go/mooncake-master/transport/rpc"
)

// requests returns the frames that real clients sent, from a capture.
func requests(tb testing.TB, name string) [][]byte {
	tb.Helper()
	f, err := os.Open("../testdata/wire/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var frames [][]byte
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var row struct {
			Dir string `json:"dir"`
			Hex string `json:"hex"`
			Len int    `json:"len"`
			RPC string `json:"rpc"`
		}
		if json.Unmarshal(lines.Bytes(), &row) != nil || row.Dir != "c2s" || row.RPC == "" {
			continue
		}
		if b, err := hex.DecodeString(row.Hex); err == nil && len(b) == row.Len && len(b) < 4096 {
			frames = append(frames, b)
		}
	}
	if len(frames) < 500 {
		tb.Fatalf("%s has only %d whole requests", name, len(frames))
	}
	return frames
}

// fuzzed is a strict master with memory and tenants, behind a server without sockets.
func fuzzed(tb testing.TB) (*rpc.Server, *core.Master, *mastertest.Clock) {
	tb.Helper()
	cfg := core.Default()
	cfg.MultiTenant = true
	cfg.RegexTimeout = 20 * time.Millisecond
	clock := mastertest.NewClock()
	m, err := core.New(cfg, core.Deps{Clock: clock, Rand: mastertest.NewRand(1), Log: hclog.NewNullLogger()})
	if err != nil {
		tb.Fatal(err)
	}
	m.ApplyPolicies([]tenant.Policy{{Name: "default", Quota: 1 << 30}, {Name: "tenant-a", Quota: 64 << 20}})
	info := segment.Info{ID: mastertest.ID(1), Name: "seg", Base: 1 << 32, Size: 256 << 20, Endpoint: "seg", Protocol: "tcp"}
	if code := m.MountSegment(info, mastertest.ID(1)); code != errcode.OK {
		tb.Fatal(code)
	}
	s, err := rpc.NewServer(rpc.Options{Now: time.Now, MaxFrame: 1 << 20, Poison: true})
	if err != nil {
		tb.Fatal(err)
	}
	transport.Bind(s, m)
	return s, m, clock
}

// FuzzMaster feeds frames to a whole master: whatever they hold, nothing panics, every answer
// is a frame, and the ledger adds up.
func FuzzMaster(f *testing.F) {
	for _, name := range []string{"capture.jsonl.gz", "capture14.jsonl.gz"} {
		for i, frame := range requests(f, name) {
			if i%25 == 0 {
				f.Add(frame, uint8(i))
			}
		}
	}
	s, m, clock := fuzzed(f)
	n := 0
	f.Fuzz(func(t *testing.T, in []byte, seconds uint8) {
		panics := s.Stats().Panics
		answers, consumed, _ := s.Answer("peer", in)
		if consumed > len(in) {
			t.Fatalf("consumed %d of %d bytes", consumed, len(in))
		}
		for len(answers) > 0 {
			if len(answers) < 16 || answers[0] != 21 {
				t.Fatalf("no answer: %x", answers)
			}
			size := 16 + int(binary.LittleEndian.Uint32(answers[8:]))
			if size > len(answers) {
				t.Fatalf("an answer of %d bytes is cut after %d", size, len(answers))
			}
			answers = answers[size:]
		}
		if s.Stats().Panics != panics {
			t.Fatal("a handler panicked")
		}
		clock.Set(time.Duration(seconds) * time.Millisecond)
		if n++; n%64 == 0 {
			m.Ping(mastertest.ID(1))
			m.Step()
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestRealTrafficReplayed plays what real clients sent to a master: every request that they
// sent whole is understood.
func TestRealTrafficReplayed(t *testing.T) {
	for _, name := range []string{"capture.jsonl.gz", "capture14.jsonl.gz"} {
		s, m, _ := fuzzed(t)
		frames := requests(t, name)
		for i, frame := range frames {
			answers, consumed, err := s.Answer("peer", frame)
			if err != nil || consumed != len(frame) || len(answers) < 16 {
				t.Fatalf("%s request %d: consumed %d of %d, %d bytes of answer, %v: %x", name, i, consumed, len(frame), len(answers), err, frame)
			}
			if code := answers[2]; code != 0 && code != 11 && code != 4 {
				t.Errorf("%s request %d: rpc error %d: %x", name, i, code, frame)
			}
		}
		refused := s.Stats().Refused
		t.Logf("%s: %d requests, refused %v", name, len(frames), refused)
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		if st := m.Stats(); st.Keys == 0 && st.TotalGets == 0 {
			t.Errorf("%s: nothing reached the master: %+v", name, st)
		}
	}
}
