//go:build rdma

package rdma

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// party is a process of its own, as far as connections go: an adapter, memory that it lends, and others' way to it.
type party struct {
	*Adapter
	mem    []byte
	region *Region
	talks  atomic.Int32 // messages of the handshake port
}

func newParty(t *testing.T, name string, o Options) *party {
	t.Helper()
	if os.Getenv("SOFTVERBS_DIR") == "" {
		t.Skip("SOFTVERBS_DIR is not set: run this by conformance/verbs.sh")
	}
	if o.Devices == nil {
		o.Devices = []string{"softrdma0"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Sysfs = filepath.Join(os.Getenv("SOFTVERBS_DIR"), "sys")
	mem, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil { // the device is busy if anything made of it is left
			t.Error(err)
		}
	})
	if _, err := a.Serve(Service{Name: name}); err != nil {
		t.Fatal(err)
	}
	r, err := a.Register(mem, true)
	if err != nil {
		t.Fatal(err)
	}
	return &party{Adapter: a, mem: mem, region: r}
}

// seen returns a party as another one sees it.
func (p *party) seen(t *testing.T) *Peer {
	t.Helper()
	devices, matrix, buffers := p.Published([]*Region{p.region})
	peer, err := NewPeer(PeerConfig{Name: p.Name(), Devices: devices, Matrix: matrix, Buffers: buffers, Dial: func(ctx context.Context, body []byte) ([]byte, error) {
		p.talks.Add(1)
		return p.Answer(ctx, body), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return peer
}

// say sends a message as somebody does who is called x:1, with some fields changed, and returns the answer.
func (p *party) say(t *testing.T, change map[string]any) (m message) {
	t.Helper()
	fields := map[string]any{
		"local_gid": "00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01", "local_lid": 0, "local_nic_path": "x:1@softrdma0", "payload": "",
		"peer_nic_path": p.Name() + "@softrdma0", "qp_num": []int{257, 513}, "ready_ack": false, "reply_msg": "",
	}
	for name, value := range change {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(p.Answer(t.Context(), body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRefusals(t *testing.T) {
	p := newParty(t, "h:1", Options{Completions: 1 << 22}) // more than the device can have
	for _, c := range []struct {
		change map[string]any
		want   string
	}{
		{map[string]any{"qp_num": []int{1}}, "QP count mismatch in peer and local endpoints, check MC_MAX_EP_PER_CTX"},
		{map[string]any{"qp_num": []int{1, 2, 3}}, "QP count mismatch in peer and local endpoints, check MC_MAX_EP_PER_CTX"},
		{map[string]any{"peer_nic_path": "h:1@mlx5_9"}, "Local RDMA context not found for handshake NIC: mlx5_9"},
		{map[string]any{"peer_nic_path": "other:1@softrdma0"}, "Invalid argument: peer nic path inconsistency, expect h:1@softrdma0, while got other:1@softrdma0"},
		{map[string]any{"peer_nic_path": "h:1"}, "Invalid argument: peer_nic_path"},
		{map[string]any{"local_nic_path": ""}, "Invalid argument: local_nic_path"},
		{map[string]any{"local_nic_path": strings.Repeat("x", maxPath) + "@softrdma0"}, "Invalid argument: local_nic_path is 4106 bytes long"},
		{map[string]any{"local_gid": "hello"}, "Invalid peer GID: hello"},
		{map[string]any{"local_gid": nil}, "Peer nic not found in that server: x:1@softrdma0"},
		{map[string]any{"qp_num": "many"}, "Invalid argument: "},
		{map[string]any{"ready_ack": true}, "Received RDMA ready ACK for unconnected endpoint"},
	} {
		if m := p.say(t, c.change); !strings.HasPrefix(m.ReplyMsg, c.want) || len(m.QPNum) != 0 {
			t.Errorf("%v: %+v, want %q", c.change, m, c.want)
		}
	}
	if s := p.Status()[0]; s.Endpoints != 0 {
		t.Errorf("who was refused has left something: %+v", s)
	}
	first := p.say(t, nil)
	if first.ReplyMsg != "" || len(first.QPNum) != 2 || first.ReadyAck == nil || *first.ReadyAck || first.LocalNICPath != "h:1@softrdma0" || first.PeerNICPath != "x:1@softrdma0" {
		t.Fatalf("%+v", first)
	}
	if m := p.say(t, map[string]any{"ready_ack": true, "qp_num": []int{1, 2}}); m.ReplyMsg != "Received stale RDMA ready ACK with mismatched peer QP numbers" {
		t.Errorf("%+v", m)
	}
	if m := p.say(t, map[string]any{"ready_ack": true}); m.ReplyMsg != "" || len(m.QPNum) != 0 || m.ReadyAck != nil {
		t.Errorf("%+v", m)
	}
	if again := p.say(t, nil); fmt.Sprint(again.QPNum) != fmt.Sprint(first.QPNum) {
		t.Errorf("asked once more it has other queue pairs: %v, not %v", again.QPNum, first.QPNum)
	}
	if anew := p.say(t, map[string]any{"qp_num": []int{769, 1025}}); anew.ReplyMsg != "" || fmt.Sprint(anew.QPNum) == fmt.Sprint(first.QPNum) {
		t.Errorf("who starts anew is given the old queue pairs: %+v", anew)
	}
	await(t, "one endpoint is left", func() bool { s := p.Status()[0]; return s.Endpoints == 1 && s.QueuePairs == 2 && s.Breaking == 0 })
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestWhoDoesNotAcknowledge is dropped after a while; who knows no acknowledgement isn't.
func TestWhoDoesNotAcknowledge(t *testing.T) {
	var later atomic.Int64
	p := newParty(t, "h:1", Options{Probe: -1, RailPause: 40 * time.Millisecond, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	p.say(t, nil)
	p.say(t, map[string]any{"local_nic_path": "old:1@softrdma0", "ready_ack": nil})
	if s := p.Status()[0]; s.Endpoints != 2 {
		t.Fatalf("%+v", s)
	}
	later.Store(int64(ackTimeout + time.Second))
	await(t, "the unacknowledged endpoint is dropped", func() bool { s := p.Status()[0]; return s.Endpoints == 1 && s.QueuePairs == 2 })
	if m := p.say(t, map[string]any{"ready_ack": true}); m.ReplyMsg != refuseAck {
		t.Errorf("%+v", m)
	}
}

// TestBothSidesAtOnce: two that connect to each other at the same moment end with one endpoint for both directions.
func TestBothSidesAtOnce(t *testing.T) {
	a, b := newParty(t, "a:1", Options{}), newParty(t, "b:1", Options{})
	toA, toB := a.seen(t), b.seen(t)
	for round := range 100 {
		var wg sync.WaitGroup
		for _, d := range []struct {
			from *party
			to   *Peer
			mem  []byte
		}{{a, toB, b.mem}, {b, toA, a.mem}} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				data := []byte(fmt.Sprint("round ", round))
				if err := d.from.Write(t.Context(), d.to, d.to.buffers[0].address, data); err != nil || !bytes.HasPrefix(d.mem, data) {
					t.Errorf("round %d: %v", round, err)
				}
			}()
		}
		wg.Wait()
		for _, p := range []*party{a, b} {
			if s := p.Status()[0]; s.Endpoints != 1 {
				t.Errorf("round %d: %+v", round, s)
			}
		}
		a.hangUp(errors.New("the round is over"))
		b.hangUp(errors.New("the round is over"))
	}
}

// TestToOneself needs no handshake.
func TestToOneself(t *testing.T) {
	p := newParty(t, "h:1", Options{})
	to := p.seen(t)
	data := []byte("to myself")
	if err := p.Write(t.Context(), to, to.buffers[0].address+5, data); err != nil || !bytes.Equal(p.mem[5:14], data) {
		t.Errorf("%v", err)
	}
	if p.talks.Load() != 0 {
		t.Errorf("%d messages were sent", p.talks.Load())
	}
	// From one device to another one of the same process it does.
	two := newParty(t, "h:2", Options{Devices: []string{"softrdma0", "softrdma1"}})
	to = two.seen(t)
	for range 20 {
		if err := two.Write(t.Context(), to, to.buffers[0].address, data); err != nil || !bytes.HasPrefix(two.mem, data) {
			t.Fatal(err)
		}
	}
}

// TestTheMostEndpoints: who was used least lately makes room.
func TestTheMostEndpoints(t *testing.T) {
	p := newParty(t, "h:1", Options{Endpoints: 3})
	for i := range 12 {
		path := fmt.Sprintf("x:%d@softrdma0", i)
		await(t, "there is room", func() bool { return p.say(t, map[string]any{"local_nic_path": path}).ReplyMsg == "" })
		if s := p.Status()[0]; s.Endpoints > 3 {
			t.Fatalf("%+v", s)
		}
	}
}

// TestNames: an adapter is called what its host is, and what is connected under another name ends.
func TestNames(t *testing.T) {
	p := newParty(t, "h:1", Options{})
	if _, err := p.Serve(Service{Name: "h:2"}); err == nil || !strings.Contains(err.Error(), "serves h:1 already") {
		t.Errorf("%v", err)
	}
	if err := p.region.Close(); err != nil {
		t.Error(err)
	}
	if err := p.region.Close(); err != nil {
		t.Error(err)
	}
	r, err := p.Register(p.mem[4096:8192], true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := p.Register(p.mem, true); err == nil || !strings.Contains(err.Error(), "registered already") {
		t.Errorf("%v", err)
	}
	if _, err := p.Register(nil, true); err == nil {
		t.Error("nothing is registered")
	}
	if _, err := Open(Options{Devices: []string{"softrdma9"}, Now: time.Now}); err == nil || !strings.Contains(err.Error(), `no RDMA device "softrdma9"; there are ["softrdma0"`) {
		t.Errorf("%v", err)
	}
}
