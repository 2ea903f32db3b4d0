package segment

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// stream is a connection to a data port, seen from either end. What is read goes through a small buffer, so
// that a request or a status and short data behind it cost one system call; long data goes past it. One
// goroutine at a time uses it; anybody may close its connection.
//
// Its deadline is put off only now and then: setting one costs more than a short transfer may.
type stream struct {
	conn  net.Conn
	now   func() time.Time
	stall time.Duration // how long nothing may move at least; a quarter more at most
	until time.Time     // the connection's deadline; zero is none

	joined   []byte // where short messages are put together; nil until needed
	ahead    []byte // what has been read ahead is ahead[from:to]
	from, to int

	vec  [3][]byte
	bufs net.Buffers // what is left of vec, kept here so that it needn't be allocated
}

const (
	// readAhead is how much may be read beyond what was asked for, in bytes: a short value with what
	// goes before it. Up to so much is copied once more.
	readAhead = 16 << 10
	// The copying of processors with fast short "rep movsb" is up to sixteen times slower when the target
	// lies 1 to lag bytes beyond the source within their pages, which data behind a status or the head
	// of a request does: the kernel collects what is sent in pieces of sendPiece bytes, the first of
	// which begins with the head.
	lag       = 31
	pageBytes = 4096
	sendPiece = 32 << 10
	// joinedBytes are sent from one buffer. When more is to be sent, so little is left of the first piece
	// that the kernel takes another one, and the rest of the data comes to lie otherwise.
	joinedBytes = sendPiece - lag
	// transferChunk is how much is sent under one deadline, in bytes.
	transferChunk = 4 << 20
	// DefaultStall is how long a transfer over TCP may stand still.
	DefaultStall = 30 * time.Second
)

func newStream(conn net.Conn, stall time.Duration, now func() time.Time) *stream {
	return &stream{conn: conn, now: now, stall: stall, ahead: make([]byte, readAhead)}
}

// extend gives what is done next at least the time that it may stand still.
func (s *stream) extend() error {
	now := s.now()
	if s.until.Sub(now) >= s.stall {
		return nil
	}
	s.until = now.Add(s.stall + s.stall/4)
	return s.conn.SetDeadline(s.until)
}

// await waits for the first byte of what comes next, as long as it takes.
func (s *stream) await() error {
	for s.from == s.to {
		n, err := s.conn.Read(s.ahead)
		s.from, s.to = 0, n
		switch {
		case n > 0:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.until = time.Time{}
			if err := s.conn.SetDeadline(s.until); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// fill reads until dst is full.
func (s *stream) fill(dst []byte) error {
	for {
		n := copy(dst, s.ahead[s.from:s.to])
		s.from += n
		if dst = dst[n:]; len(dst) == 0 {
			return nil
		}
		if err := s.extend(); err != nil {
			return err
		}
		var err error
		if len(dst) >= len(s.ahead) {
			n, err = s.conn.Read(dst)
			dst = dst[n:]
		} else {
			n, err = s.conn.Read(s.ahead)
			s.from, s.to = 0, n
		}
		if err != nil && n == 0 {
			return err
		}
	}
}

// send writes a head, data and a tail. Between the chunks of the data, check is asked whether to go on; nil
// always does.
func (s *stream) send(head, data, tail []byte, check func() error) error {
	if err := s.extend(); err != nil {
		return err
	}
	if len(head)+len(data)+len(tail) <= joinedBytes {
		_, err := s.conn.Write(s.join(head, data, tail))
		return err
	}
	if len(data) > 0 && lagging(len(head), data) {
		n := joinedBytes - len(head)
		if _, err := s.conn.Write(s.join(head, data[:n], nil)); err != nil {
			return err
		}
		head, data = nil, data[n:]
	}
	for {
		chunk := data[:min(len(data), transferChunk)]
		data = data[len(chunk):]
		s.vec = [3][]byte{head, chunk, nil}
		if len(data) == 0 {
			s.vec[2] = tail
		}
		s.bufs = s.vec[:]
		if _, err := s.bufs.WriteTo(s.conn); err != nil || len(data) == 0 {
			return err
		}
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		if err := s.extend(); err != nil {
			return err
		}
		head = nil
	}
}

// join puts parts one behind the other.
func (s *stream) join(parts ...[]byte) []byte {
	if s.joined == nil {
		s.joined = make([]byte, joinedBytes+lag)
	}
	b := s.joined[:0]
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}

// lagging reports whether the kernel would copy data slowly that is sent behind so many bytes.
func lagging(before int, data []byte) bool {
	ahead := (uintptr(before) - uintptr(unsafe.Pointer(&data[0]))) % pageBytes
	return ahead > 0 && ahead <= lag
}

// glance reads ahead what has arrived already and reports whether n bytes are there.
func (s *stream) glance(n int) bool {
	if s.from > 0 {
		s.to = copy(s.ahead, s.ahead[s.from:s.to])
		s.from = 0
	}
	socket, ok := s.conn.(syscall.Conn)
	if !ok {
		return s.to >= n
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	// An error means that nothing is there.
	_ = raw.Read(func(fd uintptr) bool {
		if got, err := syscall.Read(int(fd), s.ahead[s.to:]); err == nil && got > 0 {
			s.to += got
		}
		return true
	})
	return s.to >= n
}

// rest reports whether something has been read that nobody has taken.
func (s *stream) rest() bool { return s.from < s.to }
