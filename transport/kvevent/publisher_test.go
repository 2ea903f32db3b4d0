package kvevent

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"github.com/hashicorp/go-hclog"
	"github.com/vmihailenco/msgpack/v5"
)

// noon is what the clock of these tests shows.
var noon = time.UnixMilli(1_700_000_000_123)

func options(change ...func(*Options)) Options {
	o := Options{
		Endpoint: "tcp://127.0.0.1:*", BackendID: "m1", Capacity: 100, Legacy: true, ObjectKey: true,
		Now: time.Now, Log: hclog.NewNullLogger(),
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func open(t *testing.T, o Options) *Publisher {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

// subscribe connects a subscriber of the library and waits until the publisher knows of it.
func subscribe(t *testing.T, p *Publisher) zmq4.Socket {
	t.Helper()
	before := p.hub.subscribers()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { _ = sub.Close() })
	if err := sub.Dial(p.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return p.hub.subscribers() > before })
	return sub
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for a minute")
		}
	}
}

type message struct {
	sequence uint64
	events   []map[string]any
	rank     any
}

func receive(t *testing.T, sub zmq4.Socket) message {
	t.Helper()
	m, err := sub.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, m.Frames)
}

func decode(t *testing.T, frames [][]byte) message {
	t.Helper()
	if len(frames) != 3 || len(frames[0]) != 0 || len(frames[1]) != 8 {
		t.Fatalf("frames %x", frames)
	}
	var parts []any
	if err := msgpack.Unmarshal(frames[2], &parts); err != nil || len(parts) != 3 {
		t.Fatalf("payload %x: %v", frames[2], err)
	}
	m := message{sequence: binary.BigEndian.Uint64(frames[1]), rank: parts[2]}
	for _, e := range parts[1].([]any) {
		m.events = append(m.events, e.(map[string]any))
	}
	return m
}

func TestDisabledPublisherIsNoop(t *testing.T) {
	var p *Publisher
	p.Stored("t", "42", "", "cpu")
	p.Removed("t", "42", "", "cpu")
	p.Cleared("t")
	if s := p.Status(); s != (Status{}) {
		t.Errorf("status %+v", s)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		change func(*Options)
		want   error
	}{
		{func(o *Options) { o.Endpoint = "" }, ErrNoEndpoint},
		{func(o *Options) { o.BackendID = "" }, ErrNoBackendID},
	} {
		if p, err := Open(options(test.change)); p != nil || !errors.Is(err, test.want) {
			t.Errorf("%v, want %v", err, test.want)
		}
	}
	for _, endpoint := range []string{"tcp://127.0.0.1", "udp://127.0.0.1:1", "nonsense", "ipc://", "tcp://:5557"} {
		if p, err := Open(options(func(o *Options) { o.Endpoint = endpoint })); p != nil || err == nil {
			t.Errorf("%q is bound", endpoint)
		}
	}
	taken := open(t, options())
	if p, err := Open(options(func(o *Options) { o.Endpoint = taken.Addr() })); p != nil || err == nil {
		t.Error("an address in use is bound")
	}
}

// TestPayload compares whole payloads with bytes put together by hand from the protocol.
func TestPayload(t *testing.T) {
	str := func(s string) string {
		switch {
		case len(s) < 32:
			return fmt.Sprintf("%02x%x", 0xa0|len(s), s)
		case len(s) < 256:
			return fmt.Sprintf("d9%02x%x", len(s), s)
		default:
			return fmt.Sprintf("da%04x%x", len(s), s)
		}
	}
	fields := func(pairs ...string) string {
		var b strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			b.WriteString(str(pairs[i]) + pairs[i+1])
		}
		return b.String()
	}
	const none = "c0"
	at := "cf0000018bcfe5687b"
	long := strings.Repeat("k", 300)
	full := options(func(o *Options) {
		o.ModelName, o.BlockSize, o.Salt, o.LoRA, o.DPRank, o.Legacy = "model", 128, "salt", "lora", 5, false
	})
	legacy := options()
	tests := []struct {
		name string
		o    Options
		b    batch
		want string
	}{
		{"stored", full, batch{1, 7, []event{{stored, "a", long, "g", "cpu"}}}, "93" + at + "91" + "de0011" + fields(
			"event_id", "07", "timestamp", at, "event_type", str("stored"), "model_name", str("model"), "block_size", "cc80",
			"additional_salt", str("salt"), "lora_name", str("lora"), "tenant_id", str("a"), "backend_id", str("m1"), "medium", str("cpu"),
			"dp_rank", "05", "group_id", str("g"), "object_key", str(long), "seq_hashes", "90", "base_block_idx", none, "parent_hash", none,
			"token_ids", none) + "05"},
		{"removed and cleared, older names too", legacy, batch{2, 1000, []event{{removed, "a", "k", "", "disk"}, {cleared, "a", "", "", ""}}}, "93" + at + "92" +
			"de0011" + fields(
			"event_id", "cd03e8", "timestamp", at, "event_type", str("removed"), "type", str("BlockRemoved"), "model_name", none, "block_size", none,
			"additional_salt", none, "lora_name", none, "tenant_id", str("a"), "backend_id", str("m1"), "medium", str("disk"), "dp_rank", "00",
			"group_id", none, "object_key", str("k"), "seq_hashes", "90", "block_hashes", "90", "base_block_idx", none) +
			"8c" + fields(
			"event_id", "cd03e9", "timestamp", at, "event_type", str("cleared"), "type", str("AllBlocksCleared"), "model_name", none, "block_size", none,
			"additional_salt", none, "lora_name", none, "tenant_id", str("a"), "backend_id", str("m1"), "medium", none, "dp_rank", "00") + "00"},
		{"stored, older names too", legacy, batch{3, 1, []event{{stored, "a", "k", "", "cpu"}}}, "93" + at + "91" + "de0014" + fields(
			"event_id", "01", "timestamp", at, "event_type", str("stored"), "type", str("BlockStored"), "model_name", none, "block_size", none,
			"additional_salt", none, "lora_name", none, "tenant_id", str("a"), "backend_id", str("m1"), "medium", str("cpu"), "dp_rank", "00",
			"group_id", none, "object_key", str("k"), "seq_hashes", "90", "block_hashes", "90", "base_block_idx", none, "parent_hash", none,
			"token_ids", none, "parent_block_hash", none) + "00"},
	}
	for _, test := range tests {
		m := test.o.message(&test.b, noon)
		if len(m.Frames) != 3 || len(m.Frames[0]) != 0 {
			t.Fatalf("%s: frames %x", test.name, m.Frames)
		}
		if got := hex.EncodeToString(m.Frames[1]); got != fmt.Sprintf("%016x", test.b.sequence) {
			t.Errorf("%s: sequence %s", test.name, got)
		}
		if got := hex.EncodeToString(m.Frames[2]); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
		decode(t, m.Frames) // the counts of fields are right, or this is not one value
	}
}

func TestPublishesSglangObjectKeyOverZmq(t *testing.T) {
	p := open(t, options(func(o *Options) { o.ModelName, o.BlockSize, o.DPRank = "configured-model", 128, 5 }))
	sub := subscribe(t, p)
	key := strings.Repeat("e3b0c442", 8) + "_0_k"
	p.Stored("tenant-a", key, "sglang-hicache:1", "cpu")
	m := receive(t, sub)
	e := m.events[0]
	for name, want := range map[string]any{
		"event_type": "stored", "type": "BlockStored", "object_key": key, "group_id": "sglang-hicache:1", "backend_id": "m1",
		"tenant_id": "tenant-a", "model_name": "configured-model", "medium": "cpu",
	} {
		if e[name] != want {
			t.Errorf("%s is %v, want %v", name, e[name], want)
		}
	}
	if fmt.Sprint(e["block_size"], e["dp_rank"], e["event_id"], m.rank, m.sequence, len(m.events)) != "128 5 1 5 1 1" {
		t.Errorf("numbers of %v, rank %v, sequence %d", e, m.rank, m.sequence)
	}
	p.Removed("tenant-a", key, "", "cpu")
	if m = receive(t, sub); m.sequence != 2 || m.events[0]["event_type"] != "removed" || m.events[0]["object_key"] != key {
		t.Errorf("%+v", m)
	}
	p.Cleared("tenant-a")
	m = receive(t, sub)
	if _, has := m.events[0]["object_key"]; has || m.sequence != 3 || m.events[0]["event_type"] != "cleared" || m.events[0]["tenant_id"] != "tenant-a" {
		t.Errorf("%+v", m)
	}
	until(t, func() bool { return p.Status().Batches == 3 })
	if s := p.Status(); s != (Status{Enabled: true, Batches: 3, Events: 3}) {
		t.Errorf("status %+v", s)
	}
}

func TestClearIsTenantScoped(t *testing.T) {
	p := open(t, options())
	sub := subscribe(t, p)
	p.Stored("tenant-a", "k", "", "cpu")
	p.Stored("tenant-b", "k", "", "cpu")
	p.Cleared("tenant-a")
	var got []string
	for len(got) < 3 {
		for _, e := range receive(t, sub).events {
			got = append(got, fmt.Sprint(e["event_type"], " ", e["tenant_id"]))
		}
	}
	if fmt.Sprint(got) != "[stored tenant-a stored tenant-b cleared tenant-a]" {
		t.Error(got)
	}
}

func TestDisabledObjectKeySkipsObjectEventsButKeepsClear(t *testing.T) {
	p := open(t, options(func(o *Options) { o.ObjectKey = false }))
	sub := subscribe(t, p)
	p.Stored("tenant-a", "object-a", "", "cpu")
	p.Removed("tenant-a", "object-a", "", "cpu")
	p.Cleared("tenant-a")
	if m := receive(t, sub); m.sequence != 1 || len(m.events) != 1 || m.events[0]["event_type"] != "cleared" {
		t.Errorf("%+v", m)
	}
	until(t, func() bool { return p.Status().Batches == 1 })
	if s := p.Status(); s != (Status{Enabled: true, Batches: 1, Events: 1, Keyless: 2}) {
		t.Errorf("status %+v", s)
	}
}

// TestDropsOldestWhenQueueFull runs without the goroutine that publishes, so that the queue is full.
func TestDropsOldestWhenQueueFull(t *testing.T) {
	p := &Publisher{options: options(func(o *Options) { o.Capacity = 2 }), sequence: 1, id: 1, wake: make(chan struct{}, 1)}
	for i := range 5 {
		p.Stored("t", fmt.Sprint(i), "", "cpu")
	}
	var b batch
	p.next(&b)
	if len(b.events) != 2 || b.events[0].key != "3" || b.events[1].key != "4" || b.sequence != 4 || b.firstID != 1 {
		t.Errorf("batch %+v: want 3 and 4 in message 4, whose events begin at 1", b)
	}
	if n := p.Status().Dropped; n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
	p.Stored("t", "5", "", "cpu")
	if p.next(&b); b.sequence != 5 || b.firstID != 3 {
		t.Errorf("batch %+v: want message 5, whose events begin at 3", b)
	}
}

func TestBatchesAndUnboundedQueue(t *testing.T) {
	p := &Publisher{options: options(func(o *Options) { o.Capacity = 0 }), sequence: 1, id: 1, wake: make(chan struct{}, 1)}
	next := 0
	for round := range 3 {
		for i := range 150 {
			p.Stored("t", fmt.Sprint(round*150+i), "", "cpu")
		}
		for _, want := range []int{64, 64, 22} {
			var b batch
			p.next(&b)
			if len(b.events) != want || b.firstID != uint64(next+1) {
				t.Fatalf("%d events from id %d, want %d from %d", len(b.events), b.firstID, want, next+1)
			}
			for _, e := range b.events {
				if e.key != fmt.Sprint(next) {
					t.Fatalf("event %s, want %d", e.key, next)
				}
				next++
			}
		}
	}
	if p.sequence != 10 || p.Status().Dropped != 0 {
		t.Errorf("sequence %d, %d dropped", p.sequence, p.Status().Dropped)
	}
}

// TestCloseDeliversWhatWaits tells more than a batch and closes at once.
func TestCloseDeliversWhatWaits(t *testing.T) {
	p := open(t, options(func(o *Options) { o.Capacity = 1000; o.Endpoint = "ipc://" + filepath.Join(t.TempDir(), "s") }))
	sub := subscribe(t, p)
	for i := range 500 {
		p.Stored("t", fmt.Sprint(i), "", "cpu")
	}
	closed := make(chan error)
	go func() { closed <- p.Close(t.Context()) }()
	next, sequence := 0, uint64(0)
	for next < 500 {
		m := receive(t, sub)
		if sequence++; m.sequence != sequence {
			t.Fatalf("message %d, want %d", m.sequence, sequence)
		}
		for _, e := range m.events {
			if e["object_key"] != fmt.Sprint(next) {
				t.Fatalf("%v, want %d", e["object_key"], next)
			}
			next++
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	p.Stored("t", "late", "", "cpu")
	if s := p.Status(); s.Events != 500 {
		t.Errorf("status %+v", s)
	}
}

// TestSilentSubscriberHoldsUpNobody connects one that subscribes and never reads, beside one that does.
func TestSilentSubscriberHoldsUpNobody(t *testing.T) {
	p := open(t, options(func(o *Options) { o.Capacity = 0 }))
	silent, err := net.Dial("tcp", strings.TrimPrefix(p.Addr(), "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := zmq4.Open(silent, null.Security(), zmq4.Sub, nil, false, func(*zmq4.Conn) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Write([]byte{0, 1, 1}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return p.hub.subscribers() == 1 })
	sub := subscribe(t, p)
	key := strings.Repeat("k", 60000)
	for i := range 400 { // 24 MB: more than the sockets of the silent one hold
		p.Stored("t", key, "", "cpu")
		if m := receive(t, sub); m.sequence != uint64(i+1) {
			t.Fatalf("message %d, want %d", m.sequence, i+1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestNonsenseIsTurnedAway sends what no subscriber sends; the publisher goes on.
func TestNonsenseIsTurnedAway(t *testing.T) {
	greeting := append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'}, make([]byte, 48)...)
	p := open(t, options())
	for name, said := range map[string][]byte{
		"text":                       []byte(strings.Repeat("GET / HTTP/1.1\r\n", 8)),
		"a huge command":             append(greeting[:64:64], 6, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"a command of a terabyte":    append(greeting[:64:64], 6, 0, 0, 1, 0, 0, 0, 0, 0),
		"a message of more frames":   append(greeting[:64:64], 1, 0),
		"nothing after the greeting": greeting,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.Addr(), "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(said); err != nil {
			t.Fatal(name, err)
		}
		if name == "nothing after the greeting" {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		for b := make([]byte, 100); err == nil; {
			_, err = conn.Read(b) // until the publisher hangs up
		}
		_ = conn.Close()
	}
	sub := subscribe(t, p)
	p.Stored("t", "k", "", "cpu")
	if m := receive(t, sub); m.events[0]["object_key"] != "k" {
		t.Errorf("%+v", m)
	}
}
