package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// store is a metadata store as the masters have one: keys are compared as they are written, and a handshake
// address isn't replaced by another one.
func store(t *testing.T) string {
	var mu sync.Mutex
	kept := map[string][]byte{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := strings.TrimPrefix(r.URL.RawQuery, "key=")
		body, _ := io.ReadAll(r.Body)
		old, there := kept[key]
		switch {
		case r.Method == http.MethodPut && there && strings.Contains(key, "rpc_meta") && !bytes.Equal(old, body):
			http.Error(w, "Duplicate rpc_meta key not allowed", http.StatusBadRequest)
		case r.Method == http.MethodPut:
			kept[key] = body
		case !there:
			http.Error(w, "metadata not found", http.StatusNotFound)
		case r.Method == http.MethodDelete:
			delete(kept, key)
		default:
			w.Write(old)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/metadata"
}

func memory(t *testing.T, size int) *Memory {
	t.Helper()
	m, err := NewMemory(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func host(t *testing.T, metadata string, name string) *Host {
	t.Helper()
	h, err := NewHost(t.Context(), HostConfig{Name: name, Metadata: metadata, Bind: "127.0.0.1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	return h
}

func carrier(t *testing.T, metadata string) *Carrier {
	t.Helper()
	m, err := OpenMetadata(metadata, "", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCarrier(CarrierConfig{Metadata: m, Now: time.Now})
	t.Cleanup(c.Close)
	return c
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, mode := range []string{"store", "asked"} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprint(mode, version), func(t *testing.T) {
				metadata := P2P
				if mode == "store" {
					metadata = store(t)
				}
				h, c, m := host(t, metadata, "127.0.0.1:17901"), carrier(t, metadata), memory(t, 9<<20)
				if err := h.Register(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if err := force(t, c, h.Name(), m, version); err != nil {
					t.Fatal(err)
				}
				for _, size := range []int{1, 17, 4096, 64<<10 + 1, 1 << 20, 9 << 20} {
					data, at := random(size), m.Address()+uint64(9<<20-size)
					if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: at}, data); err != nil {
						t.Fatalf("writing %d bytes: %v", size, err)
					}
					if !bytes.Equal(m.Bytes()[9<<20-size:], data) {
						t.Errorf("%d bytes are not what was written", size)
					}
					got := make([]byte, size)
					if err := c.Read(t.Context(), Place{Owner: h.Name(), Address: at}, got); err != nil {
						t.Fatalf("reading %d bytes: %v", size, err)
					}
					if !bytes.Equal(got, data) {
						t.Errorf("%d bytes are not read as they were written", size)
					}
				}
			})
		}
	}
}

// force makes a carrier speak a version to a host.
func force(t *testing.T, c *Carrier, owner string, m *Memory, version int) error {
	var b [1]byte
	err := c.Read(t.Context(), Place{Owner: owner, Address: m.Address()}, b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peers[owner]; p != nil {
		p.route.(*lanes).version = version
	}
	return err
}

func TestOnlyWhatIsRegisteredCanBeReached(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			h, c := host(t, P2P, "127.0.0.1:1"), carrier(t, P2P)
			m := memory(t, 4096)
			if err := h.Register(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if err := force(t, c, h.Name(), m, version); err != nil {
				t.Fatal(err)
			}
			at := m.Address()
			for _, bad := range []struct {
				addr uint64
				size int
			}{{at + 1, 4096}, {at - 1, 1}, {at + 4096, 1}, {^uint64(0), 1}, {^uint64(0) - 7, 16}, {1, 1}} {
				// The carrier knows better than to ask; the host is asked all the same.
				wide := &Descriptor{Name: "x", Buffers: []Buffer{{Addr: 1, Length: ^uint64(0) - 1, Name: "x"}, {Addr: bad.addr, Length: uint64(bad.size), Name: "x"}}}
				c.mu.Lock()
				p := &peer{found: wide, route: newLanes(net.JoinHostPort("127.0.0.1", fmt.Sprint(port(h.lender.(tcpLender).port.listener))), version, 1, DefaultStall, time.Now)}
				c.peers[h.Name()] = p
				c.mu.Unlock()
				data := random(bad.size)
				if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: bad.addr}, data); !errors.Is(err, ErrRejected) {
					t.Errorf("writing %d bytes at %#x: %v", bad.size, bad.addr, err)
				}
				if err := c.Read(t.Context(), Place{Owner: h.Name(), Address: bad.addr}, data); !errors.Is(err, ErrRejected) {
					t.Errorf("reading %d bytes at %#x: %v", bad.size, bad.addr, err)
				}
			}
			if !bytes.Equal(m.Bytes(), make([]byte, 4096)) {
				t.Error("something was written")
			}
			if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: at}, []byte("good")); err != nil || string(m.Bytes()[:4]) != "good" {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestMemoryTakenBack(t *testing.T) {
	h, c, a, b := host(t, P2P, "127.0.0.1:1"), carrier(t, P2P), memory(t, 1<<20), memory(t, 1<<20)
	for _, m := range []*Memory{a, b} {
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody has begun to write and goes on for ever.
	conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port(h.lender.(tcpLender).port.listener)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(request{size: 1 << 20, addr: a.Address(), opcode: opWrite | opAnswered}.append(nil))
	conn.Write([]byte("begun"))
	for deadline := time.Now().Add(10 * time.Second); !bytes.Equal(a.Bytes()[:5], []byte("begun")); {
		if time.Now().After(deadline) {
			t.Fatal("nothing is received")
		}
		time.Sleep(time.Millisecond)
	}
	if err := h.Unregister(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	clear(a.Bytes())
	conn.Write([]byte("late"))
	var got [1]byte
	if err := c.Read(t.Context(), Place{Owner: h.Name(), Address: a.Address()}, got[:]); !errors.Is(err, ErrRejected) {
		t.Errorf("reading what was taken back: %v", err)
	}
	if err := c.Read(t.Context(), Place{Owner: h.Name(), Address: b.Address()}, got[:]); err != nil {
		t.Errorf("reading what was not: %v", err)
	}
	if !bytes.Equal(a.Bytes(), make([]byte, 1<<20)) {
		t.Error("it is still written to")
	}
	if err := h.Unregister(t.Context(), a); err == nil {
		t.Error("taken back twice")
	}
}

// TestAHostThatStartsAnew is found again at its new port, though an idle connection to the old one is
// kept.
func TestAHostThatStartsAnew(t *testing.T) {
	metadata := store(t)
	c, m := carrier(t, metadata), memory(t, 4096)
	for round := range 3 {
		h, err := NewHost(t.Context(), HostConfig{Name: "127.0.0.1:17901", Metadata: metadata, Bind: "127.0.0.1", Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		data := random(100 + round)
		err = c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, data)
		if round > 0 && err != nil { // what was known is forgotten now
			err = c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, data)
		}
		if err != nil || !bytes.Equal(m.Bytes()[:len(data)], data) {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), Place{Owner: h.Name(), Address: m.Address()}, data); err == nil {
			t.Fatal("a host that has closed takes data")
		}
	}
}

func TestTwoHostsOfOneName(t *testing.T) {
	metadata := store(t)
	host(t, metadata, "127.0.0.1:17901")
	_, err := NewHost(t.Context(), HostConfig{Name: "127.0.0.1:17901", Metadata: metadata, Bind: "127.0.0.1", Now: time.Now})
	if !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "end the process that has it") {
		t.Errorf("%v", err)
	}
}

func TestTransfersEndWithTheirContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := carrier(t, P2P)
	c.peers["x"] = &peer{
		route: newLanes(silent.Addr().String(), 2, 1, DefaultStall, time.Now),
		found: &Descriptor{Name: "x", Buffers: []Buffer{{Addr: 1, Length: 1 << 30, Name: "x"}}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Write(ctx, Place{Owner: "x", Address: 1}, make([]byte, 64<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestHandshakePort asks what a real client would, and what nobody should.
func TestHandshakePort(t *testing.T) {
	h := host(t, P2P, "127.0.0.1:1")
	if err := Probe(t.Context(), h.Name()); err != nil {
		t.Error(err)
	}
	idle, err := net.Dial("tcp", h.Name()) // says nothing and holds nobody up
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for _, q := range []struct {
		name, raw, want string
	}{
		{"metadata", frame(1, `{}`), `"tcp_proto_version":2`},
		{"with a newline", frame(1, "{}\n"), `"protocol":"tcp"`},
		{"notification", frame(2, `{"name":"a","notify_msg":"b"}`), `"notify_msg":"success"`},
		{"connection", frame(0, `{"qp_num":[1,2]}`), `this host speaks TCP only`},
		{"old form", string(binary.LittleEndian.AppendUint64(nil, 2)) + "{}", `this host speaks TCP only`},
		{"unknown type", frame(77, `{}`), ``},
		{"no JSON", frame(1, `{`), ``},
		{"length 0", string(make([]byte, 8)), ``},
		{"too long", string(binary.LittleEndian.AppendUint64(nil, maxMessage+1)), ``},
	} {
		conn, err := net.Dial("tcp", h.Name())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, q.raw)
		conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.Contains(string(got), q.want) || q.want == "" && len(got) > 0 {
			t.Errorf("%s: answered %q, want %q", q.name, got, q.want)
		}
	}
}

func frame(kind byte, body string) string {
	var b bytes.Buffer
	writeMessage(&b, kind, []byte(body))
	return b.String()
}

func TestDescriptorsOfTheRelease(t *testing.T) {
	const tcp = `{"buffers":[
       {"addr":139889651691584,"length":16777216,"name":"127.0.0.1:17901"},
       {"addr":139889215537152,"length":268435456,"name":"127.0.0.1:17901"}],
     "name":"127.0.0.1:17901","protocol":"tcp","rdma_server_name":"","tcp_data_host":"192.0.2.2",
     "tcp_data_port":15665,"tcp_proto_version":2,"timestamp":"2026-11-29 17:06:39.690487"}`
	d, err := ParseDescriptor([]byte(tcp))
	if err != nil {
		t.Fatal(err)
	}
	if d.DataHost != "192.0.2.2" || d.DataPort != 15665 || d.DataVersion != 2 || !d.Speaks("tcp") || d.Speaks("rdma") || len(d.Buffers) != 2 {
		t.Errorf("%+v", d)
	}
	if d.find(139889215537152+268435456-1, 1) != &d.Buffers[1] || d.find(139889215537152+268435456-1, 2) != nil {
		t.Error("an address is not found where it is")
	}
	for _, bad := range []struct{ text, want string }{
		{`{"protocol":"tcp"}`, "no name"},
		{`{"name":"a"}`, "no protocol"},
		{`{"name":"a","protocol":"tcp","buffers":[{"addr":0,"length":1,"name":"b"}]}`, "buffer 0 has address 0x0"},
		{`{"name":"a","protocol":"tcp","buffers":[{"addr":18446744073709551615,"length":2,"name":"b"}]}`, "beyond the end of memory"},
		{`{"name":"a","protocol":"rdma","buffers":[{"addr":1,"length":1,"name":"b","lkey":[1],"rkey":[1]}]}`, "1 remote and 1 local keys for 0 devices"},
		{`{"name":"a","protocol":["rdma","tcp"],"devices":[{"name":"d","gid":""}]}`, `GID ""`},
		{`[]`, "cannot unmarshal"},
	} {
		if _, err := ParseDescriptor([]byte(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %q", bad.text, err, bad.want)
		}
	}
}

func TestKeysAreWrittenAsClientsDo(t *testing.T) {
	if got, want := escape("mooncake/ram/127.0.0.1:17901"), "mooncake%2Fram%2F127.0.0.1%3A17901"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := escape("a b~+é"), "a%20b~%2B%C3%A9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := OpenMetadata("redis://x", "", time.Now); err == nil {
		t.Error("an unknown store is taken")
	}
	if u, _ := url.Parse("http://x/metadata"); u.Host != "x" {
		t.Fatal(u)
	}
}
