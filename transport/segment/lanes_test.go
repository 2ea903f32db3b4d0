package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// everythingEnds fails a test after which goroutines or descriptors are left that weren't there before.
func everythingEnds(t *testing.T) {
	t.Helper()
	count := func() (goroutines, descriptors int) {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc to count descriptors in")
		}
		return runtime.NumGoroutine(), len(all)
	}
	goroutines, descriptors := count()
	t.Cleanup(func() {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			g, d := count()
			if g <= goroutines && d <= descriptors {
				return
			}
			if time.Now().After(deadline) {
				var text [64 << 10]byte
				t.Errorf("%d goroutines and %d descriptors became %d and %d\n%s", goroutines, descriptors, g, d, text[:runtime.Stack(text[:], true)])
				return
			}
		}
	})
}

// badPeer is an owner whose data port does what a test says with every connection, which is closed afterwards.
func badPeer(t *testing.T, version, lanes int, stall time.Duration, does func(*net.TCPConn)) *lanes {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				does(conn.(*net.TCPConn))
			})
		}
	})
	p := newLanes(l.Addr().String(), version, lanes, stall, time.Now)
	t.Cleanup(func() {
		p.close()
		l.Close()
		wg.Wait()
	})
	return p
}

// drop ends a connection as the end of a process does that has not read everything.
func drop(conn *net.TCPConn) {
	conn.SetLinger(0)
	conn.Close()
}

// eachWay runs a test with both versions, reading and writing.
func eachWay(t *testing.T, f func(t *testing.T, version int, op byte)) {
	for _, version := range []int{1, 2} {
		for op, name := range map[byte]string{opRead: "read", opWrite: "write"} {
			t.Run(fmt.Sprint(name, version), func(t *testing.T) { f(t, version, op) })
		}
	}
}

// TestAPeerThatSaysNothing has vanished without a word, or doesn't read: the transfer fails when nothing has moved for
// long enough.
func TestAPeerThatSaysNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, version int, op byte) {
		everythingEnds(t)
		p := badPeer(t, version, 1, 50*time.Millisecond, func(*net.TCPConn) { <-t.Context().Done() })
		err := p.transfer(t.Context(), request{size: 32 << 20, addr: 1, opcode: op}, make([]byte, 32<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "nothing has moved for 50ms") {
			t.Errorf("%v", err)
		}
		if is := errors.Is(err, ErrUnsettled); is != (op == opWrite) {
			t.Errorf("it is %t that %v is unsettled", is, err)
		}
		if len(p.idle) > 0 || len(p.busy) > 0 {
			t.Errorf("%d connections are kept for later, %d are at work", len(p.idle), len(p.busy))
		}
	})
}

// TestAPeerThatDies does so before, within and after a transfer.
func TestAPeerThatDies(t *testing.T) {
	eachWay(t, func(t *testing.T, version int, op byte) {
		everythingEnds(t)
		const size = 8 << 20
		for _, after := range []int{0, 1, requestBytes - 1, requestBytes, requestBytes + 1, requestBytes + size/2} {
			p := badPeer(t, version, 1, time.Minute, func(conn *net.TCPConn) {
				io.CopyN(io.Discard, conn, int64(min(after, requestBytes)))
				if more := after - requestBytes; op == opWrite && more > 0 {
					io.CopyN(io.Discard, conn, int64(more))
				} else if more > 0 {
					conn.Write(append(appendStatus(nil, statusDone), make([]byte, more)...))
				}
				drop(conn)
			})
			err := p.transfer(t.Context(), request{size: size, addr: 1, opcode: op}, make([]byte, size))
			if !disconnected(err) || errors.Is(err, ErrUnsettled) || version == 2 && !strings.Contains(err.Error(), p.address) {
				t.Errorf("after %d bytes: %v", after, err)
			}
		}
	})
}

// TestConnectionsThatHaveGoneStale are replaced, and the transfer is done all the same.
func TestConnectionsThatHaveGoneStale(t *testing.T) {
	eachWay(t, func(t *testing.T, version int, op byte) {
		everythingEnds(t)
		h, m := host(t, P2P, "127.0.0.1:1"), memory(t, 1<<20)
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		data := h.lender.(tcpLender).port
		p := newLanes(data.listener.Addr().String(), version, 3, time.Minute, time.Now)
		t.Cleanup(p.close)
		for round := range 3 {
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					want, at := random(1000+i), uint64(i*10_000)
					if op == opRead {
						copy(m.Bytes()[at:], want)
					}
					got := bytes.Clone(want)
					if err := p.transfer(t.Context(), request{size: uint64(len(got)), addr: m.Address() + at, opcode: op}, got); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
					if !bytes.Equal(got, want) || !bytes.Equal(m.Bytes()[at:at+uint64(len(want))], want) {
						t.Errorf("round %d: %d bytes are not what they were", round, len(got))
					}
				})
			}
			wg.Wait()
			data.mu.Lock()
			for data.closeIdle() {
			}
			data.mu.Unlock()
		}
	})
}

// TestARejectionIsHeardWhileSending: the peer says no to a large write and takes nothing of it.
func TestARejectionIsHeardWhileSending(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"and goes":  drop,
		"and waits": func(conn *net.TCPConn) { io.Copy(io.Discard, conn) },
	} {
		t.Run(name, func(t *testing.T) {
			everythingEnds(t)
			p := badPeer(t, 2, 1, time.Minute, func(conn *net.TCPConn) {
				io.CopyN(io.Discard, conn, requestBytes)
				conn.Write(appendStatus(nil, statusRejected))
				end(conn)
			})
			err := p.transfer(t.Context(), request{size: 256 << 20, addr: 1, opcode: opWrite}, make([]byte, 256<<20))
			if !errors.Is(err, ErrRejected) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAnswersThatAreNone are errors, and nothing is asked over such a connection again.
func TestAnswersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name, answer, want string
		op                 byte
	}{
		{"rubbish", "HTTP/1.1", "is no status", opRead},
		{"rubbish", "HTTP/1.1", "is no status", opWrite},
		{"unknown status", string(appendStatus(nil, 77)), "status 77", opRead},
		{"unknown status", string(appendStatus(nil, 77)), "status 77", opWrite},
		{"more than was asked for", string(appendStatus(nil, statusDone)) + "yyyyz", "", opRead},
		{"more than a status", string(appendStatus(nil, statusDone)) + "z", "", opWrite},
	} {
		t.Run(fmt.Sprint(c.name, c.op), func(t *testing.T) {
			everythingEnds(t)
			p := badPeer(t, 2, 1, time.Minute, func(conn *net.TCPConn) {
				io.CopyN(io.Discard, conn, requestBytes)
				io.WriteString(conn, c.answer)
				io.Copy(io.Discard, conn)
			})
			data := []byte("xxxx")
			err := p.transfer(t.Context(), request{size: 4, addr: 1, opcode: c.op}, data)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.want == "" && c.op == opRead && string(data) != "yyyy" {
				t.Errorf("%q is read", data)
			}
			if len(p.idle) > 0 {
				t.Error("the connection is kept")
			}
		})
	}
}

// TestVersionOneSaysNoByClosing: it has no other way.
func TestVersionOneSaysNoByClosing(t *testing.T) {
	for _, op := range []byte{opRead, opWrite} {
		p := badPeer(t, 1, 1, time.Minute, func(conn *net.TCPConn) { io.CopyN(io.Discard, conn, requestBytes) })
		if err := p.transfer(t.Context(), request{size: 4, addr: 1, opcode: op}, make([]byte, 4)); !errors.Is(err, ErrRejected) {
			t.Errorf("opcode %d: %v", op, err)
		}
	}
}

// TestTransfersAreGivenUp at any moment: they end at once, and those that come after them are whole.
func TestTransfersAreGivenUp(t *testing.T) {
	eachWay(t, func(t *testing.T, version int, op byte) {
		everythingEnds(t)
		h, m := host(t, P2P, "127.0.0.1:1"), memory(t, 2<<20)
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		p := newLanes(h.lender.(tcpLender).port.listener.Addr().String(), version, 2, time.Minute, time.Now)
		t.Cleanup(p.close)
		want := random(2 << 20)
		copy(m.Bytes(), want)
		q := request{size: 2 << 20, addr: m.Address(), opcode: op}
		ended := 0
		for round := range 16 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*200*time.Microsecond)
			got := bytes.Clone(want)
			switch err := p.transfer(ctx, q, got); {
			case err == nil && !bytes.Equal(got, want):
				t.Fatalf("round %d: the bytes are others", round)
			case err != nil && ctx.Err() == nil:
				t.Fatalf("round %d: %v", round, err)
			case err != nil:
				ended++
			}
			cancel()
			if err := p.transfer(t.Context(), q, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("round %d, afterwards: %v", round, err)
			}
		}
		if ended == 0 {
			t.Error("no transfer was given up")
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Error("the memory has changed")
		}
	})
}

// TestAWriteThatWasGivenUp changes nothing any more once that has been said.
func TestAWriteThatWasGivenUp(t *testing.T) {
	everythingEnds(t)
	h, m := host(t, P2P, "127.0.0.1:1"), memory(t, 4<<20)
	if err := h.Register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{1, 2} {
		p := newLanes(h.lender.(tcpLender).port.listener.Addr().String(), version, 1, time.Minute, time.Now)
		t.Cleanup(p.close)
		data := bytes.Repeat([]byte{byte(version)}, 4<<20)
		given := 0
		for round := range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*100*time.Microsecond)
			err := p.transfer(ctx, request{size: 4 << 20, addr: m.Address(), opcode: opWrite}, data)
			cancel()
			if err == nil || errors.Is(err, ErrUnsettled) { // the latter if this machine is very slow
				continue
			}
			given++
			clear(m.Bytes()) // as the next one who has the memory would
			if err := p.transfer(t.Context(), request{size: 1, addr: m.Address(), opcode: opRead}, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Bytes(), make([]byte, 4<<20)) {
				t.Fatalf("version %d, round %d: it has been written to", version, round)
			}
		}
		if given == 0 {
			t.Errorf("version %d: no write was given up", version)
		}
	}
}

// TestAWriteToOneWhoHangs ends soon, too.
func TestAWriteToOneWhoHangs(t *testing.T) {
	everythingEnds(t)
	hangs := make(chan bool, 2)
	p := badPeer(t, 2, 1, time.Minute, func(conn *net.TCPConn) {
		io.CopyN(io.Discard, conn, 1)
		hangs <- true
		<-t.Context().Done()
	})
	for _, size := range []int{1, 64 << 20} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-hangs
			cancel()
		}()
		begun := time.Now()
		if err := p.transfer(ctx, request{size: uint64(size), addr: 1, opcode: opWrite}, make([]byte, size)); !errors.Is(err, ErrUnsettled) || ctx.Err() == nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		cancel()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%d bytes: it took %v to give up", size, took)
		}
	}
}

// TestAllLanesClosed: that fails what is under way and what comes later.
func TestAllLanesClosed(t *testing.T) {
	everythingEnds(t)
	begun := make(chan struct{})
	p := badPeer(t, 2, 1, time.Minute, func(conn *net.TCPConn) {
		io.CopyN(io.Discard, conn, requestBytes)
		close(begun)
		<-t.Context().Done()
	})
	failed := make(chan error)
	q := request{size: 4, addr: 1, opcode: opRead}
	go func() { failed <- p.transfer(t.Context(), q, make([]byte, 4)) }()
	<-begun
	p.close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("under way: %v", err)
	}
	if err := p.transfer(t.Context(), q, make([]byte, 4)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("later: %v", err)
	}
}

// TestNobodyListens: the error says where.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	p := newLanes(address, 2, 1, time.Minute, time.Now)
	err = p.transfer(t.Context(), request{size: 1, addr: 1}, make([]byte, 1))
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), address) {
		t.Errorf("%v", err)
	}
}

// TestEveryLengthAndPlace: it crosses the borders of what is joined, of what is read ahead and of chunks, and the places in a
// page at which sending is done otherwise.
func TestEveryLengthAndPlace(t *testing.T) {
	eachWay(t, func(t *testing.T, version int, op byte) {
		h, m := host(t, P2P, "127.0.0.1:1"), memory(t, 6<<20)
		if err := h.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		p := newLanes(h.lender.(tcpLender).port.listener.Addr().String(), version, 1, time.Minute, time.Now)
		t.Cleanup(p.close)
		var sizes []int
		for _, border := range []int{8, requestBytes, pageBytes, readAhead, joinedBytes, sendPiece, 2 * sendPiece} {
			for _, d := range []int{-2 * requestBytes, -statusBytes - 1, -statusBytes, -1, 0, 1, statusBytes, requestBytes + 1} {
				sizes = append(sizes, max(border+d, 1))
			}
		}
		sizes = append(sizes, transferChunk, transferChunk+joinedBytes+1)
		content := random(6 << 20)
		for i, size := range sizes {
			for k, place := range []int{0, 1, statusBytes, requestBytes, pageBytes - lag, pageBytes - 1, pageBytes - statusBytes} {
				if size >= transferChunk && k%3 > 0 {
					continue
				}
				from := (i*7919 + place) % (1 << 20)
				from += place - from%pageBytes + pageBytes
				data := content[from : from+size]
				clear(m.Bytes()[from-1 : from+size+1])
				got := make([]byte, size+place)[place:]
				if op == opRead {
					copy(m.Bytes()[from:], data)
				} else {
					copy(got, data)
				}
				if err := p.transfer(t.Context(), request{size: uint64(size), addr: m.Address() + uint64(from), opcode: op}, got); err != nil {
					t.Fatalf("%d bytes at %d: %v", size, from, err)
				}
				if !bytes.Equal(got, data) || !bytes.Equal(m.Bytes()[from:from+size], data) || m.Bytes()[from-1] != 0 || m.Bytes()[from+size] != 0 {
					t.Fatalf("%d bytes at %d are not what was sent, or more", size, from)
				}
			}
		}
	})
}

// FuzzDataPort says anything to a data port. It takes no more than it was given, touches nothing but the memory that was
// asked for, and ends.
func FuzzDataPort(f *testing.F) {
	const base, size = 0x10000, 4096
	add := func(q request, more string) { f.Add(append(q.append(nil), more...)) }
	add(request{size: 4, addr: base, opcode: opWrite | opAnswered}, "good")
	add(request{size: 4, addr: base, opcode: opRead}, "")
	add(request{size: 4, addr: base + size - 4, opcode: opRead | opAnswered}, "")
	add(request{size: size + 1, addr: base, opcode: opWrite}, "")
	add(request{size: ^uint64(0), addr: base, opcode: opWrite | opAnswered}, "")
	add(request{size: 0, addr: base, opcode: 77}, "")
	add(request{size: 4, addr: base, opcode: opWrite}, string(request{size: 4, addr: base, opcode: opRead | opAnswered}.append([]byte("word"))))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		room := make([]byte, 3*size)
		mem := room[size : 2*size]
		p := newDataPort(nil, time.Now)
		p.add(newRegion(Buffer{Addr: base, Length: size, Name: "x"}, mem))
		conn := &monologue{in: bytes.NewReader(said)}
		p.converse(&caller{stream: newStream(conn, p.stall, p.now)})
		want, state := answers(said, base, make([]byte, size))
		if !bytes.Equal(conn.out.Bytes(), want) {
			t.Errorf("% x is answered with % x, want % x", said, conn.out.Bytes(), want)
		}
		if !bytes.Equal(room[:size], make([]byte, size)) || !bytes.Equal(room[2*size:], make([]byte, size)) {
			t.Error("memory beside is written to")
		}
		if !bytes.Equal(mem, state) {
			t.Errorf("% x leaves % x", said, mem)
		}
	})
}

// monologue is a connection whose other side has said everything before it listens.
type monologue struct {
	net.Conn // has no other methods
	in       *bytes.Reader
	out      bytes.Buffer
}

func (m *monologue) Read(b []byte) (int, error)  { return m.in.Read(b) }
func (m *monologue) Write(b []byte) (int, error) { return m.out.Write(b) }
func (*monologue) SetDeadline(time.Time) error   { return nil }

// answers is what a data port answers, and what it leaves in its memory, told as simply as can be.
func answers(said []byte, base uint64, mem []byte) (answer, _ []byte) {
	for len(said) >= requestBytes {
		size, addr, op := binary.LittleEndian.Uint64(said), binary.LittleEndian.Uint64(said[8:]), said[16]
		said = said[requestBytes:]
		good := size > 0 && size <= uint64(len(mem)) && addr >= base && addr-base <= uint64(len(mem))-size
		status := "\x00\x00\x00\x00VTCM"
		if !good {
			status = "\x01\x00\x00\x00VTCM"
		}
		if op >= 0x80 && (!good || op != 0x81) {
			answer = append(answer, status...)
		}
		if !good {
			break
		}
		at := mem[addr-base:][:size]
		if op&0x7f != 1 {
			answer = append(answer, at...)
			continue
		}
		n := copy(at, said)
		if said = said[n:]; uint64(n) < size {
			break
		}
		if op == 0x81 {
			answer = append(answer, status...)
		}
	}
	return answer, mem
}

// FuzzReadMessage takes anything as a message of the handshake port; what can be read can be written again.
func FuzzReadMessage(f *testing.F) {
	for _, text := range []string{frame(messageMetadata, `{}`), frame(messageUntyped, `{"a":1}`), frame(9, "1"), "\x01\x00\x00\x00\x00\x00\x00\x00\x01", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		kind, body, err := readMessage(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := writeMessage(&b, kind, body); err != nil || !bytes.HasPrefix(text, b.Bytes()) {
			t.Errorf("% x is written as % x: %v", text, b.Bytes(), err)
		}
	})
}
