package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// segmentJSON runs segment and returns its results.
func segmentJSON(t *testing.T, args ...string) []result {
	t.Helper()
	var out, errOut bytes.Buffer
	args = append([]string{"segment", "--json", "-", "--warmup", "0s", "--duration", "20ms"}, args...)
	if code := bench(t.Context(), args, &out, &errOut); code != 0 {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	var all []result
	for lines := json.NewDecoder(&out); ; {
		var r result
		if err := lines.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func TestSegmentBetweenTwoProcesses(t *testing.T) {
	t.Setenv(asMaster, "segment")
	all := segmentJSON(t, "--block_size", "1,100KiB", "--in_flight", "1,3", "--verify")
	if len(all) != 8 {
		t.Fatalf("%d results, want 8", len(all))
	}
	for _, r := range all {
		if r.Kind != "segment" || r.Ops == 0 || r.Segment.Protocol != "tcp" || !r.Segment.Verified || r.Segment.Target == "" {
			t.Errorf("%+v", r)
		}
		for _, figure := range []string{figBandwidth, figOps, figP50, figP99, figMax, figOwnPerGB, figTargetPerGB, figCPUPerGB} {
			if r.Figures[figure] <= 0 {
				t.Errorf("%+v has no %s", r.Segment, figure)
			}
		}
		if got, want := r.Figures[figBandwidth], float64(r.Ops)*float64(r.Segment.Block)/r.Seconds/1e9; got < want*0.999 || got > want*1.001 {
			t.Errorf("%g GB/s, want %g", got, want)
		}
	}
	if first, last := *all[0].Segment, *all[7].Segment; first.Operation != "read" || first.Block != 1 || first.InFlight != 1 ||
		last.Operation != "write" || last.Block != 100<<10 || last.InFlight != 3 {
		t.Errorf("%+v … %+v", first, last)
	}
}

func TestSegmentServedElsewhere(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- bench(ctx, []string{"segment", "serve", "--json", "-", "--name", "127.0.0.1:1", "--bind", "127.0.0.1", "--size", "1MiB"}, w, io.Discard)
	}()
	var s served
	if err := json.NewDecoder(r).Decode(&s); err != nil || s.Size != 1<<20 || s.Name == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	all := segmentJSON(t, "--target", s.Name, "--block_size", "4KiB", "--in_flight", "2", "--tcp_version", "1")
	if len(all) != 2 || all[0].Segment.Target != s.Name || all[1].Ops == 0 {
		t.Errorf("%+v", all)
	}
	if _, known := all[0].Figures[figTargetPerGB]; known {
		t.Error("the processor time of a process elsewhere is known")
	}
	var out bytes.Buffer
	if code := bench(t.Context(), []string{"segment", "--target", s.Name, "--block_size", "1MiB"}, io.Discard, &out); code != exitUsage || !strings.Contains(out.String(), "read 1MiB x1 needs 1MiB at the target, which lends 1044480 bytes") {
		t.Errorf("status %d: %s", code, out.String())
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("serve ended with status %d", code)
	}
	out.Reset()
	if code := bench(t.Context(), []string{"segment", "--target", s.Name}, io.Discard, &out); code != exitFailed || !strings.Contains(out.String(), s.Name) {
		t.Errorf("with nobody there: status %d: %s", code, out.String())
	}
}

// TestMemoryOfOthersIsNotWrittenTo unless that is said.
func TestMemoryOfOthersIsNotWrittenTo(t *testing.T) {
	h, err := segment.NewHost(t.Context(), segment.HostConfig{Name: "127.0.0.1:1", Metadata: segment.P2P, Bind: "127.0.0.1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	m, err := segment.NewMemory(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close(context.Background())
		m.Free()
	})
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	untouched := make([]byte, 64<<10)
	for _, args := range []string{"--operation write", "--operation read --verify"} {
		var out bytes.Buffer
		words := append([]string{"segment", "--target", h.Name(), "--block_size", "4KiB"}, strings.Fields(args)...)
		if code := bench(t.Context(), words, io.Discard, &out); code != exitUsage || !strings.Contains(out.String(), "--overwrite") {
			t.Errorf("%s: status %d: %s", args, code, out.String())
		}
	}
	segmentJSON(t, "--target", h.Name(), "--block_size", "4KiB", "--operation", "read", "--in_flight", "1")
	if !bytes.Equal(m.Bytes(), untouched) {
		t.Fatal("it has been written to")
	}
	segmentJSON(t, "--target", h.Name(), "--block_size", "4KiB", "--operation", "write", "--in_flight", "1", "--overwrite")
	if bytes.Equal(m.Bytes()[:4096], untouched[:4096]) || !bytes.Equal(m.Bytes()[4096:], untouched[4096:]) {
		t.Error("with --overwrite other bytes are written than those of one block")
	}
	// What isn't what was written is found out.
	s := &segmentSettings{target: h.Name(), lending: lending{metadata: segment.P2P, protocol: "tcp"}, verify: true, overwrite: true}
	x, err := openSegment(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	for _, write := range []bool{false, true} {
		o := &bay{
			session: x, point: segmentPoint{write, 1000, 1}, seed: 7, data: make([]byte, 1000), check: make([]byte, 1000),
			at: segment.Place{Owner: h.Name(), Address: m.Address()},
		}
		o.seed.fill(m.Bytes()[:1000])
		o.seed.fill(o.data)
		if err := o.verify(t.Context()); err != nil {
			t.Errorf("write %v: %v", write, err)
		}
		o.seed.fill(m.Bytes()[:1000])
		o.seed.fill(o.data)
		m.Bytes()[999] ^= 1
		o.data[999] ^= 1
		if err := o.verify(t.Context()); err == nil || !strings.Contains(err.Error(), "byte 999 of 1000 is") {
			t.Errorf("write %v: %v", write, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, size := range []int{1, 7, 8, 9, 1000} {
		b := make([]byte, size)
		pattern(1).fill(b)
		if err := pattern(1).check(b); err != nil {
			t.Error(err)
		}
		if pattern(2).check(b) == nil {
			t.Errorf("%d bytes of two seeds are the same", size)
		}
		for i := range b {
			b[i]++
			if pattern(1).check(b) == nil {
				t.Errorf("a change of byte %d of %d goes unnoticed", i, size)
			}
			b[i]--
		}
	}
}

func TestSegmentFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--protocol udp":                   `--protocol: "udp", want tcp or rdma`,
		"--devices mlx5_0":                 "--devices and --sysfs are for --protocol rdma",
		"--operation erase":                `"erase", want read or write`,
		"--block_size 0":                   "positive number of bytes",
		"--in_flight 0":                    "want a number from 1 to 4096",
		"--duration 0s":                    "--duration: 0s is out of bounds",
		"--lanes -1":                       "--lanes: -1 is out of bounds",
		"--tcp_version 3":                  "--tcp_version: 3 is out of bounds",
		"--metadata redis://x":             "--metadata:",
		"--name nohost":                    `--name: "nohost", want HOST:PORT`,
		"--target nohost":                  `--target: "nohost", want HOST:PORT`,
		"--target 127.0.0.1:1 --size 1GiB": "--target says that it is lent elsewhere",
		"--size 1MiB --block_size 1MiB":    "--size: 1MiB is too little",
		"word":                             `"word" is no flag`,
		"serve --size 4KiB":                "--size: 4096 bytes are too few",
		"serve --name 1":                   `--name: "1", want HOST:PORT`,
		"serve --block_size 1":             "flag provided but not defined",
		"--json /nonexistent/folder/file --lanes 1":  "--json:",
		"--in_flight 4096 --block_size 1TiB --lanes": "flag needs an argument",
	} {
		var out bytes.Buffer
		if code := bench(t.Context(), append([]string{"segment"}, strings.Fields(args)...), io.Discard, &out); code != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d: %s want %s", args, code, out.String(), want)
		}
	}
}

// TestRowsOfTransfersSayWhatTheyNeed, and what the programs that they start print when they fail.
func TestRowsOfTransfersSayWhatTheyNeed(t *testing.T) {
	for args, want := range map[string]string{
		"segment-1m": "--engine: no binary",
		"segment-1m --engine /nonexistent/engine": "starting /nonexistent/engine",
		"segment-1m --engine /bin/false":          "the target of transfer_engine_bench: it ended early",
		"segment-client-1m":                       "--python: no interpreter",
		"segment-client-1m --python x":            "--node: no command line",
		"segment-rdma --engine x":                 "--verbs: no library",
	} {
		t.Setenv(asMaster, "segment")
		var out bytes.Buffer
		words := append([]string{"table", "--quick"}, strings.Fields(args)...)
		if code := bench(t.Context(), words, io.Discard, &out); code == 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d: %s want %s", args, code, out.String(), want)
		}
	}
}
