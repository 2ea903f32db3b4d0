package segment

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// portOf serves memory on a data port of its own.
func portOf(t *testing.T, m *Memory, adjust func(*dataPort)) *dataPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newDataPort(l, time.Now)
	adjust(p)
	p.add(newRegion(Buffer{Addr: m.Address(), Length: uint64(len(m.Bytes())), Name: "x"}, m.Bytes()))
	p.wg.Add(1)
	go p.serve()
	t.Cleanup(p.stop)
	return p
}

// open connects to a data port, and returns when the port serves the connection.
func (p *dataPort) open(t *testing.T, m *Memory) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	if err := ask(conn, m); err != nil {
		t.Fatal(err)
	}
	p.rest(t)
	return conn
}

// rest waits until nobody is being answered.
func (p *dataPort) rest(t *testing.T) {
	t.Helper()
	eventually(t, "all wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.callers {
			if c.waiting.Load() == 0 {
				return false
			}
		}
		return true
	})
}

// ask reads a byte.
func ask(conn net.Conn, m *Memory) error {
	if _, err := conn.Write(request{size: 1, addr: m.Address(), opcode: opRead}.append(nil)); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

// begin begins to write and goes no further.
func begin(t *testing.T, conn net.Conn, m *Memory) {
	t.Helper()
	clear(m.Bytes()[:1])
	conn.Write(append(request{size: uint64(len(m.Bytes())), addr: m.Address(), opcode: opWrite}.append(nil), 1))
	eventually(t, "what was sent arrives", func() bool { return m.Bytes()[0] == 1 })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never comes that ", what)
		}
	}
}

// TestAFullDataPort closes the connection that has been idle longest for a new one, and refuses the new one when all are at
// work.
func TestAFullDataPort(t *testing.T) {
	everythingEnds(t)
	m := memory(t, 4096)
	p := portOf(t, m, func(p *dataPort) { p.most = 2 })
	first := p.open(t, m)
	second := p.open(t, m)
	if err := ask(first, m); err != nil { // now the second is idle for longer
		t.Fatal(err)
	}
	p.rest(t)
	third := p.open(t, m)
	if err := ask(second, m); err == nil {
		t.Error("the one that was idle longest is kept")
	}
	if err := ask(first, m); err != nil {
		t.Errorf("one that was idle for a shorter time: %v", err)
	}
	begin(t, first, m)
	begin(t, third, m)
	fourth, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer fourth.Close()
	fourth.SetDeadline(time.Now().Add(time.Minute))
	if err := ask(fourth, m); err == nil {
		t.Error("one too many is served")
	}
	first.Write(make([]byte, 4095))
	if err := ask(first, m); err != nil {
		t.Errorf("one at work: %v", err)
	}
}

// TestSomebodyWhoStandsStill within a request is cut off, one who waits between requests is not.
func TestSomebodyWhoStandsStill(t *testing.T) {
	everythingEnds(t)
	const stall = 50 * time.Millisecond
	m := memory(t, 64<<20)
	p := portOf(t, m, func(p *dataPort) { p.stall = stall })
	idle := p.open(t, m)
	for name, does := range map[string]func(net.Conn){
		"within a header": func(c net.Conn) { c.Write(make([]byte, requestBytes-1)) },
		"within data": func(c net.Conn) {
			c.Write(append(request{size: 1000, addr: m.Address(), opcode: opWrite}.append(nil), 1))
		},
		"not reading": func(c net.Conn) { c.Write(request{size: 64 << 20, addr: m.Address(), opcode: opRead}.append(nil)) },
	} {
		conn := p.open(t, m)
		p.mu.Lock()
		before := len(p.callers)
		p.mu.Unlock()
		begun := time.Now()
		does(conn)
		eventually(t, "somebody "+name+" is cut off", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.callers) < before
		})
		if took := time.Since(begun); took < stall {
			t.Errorf("%s: cut off after %v already", name, took)
		}
	}
	if err := ask(idle, m); err != nil {
		t.Errorf("one who has waited: %v", err)
	}
}

// TestASlowReader gets all of it, as long as it gets on.
func TestASlowReader(t *testing.T) {
	everythingEnds(t)
	m := memory(t, 16<<20)
	copy(m.Bytes(), random(16<<20))
	p := portOf(t, m, func(p *dataPort) { p.stall = 2 * time.Second })
	conn := p.open(t, m)
	conn.Write(request{size: 16 << 20, addr: m.Address(), opcode: opRead}.append(nil))
	got := make([]byte, 16<<20)
	for at := 0; at < len(got); at += 1 << 20 {
		time.Sleep(5 * time.Millisecond)
		if _, err := io.ReadFull(conn, got[at:at+1<<20]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, m.Bytes()) {
		t.Error("it is not what lies there")
	}
}

// TestRequestsSentAhead are answered in order, in both framings.
func TestRequestsSentAhead(t *testing.T) {
	m := memory(t, 1<<20)
	p := portOf(t, m, func(*dataPort) {})
	conn := p.open(t, m)
	data := random(100_000)
	ahead := append(request{size: uint64(len(data)), addr: m.Address() + 5, opcode: opWrite | opAnswered}.append(nil), data...)
	ahead = request{size: 3, addr: m.Address() + 5, opcode: opRead}.append(ahead)
	ahead = append(request{size: 2, addr: m.Address() + 5, opcode: opWrite}.append(ahead), "ab"...)
	ahead = request{size: uint64(len(data)), addr: m.Address() + 5, opcode: opRead | opAnswered}.append(ahead)
	ahead = request{size: 1, addr: m.Address() - 1, opcode: opRead | opAnswered}.append(ahead)
	go conn.Write(ahead)
	got, err := io.ReadAll(conn)
	want := append(appendStatus(nil, statusDone), data[:3]...)
	want = append(append(appendStatus(want, statusDone), "ab"...), data[2:]...)
	want = appendStatus(want, statusRejected)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes come, %v, want %d", len(got), err, len(want))
	}
}

// TestAPortThatStops ends everything at once.
func TestAPortThatStops(t *testing.T) {
	everythingEnds(t)
	m := memory(t, 4096)
	p := portOf(t, m, func(*dataPort) {})
	idle, busy := p.open(t, m), p.open(t, m)
	begin(t, busy, m)
	p.stop()
	for _, conn := range []net.Conn{idle, busy} {
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	if _, err := net.Dial("tcp", p.listener.Addr().String()); err == nil {
		t.Error("somebody still listens")
	}
}
