package rdma

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

func TestWhatAPeerCovers(t *testing.T) {
	devices := []Device{{Name: "a", GID: "x"}, {Name: "b", GID: "y"}}
	keys := []uint32{1, 2}
	p, err := NewPeer(PeerConfig{Name: "p:1", Devices: devices, Matrix: map[string][][]string{"cpu:0": {{"b"}, {"gone"}}}, Buffers: []Buffer{
		{Address: 2000, Length: 1000, Place: "cpu:0", LKeys: keys, RKeys: keys},
		{Address: 1000, Length: 1000, Place: "*", LKeys: keys, RKeys: keys},
		{Address: 9000, Length: 1000, Place: "*", LKeys: keys}, // its own
		{Address: ^uint64(0) - 99, Length: 99, Place: "*", LKeys: keys, RKeys: keys},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address, length uint64
		want            bool
	}{
		{1000, 1, true},
		{1000, 2000, true},
		{1500, 1000, true},
		{2999, 1, true},
		{1000, 2001, false},
		{999, 2, false},
		{3000, 1, false},
		{1000, 0, false},
		{9000, 10, false},
		{^uint64(0) - 10, 5, true},
		{^uint64(0) - 10, 20, false},
		{0, 1, false},
		{1000, ^uint64(0), false},
	} {
		if got := p.Covers(c.address, c.length); got != c.want {
			t.Errorf("%d bytes at %d: %v", c.length, c.address, got)
		}
	}
	// The device is found by its name in the matrix, not by its position there.
	if b := p.buffer(2000); !reflect.DeepEqual(b.devices, []int{1}) || p.paths[1] != "p:1@b" {
		t.Errorf("%+v, %v", b, p.paths)
	}
	if p.device("p:1@b") != &p.devices[1] || p.device("p:1@c") != nil {
		t.Error("a device is not found by its path")
	}
	if _, err := NewPeer(PeerConfig{Name: "p:1", Devices: devices, Buffers: []Buffer{{Address: 1, Length: 1, LKeys: keys}}}); !errors.Is(err, ErrNoMemory) {
		t.Errorf("without keys: %v", err)
	}
	if _, err := NewPeer(PeerConfig{Name: "p:1", Devices: devices, Buffers: []Buffer{{Address: 1, Length: 1, RKeys: keys[:1]}}}); err == nil || !strings.Contains(err.Error(), "1 remote keys for 2 devices") {
		t.Errorf("with too few keys: %v", err)
	}
	if _, err := NewPeer(PeerConfig{Name: "p:1", Devices: devices, Matrix: map[string][][]string{"cpu:0": {{"gone"}}}, Buffers: []Buffer{{Address: 1, Length: 1, Place: "cpu:0", RKeys: keys}}}); err == nil {
		t.Error("without a device that is published")
	}
}

func TestCuttingIntoSlices(t *testing.T) {
	a := &Adapter{o: Options{SliceSize: 1000}}
	r := &Region{address: 10000, length: 5000, pieces: []piece{{address: 10000, length: 3000}, {address: 13000, length: 2000}}}
	p := &Peer{buffers: []peerBuffer{{address: 500, length: 1700}, {address: 2200, length: 90000}}}
	type cut struct{ local, remote, length uint64 }
	for _, c := range []struct {
		local, remote, length uint64
		want                  []cut
	}{
		{10000, 5000, 1, []cut{{10000, 5000, 1}}},
		{10000, 5000, 1250, []cut{{10000, 5000, 1250}}}, // a small rest joins the last
		{10000, 5000, 1251, []cut{{10000, 5000, 1000}, {11000, 6000, 251}}},
		{10000, 5000, 2250, []cut{{10000, 5000, 1000}, {11000, 6000, 1250}}},
		{12500, 5000, 1000, []cut{{12500, 5000, 500}, {13000, 5500, 500}}},                    // the border here
		{10000, 2000, 1000, []cut{{10000, 2000, 200}, {10200, 2200, 800}}},                    // the border there
		{12900, 2000, 400, []cut{{12900, 2000, 100}, {13000, 2100, 100}, {13100, 2200, 200}}}, // both
	} {
		j := &job{a: a, peer: p}
		j.cut(r, c.local, c.remote, c.length)
		var got []cut
		for _, s := range j.parts {
			got = append(got, cut{s.local, s.remote, uint64(s.length)})
			if s.piece != r.piece(s.local) || s.buffer != p.buffer(s.remote) {
				t.Errorf("%v: the keys are those of another piece", s)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d bytes from %d to %d: %v, want %v", c.length, c.local, c.remote, got, c.want)
		}
	}
}

// TestWays: what is preferred and doesn't rest comes first.
func TestWays(t *testing.T) {
	now := time.Unix(1000, 0)
	a := &Adapter{
		o:      Options{Now: func() time.Time { return now }, RailPause: 30 * time.Second},
		matrix: matrix{"cpu:0": {{"a"}, {"b"}}, "cpu:1": {{"b"}, {"a"}}},
	}
	for i, name := range []string{"a", "b"} {
		a.nics = append(a.nics, &nic{a: a, index: i, name: name, active: true, rails: map[string]*rail{}})
	}
	p, err := NewPeer(PeerConfig{
		Name: "p:1", Devices: []Device{{Name: "x"}, {Name: "y"}}, Matrix: map[string][][]string{"cpu:0": {{"x"}, {"y"}}},
		Buffers: []Buffer{{Address: 1, Length: 1, Place: "cpu:0", RKeys: []uint32{1, 2}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(place, want string, others bool) {
		t.Helper()
		best, o := a.ways(place, p, &p.buffers[0])
		var got []string
		for _, w := range best {
			got = append(got, w.nic.name+p.devices[w.device].Name)
		}
		if strings.Join(got, " ") != want || o != others {
			t.Errorf("from %s: %v, others: %v; want %s", place, got, o, want)
		}
	}
	check("cpu:0", "ax", true)
	check("cpu:1", "bx", true)
	check("*", "ax bx", true)
	a.noteFailure(a.nics[0], "p:1@x", true) // there is another way: it rests at once
	check("cpu:0", "ay bx", true)
	check("*", "bx", true)
	a.nics[1].active = false
	check("cpu:0", "ay", false)
	for range railFailures - 1 {
		a.noteFailure(a.nics[0], "p:1@y", false) // there is none: it goes on for a while
		check("cpu:0", "ay", false)
	}
	now = now.Add(time.Second)
	a.noteFailure(a.nics[0], "p:1@y", false)
	check("cpu:0", "ax", false) // which will have rested first
	now = now.Add(30 * time.Second)
	check("cpu:0", "ax", true)
	a.nics[0].forgetRails(now)
	if len(a.nics[0].rails) != 0 {
		t.Errorf("%d rails are remembered", len(a.nics[0].rails))
	}
	a.nics[0].active = false
	check("cpu:0", "", false)
}

func TestMessagesOfAHandshake(t *testing.T) {
	for path, want := range map[string][]string{
		"127.0.0.1:1@mlx5_0": {"127.0.0.1:1", "mlx5_0"}, "a@b@c": {"a@b", "c"}, "@c": nil, "a@": nil, "a": nil, "": nil,
	} {
		name, device, ok := split(path)
		if ok != (want != nil) || ok && (name != want[0] || device != want[1]) {
			t.Errorf("%q: %q, %q, %v", path, name, device, ok)
		}
	}
	const text = "00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01"
	g, err := verbs.ParseGID(text)
	if err != nil || g.String() != text {
		t.Errorf("%v, %v", g, err)
	}
	for _, bad := range []string{"", "00", text + ":00", strings.Replace(text, "7f", "7", 1), strings.Replace(text, "7f", "7g", 1)} {
		if _, err := verbs.ParseGID(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	m := message{LocalGID: text, LocalLID: 7}
	if g2, lid, err := m.address(nil); g2 != g || lid != 7 || err != nil {
		t.Errorf("%v, %d, %v", g2, lid, err)
	}
	m = message{LocalNICPath: "a@b"}
	if g2, lid, err := m.address(&Device{GID: text, LID: 9}); g2 != g || lid != 9 || err != nil {
		t.Errorf("%v, %d, %v", g2, lid, err)
	}
	if _, _, err := m.address(nil); err == nil || err.Error() != "Peer nic not found in that server: a@b" {
		t.Errorf("%v", err)
	}
	m.LocalGID = "zz"
	if _, _, err := m.address(nil); err == nil || err.Error() != "Invalid peer GID: zz" {
		t.Errorf("%v", err)
	}
}
